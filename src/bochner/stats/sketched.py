"""Signed sums of rows: a short matrix whose Gram is nearly that of all rows (Charikar, Chen & Farach-Colton 2002)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

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

    def __init__(self, width: int, together: int, seed: int | Seed = 0, held: int | None = None):
        self.width, self.together, self.held = width, together, held
        self.seed = seed if isinstance(seed, Seed) else Seed(seed).child("sketch")
        self._windows: dict[int, Float] = {}
        #: Σ ± √w of each row of the sketch
        self._counts: dict[int, Float64] = {}
        self._signs: dict[int, Any] = {}

    @property
    def dtype(self) -> Any:
        """The precision of the features."""
        return next(iter(self._windows.values())).dtype if self._windows else np.float32

    def fresh(self) -> Self:
        return type(self)(self.width, self.together, self.seed, self.held)

    def update(self, batch: Batch) -> None:
        if batch.target is None or batch.fold == self.held or not len(batch.Z):
            return
        if batch.rows is None:
            raise DataError("a sketch needs the numbers of the rows")
        root = np.ones(len(batch.Z)) if batch.weight is None else np.sqrt(batch.weight)
        Z = batch.Z if batch.weight is None else batch.Z * root.astype(batch.Z.dtype)[:, None]
        windows, places = np.divmod(batch.rows, BUCKETS * self.together)
        for window in np.unique(windows).tolist():
            if window not in self._windows:
                self._windows[window] = np.zeros((BUCKETS, self.width), dtype=Z.dtype)
                self._counts[window] = np.zeros(BUCKETS)
                self._signs[window] = self.seed.stream("signs", window).signs(BUCKETS * self.together)
            into, here = self._windows[window], np.flatnonzero(windows == window)
            signs, buckets = self._signs[window][places[here]], places[here] % BUCKETS
            np.add.at(self._counts[window], buckets, signs * root[here])
            for i, sign, bucket in zip(here, signs, buckets, strict=True):
                (np.add if sign > 0 else np.subtract)(into[bucket], Z[i], out=into[bucket])

    def take(self, mean: Float64) -> Float:
        """The sketch of z − mean, one window after another; the statistic is empty afterwards."""
        out = np.empty((BUCKETS * len(self._windows), self.width), dtype=self.dtype)
        for i, window in enumerate(sorted(self._windows)):
            part = out[i * BUCKETS : (i + 1) * BUCKETS]
            # Popped one by one, so that the sketch is in memory once.
            np.subtract(
                self._windows.pop(window),
                np.multiply.outer(self._counts.pop(window), mean).astype(self.dtype),
                out=part,
            )
        return out

    def __add__(self, other: Self) -> Self:
        if (self.width, self.together, self.seed, self.held) != (other.width, other.together, other.seed, other.held):
            raise DataError("sketches of different shapes or seeds do not add")
        total = self.fresh()
        total._windows, total._counts = dict(self._windows), dict(self._counts)
        for window, rows in other._windows.items():
            mine = total._windows.get(window)
            total._windows[window] = rows if mine is None else mine + rows
            counts = total._counts.get(window)
            total._counts[window] = other._counts[window] if counts is None else counts + other._counts[window]
        return total
