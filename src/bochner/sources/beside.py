"""Rows from one place, their targets, weights or groups from another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bochner.errors import DataError
from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.memory import aligned, weights_of
from bochner.sources.schema import Schema


class Beside(Source):
    """The rows of another source with targets, weights or groups that are arrays: one entry for each row."""

    def __init__(self, source: Source, y: Any = None, weight: Any = None, group: Any = None):
        self._source, self._y, self._weight, self._group = source, y, weight, group
        self.sparse = source.sparse
        self.target = source.target if y is None else ("y",)
        self._settled = False

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The columns of the rows."""
        return self._source.schema

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]
        """The number of rows."""
        return self._source.n_rows

    def settle(self) -> Self:
        if not self._settled:
            self._source.settle()
            n = self._source.n_rows
            assert n is not None
            self._y, self._group = aligned(self._y, n, "target"), aligned(self._group, n, "group")
            weight = aligned(self._weight, n, "weight")
            self._weight = None if weight is None else weights_of(weight, 0)
            self._settled = True
        return self

    def with_schema(self, schema: Schema) -> Beside:
        return Beside(self._source.with_schema(schema), self._y, self._weight, self._group)

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        self.settle()
        given = {"y": self._y, "weight": self._weight, "group": self._group}
        for chunk in self._source.chunks(size, start):
            rows = slice(chunk.start, chunk.start + len(chunk))
            yield replace(chunk, **{name: array[rows] for name, array in given.items() if array is not None})

    def targets(self, size: int = CHUNK) -> Iterator[NDArray[Any]]:
        self.settle()
        if self._y is None:
            yield from self._source.targets(size)
        else:
            for first in range(0, len(self._y), size):
                yield np.asarray(self._y[first : first + size])

    def fingerprint(self) -> dict[str, Any]:
        from hashlib import sha256

        self.settle()
        digests = [
            None if array is None else sha256(repr(np.asarray(array).tolist()).encode()).hexdigest()
            for array in (self._y, self._weight, self._group)
        ]
        return {"kind": "beside", "rows": self._source.fingerprint(), "arrays": digests}


def values_of(given: Any) -> Any:
    """The array that stands for targets, weights or groups: itself, or that of .npy files."""
    from bochner.sources.files import find, is_path
    from bochner.sources.npy import mapped

    if not is_path(given):
        return given
    kind, paths = find(given)
    if kind != "npy":
        raise DataError(f"{paths[0]} is {kind}; targets, weights and groups of their own come as .npy files or arrays")
    arrays = [mapped(path) for path in paths]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
