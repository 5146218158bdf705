"""What stands in for missing numbers: means, or medians or most frequent values of a sample, learnt in one pass."""

from __future__ import annotations

import numpy as np

from bochner.arrays import Float, Float64
from bochner.errors import DataError
from bochner.seeds import Seed

HOW = ("refuse", "mean", "median", "most_frequent")
#: a median or most frequent value is that of a sample of so many rows (all rows, if there are no more), fewer where
#: rows are wide
SAMPLE_ROWS, _SAMPLE_NUMBERS = 100_000, 1 << 22


def checked_missing(missing: str | float) -> str | float:
    """What a user asks for missing values: one of ``HOW``, or a finite number."""
    if isinstance(missing, str) and missing in HOW:
        return missing
    if isinstance(missing, (int, float, np.number)) and not isinstance(missing, bool) and np.isfinite(missing):
        return float(missing)
    raise DataError(f"missing is {', '.join(map(repr, HOW))} or a finite number; got {missing!r}")


class Fills:
    """Means, medians or most frequent values of columns in which NaN is missing.

    >>> fills = Fills("mean", 2)
    >>> fills.update(np.array([[1.0, np.nan], [3.0, 5.0]]))
    >>> fills.values(("a", "b")).tolist()
    [2.0, 5.0]
    """

    def __init__(self, how: str, d: int):
        self._how = how
        self._sum, self._count = np.zeros(d), np.zeros(d, dtype=np.int64)
        self._most = int(np.clip(_SAMPLE_NUMBERS // max(d, 1), 1000, SAMPLE_ROWS))
        self._blocks = 0
        self._keys: Float64 = np.empty(0)
        self._kept: list[Float] = []

    def update(self, X: Float) -> None:
        """Add the next rows."""
        self._sum += np.nansum(X, axis=0, dtype=np.float64)
        self._count += (~np.isnan(X)).sum(axis=0)
        if self._how == "mean":
            return
        keys = Seed(0).stream("median", self._blocks).uniform(len(X))
        self._blocks += 1
        self._keys = np.concatenate([self._keys, keys])
        self._kept.append(X)
        if len(self._keys) > 2 * self._most:
            self._thin()

    def _thin(self) -> None:
        smallest = np.sort(np.argsort(self._keys, kind="stable")[: self._most])
        self._kept, self._keys = [np.concatenate(self._kept)[smallest]], self._keys[smallest]

    def values(self, names: tuple[str, ...] | None) -> Float64:
        """What fills each column."""
        if (self._count == 0).any():
            column = int(np.flatnonzero(self._count == 0)[0])
            called = f"{column}" if names is None else repr(names[column])
            raise DataError(f"column {called} has no value at all; drop it", column=column)
        mean = self._sum / self._count
        if self._how == "mean":
            return mean
        self._thin()
        sample = self._kept[0]
        empty = np.asarray(np.isnan(sample).all(axis=0))  # values so rare that the sample has none
        if self._how == "most_frequent":
            return np.array([mean[j] if empty[j] else _commonest(sample[:, j]) for j in range(len(mean))])
        return np.where(empty, mean, np.nanmedian(np.where(empty, 0.0, sample), axis=0))


def _commonest(column: Float) -> float:
    """The value that occurs most often, the least of several."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return float(values[counts.argmax()])
