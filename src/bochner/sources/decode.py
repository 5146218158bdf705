"""Record batches → rows of numbers, checked, with gaps filled as a schema says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from bochner.arrays import Float
from bochner.errors import DataError
from bochner.sources.columns import gap, numbers, one_hot, vectors
from bochner.sources.schema import Column


class Decoder:
    """Settled columns as numbers of one precision, in the order of the columns.

    Rows are in C order, as those of arrays are: the bits of what is computed from them may depend on it.
    """

    def __init__(self, columns: Sequence[Column], dtype: type):
        self.columns, self.dtype = tuple(columns), np.dtype(dtype)
        self._starts = [0, *accumulate(column.numbers for column in columns)]
        self._codes = {
            column.name: {value: code for code, value in enumerate(column.categories or ())} for column in columns
        }

    @property
    def d(self) -> int:
        return self._starts[-1]

    def rows(self, batch: Any) -> Float | None:
        """The rows of a batch that are numbers already: those of one vector column; they are not checked."""
        if len(self.columns) != 1 or self.columns[0].kind != "vector":
            return None
        found = vectors(batch[self.columns[0].name], self.columns[0])
        return found if found.dtype == self.dtype and found.flags.c_contiguous else None

    def write(self, batch: Any, out: Float) -> None:
        """Write the rows of a batch; they are not checked."""
        for column, start in zip(self.columns, self._starts, strict=False):
            array, place = batch[column.name], out[:, start : start + column.numbers]
            if column.kind == "category":
                one_hot(array, column, self._codes[column.name], place)
            elif column.kind == "vector":
                place[:] = vectors(array, column)
            else:
                place[:, 0] = numbers(array)

    def mend(self, out: Float, gaps: bool = False) -> Float:
        """Rows with what is missing filled, or refused; with ``gaps`` it stays NaN.  Infinities are refused."""
        # A sum is finite only when all terms are, and costs one pass without a temporary.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(out.sum()):
                return out
        fills = [(c, start) for c, start in zip(self.columns, self._starts, strict=False) if c.fill is not None]
        if fills and not gaps and not out.flags.writeable:
            out = out.copy()
        for column, start in fills if not gaps else ():
            place = out[:, start : start + column.numbers]
            absent = np.isnan(place)
            if absent.any():
                place[absent] = np.broadcast_to(np.asarray(column.fill), place.shape)[absent]
        bad = np.isinf(out) if gaps else ~np.isfinite(out)
        if bad.any():
            row, j = divmod(int(np.flatnonzero(bad.ravel())[0]), self.d)
            which = int(np.searchsorted(self._starts, j, side="right")) - 1
            name = self.columns[which].names[j - self._starts[which]]
            if np.isnan(out[row, j]):
                raise gap(row, name)
            raise DataError(
                f"row {row}, column {name!r} is {out[row, j]:g} (infinite, or too large for a float); "
                "clip or drop such rows",
                row,
                name,
            )
        return out
