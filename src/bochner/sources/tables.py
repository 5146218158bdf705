"""Tables of named columns, in files or in memory: what gives Arrow record batches, from any row on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from copy import copy
from functools import cached_property, partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np

from bochner.errors import DataError
from bochner.sources.files import arrow, content, guarded, reading

#: bytes of a column that a Parquet reader holds at most: a page and a dictionary of usual size, decoded
_PAGES = 3 << 20
#: bytes held while reading from which on a user is warned
LARGE = 256 << 20


class Table(ABC):
    """One table: its columns and their Arrow types, and its rows in order."""

    #: how errors call it
    name: str
    #: (column, Arrow type), in the order of the table
    fields: list[tuple[str, Any]]
    #: types that a file of text was told
    _forced: dict[str, Any]
    #: how many rows it has; None until they are counted
    n_rows: int | None

    @abstractmethod
    def _batches(self, columns: Sequence[str], start: int, size: int) -> Generator[Any]: ...

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """JSON that changes with the content."""

    def batches(self, columns: Sequence[str], start: int, size: int) -> Generator[Any]:
        """The rows from number ``start`` on: record batches of some columns, of about ``size`` rows or fewer."""
        explain = partial(self._explained, columns=list(columns))
        return guarded(self._batches(columns, start, size), self.name, explain)

    def _explained(self, text: str, columns: list[str]) -> DataError | None:
        """A better error for what the reader of some columns said, where there is one."""
        return None

    def count(self, labels: Sequence[str]) -> dict[str, set[str]]:
        """Count the rows where they are not known; for each column of labels, what types all of them could be."""
        return {}

    def twin(self) -> Self:
        """The same table, which may be told other types."""
        other = copy(self)
        other._forced = dict(self._forced)
        return other

    @cached_property
    def _types(self) -> dict[str, list[Any]]:
        types: dict[str, list[Any]] = {}
        for name, kind in self.fields:
            types.setdefault(name, []).append(kind)
        return types

    def type_of(self, column: str) -> Any:
        """The Arrow type of a column; None where the table lacks it."""
        types = self._types.get(column, [])
        if len(types) > 1:
            raise DataError(f"{self.name}: the column {column!r} is there twice; rename or drop one", column=column)
        return self._forced.get(column, types[0]) if types else None

    def force(self, column: str, kind: str) -> None:
        """Read a column as an Arrow type, whatever it looks like, where the file leaves the type open."""
        return None

    def held(self, columns: Sequence[str]) -> int:
        """Bytes of these columns that reading holds whatever the size of a chunk."""
        return 0


class MemoryTable(Table):
    """An Arrow table in memory."""

    def __init__(self, table: Any, name: str = ""):
        self.name, self._forced = name, {}
        self._table = table
        self.fields = _fields(table.schema)
        self.n_rows = table.num_rows

    def _batches(self, columns: Sequence[str], start: int, size: int) -> Generator[Any]:
        yield from self._table.select(list(columns)).slice(start).to_batches(max_chunksize=size)

    def content(self) -> dict[str, Any]:
        rows = np.unique(np.linspace(0, max(self._table.num_rows - 1, 0), 64).astype(int))
        few = [self._table.slice(int(row), 1).to_pylist() for row in rows]
        return {"rows": self.n_rows, "few": sha256(repr(few).encode()).hexdigest()}


class ParquetTable(Table):
    """A Parquet file, read page by page: memory does not grow with its row groups; checksums are verified."""

    def __init__(self, path: Path):
        self.name, self._path, self._forced = str(path), path, {}
        with reading(self.name), self._open() as file:
            self.fields = _fields(file.schema_arrow)
            self.n_rows = file.metadata.num_rows
            groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        self._starts = [0, *accumulate(groups)]

    def _open(self) -> Any:
        arrow()
        import pyarrow.parquet as parquet

        return parquet.ParquetFile(
            self._path, pre_buffer=False, buffer_size=1 << 16, page_checksum_verification=True, memory_map=False
        )

    def _batches(self, columns: Sequence[str], start: int, size: int) -> Generator[Any]:
        first = max(int(np.searchsorted(self._starts, start, side="right")) - 1, 0)
        groups = list(range(first, len(self._starts) - 1))
        if not groups:
            return
        with self._open() as file:
            batches = file.iter_batches(size, groups, columns=list(columns), use_threads=False)
            yield from _after(batches, start - self._starts[first])

    def content(self) -> dict[str, Any]:
        return {"rows": self.n_rows, **content(self._path)}

    def held(self, columns: Sequence[str]) -> int:
        needed = set(columns)
        with reading(self.name), self._open() as file:
            most = 0
            for i in range(file.metadata.num_row_groups):
                group = file.metadata.row_group(i)
                chunks = (group.column(j) for j in range(group.num_columns))
                wanted = (c for c in chunks if {c.path_in_schema.split(".")[0], c.path_in_schema} & needed)
                most = max(most, sum(min(c.total_uncompressed_size, _PAGES) for c in wanted))
            return most


class IpcTable(Table):
    """A Feather or Arrow IPC file, or an IPC stream in a file, mapped into memory."""

    def __init__(self, path: Path):
        self.name, self._path, self._forced = str(path), path, {}
        pa = arrow()
        with reading(self.name), pa.memory_map(self.name) as file:
            schema = self._reader(file, None).schema
            self.fields = _fields(schema)
            first = [0] if len(schema) else None
            counts = [batch.num_rows for batch in self._of(self._reader(file, first))]
        self._starts = [0, *accumulate(counts)]
        self.n_rows = self._starts[-1]

    def _reader(self, file: Any, included: list[int] | None) -> Any:
        import pyarrow.ipc as ipc

        options = ipc.IpcReadOptions(included_fields=included, use_threads=False)
        file.seek(0)
        magic = file.read(6)
        file.seek(0)
        if magic[:4] == b"FEA1":
            raise DataError(f"{self.name} is Feather of version 1; write it again with version 2")
        return ipc.open_file(file, options=options) if magic == b"ARROW1" else ipc.open_stream(file, options=options)

    def _places(self, columns: Sequence[str]) -> list[int]:
        needed = set(columns)
        return [i for i, (name, _) in enumerate(self.fields) if name in needed]

    @staticmethod
    def _of(reader: Any, first: int = 0) -> Generator[Any]:
        if hasattr(reader, "num_record_batches"):
            for i in range(first, reader.num_record_batches):
                yield reader.get_batch(i)
        else:
            for i, batch in enumerate(reader):
                if i >= first:
                    yield batch

    def _batches(self, columns: Sequence[str], start: int, size: int) -> Generator[Any]:
        first = max(int(np.searchsorted(self._starts, start, side="right")) - 1, 0)
        included = self._places(columns)
        with arrow().memory_map(self.name) as file:

            def sound() -> Generator[Any]:
                for batch in self._of(self._reader(file, included), first):
                    batch.validate(full=True)  # offsets and indices of a damaged file would lead out of memory
                    for at in range(0, batch.num_rows, size):
                        yield batch.slice(at, size)

            yield from _after(sound(), start - self._starts[first])

    def content(self) -> dict[str, Any]:
        return {"rows": self.n_rows, **content(self._path)}

    def held(self, columns: Sequence[str]) -> int:
        pa = arrow()
        included = self._places(columns)
        if self._path.stat().st_size < LARGE // 4 or not included:
            return 0
        largest = int(np.argmax(np.diff(self._starts)))
        before = pa.total_allocated_bytes()
        with reading(self.name), pa.memory_map(self.name) as file:
            batch = next(self._of(self._reader(file, included), largest))
            # What is not compressed stays in the file until it is needed.
            return int(batch.nbytes) if pa.total_allocated_bytes() - before >= batch.nbytes // 2 else 0


def _fields(schema: Any) -> list[tuple[str, Any]]:
    return [(field.name, field.type) for field in schema]


def _after(batches: Any, skip: int) -> Generator[Any]:
    """The batches without their first ``skip`` rows."""
    for batch in batches:
        if skip >= batch.num_rows > 0:
            skip -= batch.num_rows
            continue
        yield batch.slice(skip) if skip else batch
        skip = 0
