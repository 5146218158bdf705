"""One table in every format: the same numbers, labels, weights and groups, in chunks of any size."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from writers import ALL, FILES, csv, parquet

import bochner
from bochner.errors import DataError

rng = np.random.default_rng(0)
N = 50
COLOURS = ["blue", "green", "red"]
colour = rng.integers(0, 3, N)
size = rng.integers(0, 2, N)
TABLE = pa.table(
    {
        "long": rng.normal(size=N),
        "short": (rng.integers(-99, 99, N) / 16).astype(np.float32),
        "whole": rng.integers(-100, 100, N).astype(np.int8),
        "large": rng.integers(0, 2**40, N),
        "true": rng.random(N) < 0.5,
        "colour": [COLOURS[i] for i in colour],
        "size": pa.array([["S", "L"][i] for i in size]).dictionary_encode(),
        "label": [["no", "yes", None][i] for i in rng.integers(0, 3, N)],
        "number": pa.array([None if i == 7 else float(i) for i in range(N)]),
        "weight": rng.choice([0.0, 1.0, 1e-8, 1e8], N),
        "group": [f"g{i % 4}" for i in range(N)],
        "note": ["free text"] * N,
    }
)
NUMBERS = ["long", "short", "whole", "large", "true"]
X = np.column_stack(
    [*(TABLE[name].to_numpy().astype(float) for name in NUMBERS), np.eye(3)[colour], np.eye(2)[1 - size]]
)
NAMES = (*NUMBERS, "colour=blue", "colour=green", "colour=red", "size=L", "size=S")


def scanned(where, **options):
    asked = {"target": "label", "weight": "weight", "group": "group", "drop": ["note", "number"]}
    return bochner.scan(where, **(asked | options))


def whole(source, size=8192, start=0):
    chunks = list(source.chunks(size, start))
    assert [chunk.start for chunk in chunks] == list(range(start, source.n_rows, size))
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert len({chunk.X.dtype for chunk in chunks}) == 1
    assert all(chunk.X.flags.c_contiguous for chunk in chunks)
    joined = {"X": np.concatenate([chunk.X for chunk in chunks])}
    for name in ("y", "weight", "group"):
        parts = [getattr(chunk, name) for chunk in chunks]
        joined[name] = None if parts[0] is None else np.concatenate(parts)
    return joined


@pytest.mark.parametrize("form", ALL)
def test_every_format_gives_the_same_rows(tmp_path, form):
    source = scanned(ALL[form](TABLE, tmp_path))
    assert source.schema.names == NAMES
    assert (source.n_rows, source.d, source.target) == (N, len(NAMES), ("label",))
    for chunk in (1, 7, N, 8192):
        found = whole(source, chunk)
        np.testing.assert_array_equal(found["X"], X)
        assert found["y"].tolist() == TABLE["label"].to_pylist()
        np.testing.assert_array_equal(found["weight"], TABLE["weight"].to_numpy())
        assert found["group"].tolist() == TABLE["group"].to_pylist()
    np.testing.assert_array_equal(whole(source, 7, 21)["X"], X[21:])
    labels = np.concatenate(list(source.targets(9)))
    assert labels.tolist() == TABLE["label"].to_pylist()
    assert source.fingerprint() == scanned(ALL[form](TABLE, tmp_path)).fingerprint()
    assert source.fingerprint() != scanned(ALL[form](TABLE.slice(1), tmp_path)).fingerprint()


@pytest.mark.parametrize("form", ALL)
def test_targets_of_numbers(tmp_path, form):
    table = TABLE.select(["long", "number", "short"])
    where = ALL[form](table, tmp_path)
    source = bochner.scan(where, "number", ["long"])
    np.testing.assert_array_equal(whole(source, 6)["y"].astype(float), table["number"].to_numpy())
    where = ALL[form](table, tmp_path)  # a reader can be read once
    both = whole(bochner.scan(where, ["number", "short"]), 6)["y"]
    expected = np.column_stack([table["number"].to_numpy(), table["short"].to_numpy()])
    np.testing.assert_array_equal(both.astype(float), expected)


@pytest.mark.parametrize("kind", FILES)
def test_many_files_are_one_source(tmp_path, kind):
    parts = [TABLE.slice(0, 11), TABLE.slice(11, 1), TABLE.slice(12, 0), TABLE.slice(12)]
    paths = [FILES[kind](part, tmp_path, f"part-{i + 8}") for i, part in enumerate(parts)]
    (tmp_path / "_notes.csv").write_text("a\n1\n")
    ending = paths[0].name.split(".", 1)[1]
    for where in (paths, str(tmp_path / f"part-*.{ending}"), tmp_path, list(map(str, paths))):
        source = scanned(where)
        for chunk in (4, 8192):
            found = whole(source, chunk)
            np.testing.assert_array_equal(found["X"], X)
            assert found["y"].tolist() == TABLE["label"].to_pylist()
        np.testing.assert_array_equal(whole(source, 8, 16)["X"], X[16:])


@pytest.mark.parametrize("form", ALL)
def test_names_of_any_kind(tmp_path, form):
    names = ["a", "a.b", "a b", "α", "x=1", "9", ' "q" ']
    table = pa.table({name: [float(i), i + 0.5] for i, name in enumerate(names)})
    for picked in (names, names[1:], ["a"], ["a.b"], names[::-1]):
        source = bochner.scan(ALL[form](table, tmp_path), features=picked)
        assert source.schema.names == tuple(picked)
        first = [float(names.index(name)) for name in picked]
        np.testing.assert_array_equal(whole(source, 1)["X"], [first, np.add(first, 0.5)])


@pytest.mark.parametrize("form", ALL)
def test_one_row(tmp_path, form):
    source = scanned(ALL[form](TABLE.slice(3, 1), tmp_path), drop=["note", "number", "label"], target=None)
    (chunk,) = source.chunks()
    assert chunk.X.shape == (1, 7)
    assert chunk.y is None


@pytest.mark.parametrize("form", ALL)
def test_no_rows_are_refused(tmp_path, form):
    with pytest.raises(DataError, match="has no rows"):
        scanned(ALL[form](TABLE.slice(0, 0), tmp_path)).settle()


def test_precision_is_single_where_that_is_exact(tmp_path):
    for names, kind in ((["short", "whole", "true", "colour"], np.float32), (["short", "large"], np.float64)):
        source = bochner.scan(parquet(TABLE, tmp_path), features=names)
        assert whole(source)["X"].dtype == kind


def test_only_the_columns_that_are_needed_are_read(tmp_path):
    table = TABLE.append_column("when", pa.array([datetime.date(2020, 1, 1)] * N))
    source = bochner.scan(parquet(table, tmp_path), "label", ["short"])
    asked = []
    (read,) = source._tables
    source._tables = (read,)
    original = type(read)._batches
    type(read)._batches = lambda self, columns, *rest: (asked.append(list(columns)), original(self, columns, *rest))[1]
    try:
        whole(source, 9)
    finally:
        type(read)._batches = original
    assert asked == [["short", "label"]]


def test_a_target_is_no_feature():
    with pytest.raises(DataError, match="the target 'label' is among the features"):
        bochner.scan(TABLE, "label", ["label", "long"]).settle()
    with pytest.raises(DataError, match="the target 1 is among the features"):
        bochner.scan(np.eye(3), 1, [0, 1])


# ---- columns that hold several numbers ------------------------------------------------------------
HISTOGRAMS = rng.integers(0, 9, (N, 4)).astype(np.float32)


def lists(kind, values=HISTOGRAMS):
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    return pa.array(values.tolist(), pa.list_(pa.float32()) if kind == "list" else pa.large_list(pa.float32()))


@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
@pytest.mark.parametrize("form", ["parquet", "small groups", "feather", "stream", "arrow", "polars"])
def test_lists_are_vectors_of_features(tmp_path, form, kind):
    where = ALL[form](pa.table({"h": lists(kind), "a": TABLE["short"], "y": lists(kind)}), tmp_path)
    alone = bochner.scan(where, features=["h"])
    assert alone.schema.names == ("h[0]", "h[1]", "h[2]", "h[3]")
    for chunk in (7, 8192):
        found = whole(alone, chunk)["X"]
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, HISTOGRAMS)
    both = whole(bochner.scan(where, features=["a", "h"]), 7)["X"]
    np.testing.assert_array_equal(both, np.column_stack([TABLE["short"].to_numpy(), HISTOGRAMS]))
    if kind == "fixed" and form != "polars":
        np.testing.assert_array_equal(whole(bochner.scan(where, "y", ["a"]), 7)["y"], HISTOGRAMS)


def test_lists_of_unequal_length_are_refused(tmp_path):
    table = pa.table({"h": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0]]), "y": [0, 1, 0]})
    path = parquet(table, tmp_path)
    with pytest.raises(DataError, match=r"rows.parquet: row 2, column 'h' holds 1 numbers, not 2"):
        whole(bochner.scan(path, "y"))


# ---- categories -----------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ALL)
def test_numbers_become_categories_when_asked(tmp_path, form):
    codes = [0, 2, 1, 2]
    for given, names in ((["code"], ("code=0", "code=1", "code=2")), ({"code": [2, 1, 0, 5]}, None)):
        where = ALL[form](pa.table({"code": codes, "a": [0.0, 1.0, 2.0, 3.0]}), tmp_path)
        source = bochner.scan(where, categories=given)
        assert source.schema.names[:-1] == (names or ("code=2", "code=1", "code=0", "code=5"))
        hot = whole(source)["X"][:, :-1]
        order = [0, 1, 2] if names else [2, 1, 0, 5]
        np.testing.assert_array_equal(hot, np.array(codes)[:, None] == np.array(order))


@pytest.mark.parametrize("form", ALL)
def test_a_value_that_is_no_known_category_is_named(tmp_path, form):
    where = ALL[form](TABLE.select(["colour", "long"]), tmp_path)
    row = int(np.flatnonzero(colour == 2)[0])
    with pytest.raises(
        DataError, match=rf"row {row}, column 'colour' holds 'red', which is none of the 2 known"
    ) as error:
        whole(bochner.scan(where, categories={"colour": ["blue", "green"]}), 4)
    assert (error.value.row, error.value.column) == (row, "colour")


def test_categories_of_pandas_and_polars():
    values = ["b", "a", None, "b"]
    frame = pd.DataFrame({"c": pd.Categorical(values, categories=["b", "a", "unused"]), "x": range(4)})
    expected = [[0, 1, 0], [1, 0, 1], [0, 0, 2], [0, 1, 3]]
    for table in (frame, pl.DataFrame({"c": pl.Series(values, dtype=pl.Categorical), "x": range(4)})):
        source = bochner.scan(table, missing=0)
        assert source.schema.names == ("c=a", "c=b", "x")
        np.testing.assert_array_equal(whole(source, 3)["X"], expected)


def test_categories_of_text_are_known_again_as_numbers(tmp_path):
    codes = pa.table({"code": [10, 9, 10], "a": [0.0, 1.0, 2.0]})
    learnt = bochner.scan(csv(codes, tmp_path), categories=["code"])
    assert learnt.schema.names == ("code=10", "code=9", "a")
    for form in ALL:
        again = bochner.scan(ALL[form](codes, tmp_path)).with_schema(learnt.schema)
        np.testing.assert_array_equal(whole(again)["X"], whole(learnt)["X"])


# ---- gaps -----------------------------------------------------------------------------------------
GAPPY = pa.table({"a": [1.0, None, 3.0, 3.0, 9.0], "b": [None, 2.0, 2.0, 8.0, 4.0], "y": [0, 1, 0, 1, 0]})
FILLED = {"mean": (4.0, 4.0), "median": (3.0, 3.0), "most_frequent": (3.0, 2.0), -1: (-1.0, -1.0)}


@pytest.mark.parametrize("form", ALL)
@pytest.mark.parametrize("how", FILLED)
def test_gaps_are_filled_as_asked(tmp_path, form, how):
    source = bochner.scan(ALL[form](GAPPY, tmp_path), "y", missing=how)
    expected = np.column_stack([GAPPY["a"].to_numpy(), GAPPY["b"].to_numpy()])
    expected = np.where(np.isnan(expected), FILLED[how], expected)
    for chunk in (2, 8192):
        np.testing.assert_array_equal(whole(source, chunk)["X"], expected)
    # What was learnt on the training rows fills new ones.
    new = ALL[form](GAPPY.slice(0, 1), tmp_path)
    again = bochner.scan(new).with_schema(source.schema)
    np.testing.assert_array_equal(whole(again)["X"], expected[:1])


@pytest.mark.parametrize("form", ALL)
def test_gaps_are_refused_without_a_word(tmp_path, form):
    where = ALL[form](GAPPY, tmp_path)
    with pytest.raises(DataError, match=r"row 1, column 'a' is missing; .*missing='mean'") as error:
        whole(bochner.scan(where, "y", drop="b"), 2)
    assert (error.value.row, error.value.column) == (1, "a")
    assert str(error.value).startswith(str(where) if form in FILES else "row")


def test_a_missing_category_is_a_row_of_zeros_or_refused(tmp_path):
    path = parquet(pa.table({"c": ["a", None, "b"], "x": [1.0, 2.0, 3.0]}), tmp_path)
    with pytest.raises(DataError, match="row 1, column 'c' is missing"):
        whole(bochner.scan(path))
    np.testing.assert_array_equal(whole(bochner.scan(path, missing="mean"))["X"], [[1, 0, 1], [0, 0, 2], [0, 1, 3]])


def test_a_column_without_a_value_is_refused(tmp_path):
    for values in (pa.nulls(3), pa.array([None] * 3, pa.float64()), pa.array([None] * 3, pa.string())):
        path = parquet(pa.table({"gone": values, "x": [1.0, 2.0, 3.0]}), tmp_path)
        with pytest.raises(DataError, match="column 'gone' has no value at all; drop it"):
            bochner.scan(path, missing="mean").settle()


def test_missing_is_one_of_a_few_words():
    with pytest.raises(DataError, match="missing is 'refuse', 'mean', 'median', 'most_frequent' or a finite number"):
        bochner.scan(GAPPY, missing="guess")
    for wrong in (None, True, np.nan, [1.0]):
        with pytest.raises(DataError, match="missing is 'refuse'"):
            bochner.scan(GAPPY, missing=wrong)


# ---- other types ----------------------------------------------------------------------------------
def test_decimals_are_numbers(tmp_path):
    values = [decimal.Decimal("1.25"), decimal.Decimal("-7.50"), None]
    table = pa.table({"d": pa.array(values, pa.decimal128(9, 2)), "x": [1.0, 2.0, 3.0]})
    for where in (parquet(table, tmp_path), table, pl.from_arrow(table)):
        np.testing.assert_array_equal(whole(bochner.scan(where, missing=0))["X"], [[1.25, 1], [-7.5, 2], [0, 3]])


@pytest.mark.parametrize("values", [
    [datetime.date(2020, 1, 1)] * 2,
    [datetime.datetime(2020, 1, 1, 3)] * 2,
    [datetime.timedelta(1)] * 2,
    [{"a": 1}] * 2,
    [b"\x00"] * 2,
    [["a"]] * 2,
], ids=lambda values: type(values[0]).__name__)  # fmt: skip
def test_what_is_no_number_is_refused(tmp_path, values):
    table = pa.table({"x": [1.0, 2.0], "odd": values})
    for where in (parquet(table, tmp_path), table):
        source = bochner.scan(where, "x")
        with pytest.raises(DataError, match=r"the column 'odd' holds .*, which is not a number; .* drop=\['odd'\]"):
            source.settle()
    assert bochner.scan(table, drop="odd").d == 1
    if not isinstance(values[0], list):
        with pytest.raises(DataError, match=r"labels of type .* are not understood"):
            whole(bochner.scan(table, "odd"))


def test_half_precision_and_unsigned_numbers(tmp_path):
    table = pa.table({"h": pa.array(np.array([1.5, 2], np.float16)), "u": pa.array([2**63, 3], pa.uint64())})
    found = whole(bochner.scan(parquet(table, tmp_path)))["X"]
    np.testing.assert_array_equal(found, [[1.5, 2.0**63], [2.0, 3.0]])


def test_infinities_are_refused(tmp_path):
    table = pa.table({"a": [1.0, np.inf, 2.0], "y": [0, 1, 0]})
    for form in ALL:
        with pytest.raises(DataError, match="row 1, column 'a' is inf") as error:
            whole(bochner.scan(ALL[form](table, tmp_path), "y", missing="mean"), 2)
        assert error.value.row == 1


def test_labels_of_any_type(tmp_path):
    for values in ([True, False, True], [3, 1, 3], [1.5, 2.5, 1.5], ["a", "b", "a"], [2**60, 1, 2**60]):
        for form in ("parquet", "csv", "arrow", "pandas", "polars"):
            where = ALL[form](pa.table({"x": [1.0, 2.0, 3.0], "y": values}), tmp_path)
            found = np.concatenate(list(bochner.scan(where, "y").targets(2)))
            assert found.tolist() == values, form
            assert type(found.tolist()[0]) is type(values[0]), form
        gappy = pa.table({"x": [1.0, 2.0, 3.0], "y": [values[0], None, values[1]]})
        for form in ("parquet", "csv", "arrow", "polars"):
            found = np.concatenate(list(bochner.scan(ALL[form](gappy, tmp_path), "y").targets(2)))
            assert [v for v in found.tolist() if v is not None and v == v] == values[:2], form


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("form", ["parquet", "csv", "pandas"])
def test_weights_are_finite_and_not_negative(tmp_path, form, bad):
    table = pa.table({"x": np.arange(5.0), "w": [1.0, 1.0, 1.0, bad, 1.0]})
    with pytest.raises(DataError, match=r"row 3 has the weight (-1|nan|inf); weights are finite and ≥ 0") as error:
        whole(bochner.scan(ALL[form](table, tmp_path), weight="w"), 2)
    assert error.value.row == 3


def test_every_row_has_a_group(tmp_path):
    table = pa.table({"x": np.arange(3.0), "g": ["a", None, "b"]})
    with pytest.raises(DataError, match="row 1, column 'g' is missing, but every row needs a group"):
        whole(bochner.scan(csv(table, tmp_path), group="g"))


def test_targets_weights_and_groups_from_elsewhere(tmp_path):
    n = np.arange(N)
    path = parquet(TABLE.select(["long"]), tmp_path)
    np.save(tmp_path / "y.npy", n % 3)
    for target in (
        n % 3,
        pa.array(n % 3),
        pd.Series(n % 3),
        pl.Series(n % 3),
        tmp_path / "y.npy",
        str(tmp_path / "y.npy"),
    ):
        found = whole(bochner.scan(path, target, weight=n.astype(float), group=n % 5), 7)
        np.testing.assert_array_equal(found["y"], n % 3)
        np.testing.assert_array_equal(found["weight"], n)
        np.testing.assert_array_equal(found["group"], n % 5)
    with pytest.raises(DataError, match=r"there are 50 rows and a target of shape \(49,\)"):
        bochner.scan(path, n[1:]).settle()
    with pytest.raises(DataError, match="row 0 has the weight -1"):
        bochner.scan(path, weight=n - 1.0).settle()
