"""One table as every kind of file and object that ``scan`` takes."""

import bz2
import gzip
import io

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


class Streamed:
    """Nothing but an Arrow stream."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def parquet(table, folder, name="rows", **options):
    path = folder / f"{name}.parquet"
    pa.parquet.write_table(table, path, write_page_checksum=True, **options)
    return path


def small_groups(table, folder, name="rows"):
    return parquet(table, folder, name, row_group_size=max(3, len(table) // 40), data_page_size=64, compression="zstd")


def feather(table, folder, name="rows"):
    path = folder / f"{name}.feather"
    pa.feather.write_feather(table, path, compression="lz4", chunksize=max(5, len(table) // 40))
    return path


def stream(table, folder, name="rows"):
    path = folder / f"{name}.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(4, len(table) // 40))
    return path


def plain(table):
    """Without dictionaries, which pyarrow does not write as text."""
    kinds = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema([(name, kind) for name, kind in zip(table.column_names, kinds, strict=True)]))


def csv(table, folder, name="rows", delimiter=",", how="", ending="csv"):
    path = folder / f"{name}.{ending}{how}"
    buffer = io.BytesIO()
    pa.csv.write_csv(plain(table), buffer, pa.csv.WriteOptions(delimiter=delimiter))
    with {"": open, ".gz": gzip.open, ".bz2": bz2.open}[how](path, "wb") as file:
        file.write(buffer.getvalue())
    return path


FILES = {
    "parquet": parquet,
    "small groups": small_groups,
    "feather": feather,
    "stream": stream,
    "csv": csv,
    "csv.gz": lambda table, folder, name="rows": csv(table, folder, name, how=".gz"),
    "csv.bz2": lambda table, folder, name="rows": csv(table, folder, name, how=".bz2"),
    "tsv": lambda table, folder, name="rows": csv(table, folder, name, "\t", ending="tsv"),
}
OBJECTS = {
    "arrow": lambda table, folder: table,
    "reader": lambda table, folder: table.to_reader(max_chunksize=max(7, len(table) // 40)),
    "streamed": lambda table, folder: Streamed(table),
    "pandas": lambda table, folder: table.to_pandas().set_index(pd.Index(range(5, 5 + len(table)), name="n")),
    "polars": lambda table, folder: pl.from_arrow(table),
    "dict": lambda table, folder: {name: table[name] for name in table.column_names},
}
ALL = FILES | OBJECTS
