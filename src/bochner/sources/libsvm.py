"""Files in the format of svmlight and LIBSVM, plain or packed, as sparse rows."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bochner.errors import DataError
from bochner.sources.base import CHUNK, Chunk, Source
from bochner.sources.files import content, reading, unpacked
from bochner.sources.schema import Schema
from bochner.sources.svmlight import Bounds, Parsed, Place, joined, parse, survey

#: bytes of text that are parsed at once: what is made of them stays in the cache
BLOCK = 1 << 19


@dataclass(frozen=True)
class _Block:
    """Whole lines of a file: the number of the first line and row, and the byte where it begins."""

    line: int
    row: int
    at: int


@dataclass
class _File:
    """One file, and what a light pass finds: its rows, its least and largest index, and where blocks begin."""

    path: Path
    rows: int = 0
    least: int = np.iinfo(np.int64).max
    largest: int = -1
    blocks: list[_Block] = field(default_factory=list)

    def texts(self, at: int) -> Generator[bytes]:
        """The text from a byte on, in blocks of whole lines."""
        with unpacked(self.path) as file:
            file.seek(at)
            rest = b""
            while more := file.read(BLOCK):
                end = more.rfind(b"\n") + 1
                if end:
                    yield rest + more[:end]
                    rest = more[end:]
                else:
                    rest += more
            if rest:
                yield rest

    def look(self) -> None:
        """One light pass."""
        self.rows, self.blocks = 0, []
        line = 1
        at = _mark_of_order(self.path)
        with closing(self.texts(at)) as texts, reading(str(self.path)):
            for text in texts:
                self.blocks.append(_Block(line, self.rows, at))
                rows, least, largest = survey(text)
                self.rows += rows
                self.least, self.largest = min(self.least, least), max(self.largest, largest)
                line, at = line + text.count(b"\n"), at + len(text)

    def parsed(self, start: int, bounds: Bounds, grouped: bool, first: int) -> Generator[Parsed]:
        """The rows from number ``start`` on; errors number them from ``first``, that of the first row."""
        block = max((b for b in self.blocks if b.row <= start), key=lambda b: b.at)
        line, row = block.line, block.row
        with closing(self.texts(block.at)) as texts:
            while True:
                with reading(str(self.path)):
                    text = next(texts, None)
                if text is None:
                    break
                found = parse(text, Place(str(self.path), line, first + row), bounds, grouped)
                line, row = line + text.count(b"\n"), row + len(found)
                if row > start:
                    yield found.rows(max(len(found) - (row - start), 0), len(found))
        if row != self.rows:
            raise DataError(f"{self.path} holds {row} rows, but {self.rows} were counted before; has it changed?")


def _mark_of_order(path: Path) -> int:
    """Bytes of the mark of byte order that some editors put in front."""
    with reading(str(path)), unpacked(path) as file:
        return 3 if file.read(3) == b"\xef\xbb\xbf" else 0


class LibsvmSource(Source):
    """Sparse rows of text files, one file after another; their labels are the target, NaN where missing.

    A light pass counts rows and, unless they are given, columns, and finds whether indices count from 0 or 1
    (``zero_based="auto"``: from 0 where a 0 occurs).  With ``grouped`` the qid of a row is its group.
    """

    sparse = True
    target = ("label",)

    def __init__(
        self,
        paths: Sequence[Path],
        n_features: int | None = None,
        zero_based: bool | str = "auto",
        grouped: bool = False,
    ):
        if zero_based not in (True, False, "auto"):
            raise DataError(f"zero_based is True, False or 'auto'; got {zero_based!r}")
        if n_features is not None and n_features < 1:
            raise DataError(f"n_features is a number ≥ 1; got {n_features}")
        self._files = [_File(Path(path)) for path in paths]
        self._n_features, self._zero_based, self._grouped = n_features, zero_based, grouped
        self._settled: Schema | None = None

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """So many columns without names."""
        self.settle()
        assert self._settled is not None
        return self._settled

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows of all files."""
        return sum(file.rows for file in self.settle()._files)

    def with_schema(self, schema: Schema) -> LibsvmSource:
        if any(column.kind == "category" for column in schema.columns) or schema.fills is not None:
            raise DataError("the model knows categories or fills gaps, which libsvm files do not have; give a table")
        zero_based = self._zero_based if schema.first is None else schema.first == 0
        return LibsvmSource([file.path for file in self._files], schema.d, zero_based, self._grouped)

    def settle(self) -> Self:
        if self._settled is None:
            for file in self._files:
                file.look()
            if not sum(file.rows for file in self._files):
                raise DataError(f"the source has no rows: {self._files[0].path} holds none")
            least = min(file.least for file in self._files)
            zero_based = least == 0 if self._zero_based == "auto" else self._zero_based
            first = 0 if zero_based else 1
            d = self._n_features or max(file.largest for file in self._files) + 1 - first
            if d < 1:
                raise DataError(f"{self._files[0].path} holds no entry at all; name the columns with n_features=…")
            self._settled = Schema(plain=d, first=first)
        return self

    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        shift = self.schema.first or 0
        for first, rows in self._cut(size, start):
            X = sp.csr_array((rows.values, rows.indices - shift, rows.indptr), shape=(len(rows), self.d))
            yield Chunk(X, first, rows.labels, None, rows.group)

    def targets(self, size: int = CHUNK) -> Iterator[NDArray[Any]]:
        for _, rows in self._cut(size, 0):
            yield rows.labels

    def _cut(self, size: int, start: int) -> Generator[tuple[int, Parsed]]:
        """All rows from ``start`` on, ``size`` at a time, whatever the blocks of text are."""
        first_index = self.schema.first or 0
        bounds = Bounds(first_index, self.d + first_index)
        first, held, before = start, 0, 0
        parts: list[Parsed] = []
        for file in self._files:
            skip, before = start - before, before + file.rows
            if skip >= file.rows:
                continue
            with closing(file.parsed(max(skip, 0), bounds, self._grouped, before - file.rows)) as blocks:
                for rows in blocks:
                    offset = 0
                    while offset < len(rows):
                        stop = min(offset + size - held, len(rows))
                        parts.append(rows.rows(offset, stop))
                        held, offset = held + stop - offset, stop
                        if held == size:
                            yield first, joined(parts)
                            first, held, parts = first + size, 0, []
        if parts:
            yield first, joined(parts)

    def fingerprint(self) -> dict[str, Any]:
        files = [content(file.path) for file in self._files]
        return {"kind": "libsvm", "files": files, "schema": self.schema.to_json(), "grouped": self._grouped}
