"""Averaged stochastic descent over groups of rows: one approximate pass."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bochner.arrays import Float, Float64, tiles
from bochner.errors import DataError
from bochner.stats.base import Batch, Statistic
from bochner.stats.folds import mixed
from bochner.stats.gradient import LossFunction

#: rows of a step: fewer give more steps, more give less noise and faster products
STEP = 256


class Averaged(Statistic):
    """The average of coefficients along stochastic steps for the mean loss + ½ decay ‖coef‖².

    A step is ``size`` · ``inverse`` @ gradient of a few rows, with ``inverse`` near that of the Hessian, of
    features about ``centre``.  Every group of rows begins at ``coef`` and ``intercept``, and the averages
    of groups are averaged (Zhang, Duchi & Wainwright 2013), so that groups can go in parallel.

    >>> from bochner.solvers.losses import SquaredHinge
    >>> way = Averaged(SquaredHinge(), np.zeros((1, 1)), np.zeros(1), np.zeros(1), np.eye(1), 0.0, size=0.25)
    >>> way.update(Batch(np.ones((256, 1)), np.ones(256, dtype=int), rows=np.arange(256)))
    >>> way.coef.tolist(), way.intercept.tolist()
    ([[0.5]], [0.5])
    """

    summed = ("coef", "intercept", "rows")
    tile_bytes = 1 << 22

    def __init__(
        self,
        loss: LossFunction,
        coef: Float64,
        intercept: Float64,
        centre: Float64,
        inverse: Float64,
        decay: float,
        size: float,
    ):
        self.of, self.start = loss, (coef, intercept)
        self.centre, self.inverse, self.decay, self.size = centre, inverse, decay, size
        self.coef, self.intercept = coef, intercept
        self.rows, self._mass = 0, 0.0
        self._here: tuple[Float64, Float64] = self.start
        self._casts: dict[str, tuple[Float, Float]] = {}

    def fresh(self) -> Self:
        return type(self)(self.of, *self.start, self.centre, self.inverse, self.decay, self.size)

    @property
    def nbytes(self) -> int:
        return 4 * self.coef.nbytes + self.inverse.nbytes // 2

    def update(self, batch: Batch) -> None:
        if batch.target is None or not len(batch.Z):
            return
        if batch.rows is None:
            raise DataError("rows are shuffled by their numbers, which this batch lacks")
        centre, inverse = self._cast(batch.Z.dtype)
        # Rows that lie together are often alike: steps go over them in an order of their own.
        order = np.argsort(mixed(batch.rows.astype(np.uint64), 2), kind="stable")
        coef, intercept = self._here
        for part in tiles(len(order), STEP):
            rows = order[part]
            Z = batch.Z[rows] - centre
            outputs = np.asarray(Z @ coef.astype(Z.dtype) + intercept, dtype=np.float64)
            slope = self.of.value_and_slope(outputs, batch.target[rows])[1] / len(rows)
            if batch.weight is not None:
                slope *= batch.weight[rows, None]
            gradient = Z.T @ slope.astype(Z.dtype) + self.decay * coef
            size = self.size * min(1.0, len(rows) / STEP)
            coef = coef - size * (inverse @ gradient.astype(Z.dtype))
            intercept = intercept - size * slope.sum(axis=0)
            # Later steps count more (Shamir & Zhang 2013), so that the start is forgotten.
            self.rows += len(rows)
            share = float(self.rows) * len(rows)
            self._mass += share
            self.coef = self.coef + (share / self._mass) * (coef - self.coef)
            self.intercept = self.intercept + (share / self._mass) * (intercept - self.intercept)
        self._here = coef, intercept

    def _cast(self, dtype: Any) -> tuple[Float, Float]:
        """Centre and inverse in the precision of the features."""
        if dtype.name not in self._casts:
            self._casts[dtype.name] = self.centre.astype(dtype), self.inverse.astype(dtype)
        return self._casts[dtype.name]

    def __add__(self, other: Self) -> Self:
        total = self.fresh()
        total.rows = self.rows + other.rows
        if total.rows:
            share = other.rows / total.rows
            total.coef = (1.0 - share) * self.coef + share * other.coef
            total.intercept = (1.0 - share) * self.intercept + share * other.intercept
        return total
