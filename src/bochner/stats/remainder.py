"""What is left of the targets when a model is taken off, row by row: for solvers that fit a part of it at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from bochner.arrays import Float64
from bochner.errors import DataError
from bochner.stats.base import Batch, Statistic


class Remainder:
    """Targets minus a model, (rows, outputs): filled as rows first go by, and in memory for all of them."""

    def __init__(self, rows: int, outputs: int):
        self.values = np.zeros((rows, outputs))
        self.filled = False

    def of(self, batch: Batch) -> Float64:
        """For the rows of a batch, which must be numbered; before it is ``filled``, their targets."""
        if batch.rows is None or batch.target is None:
            raise DataError("a remainder needs targets and the numbers of the rows")
        if not self.filled:
            if batch.target.ndim == 1:
                self.values[batch.rows] = 0.0
                self.values[batch.rows, batch.target] = 1.0
            else:
                self.values[batch.rows] = batch.target
        return np.asarray(self.values[batch.rows])


class Against(Statistic):
    """A statistic ``of`` features whose targets are the remainder of the rows."""

    shared = True

    def __init__(self, of: Any, remainder: Remainder):
        self.of, self.remainder = of, remainder
        self.tile_bytes = of.tile_bytes

    def fresh(self) -> Self:
        return type(self)(self.of.fresh(), self.remainder)

    @property
    def nbytes(self) -> int:
        return int(self.of.nbytes)

    def update(self, batch: Batch) -> None:
        if batch.target is not None and len(batch.Z):
            self.of.update(replace(batch, target=self.remainder.of(batch)))

    def __add__(self, other: Self) -> Self:
        return type(self)(self.of + other.of, self.remainder)


class Less(Statistic):
    """Takes (z − mean) @ coef off the remainder of every labelled row: a sweep for what it does to the rows."""

    shared = True

    def __init__(self, coef: Float64, mean: Float64, remainder: Remainder):
        self.coef, self.mean, self.remainder = coef, mean, remainder

    def fresh(self) -> Self:
        return self

    def update(self, batch: Batch) -> None:
        if batch.target is None or not len(batch.Z):
            return
        off = np.asarray(batch.Z @ self.coef.astype(batch.Z.dtype) - self.mean @ self.coef, dtype=np.float64)
        self.remainder.values[batch.rows] -= off

    def __add__(self, other: Self) -> Self:
        return self
