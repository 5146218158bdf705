"""Signed sums of rows: a short matrix whose Gram is nearly that of all rows (Charikar, Chen & Farach-Colton 2002)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64
from bochner.errors import DataError
from bochner.seeds import Seed
from bochner.stats.base import Batch, Statistic
from bochner.stats.products import TILE

#: rows of a sketch that are filled at the same time: rows that lie next to each other never share one.  More would
#: not fit in the cache
BUCKETS = 128
#: buckets that lie side by side in memory, feature by feature, as rows do in a tile
STRIP = 64


class Sketch(Statistic):
    """S Z with E[SᵀS] = 1: each row, times √w and a random sign, is added into one of n/``together`` rows.

    As a preconditioner it is worth several times as many sampled rows: every row counts, so that those
    that are unlike the others are not missed.  Signs and places go by the number of the row alone.

    >>> sketch = Sketch(2, together=4)
    >>> sketch.update(Batch(np.ones((6, 2)), np.zeros((6, 1)), rows=np.arange(6)))
    >>> bool(np.abs(sketch.take(np.ones(2))).max() == 0.0)
    True
    """

    def __init__(
        self, width: int, together: int, seed: int | Seed = 0, held: int | None = None, dtype: Any = np.float32
    ):
        self.width, self.together, self.held, self.dtype = width, together, held, np.dtype(dtype)
        self.seed = seed if isinstance(seed, Seed) else Seed(seed).child("sketch")
        #: whole strips
        self.tile_bytes = max(TILE, STRIP * width * int(self.dtype.itemsize))
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
        rows, Z = batch.rows, batch.Z
        breaks = np.diff(rows, prepend=-2) != 1
        if 8 * np.count_nonzero(breaks) > len(rows) + 8:  # rows of one strip together, if not next to each other
            order = np.argsort(rows, kind="stable")
            rows, root, Z = rows[order], root[order], Z[order]
        starts = np.flatnonzero(np.diff(rows // STRIP, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
            self._add(rows[start:stop], root[start:stop], Z[start:stop])

    def _add(self, rows: NDArray[np.int64], root: Float64, Z: Float) -> None:
        """Rows of one strip: no two of them have the same bucket."""
        window, place = divmod(int(rows[0]), BUCKETS * self.together)
        if window not in self._windows:
            self._windows[window] = np.zeros((BUCKETS // STRIP, self.width, STRIP), dtype=self.dtype)
            self._counts[window] = np.zeros(BUCKETS)
            self._signs[window] = self.seed.stream("signs", window).signs(BUCKETS * self.together)
        factor = self._signs[window][rows % (BUCKETS * self.together)] * root
        self._counts[window][rows % BUCKETS] += factor
        into, cast = self._windows[window][place % BUCKETS // STRIP], factor.astype(self.dtype)
        if len(rows) == STRIP and rows[-1] - rows[0] == STRIP - 1:
            into += Z.T * cast
        else:
            into[:, rows % STRIP] += Z.T * cast

    def take(self, mean: Float64) -> Float:
        """The sketch of z − mean, one window after another; the statistic is empty afterwards."""
        out = np.empty((self.width, BUCKETS * len(self._windows)), dtype=self.dtype)
        for i, window in enumerate(sorted(self._windows)):
            # Popped one by one, so that the sketch is in memory once.
            part = out[:, i * BUCKETS : (i + 1) * BUCKETS]
            part.reshape(self.width, -1, STRIP)[...] = self._windows.pop(window).swapaxes(0, 1)
            part -= np.multiply.outer(mean, self._counts.pop(window)).astype(self.dtype)
        self._signs.clear()
        return out.T

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {"windows": np.array(sorted(self._windows), dtype=np.int64)}
        for window, rows in self._windows.items():
            arrays |= {f"{window}.rows": rows, f"{window}.counts": self._counts[window]}
        return arrays

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        other = self.fresh()
        for window in arrays["windows"].tolist():
            other._windows[window] = arrays[f"{window}.rows"].copy()
            other._counts[window] = arrays[f"{window}.counts"].copy()
            other._signs[window] = self.seed.stream("signs", window).signs(BUCKETS * self.together)
        return other

    def __add__(self, other: Self) -> Self:
        shape, others = ((s.width, s.together, s.seed, s.held, s.dtype) for s in (self, other))
        if shape != others:
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
        return self.width * BUCKETS * int(self.dtype.itemsize)
