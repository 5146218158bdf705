"""Memory-mapped .npy files, and other arrays without names, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bochner.arrays import Matrix, as_rows, dense, is_sparse, spread
from bochner.errors import DataError
from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.columns import gap
from bochner.sources.files import placed, reading
from bochner.sources.fills import Fills
from bochner.sources.memory import places, weights_of
from bochner.sources.schema import Asked, Schema, refuse_target


def mapped(path: Path) -> Any:
    """The array of a .npy file, mapped into memory."""
    with reading(str(path)):
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" in str(error) or "Python objects" in str(error):
                raise DataError(f"{path} holds Python objects, which are never loaded; save numbers or text") from None
            raise


@dataclass(frozen=True)
class Part:
    """One array; its name is that of its file, or empty."""

    name: str
    values: Matrix


class ArraySource(Source):
    """Rows of arrays without names, one array after another; columns are asked for by number.

    >>> source = ArraySource([Part("", np.array([[1.0, 2.0, 0.0], [3.0, np.nan, 1.0]]))], Asked(("-1",), missing=0.5))
    >>> chunk = next(source.chunks())
    >>> chunk.X.tolist(), chunk.y.tolist()
    ([[1.0, 2.0], [3.0, 0.5]], [0.0, 1.0])
    """

    def __init__(self, parts: Sequence[Part], asked: Asked = Asked(), schema: Schema | None = None):  # noqa: B008
        self._parts, self._asked, self._given = tuple(map(_numeric, parts)), asked, schema
        first = self._parts[0]
        self._width = int(first.values.shape[1])
        for part in self._parts[1:]:
            if part.values.shape[1] != self._width:
                raise DataError(
                    f"{part.name} has {part.values.shape[1]} columns, unlike {first.name}, which has {self._width}"
                )
        self.sparse = any(is_sparse(part.values) for part in self._parts)
        if asked.categories:
            raise DataError("arrays have no named columns to be categories; give a table")
        if self.sparse and asked.missing != "refuse":
            raise DataError("gaps in sparse rows cannot be filled; fill them before, or give a dense array")
        self._target = [self._number(name) for name in asked.target]
        self._weight, self._group = (None if n is None else self._number(n) for n in (asked.weight, asked.group))
        self._picks = self._picked(schema)
        self.target = tuple(map(str, self._target))
        self.n_rows = sum(part.values.shape[0] for part in self._parts)
        if self.n_rows == 0:
            raise DataError("the source has no rows")
        kinds = [part.values.dtype for part in self._parts]
        self._dtype = np.float32 if all(k.kind == "f" and k.itemsize <= 4 for k in kinds) else np.float64
        self._schema = schema

    def _number(self, name: str) -> int:
        try:
            number = int(name)
        except ValueError:
            raise DataError(f"arrays have no column {name!r}; name columns by number, or give a table") from None
        if not -self._width <= number < self._width:
            raise DataError(f"there is no column {number}; the array has {self._width} columns")
        return number % self._width

    def _picked(self, schema: Schema | None) -> NDArray[np.int64]:
        """The columns of X."""
        asked = self._asked
        if asked.features is not None:
            picks = [self._number(name) for name in asked.features]
            refuse_target(self._target, picks)
        else:
            others = {*self._target, self._weight, self._group, *map(self._number, asked.drop)}
            picks = [j for j in range(self._width) if j not in others]
        if not picks:
            raise DataError(f"no column of {self._width} is left to learn from")
        if schema is not None:
            places(Schema(plain=len(picks)), schema)
        return np.array(picks)

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """So many columns without names, and what fills their gaps."""
        self.settle()
        assert self._schema is not None
        return self._schema

    @property
    def d(self) -> int:
        return len(self._picks)

    def with_schema(self, schema: Schema) -> ArraySource:
        fills = schema.fills
        if schema.columns:
            filling = [c.fill if isinstance(c.fill, tuple) else (c.fill,) * c.width for c in schema.columns]
            flat = [value for values in filling for value in values if value is not None]
            fills = tuple(flat) if len(flat) == schema.d else None
        plain = Schema(plain=schema.d, fills=fills, first=schema.first)
        asked = replace(self._asked, missing="refuse")
        places(Schema(plain=self.d), schema)
        return ArraySource(self._parts, asked, plain)

    def settle(self) -> Self:
        if self._schema is None:
            how = self._asked.missing
            fills: tuple[float, ...] | None = None
            if isinstance(how, float):
                fills = (how,) * self.d
            elif how != "refuse":
                learnt = Fills(how, self.d)
                for first, pieces in self._cut(CHUNK, 0):
                    learnt.update(self._joined([self._rows(*piece, first, None, gaps=True) for piece in pieces]))
                fills = tuple(learnt.values(tuple(map(str, self._picks))).tolist())
            self._schema = Schema(plain=self.d, fills=fills)
        return self

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        fills = self.schema.fills
        for first, pieces in self._cut(size, start):
            row, X = first, []
            for piece in pieces:
                X.append(self._rows(*piece, row, fills))
                row += piece[1].stop - piece[1].start
            yield Chunk(self._joined(X), first, self._y(pieces), self._weights(pieces, first), self._groups(pieces))

    def targets(self, size: int = CHUNK) -> Iterator[NDArray[Any]]:
        if not self.target:
            raise DataError("the rows have no target; name one with target=…")
        for _, pieces in self._cut(size, 0):
            yield self._y(pieces)

    def fingerprint(self) -> dict[str, Any]:
        digest = sha256()
        for part in self._parts:
            digest.update(np.ascontiguousarray(dense(spread(part.values, 64))).tobytes())
        shapes = [list(part.values.shape) for part in self._parts]
        return {"kind": "arrays", "shapes": shapes, "schema": self.schema.to_json(), "few": digest.hexdigest()}

    def _cut(self, size: int, start: int) -> Iterator[tuple[int, list[tuple[Part, slice]]]]:
        """Which rows of which arrays make each chunk."""
        ends = np.cumsum([0, *(part.values.shape[0] for part in self._parts)])
        assert self.n_rows is not None
        for first in range(start, self.n_rows, size):
            last = min(first + size, self.n_rows)
            spans = [
                (part, slice(int(max(first - begin, 0)), int(min(last, end) - begin)))
                for part, begin, end in zip(self._parts, ends[:-1], ends[1:], strict=True)
                if begin < last and end > first
            ]
            yield first, spans

    def _joined(self, X: list[Any]) -> Any:
        if len(X) == 1:
            return X[0]
        return sp.csr_array(sp.vstack(X, format="csr")) if self.sparse else np.concatenate(X)

    def _rows(self, part: Part, rows: slice, row: int, fills: Any, gaps: bool = False) -> Any:
        """Checked rows of floats, of number ``row`` in the source on; with ``gaps`` what is missing stays NaN."""
        X = part.values[rows]
        X = X if len(self._picks) == self._width else X[:, self._picks]
        with placed(part.name, rows.start, row):
            X = as_rows(X, finite=False).values.astype(self._dtype, copy=False)
            data = X.data if self.sparse else X
            with np.errstate(over="ignore", invalid="ignore"):
                if np.isfinite(data.sum()):
                    return X
            if fills is not None and np.isnan(data).any():
                X = data = np.where(np.isnan(X), np.asarray(fills, X.dtype), X)
            bad = np.isinf(data) if gaps else ~np.isfinite(data)
            if bad.any():
                at = int(np.flatnonzero(bad.ravel())[0])
                if self.sparse:
                    i, j, value = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at]), data[at]
                else:
                    i, j = divmod(at, self.d)
                    value = X[i, j]
                name = str(self._picks[j])
                if np.isnan(value):
                    raise gap(i, name)
                raise DataError(f"row {i}, column {name!r} is {value:g}; clip or drop such rows", i, name)
        return X

    def _column(self, pieces: list[tuple[Part, slice]], columns: list[int]) -> NDArray[Any]:
        """Some columns of consecutive rows, as they are."""
        return np.concatenate([dense(part.values[rows][:, columns]) for part, rows in pieces])

    def _y(self, pieces: list[tuple[Part, slice]]) -> Any:
        if not self._target:
            return None
        y = self._column(pieces, self._target)
        return y[:, 0] if len(self._target) == 1 else y

    def _weights(self, pieces: list[tuple[Part, slice]], first: int) -> Any:
        return None if self._weight is None else weights_of(self._column(pieces, [self._weight])[:, 0], first)

    def _groups(self, pieces: list[tuple[Part, slice]]) -> Any:
        return None if self._group is None else self._column(pieces, [self._group])[:, 0]


def _numeric(part: Part) -> Part:
    """The array of a part with two dimensions of numbers; nothing of a mapped file is read."""
    with placed(part.name, 0, 0):
        values = part.values
        if is_sparse(values) or getattr(values, "ndim", 0) != 2 or values.dtype.kind not in "fiub":
            values = as_rows(values, finite=False).values
        return Part(part.name, values)
