"""CSV, plain or packed: types that hold for the whole file, not only for its first block."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bochner.errors import DataError
from bochner.sources.files import arrow, content, guarded, reading, unpacked
from bochner.sources.tables import Table

#: what stands for a missing number; a missing text is empty
_MISSING = ["", "nan", "NaN", "NAN", "-nan", "null", "NULL", "None", "NA", "N/A", "n/a", "#N/A", "?"]
#: what the labels of a file may be, the narrowest first
LADDER = ("int64", "bool", "double", "string")
#: bytes that are parsed at once, at least (a row must fit), and of a first line at most
_BLOCK, _LONGEST = 1 << 20, 1 << 28


class CsvTable(Table):
    """A CSV file.  Numbers are float64, whatever its first block looks like; text is text.

    A first line that holds numbers only is a row, and the columns are called 0, 1, 2, …; but the line
    0, 1, 2, … itself is a header.
    """

    n_rows: int | None = None

    def __init__(self, path: Path, delimiter: str | None = None):
        self.name, self._path, self._forced = str(path), path, {}
        self._delimiter = delimiter or ("\t" if ".tsv" in path.suffixes else ",")
        self._names: list[str] | None = None
        pa = arrow()
        with reading(self.name, partial(self._explained, columns=[])):
            with unpacked(path) as file:
                self._block = max(_BLOCK, 4 * len(file.readline(_LONGEST)))
            schema = self._opened().schema
            if _all_numbers(schema.names) and schema.names != [str(i) for i in range(len(schema.names))]:
                self._names = [str(i) for i in range(len(schema.names))]
                schema = self._opened().schema
        whole = pa.types.is_integer
        self.fields = [(field.name, pa.float64() if whole(field.type) else field.type) for field in schema]

    def _opened(self, columns: Sequence[str] = (), skip: int = 0, types: dict[str, Any] | None = None) -> Any:
        arrow()
        import pyarrow.csv as csv

        return csv.open_csv(
            self.name,
            csv.ReadOptions(
                use_threads=False, block_size=self._block, skip_rows_after_names=skip, column_names=self._names
            ),
            csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            csv.ConvertOptions(column_types=types, include_columns=list(columns), null_values=_MISSING),
        )

    def force(self, column: str, kind: str) -> None:
        self._forced[column] = arrow().type_for_alias(kind)

    def _batches(self, columns: Sequence[str], start: int, size: int) -> Generator[Any]:
        pa = arrow()
        import pyarrow.compute as compute

        types = {column: self.type_of(column) for column in columns}
        types = {column: pa.float64() if pa.types.is_null(kind) else kind for column, kind in types.items()}
        with closing(_batches_of(self._opened(columns, start, types))) as batches:
            for batch in batches:
                texts = [i for i, field in enumerate(batch.schema) if pa.types.is_string(field.type)]
                arrays = batch.columns
                for i in texts:
                    arrays[i] = compute.if_else(compute.equal(arrays[i], ""), None, arrays[i])
                yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names) if texts else batch

    def _explained(self, text: str, columns: list[str]) -> DataError | None:
        line = re.search(r"Row #([0-9]+)", text)
        if line is None:
            return None
        row = int(line[1]) - (1 if self._names else 2)
        wrong = re.search(r"column #([0-9]+).*conversion error to (\w+): invalid value (.*)", text)
        if wrong is None:
            said = text.split(": ", 2)[-1]
            return DataError(f"{self.name}: row {row} cannot be read: {said[:200]}", row)
        column = columns[int(wrong[1])]
        return DataError(
            f"{self.name}: row {row}, column {column!r} holds {wrong[3][:80]}, which is not a "
            f"{_KINDS.get(wrong[2], wrong[2])}; mend the row, drop the column, or make it a category with "
            f"categories=[{column!r}]",
            row,
            column,
        )

    def count(self, labels: Sequence[str]) -> dict[str, set[str]]:
        """Count the rows; and for each column of labels, the types of ``LADDER`` that hold for all of it."""
        columns = list(labels) or [self.fields[0][0]]
        possible = {column: set(LADDER) for column in labels}
        texts = dict.fromkeys(columns, arrow().string())
        self.n_rows = 0
        explain = partial(self._explained, columns=columns)
        with reading(self.name, explain):
            reader = self._opened(columns, 0, texts)
        for batch in guarded(_batches_of(reader), self.name, explain):
            self.n_rows += batch.num_rows
            for column in labels:
                possible[column] -= {kind for kind in possible[column] if not _holds(batch[column], kind)}
        return possible

    def content(self) -> dict[str, Any]:
        return content(self._path)


_KINDS = {"double": "number", "int64": "whole number", "bool": "truth value"}


def _batches_of(reader: Any) -> Generator[Any]:
    try:
        yield from reader
    finally:
        reader.close()


def _holds(texts: Any, kind: str) -> bool:
    """Whether all texts but the missing ones are of a type."""
    pa = arrow()
    import pyarrow.compute as compute

    if kind == "string":
        return True
    trimmed = compute.utf8_trim_whitespace(texts)
    present = trimmed.filter(compute.invert(compute.is_in(trimmed, value_set=pa.array(_MISSING))))
    try:
        present.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _all_numbers(names: Iterable[str]) -> bool:
    try:
        for name in names:
            float(name)
    except ValueError:
        return False
    return True
