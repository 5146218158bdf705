"""Whether Parquet pages carry checksums, which no reader tells: from the header of a page itself."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from bochner.sources.files import arrow, reading

#: of the compact protocol of Thrift: a field of 32 bits whose number is one more than that of the field before
_NEXT_I32 = 0x15


def has_checksums(path: Path) -> bool:
    """Whether the first page of every column has one: writers give it to all pages or to none."""
    arrow()
    import pyarrow.parquet as parquet

    with reading(str(path)), open(path, "rb") as file:
        metadata = parquet.ParquetFile(file).metadata
        if metadata.num_row_groups == 0:
            return True
        group = metadata.row_group(0)
        columns = [group.column(j) for j in range(group.num_columns)]
        starts = [c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in columns]
        return all(_checked(file, start) for start in starts)


def _checked(file: IO[bytes], start: int) -> bool:
    """A header begins with kind and two sizes; a checksum is the field after them."""
    file.seek(start)
    header = file.read(64)
    place = 0
    for _ in range(3):
        if place >= len(header) or header[place] != _NEXT_I32:
            return False
        place += 1
        while place < len(header) and header[place] & 0x80:
            place += 1
        place += 1
    return place < len(header) and header[place] == _NEXT_I32
