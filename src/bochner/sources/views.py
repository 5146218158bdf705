"""Two views of the same rows: some columns of a source, and two sources side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp

from bochner.arrays import dense
from bochner.errors import DataError
from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.scaling import Scaling
from bochner.sources.schema import Column, Schema


class Selected(Source):
    """Some of the numbers of every row.

    >>> from bochner.sources import MemorySource
    >>> next(Selected(MemorySource(np.arange(6.0).reshape(2, 3)), [2, 0]).chunks()).X.tolist()
    [[2.0, 0.0], [5.0, 3.0]]
    """

    def __init__(self, source: Source, columns: Sequence[int]):
        self._source, self._columns = source, np.asarray(columns, dtype=np.int64)
        names = source.schema.names
        chosen = None if names is None else tuple(Column(names[j]) for j in self._columns)
        self.schema = Schema(plain=len(self._columns)) if chosen is None else Schema(chosen)
        self.n_rows, self.sparse, self.target = source.n_rows, source.sparse, source.target

    def with_schema(self, schema: Schema) -> Selected:
        return Selected(self._source.with_schema(schema), self._columns.tolist())

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        for chunk in self._source.chunks(size, start):
            yield replace(chunk, X=chunk.X[:, self._columns])

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": "selected", "columns": self._columns.tolist(), "rows": self._source.fingerprint()}


class Joined(Source):
    """The rows of two sources, each under its own scaling, side by side; weights are those of the first."""

    def __init__(self, first: Source, second: Source, scalings: tuple[Scaling, Scaling] = (Scaling(), Scaling())):
        if first.n_rows is not None and second.n_rows is not None and first.n_rows != second.n_rows:
            raise DataError(f"one view has {first.n_rows} rows, the other {second.n_rows}; rows must correspond")
        self._sources, self._scalings = (first, second), scalings
        self.schema = Schema(plain=first.d + second.d)
        self.n_rows = first.n_rows if first.n_rows is not None else second.n_rows
        self.sparse = first.sparse and second.sparse

    def with_schema(self, schema: Schema) -> Joined:
        raise DataError("two views side by side have no schema of a model; give each view its own")

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        for pair in zip_longest(*(source.chunks(size, start) for source in self._sources)):
            lengths = [0 if chunk is None else len(chunk) for chunk in pair]
            if lengths[0] != lengths[1]:
                place = next(chunk.start for chunk in pair if chunk is not None)
                raise DataError(f"one view ends at row {place + min(lengths)}, the other goes on; rows must correspond")
            X = [scaling.apply(chunk.X) for scaling, chunk in zip(self._scalings, pair, strict=True)]
            joined = sp.csr_array(sp.hstack(X, format="csr")) if self.sparse else np.hstack([dense(part) for part in X])
            yield replace(pair[0], X=joined, y=None)

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": "joined", "views": [source.fingerprint() for source in self._sources]}
