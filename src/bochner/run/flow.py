"""What a sweep goes over: source → scaling → rows in order of fold and class → features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, tiles
from bochner.errors import DataError
from bochner.features import Drawn
from bochner.sources import CHUNK, Chunk, Scaling, Source
from bochner.stats import Batch, Folds, Statistic, Targets

#: numbers in a chunk of dense rows, at most
_CHUNK_NUMBERS = 1 << 22
#: rows of a group, and how many groups a small source is cut into
_GROUP_ROWS, _GROUPS = 1 << 15, 8


@dataclass(frozen=True)
class Segment:
    """Rows of one fold: what becomes one or more batches."""

    X: Matrix
    #: numbers of the rows in the source
    rows: NDArray[np.int64]
    target: NDArray[Any] | None
    weight: Float64 | None
    fold: int


@dataclass(frozen=True)
class Flow:
    """A source, what is done to its rows, and the map of their features.

    ``dtype`` is the precision of rows and features (sums are always float64).  Without ``targets`` all
    rows count as they are; with them, rows that lack one are unlabelled.
    """

    source: Source
    drawn: Drawn
    scaling: Scaling = Scaling()  # noqa: RUF009 (frozen)
    targets: Targets | None = None
    folds: Folds | None = None
    dtype: str = "float32"
    #: the number of the first row: folds go by numbers, which continue when rows are added to a model
    first: int = 0
    #: whether the rows of a fold come by class, which makes sums of classes cheap
    by_class: bool = True
    #: whether features are cast to float64 for the statistic, whatever they were computed in
    promoted: bool = False

    @property
    def chunk(self) -> int:
        """Rows of a chunk: fewer where rows are wide, so that chunks stay near 16 MB."""
        if self.source.sparse:
            return CHUNK
        return int(min(CHUNK, max(512, 1 << (_CHUNK_NUMBERS // max(self.source.d, 1)).bit_length() - 1)))

    @property
    def group(self) -> int:
        """Chunks whose statistic is merged as one: by the data alone, since the last bits depend on it."""
        most = max(1, _GROUP_ROWS // self.chunk)
        if self.source.n_rows is None:
            return most
        return int(np.clip(self.source.n_rows // (self.chunk * _GROUPS), 1, most))

    def with_drawn(self, drawn: Drawn) -> Flow:
        """The same rows through another map."""
        return replace(self, drawn=drawn)

    def segments(self, chunk: Chunk) -> Iterator[Segment]:
        """The rows of a chunk by fold (unlabelled ones last), and by class within a fold."""
        n = len(chunk)
        weight = chunk.weight
        fold = np.zeros(n, dtype=np.int64)
        if self.folds is not None:
            fold = self.folds.of(self.first + chunk.numbers, chunk.group)
        target: NDArray[Any] | None = None
        if self.targets is not None:
            if chunk.y is None:
                raise DataError("the rows have no target; name one with target=…")
            target, labelled = self.targets.encode(chunk.y, chunk.start)
            fold = np.where(labelled, fold, np.iinfo(np.int64).max)
        order = np.argsort(fold, kind="stable")
        if target is not None and target.ndim == 1 and self.by_class:
            order = np.lexsort((target, fold))
        fold = fold[order]
        starts = np.flatnonzero(np.diff(fold, prepend=fold[0] - 1))
        for start, stop in zip(starts, [*starts[1:], n], strict=True):
            rows = order[start:stop]
            unlabelled = fold[start] == np.iinfo(np.int64).max
            whole = stop - start == n and np.array_equal(rows, np.arange(n))
            # Scaled before it is rounded: a large mean would take the digits of float32.
            X = self.scaling.apply(chunk.X if whole else chunk.X[rows]).astype(self.dtype, copy=False)
            yield Segment(
                X,
                chunk.start + rows,
                None if target is None or unlabelled else target[rows],
                None if weight is None else weight[rows],
                0 if unlabelled else int(fold[start]),
            )

    def tile(self, statistic: Statistic) -> int:
        """Rows whose features are formed together."""
        return int(np.clip(statistic.tile_bytes // (self.drawn.width * np.dtype(self.dtype).itemsize), 16, 4096))

    def feed(self, chunk: Chunk, statistic: Statistic) -> None:
        """Add the rows of a chunk to a statistic."""
        size = min(self.tile(statistic), len(chunk))
        # One room for every tile: memory that is asked for anew costs as much as the features.
        room = np.empty(size * self.drawn.width, dtype=self.dtype)
        for segment in self.segments(chunk):
            for rows in tiles(segment.X.shape[0], size):
                Z = features_of(self.drawn, segment.X[rows], segment.rows[rows], room)
                statistic.update(
                    Batch(
                        Z.astype(np.float64, copy=False) if self.promoted else Z,
                        None if segment.target is None else segment.target[rows],
                        None if segment.weight is None else segment.weight[rows],
                        segment.fold,
                        segment.rows[rows],
                    )
                )


def features_of(drawn: Drawn, X: Matrix, numbers: NDArray[np.int64], room: Float | None = None) -> Float:
    """The features of rows; an error names a row by its number in the source."""
    try:
        return drawn.laid(X, room)
    except DataError as error:
        raise error if error.row is None else error.located(int(numbers[error.row]) - error.row) from None
