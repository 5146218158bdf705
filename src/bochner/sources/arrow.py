"""Rows of tables: Parquet, Feather, CSV, and tables in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float
from bochner.errors import DataError
from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.columns import as_float64, coded, columned, labels, missing
from bochner.sources.decode import Decoder
from bochner.sources.delimited import LADDER
from bochner.sources.draft import conformed, drafted, precision, require_names, with_learnt
from bochner.sources.files import placed
from bochner.sources.fills import Fills
from bochner.sources.memory import weights_of
from bochner.sources.schema import Asked, Category, Column, Schema
from bochner.sources.tables import LARGE, Table

#: categories of one column, at most: a column with more is a name or a number, not a category
MOST_CATEGORIES = 10_000


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of one table: ``at`` is the number of the first in the table."""

    table: str
    batch: Any
    at: int


class TableSource(Source):
    """Rows of one or more tables of the same columns, one table after another.

    Rows come in float32 where this holds all numbers exactly (float32 and shorter, integers of up to 16 bits,
    truth values), else in float64.  What must be learnt first (categories, fills, the length of CSV files)
    is learnt in one light pass when it is first needed.

    >>> import pyarrow as pa
    >>> from bochner.sources.tables import MemoryTable
    >>> table = MemoryTable(pa.table({"x": [1.0, 2.0], "colour": ["red", "blue"], "y": ["a", None]}))
    >>> source = TableSource([table], Asked(target=("y",)))
    >>> source.schema.names
    ('x', 'colour=blue', 'colour=red')
    >>> next(source.chunks()).X.tolist()
    [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """

    def __init__(self, tables: Sequence[Table], asked: Asked = Asked(), schema: Schema | None = None):  # noqa: B008
        self._tables, self._asked, self._given = tuple(table.twin() for table in tables), asked, schema
        self.target = asked.target
        if schema is None:
            require_names(self._tables, asked)
        self._settled = False

    @cached_property
    def _drafted(self) -> tuple[Column, ...]:
        """The columns of X, where nothing has been learnt yet."""
        if self._given is not None:
            return conformed(self._tables, self._asked, self._given)
        return drafted(self._tables, self._asked).columns

    @property
    def _names(self) -> list[str]:
        """All columns that are read."""
        asked = self._asked
        others = [*asked.target, *(name for name in (asked.weight, asked.group) if name is not None)]
        return list(dict.fromkeys([*(column.name for column in self._drafted), *others]))

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The columns of X, with what had to be learnt about them."""
        self.settle()
        return Schema(self._columns) if self._given is None else self._given

    @property
    def d(self) -> int:
        self.settle()
        return sum(column.numbers for column in self._columns)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows of all tables."""
        self.settle()
        return sum(table.n_rows or 0 for table in self._tables)

    def with_schema(self, schema: Schema) -> TableSource:
        """The same rows, with the columns and constants of a model."""
        return TableSource(self._tables, self._asked, schema)

    def settle(self) -> Self:
        if not self._settled:
            self._warn()
            self._count()
            if not sum(table.n_rows or 0 for table in self._tables):
                raise DataError(f"the source has no rows: {self._tables[0].name or 'the table'} holds none")
            self._columns = self._learnt(self._drafted)
            self._settled = True
        return self

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        self.settle()
        decoder = Decoder(self._columns, precision(self._tables, self._columns))
        with closing(self._cut(self._names, size, start)) as cut:
            for first, pieces in cut:
                others = (read(pieces, first) for read in (self._y, self._weight, self._group))
                yield Chunk(self._rows(decoder, pieces, first), first, *others)

    def targets(self, size: int = CHUNK) -> Iterator[NDArray[Any]]:
        if not self.target:
            raise DataError("the rows have no target; name one with target=…")
        self._count()
        with closing(self._cut(list(self.target), size, 0)) as cut:
            for first, pieces in cut:
                yield self._y(pieces, first)

    def fingerprint(self) -> dict[str, Any]:
        return {
            "kind": "tables",
            "tables": [table.content() for table in self._tables],
            "schema": self.schema.to_json(),
            "columns": self._names,
        }

    def _warn(self) -> None:
        """Say where small chunks do not keep memory small."""
        held = {table.name: table.held(self._names) for table in self._tables}
        most = max(held, key=lambda name: held[name])
        if held[most] > LARGE:
            warnings.warn(
                f"reading {most} holds about {held[most] >> 20} MiB however small the chunks are; "
                "write it with smaller row groups",
                stacklevel=4,
            )

    def _count(self) -> None:
        """Count the rows of CSV files, and find the type that the labels of all of them have in common."""
        open_ends = [table for table in self._tables if table.n_rows is None]
        names = [name for name in (*self.target, self._asked.group) if name is not None]
        possible: dict[str, set[str]] = {name: set(LADDER) for name in names}
        for table in open_ends:
            for name, kinds in table.count(names).items():
                possible[name] &= kinds
        for table in open_ends:
            for name, kinds in possible.items():
                table.force(name, min(kinds, key=LADDER.index))

    def _learnt(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The columns with categories and fills, from one pass over those that lack them."""
        how = self._asked.missing
        open_categories = [c for c in columns if c.kind == "category" and c.categories is None]
        gappy = [c for c in columns if c.kind != "category" and c.fill is None]
        gappy = gappy if isinstance(how, str) and how != "refuse" and self._given is None else []
        if not open_categories and not gappy:
            return tuple(columns)
        decoder = Decoder(gappy, np.float64)
        fills = Fills(str(how), decoder.d)
        found: dict[str, set[Category]] = {column.name: set() for column in open_categories}
        with closing(self._cut([c.name for c in (*open_categories, *gappy)], CHUNK, 0)) as cut:
            for first, pieces in cut:
                for column in open_categories:
                    for piece in pieces:
                        _meet(piece.batch[column.name], column.name, found[column.name])
                if gappy:
                    fills.update(self._rows(decoder, pieces, first, gaps=True))
        values: dict[str, Any] = {}
        if gappy:
            names = Schema(tuple(gappy)).names
            filling, at = fills.values(names).tolist(), 0
            for column in gappy:
                here = filling[at : at + column.width]
                values[column.name] = tuple(here) if column.kind == "vector" else here[0]
                at += column.width
        return with_learnt(columns, values, {name: _ordered(name, values) for name, values in found.items()}).columns

    def _cut(self, names: Sequence[str], size: int, start: int) -> Generator[tuple[int, list[Piece]]]:
        """All rows from ``start`` on, ``size`` at a time, whatever the batches of the tables are."""
        names = list(dict.fromkeys(names))
        row, held, skip = start, 0, start
        pieces: list[Piece] = []
        for table in self._tables:
            rows = table.n_rows or 0
            if skip >= rows:
                skip -= rows
                continue
            at, skip = skip, 0
            with closing(table.batches(names, at, size)) as batches:
                for batch in batches:
                    offset = 0
                    while offset < batch.num_rows:
                        count = min(size - held, batch.num_rows - offset)
                        pieces.append(Piece(table.name, batch.slice(offset, count), at))
                        offset, at, held = offset + count, at + count, held + count
                        if held == size:
                            yield row, pieces
                            row, held, pieces = row + size, 0, []
            if at != rows:
                raise DataError(f"{table.name} holds {at} rows, but {rows} were counted before; has it changed?")
        if pieces:
            yield row, pieces

    def _rows(self, decoder: Decoder, pieces: list[Piece], first: int, gaps: bool = False) -> Float:
        if len(pieces) == 1:
            with placed(pieces[0].table, pieces[0].at, first):
                X = decoder.rows(pieces[0].batch)
                if X is not None:
                    return decoder.mend(X, gaps)
        X = np.empty((sum(piece.batch.num_rows for piece in pieces), decoder.d), decoder.dtype)
        for piece, done in _numbered(pieces, 0):
            out = X[done : done + piece.batch.num_rows]
            with placed(piece.table, piece.at, first + done):
                decoder.write(piece.batch, out)
                decoder.mend(out, gaps)
        return X

    def _y(self, pieces: list[Piece], first: int) -> Any:
        if not self.target:
            return None
        return columned([_each(pieces, first, name, labels) for name in self.target])

    def _weight(self, pieces: list[Piece], first: int) -> Any:
        if self._asked.weight is None:
            return None
        return _each(pieces, first, self._asked.weight, lambda array: weights_of(as_float64(array), 0))

    def _group(self, pieces: list[Piece], first: int) -> Any:
        name = self._asked.group
        if name is None:
            return None

        def grouped(array: Any) -> NDArray[Any]:
            absent = missing(array)
            if absent.any():
                row = int(np.flatnonzero(absent)[0])
                raise DataError(f"row {row}, column {name!r} is missing, but every row needs a group", row, name)
            return labels(array)

        return _each(pieces, first, name, grouped)


def _numbered(pieces: list[Piece], first: int) -> Iterator[tuple[Piece, int]]:
    """Pieces with the numbers of their first rows."""
    for piece in pieces:
        yield piece, first
        first += piece.batch.num_rows


def _each(pieces: list[Piece], first: int, column: str, make: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
    """What is made of a column of each piece, one after another."""
    parts = []
    for piece, number in _numbered(pieces, first):
        with placed(piece.table, piece.at, number):
            parts.append(make(piece.batch[column]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _meet(array: Any, name: str, found: set[Category]) -> None:
    """Add the categories that occur."""
    codes, values = coded(array)
    found.update(values[code] for code in np.unique(codes) if code >= 0)
    if len(found) > MOST_CATEGORIES:
        raise DataError(
            f"the column {name!r} has more than {MOST_CATEGORIES} categories; drop it, or name those that count with "
            f"categories={{{name!r}: […]}}",
            column=name,
        )


def _ordered(name: str, values: set[Category]) -> list[Category]:
    if not values:
        raise DataError(f"the column {name!r} has no value at all; drop it", column=name)
    try:
        return sorted(values)
    except TypeError:
        raise DataError(f"the column {name!r} mixes text and numbers; make them agree", column=name) from None
