"""Rows with numbers that are not their places: rows that are taken out of a model again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.errors import DataError
from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.schema import Schema


class Numbered(Source):
    """The rows of another source under other numbers, which say in which fold they are."""

    def __init__(self, source: Source, numbers: Any):
        self._source = source
        self._numbers: NDArray[np.int64] = np.asarray(numbers, dtype=np.int64).reshape(-1)
        self.schema, self.n_rows = source.schema, source.n_rows
        self.sparse, self.target = source.sparse, source.target
        if source.n_rows is not None and len(self._numbers) != source.n_rows:
            raise DataError(f"there are {source.n_rows} rows and {len(self._numbers)} numbers; give one for each row")

    def with_schema(self, schema: Schema) -> Numbered:
        return Numbered(self._source.with_schema(schema), self._numbers)

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        for chunk in self._source.chunks(size, start):
            yield replace(chunk, picked=self._numbers[chunk.start : chunk.start + len(chunk)])

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": "numbered", "numbers": self._numbers.tolist(), "rows": self._source.fingerprint()}
