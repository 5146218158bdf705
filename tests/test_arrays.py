"""Rows: what is taken, what is kept, and what is refused in which words."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp

from bochner.arrays import (
    NON_NEGATIVE,
    REALS,
    Domain,
    Rows,
    as_rows,
    column_name,
    decode,
    dense,
    encode,
    first_where,
    frozen,
    is_sparse,
    tiles,
)
from bochner.errors import BochnerError, DataError, DomainError

DAY = datetime.date(2020, 1, 1)


# ---- what is taken
@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("f8", "f8"),
        ("f4", "f4"),
        ("f2", "f4"),
        (">f8", "f8"),
        (">f4", "f4"),
        ("g", "f8"),
        ("i1", "f8"),
        ("u8", "f8"),
        (">i4", "f8"),
        ("?", "f8"),
        ("O", "f8"),
    ],
)
def test_types(dtype, kept):
    X = np.array([[0, 1], [1, 0]], dtype=dtype)
    values = as_rows(X).values
    assert values.dtype == np.dtype(kept)
    assert values.dtype.isnative
    assert values.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    if dtype not in ("f2", "g", "O"):
        assert as_rows(sp.csr_array(X.astype(np.dtype(dtype).newbyteorder("=")))).values.dtype == np.dtype(kept)


def test_floats_are_not_copied():
    for dtype in (np.float32, np.float64):
        X = np.ones((3, 2), dtype=dtype, order="F")
        X.flags.writeable = False
        assert as_rows(X).values is X
    rows = as_rows([[1, 2]])
    assert as_rows(rows) is rows
    assert as_rows([[Decimal("0.5"), True, np.float32(2)]]).values.tolist() == [[0.5, 1.0, 2.0]]
    assert as_rows([[]]).values.shape == (1, 0)
    assert as_rows(np.empty((0, 3))).values.shape == (0, 3)


def test_sparse_matrices_become_canonical_without_touching_the_callers():
    data, columns = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0])
    X = sp.csr_array((data, columns, np.array([0, 3])), shape=(1, 3))
    rows = as_rows(X)
    assert is_sparse(rows.values)
    assert rows.values.toarray().tolist() == [[5.0, 0.0, 1.0]]
    assert rows.values.nnz == 2
    assert data.tolist() == [1.0, 2.0, 3.0]
    assert columns.tolist() == [2, 0, 0]
    canonical = sp.csr_array(np.eye(2))
    canonical.data.flags.writeable = False
    assert np.shares_memory(as_rows(canonical).values.data, canonical.data)
    for form in (sp.csc_matrix, sp.coo_array, sp.lil_array, sp.dia_array):
        assert dense(as_rows(form(np.eye(3))).values).tolist() == np.eye(3).tolist()


# ---- tables
def test_tables_have_names():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    content = {"a": [1, 2], "b c": [0.5, 1.5]}
    tables = [pd.DataFrame(content), pl.DataFrame(content), pa.table(content), pa.table(content).to_batches()[0]]
    for table in tables:
        rows = as_rows(table)
        assert rows.names == ("a", "b c")
        assert rows.values.tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert as_rows(pd.DataFrame(np.eye(2))).names is None
    assert as_rows(pd.DataFrame(np.eye(2), columns=["a", 7])).names == ("a", "7")
    assert as_rows(pd.DataFrame(np.eye(2, dtype=np.float32), columns=["a", "b"])).values.dtype == np.float32
    assert as_rows(pa.table({})).values.shape == (0, 0)
    assert as_rows(pd.DataFrame({"n": pd.array([1, 2], dtype="Int64")})).values.tolist() == [[1.0], [2.0]]
    assert as_rows(pa.table([[1, 2], [3, 4]], names=["a", "a"])).values.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def bad_tables(column):
    """The same bad column in every kind of table, as the second one."""
    for name, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        module = pytest.importorskip(name)
        yield getattr(module, make)({"first": [1.0, 2.0], "bad": column})


@pytest.mark.parametrize("column", [["1", "2"], ["1.5", "x"], ["", None], [b"a", b"b"]], ids=str)
def test_text_is_refused_by_name(column):
    for table in bad_tables(column):
        with pytest.raises(DataError, match=r"^row 0, column 'bad' holds .*, which is not a number; encode") as caught:
            as_rows(table)
        assert (caught.value.row, caught.value.column) == (0, 1)


def test_missing_values_are_refused_by_name():
    for table in bad_tables([1, None]):
        with pytest.raises(DataError, match=r"^row 1, column 'bad' (is nan|holds)") as caught:
            as_rows(table)
        assert (caught.value.row, caught.value.column) == (1, 1)
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=r"^row 1, column 'bad' (is nan|holds <NA>)"):
        as_rows(pd.DataFrame({"bad": pd.array([1, None], dtype="Int64")}))


@pytest.mark.parametrize(
    "column", [[DAY, DAY], [datetime.datetime(2020, 1, 1)] * 2, [datetime.timedelta(1)] * 2], ids=str
)
def test_dates_are_not_numbers(column):
    for table in bad_tables(column):
        with pytest.raises(DataError, match=r"column 'bad' holds .*, which is not a number; encode") as caught:
            as_rows(table)
        assert caught.value.column == 1


def test_categories_are_not_numbers():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for table in (
        pd.DataFrame({"a": [1.0, 2.0], "bad": pd.Categorical(["x", "y"])}),
        pl.DataFrame({"a": [1.0, 2.0], "bad": ["x", "y"]}).cast({"bad": pl.Categorical}),
    ):
        with pytest.raises(DataError, match=r"^row 0, column 'bad' holds 'x'"):
            as_rows(table)


def test_lazy_tables_are_to_be_collected():
    pl = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"call its collect\(\) first"):
        as_rows(pl.LazyFrame({"a": [1.0]}))


# ---- what is refused
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], r"got shape \(2,\) \(one row\? use X\[None, :\]; one column\? use X\[:, None\]\)"),
        (3.0, r"got shape \(\)"),
        ([], r"got shape \(0,\)"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (sp.coo_array(np.ones(3)), r"got shape \(3,\)"),
        ([[1.0], [1.0, 2.0]], "rows must form a two-dimensional array; .*inhomogeneous"),
        ("text", r"got shape \(\)"),
        (None, r"got shape \(\)"),
        ([[1j]], "Complex data not supported: .* got dtype complex128"),
        (sp.csr_array([[1j]]), "Complex data not supported"),
        (np.array([["a"]]), "row 0, column 0 holds .*'a'.*, which is not a number"),
        (np.array([[b"a"]]), "row 0, column 0 holds"),
        ([[1.0, None]], "row 0, column 1 holds None, which is not a number"),
        (np.array([[1.0], ["2"]], dtype=object), "row 1, column 0 holds '2', which is not a number"),
        (np.array([[{}]], dtype=object), "row 0, column 0 holds {}"),
        (np.array([[10**400]], dtype=object), "row 0, column 0 holds 1000"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), r"got dtype datetime64\[D\]"),
        (np.zeros((1, 1), dtype="V4"), "rows must hold real numbers"),
        (np.array([[1.0, np.nan]]), "^row 0, column 1 is nan; remove or impute such rows first$"),
        (np.array([[1.0], [-np.inf]], dtype=np.float32), "^row 1, column 0 is -inf;"),
        (sp.csr_array([[0.0, 1.0], [np.inf, 0.0]]), "^row 1, column 0 is inf;"),
    ],
    ids=repr,
)
def test_refused(X, message):
    with pytest.raises(DataError, match=message) as caught:
        as_rows(X)
    assert isinstance(caught.value, BochnerError)
    assert isinstance(caught.value, ValueError)


def test_finiteness_can_be_left_to_others():
    assert np.isnan(as_rows([[np.nan]], finite=False).values).all()


def test_a_sum_that_overflows_is_no_reason_to_refuse():
    for big in (np.float32(3e38), np.float64(1.7e308)):
        X = np.full((2, 3), big)
        assert as_rows(X).values is X
        X[0, 0] = -big
        assert as_rows(X).values is X


# ---- domains
@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_domains(form):
    X = form([[0.0, 2.0], [1.0, -0.5]])
    rows, named = Rows(X), Rows(X, ("a", "b"))
    REALS.require(rows, "k")
    Domain(-0.5).require(rows, "k")
    with pytest.raises(DomainError, match=r"^row 1, column 1 is -0.5, but k needs entries ≥ 0; ") as caught:
        NON_NEGATIVE.require(rows, "k")
    assert (caught.value.row, caught.value.column) == (1, 1)
    with pytest.raises(DomainError, match=r"^row 1, column 'b' is -0.5, but k needs entries > -0.5; "):
        Domain(-0.5, open=True).require(named, "k")
    with pytest.raises(DomainError, match=r"^row 0, column 'a' is 0, but k needs entries > 0; "):
        Domain(0.0, open=True).require(named, "k")
    with pytest.raises(DomainError, match=r"^row 0, column 'a' is 0, but k needs entries ≥ 1; "):
        Domain(1.0).require(named, "k")
    for domain in (NON_NEGATIVE, Domain(0.0, open=True)):
        domain.require(Rows(form(np.zeros((0, 2)))), "k")


def test_column_names():
    assert column_name(None, 3) == "3"
    assert column_name(["a", "b"], 1) == "'b'"
    assert column_name(["7"], 0) == "7"


def test_first_where_counts_rows_first():
    X = np.array([[0.0, 0.0, 3.0], [5.0, 0.0, 0.0]])
    for form in (np.array, np.asfortranarray, sp.csr_array):
        assert first_where(form(X), lambda x: x > 1) == (0, 2)
        assert first_where(form(X), lambda x: x > 4) == (1, 0)


# ---- helpers
@pytest.mark.parametrize(("n", "size"), [(0, 5), (1, 5), (10, 5), (11, 5), (3, 0)])
def test_tiles_cover_in_order(n, size):
    parts = tiles(n, size)
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n))
    assert all(0 < part.stop - part.start <= max(1, size) for part in parts)


def test_frozen_is_a_read_only_copy():
    X = np.asfortranarray(np.eye(3))
    copy = frozen(X, np.float32)
    X[0, 0] = 7.0
    assert copy.tolist() == np.eye(3).tolist()
    assert copy.dtype == np.float32
    assert copy.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        copy[0, 0] = 1.0


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8", "u1", "i2"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_encoded_arrays_survive_json(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    again = decode(json.loads(json.dumps(encode(array))))
    assert again.dtype == np.dtype(dtype).newbyteorder("=")
    assert np.array_equal(again, array)
    assert not again.flags.writeable
    special = np.array([np.nan, np.inf, -0.0])
    assert decode(encode(special)).tobytes() == special.tobytes()


GOOD = encode(np.arange(3.0))


@pytest.mark.parametrize(
    "item",
    [
        {},
        None,
        [],
        GOOD | {"dtype": "O"},
        GOOD | {"dtype": "f8,f8"},
        GOOD | {"dtype": "nonsense"},
        GOOD | {"dtype": 3},
        GOOD | {"dtype": "f4"},
        GOOD | {"shape": [2]},
        GOOD | {"shape": [-1]},
        GOOD | {"shape": [-1, -3]},
        GOOD | {"shape": 3},
        GOOD | {"shape": ["x"]},
        GOOD | {"shape": [10**30]},
        GOOD | {"base64": "?"},
        GOOD | {"base64": 5},
        GOOD | {"base64": GOOD["base64"][:-4]},
    ],
    ids=str,
)
def test_broken_arrays_are_refused(item):
    with pytest.raises(DataError, match="an encoded array"):
        decode(item)
