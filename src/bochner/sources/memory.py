"""Arrays, memory-mapped arrays and sparse matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Rows, as_rows, is_sparse, spread
from bochner.errors import DataError
from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.schema import Column, Schema, listed

#: numbers of an array that its fingerprint takes in: of a larger one, rows from the first to the last
_HASHED = 1 << 27


class MemorySource(Source):
    """Rows that are in memory, or mapped into it: they are checked chunk by chunk, and never copied whole.

    >>> source = MemorySource(np.arange(6.0).reshape(3, 2), y=["a", "b", "a"])
    >>> [(chunk.start, len(chunk), chunk.y.tolist()) for chunk in source.chunks(2)]
    [(0, 2, ['a', 'b']), (2, 1, ['a'])]
    """

    def __init__(self, X: Any, y: Any = None, weight: Any = None, group: Any = None):
        mapped = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
        rows = Rows(X) if mapped else as_rows(X, finite=False)
        self._X = rows.values
        n, d = self._X.shape
        if n == 0:
            raise DataError("the source has no rows")
        self.n_rows, self.sparse = n, is_sparse(self._X)
        self.schema = Schema(plain=d) if rows.names is None else Schema(tuple(Column(name) for name in rows.names))
        self._y = aligned(y, n, "target")
        self._weight = None if weight is None else weights_of(aligned(weight, n, "weight"), 0)
        self._group = aligned(group, n, "group")
        self.target = () if self._y is None else ("y",)
        self._fingerprint: dict[str, Any] | None = None

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        assert self.n_rows is not None
        for first in range(start, self.n_rows, size):
            rows = slice(first, min(first + size, self.n_rows))
            yield Chunk(
                checked(self._X[rows], self.schema.names, first),
                first,
                *(None if a is None else a[rows] for a in (self._y, self._weight, self._group)),
            )

    def with_schema(self, schema: Schema) -> MemorySource:
        picks = places(self.schema, schema)
        rows = Rows(self._X if picks is None else self._X[:, picks], schema.names)
        return MemorySource(rows, self._y, self._weight, self._group)

    def fingerprint(self) -> dict[str, Any]:
        if self._fingerprint is None:
            found = sha256()
            for values in (self._X, self._y, self._weight, self._group):
                if values is not None:
                    found.update(_content(spread(values, max(64, _HASHED // math.prod(values.shape[1:])))))
            shape = list(self._X.shape)
            self._fingerprint = {"kind": "memory", "shape": shape, "sparse": self.sparse, "sha256": found.hexdigest()}
        return self._fingerprint


def _content(values: Any) -> bytes:
    if is_sparse(values):
        rows = values.tocsr()
        return b"".join(_content(part) for part in (rows.data, rows.indices, rows.indptr))
    return repr(values.tolist()).encode() if values.dtype.kind == "O" else np.ascontiguousarray(values).tobytes()


def places(have: Schema, model: Schema) -> list[int] | None:
    """Which columns of numbers give those of a model, None where all do as they are: by name where both have names."""
    if any(column.kind == "category" for column in model.columns):
        raise DataError("the model knows categories, which arrays do not have; give a table with these columns")
    if have.names is not None and model.names is not None:
        place = {name: i for i, name in enumerate(have.names)}
        lacking = [name for name in model.names if name not in place]
        if lacking:
            raise DataError(f"the column {listed(lacking)} of the model is missing; it needs {listed(model.names, 20)}")
        picks = [place[name] for name in model.names]
        return None if picks == list(range(have.d)) else picks
    if have.d != model.d:
        raise DataError(f"the model was fitted on {model.d} columns, the rows have {have.d}; give the same columns")
    return None


def checked(X: Any, names: tuple[str, ...] | None, start: int) -> Any:
    """Finite rows of floats; an error names a row by its number in the source."""
    try:
        return as_rows(X).values
    except DataError as error:
        raise error.located(start, names) from None


def aligned(values: Any, n: int, what: str) -> NDArray[Any] | None:
    """One entry (or row of entries) for each row."""
    if values is None:
        return None
    plain = hasattr(values, "to_pylist") or not hasattr(values, "to_numpy")  # Arrow's own to_numpy refuses text
    array = np.asarray(values if plain else values.to_numpy())
    if array.ndim not in (1, 2) or len(array) != n:
        raise DataError(f"there are {n} rows and a {what} of shape {array.shape}; give one {what} for each row")
    return array


def weights_of(values: Any, start: int) -> Any:
    """Checked sample weights: finite numbers ≥ 0, in float64."""
    try:
        weight = np.asarray(values, dtype=np.float64).reshape(len(values))
    except (TypeError, ValueError):
        raise DataError(f"the weights of row {start} and later are not one number for each row") from None
    bad = ~(np.isfinite(weight) & (weight >= 0.0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"row {start + row} has the weight {weight[row]:g}; weights are finite and ≥ 0", start + row)
    return weight
