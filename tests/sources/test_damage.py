"""What is wrong with files is said in one sentence that names the file, and the row and column where there is one."""

import gc
import os
import warnings
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from writers import FILES, csv, feather, parquet, stream

import bochner
from bochner.errors import DataError
from bochner.sources import delimited, tables

N = 400
rng = np.random.default_rng(0)
TABLE = pa.table({"a": rng.normal(size=N), "c": [["red", "blue"][i % 2] for i in range(N)], "y": rng.normal(size=N)})


@pytest.fixture(autouse=True)
def _no_handle_is_left():
    """A file that is never closed warns when it is collected, and warnings are errors."""
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    yield
    gc.collect()
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before


def swept(source, size=64):
    return list(source.chunks(size))


def refused(where, *patterns, **options):
    with pytest.raises(DataError) as error:
        swept(bochner.scan(where, "y", **options))
    said = str(error.value)
    assert "\n" not in said
    for pattern in patterns:
        assert pattern in said, said
    return error.value


@pytest.mark.parametrize("kind", FILES)
def test_a_truncated_file_is_named(tmp_path, kind):
    path = FILES[kind](TABLE, tmp_path)
    content = path.read_bytes()
    for length in (5, len(content) // 2, len(content) - 9):
        path.write_bytes(content[:length])
        if kind in ("csv", "tsv") and length > 5:
            continue  # text that ends early is text
        refused(path, path.name)


@pytest.mark.parametrize("kind", ["parquet", "small groups"])
def test_a_flipped_byte_is_noticed_wherever_it_is(tmp_path, kind):
    path = FILES[kind](TABLE, tmp_path)
    content = path.read_bytes()
    whole = np.concatenate([chunk.X for chunk in swept(bochner.scan(path, "y"))])
    silent = 0
    for at in range(4, len(content) - 8, max(1, len(content) // 60)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with suppress(DataError):
            found = np.concatenate([chunk.X for chunk in swept(bochner.scan(path, "y"))])
            silent += not np.array_equal(found, whole)
    assert silent == 0


def test_a_checksum_that_fails_is_called_so(tmp_path):
    path = parquet(TABLE, tmp_path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[500] ^= 4
    path.write_bytes(content)
    refused(path, "rows.parquet fails a checksum", "it is damaged; write or fetch it again")


@pytest.mark.parametrize("write", [feather, stream])
def test_flipped_bytes_of_arrow_files_do_no_harm(tmp_path, write):
    """They carry no checksums: a damaged number is read as it is, but nothing leads out of memory."""
    path = write(TABLE, tmp_path)
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 30)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with suppress(DataError):
            swept(bochner.scan(path, "y"))


# ---- CSV ------------------------------------------------------------------------------------------
def test_a_ragged_row_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n1,2,3\n4,5,6\n7,8\n9,9,9\n")
    assert refused(path, "rows.csv: row 2 cannot be read", "Expected 3 columns, got 2").row == 2


def test_text_among_numbers_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "1,2,3\n" * 400_000 + "1,two,3\n")
    error = refused(path, "rows.csv: row 400000, column 'b' holds 'two', which is not a number", "categories=['b']")
    assert (error.row, error.column) == (400_000, "b")
    text = bochner.scan(path, "y", ["b"], categories=["b"])
    assert text.schema.names == ("b=2", "b=two")


def test_labels_have_one_type_in_all_of_a_file(tmp_path):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("a,y\n" + "1,007\n" * 300_000 + "1,x\n")
    second.write_text("a,y\n1,3\n")
    found = list(bochner.scan([second, first], "y").targets())
    assert found[0][:2].tolist() == ["3", "007"]  # text: not the numbers 3 and 7
    assert found[-1][-1] == "x"
    assert next(bochner.scan(second, "y").targets()).tolist() == [3]
    settled = bochner.scan([second, first], "y").settle()
    assert next(settled.with_schema(settled.schema).targets())[:2].tolist() == ["3", "007"]


def test_types_are_floats_whatever_the_first_block_looks_like(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "1,,3\n" * 300_000 + "1.5,7.25,3\n")
    last = list(bochner.scan(path, "y", missing=0).chunks())[-1]
    assert last.X[-1].tolist() == [1.5, 7.25]


def test_csv_as_it_is_found(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2,0\n3,4,1\n")  # no header
    assert bochner.scan(path, 2).schema.names == ("0", "1")
    assert [chunk.y.tolist() for chunk in bochner.scan(path, target=2).chunks()] == [[0, 1]]
    path.write_text('a;"b c";y\r\n1,5;2;0\r\n')
    assert bochner.scan(path, "y", ["b c"], delimiter=";").d == 1
    path.write_text('\ufeffa,b,y\n"1",NaN,x\n2,?,"a,\nb"\n')
    (chunk,) = bochner.scan(path, "y", missing=-1).chunks()
    assert chunk.X.tolist() == [[1, -1], [2, -1]]
    assert chunk.y.tolist() == ["x", "a,\nb"]
    path.write_text("a,b,y\n1e400,2,3\n")
    refused(path, "rows.csv: row 0, column 'a' is inf")
    path.write_bytes(b"a,b,y\n1,caf\xe9,3\n")
    refused(path, "rows.csv")


@pytest.mark.parametrize("how", ["", ".gz"])
def test_rows_of_any_width(tmp_path, how):
    wide = 8000
    table = pa.table({f"c{i}" + 200 * "x": [1.25, 2.5] for i in range(wide)})  # a first line of more than a block
    assert next(bochner.scan(csv(table, tmp_path, how=how)).chunks()).X[1].tolist() == [2.5] * wide


@pytest.mark.parametrize("text", ["", "\n", "a,b,y\n"])
def test_an_empty_csv_is_refused(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    refused(path, "rows.csv")


def test_missing_words_are_those_of_other_readers():
    assert {"", "NA", "nan", "NULL", "?"} <= set(delimited._MISSING)


# ---- which files ----------------------------------------------------------------------------------
def test_files_that_are_not_there(tmp_path):
    refused(tmp_path / "no.parquet", "there is no file", "no.parquet; check the path")
    refused(str(tmp_path / "*.csv"), "there is no file", "*.csv; check the path")
    refused([], "two-dimensional")
    refused(tmp_path, "holds no file whose name ends in .parquet")
    (tmp_path / "a.xls").write_text("x")
    refused(tmp_path / "a.xls", "a.xls has no known format", "format=…")
    (tmp_path / "empty.parquet").write_bytes(b"")
    refused(tmp_path / "empty.parquet", "there are no rows", "empty.parquet")
    with pytest.raises(DataError, match="format is one of parquet, ipc, csv, npy, libsvm; got 'xls'"):
        bochner.scan(tmp_path / "a.xls", format="xls")


def test_a_file_of_another_name(tmp_path):
    path = parquet(TABLE, tmp_path).rename(tmp_path / "a9a")
    assert bochner.scan(path, "y", format="parquet").d == 3
    refused(path, "a9a", format="csv")


def test_a_path_that_cannot_be_read(tmp_path):
    path = parquet(TABLE, tmp_path)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    refused(path, "rows.parquet cannot be read", "Permission denied")


def test_files_of_two_formats(tmp_path):
    refused([parquet(TABLE, tmp_path), csv(TABLE, tmp_path)], "rows.parquet is parquet", "rows.csv is csv")


def test_columns_that_are_not_there(tmp_path):
    path = parquet(TABLE, tmp_path)
    for options in ({"target": "z"}, {"features": ["z"]}, {"drop": "z"}, {"weight": "z"}, {"group": "z"}):
        with pytest.raises(DataError, match=r"rows.parquet: there is no column 'z'; there are 'a', 'c', 'y'"):
            bochner.scan(path, **options)
    with pytest.raises(DataError, match="no column is left to learn from"):
        bochner.scan(path, "y", drop=["a", "c"]).settle()
    with pytest.raises(DataError, match="a weight is one column, got 2"):
        bochner.scan(path, weight=["a", "y"])


def test_files_of_different_columns(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    parquet(TABLE, folder, "1")
    parquet(TABLE.append_column("more", TABLE["a"]), folder, "2")
    refused(folder, "2.parquet has the column 'more' besides, unlike", "1.parquet", "features=[…]")
    assert len(swept(bochner.scan(folder, "y", ["a"]), 8192)[0]) == 2 * N
    parquet(TABLE.drop_columns("c"), folder, "2")
    refused(folder, "2.parquet lacks the column 'c'")
    parquet(TABLE.set_column(1, "c", TABLE["a"]), folder, "2")
    refused(folder, "the column 'c' is a category in", "1.parquet but a number in", "2.parquet")
    parquet(TABLE.select(["y", "c", "a"]), folder, "2")  # another order is no other table
    X = np.concatenate([chunk.X for chunk in swept(bochner.scan(folder, "y"))])
    np.testing.assert_array_equal(X[:N], X[N:])


def test_a_column_that_is_there_twice(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,a,y\n1,2,3\n")
    refused(path, "the column 'a' is there twice")


def test_an_error_names_the_row_of_the_source_and_of_the_file(tmp_path):
    first = parquet(TABLE.slice(0, 10), tmp_path, "1")
    broken = TABLE.slice(10, 5).set_column(0, "a", pa.array([0.0, 1.0, None, 3.0, 4.0]))
    second = parquet(broken, tmp_path, "2")
    error = refused([first, second], "2.parquet: row 12 (row 2 of the file), column 'a' is missing")
    assert (error.row, error.column) == (12, "a")


def test_a_file_that_shrinks_is_noticed(tmp_path):
    for kind in FILES:
        path = FILES[kind](TABLE, tmp_path, "s")
        source = bochner.scan(path, "y").settle()
        FILES[kind](TABLE.slice(0, N - 1), tmp_path, "s")
        with pytest.raises(DataError, match=r"has it changed|cannot be read"):
            swept(source)


def test_large_columns_of_one_row_group_are_announced(tmp_path, monkeypatch):
    monkeypatch.setattr("bochner.sources.arrow.LARGE", 1000)
    path = parquet(TABLE, tmp_path)
    with pytest.warns(UserWarning, match=r"rows.parquet holds about 0 MiB however small the chunks are"):
        bochner.scan(path, "y").settle()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tables.ParquetTable(path).held(["a"]) > 1000


def test_stopping_early_closes_the_file(tmp_path):
    for kind in FILES:
        chunks = bochner.scan(FILES[kind](TABLE, tmp_path), "y").chunks(16)
        next(chunks)
        chunks.close()


# ---- in memory ------------------------------------------------------------------------------------
def test_things_that_are_no_rows(tmp_path):
    import pandas as pd
    import polars as pl

    parquet(TABLE, tmp_path)
    for where, said in [
        (3, "two-dimensional"),
        (np.arange(3.0), "two-dimensional"),
        (np.array([["a", "b"]]), "row 0, column 0 holds 'a'"),
        (np.array([[1j]]), "Complex"),
        (np.empty((0, 2)), "no rows"),
        ([[1.0, 2.0], [3.0]], "two-dimensional"),
        (pl.LazyFrame({"a": [1]}), "call its collect"),
        (pd.Series([1.0], name="a"), "a Series is one column"),
        (pl.Series([1.0]), "a Series is one column"),
        (pyarrow.dataset.dataset(tmp_path / "rows.parquet"), "give scan\\(dataset.files\\)"),
        (pd.DataFrame({"a": [1, "x"]}), "give each column one type"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "the table cannot be read"),
        (bochner.scan(np.eye(2)), "this is a source already"),
    ]:
        with pytest.raises(DataError, match=said):
            bochner.scan(where).settle()
