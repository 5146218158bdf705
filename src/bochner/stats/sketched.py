"""Signed sums of rows: a short matrix whose Gram is nearly that of all rows (Charikar, Chen & Farach-Colton 2002)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64
from bochner.errors import DataError
from bochner.seeds import Seed
from bochner.stats.base import Batch, Statistic
from bochner.stats.products import TILE

#: rows of a sketch that are filled at the same time: rows that lie next to each other never share one
BUCKETS = 512


class Sketch(Statistic):
    """S Z with E[SᵀS] = 1: each row, times √w and a random sign, is added into one of n/``together`` rows.

    As a preconditioner it is worth several times as many sampled rows: every row counts, so that those
    that are unlike the others are not missed.  Signs and places go by the number of the row alone.

    >>> sketch = Sketch(2, together=4)
    >>> sketch.update(Batch(np.ones((6, 2)), np.zeros((6, 1)), rows=np.arange(6)))
    >>> bool(np.abs(sketch.take(np.ones(2))).max() == 0.0)
    True
    """

    tile_bytes = TILE

    def __init__(
        self, width: int, together: int, seed: int | Seed = 0, held: int | None = None, dtype: Any = np.float32
    ):
        self.width, self.together, self.held, self.dtype = width, together, held, np.dtype(dtype)
        self.seed = seed if isinstance(seed, Seed) else Seed(seed).child("sketch")
        self._windows: dict[int, Float] = {}
        #: Σ ± √w of each row of the sketch
        self._counts: dict[int, Float64] = {}
        self._signs: dict[int, NDArray[np.int8]] = {}

    def fresh(self) -> Self:
        return type(self)(self.width, self.together, self.seed, self.held, self.dtype)

    def update(self, batch: Batch) -> None:
        if batch.target is None or batch.fold == self.held or not len(batch.Z):
            return
        if batch.rows is None:
            raise DataError("a sketch needs the numbers of the rows")
        root = np.ones(len(batch.Z)) if batch.weight is None else np.sqrt(batch.weight)
        strips = batch.rows // BUCKETS
        # Rows of one strip have different buckets, and those that follow each other neighbouring ones.
        starts = np.flatnonzero((np.diff(batch.rows, prepend=-2) != 1) | (np.diff(strips, prepend=-1) != 0))
        if len(starts) > 1 + len(batch.Z) // 8:
            order = np.argsort(batch.rows, kind="stable")
            self._add_scattered(batch.Z[order], batch.rows[order], root[order])
            return
        for start, stop in zip(starts, [*starts[1:], len(batch.Z)], strict=True):
            here = slice(start, stop)
            into, counts, factor, buckets = self._place(batch.rows[here], root[here])
            run = slice(buckets[0], buckets[-1] + 1)
            counts[run] += factor
            into[:, run] += batch.Z[here].T * factor.astype(into.dtype)

    def _add_scattered(self, Z: Float, rows: NDArray[np.int64], root: Float64) -> None:
        starts = np.flatnonzero(np.diff(rows // BUCKETS, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(Z)], strict=True):
            into, counts, factor, buckets = self._place(rows[start:stop], root[start:stop])
            counts[buckets] += factor
            into[:, buckets] += Z[start:stop].T * factor.astype(into.dtype)

    def _place(
        self, rows: NDArray[np.int64], root: Float64
    ) -> tuple[Float, Float64, Float64, NDArray[np.int64]]:
        """Where rows of one strip go: sums and counts of a window, ±√w, buckets."""
        window = int(rows[0]) // (BUCKETS * self.together)
        if window not in self._windows:
            self._windows[window] = np.zeros((self.width, BUCKETS), dtype=self.dtype)
            self._counts[window] = np.zeros(BUCKETS)
            self._signs[window] = self.seed.stream("signs", window).signs(BUCKETS * self.together)
        signs = self._signs[window][rows % (BUCKETS * self.together)]
        return self._windows[window], self._counts[window], signs * root, rows % BUCKETS

    def take(self, mean: Float64) -> Float:
        """The sketch of z − mean, one window after another; the statistic is empty afterwards."""
        out = np.empty((self.width, BUCKETS * len(self._windows)), dtype=self.dtype)
        for i, window in enumerate(sorted(self._windows)):
            # Popped one by one, so that the sketch is in memory once.
            part = self._windows.pop(window)
            part -= np.multiply.outer(mean, self._counts.pop(window)).astype(self.dtype)
            out[:, i * BUCKETS : (i + 1) * BUCKETS] = part
        self._signs.clear()
        return out.T

    def __add__(self, other: Self) -> Self:
        mine, theirs = ((s.width, s.together, s.seed, s.held, s.dtype) for s in (self, other))
        if mine != theirs:
            raise DataError("sketches of different shapes or seeds do not add")
        total = self.fresh()
        total._windows, total._counts = dict(self._windows), dict(self._counts)
        for window, rows in other._windows.items():
            mine = total._windows.get(window)
            total._windows[window] = rows if mine is None else mine + rows
            counts = total._counts.get(window)
            total._counts[window] = other._counts[window] if counts is None else counts + other._counts[window]
        total._signs = {**self._signs, **other._signs}
        return total

    @property
    def nbytes(self) -> int:
        """Of the window that is being filled: others are there once, in whichever thread they were filled."""
        return self.width * BUCKETS * self.dtype.itemsize
