"""Arrays in memory and in .npy files: columns by number, gaps, and the same rows as plain slices."""

import numpy as np
import pytest
import scipy.sparse as sp

import bochner
from bochner.arrays import Rows
from bochner.errors import DataError
from bochner.sources import Column, MemorySource, Schema
from bochner.sources.numbered import Numbered

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
X.flags.writeable = False
y = rng.integers(0, 3, 60)


def whole(source, size=8192, start=0):
    chunks = list(source.chunks(size, start))
    assert [chunk.start for chunk in chunks] == list(range(start, source.n_rows, size))
    joined = {"X": np.concatenate([c.X.toarray() if sp.issparse(c.X) else c.X for c in chunks])}
    for name in ("y", "weight", "group"):
        parts = [getattr(chunk, name) for chunk in chunks]
        joined[name] = None if parts[0] is None else np.concatenate(parts)
    return joined


def saved(folder, name, array):
    np.save(folder / name, array)
    return folder / name


FORMS = {
    "array": lambda A, folder: A,
    "fortran": lambda A, folder: np.asfortranarray(A),
    "lists": lambda A, folder: A.tolist(),
    "mapped": lambda A, folder: np.load(saved(folder, "m.npy", A), mmap_mode="r"),
    "npy": lambda A, folder: saved(folder, "a.npy", A),
    "three npy": lambda A, folder: [saved(folder, f"p{i}.npy", P) for i, P in enumerate((A[:7], A[7:7], A[7:]))],
    "csr": lambda A, folder: sp.csr_array(A),
    "csc": lambda A, folder: sp.csc_matrix(A),
    "coo": lambda A, folder: sp.coo_array(A),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_the_array(tmp_path, form):
    source = bochner.scan(FORMS[form](X, tmp_path), y, weight=np.arange(60.0), group=y)
    assert (source.n_rows, source.d, source.schema.names) == (60, 5, None)
    for size in (1, 7, 60, 8192):
        found = whole(source, size)
        np.testing.assert_array_equal(found["X"], X)
        np.testing.assert_array_equal(found["y"], y)
        np.testing.assert_array_equal(found["weight"], np.arange(60))
        np.testing.assert_array_equal(found["group"], y)
    np.testing.assert_array_equal(whole(source, 6, 12)["X"], X[12:])
    np.testing.assert_array_equal(np.concatenate(list(source.targets(9))), y)


@pytest.mark.parametrize("form", FORMS)
def test_columns_go_by_number(tmp_path, form):
    A = np.column_stack([X, y, np.arange(60.0), y % 2])
    where = FORMS[form](A, tmp_path)
    found = whole(bochner.scan(where, 5, weight=6, group=-1, drop=[0]), 7)
    np.testing.assert_array_equal(found["X"], X[:, 1:])
    np.testing.assert_array_equal(found["y"], y)
    np.testing.assert_array_equal(found["weight"], np.arange(60))
    np.testing.assert_array_equal(found["group"], y % 2)
    found = whole(bochner.scan(where, [-1, 5], [2, 0]), 7)
    np.testing.assert_array_equal(found["X"], X[:, [2, 0]])
    np.testing.assert_array_equal(found["y"], A[:, [7, 5]])
    for options, said in [
        ({"target": 8}, "there is no column 8; the array has 8 columns"),
        ({"target": -9}, "there is no column -9"),
        ({"target": "y"}, "arrays have no column 'y'; name columns by number, or give a table"),
        ({"drop": list(range(8))}, "no column of 8 is left"),
        ({"categories": [1]}, "give a table"),
        ({"n_features": 3}, "n_features is for libsvm files"),
    ]:
        with pytest.raises(DataError, match=said):
            bochner.scan(where, **options)
    with pytest.raises(DataError, match=r"there are 60 rows and a target of shape \(3,\)"):
        bochner.scan(where, np.zeros(3)).settle()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int8, np.int64, np.uint16, bool])
def test_precision_is_kept(tmp_path, dtype):
    A = (X > 0).astype(dtype)
    for form in ("array", "npy", "csr"):
        if form == "csr" and dtype is np.float16:
            continue  # SciPy has none
        (chunk,) = bochner.scan(FORMS[form](A, tmp_path)).chunks()
        assert chunk.X.dtype == (np.float32 if dtype in (np.float32, np.float16) else np.float64)
        np.testing.assert_array_equal(whole(bochner.scan(FORMS[form](A, tmp_path)))["X"], A)


@pytest.mark.parametrize("form", ["array", "mapped", "npy", "three npy"])
@pytest.mark.parametrize("how", ["mean", "median", "most_frequent", 2.5])
def test_gaps_are_filled_as_asked(tmp_path, form, how):
    A = np.round(X)
    A[rng.random(A.shape) < 0.3] = np.nan
    source = bochner.scan(FORMS[form](A, tmp_path), missing=how)
    columns = [A[~np.isnan(A[:, j]), j] for j in range(5)]
    common = [min(set(c), key=lambda v: (-(c == v).sum(), v)) for c in columns]
    fills = {"mean": np.nanmean(A, axis=0), "median": np.nanmedian(A, axis=0), "most_frequent": common}.get(how, how)
    np.testing.assert_allclose(whole(source, 7)["X"], np.where(np.isnan(A), fills, A))
    again = bochner.scan(np.full((1, 5), np.nan)).with_schema(source.schema)
    np.testing.assert_allclose(whole(again)["X"], np.broadcast_to(fills, (1, 5)))


def test_what_is_masked_is_missing():
    for dtype in (np.float32, np.int64):
        masked = np.ma.masked_array(np.array([[1, 2], [3, 4]], dtype), mask=[[0, 1], [0, 0]])
        assert whole(bochner.scan(masked, missing=0.5))["X"].tolist() == [[1, 0.5], [3, 4]]
        with pytest.raises(DataError, match="row 0, column '1' is missing"):
            whole(bochner.scan(masked))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_finite_is_named(tmp_path, form):
    A = X.copy()
    A[23, 3] = np.nan
    with pytest.raises(DataError, match=r"row 23.*, column '3' is missing; .*missing='mean'") as error:
        whole(bochner.scan(FORMS[form](A, tmp_path), drop=0), 7)
    assert (error.value.row, error.value.column) == (23, "3")
    A[23, 3] = -np.inf
    with pytest.raises(DataError, match=r"row 23.*, column '3' is -inf"):
        whole(bochner.scan(FORMS[form](A, tmp_path), drop=0), 7)
    if form == "three npy":
        with pytest.raises(DataError, match=r"p2.npy: row 23 \(row 16 of the file\), column '3' is -inf"):
            whole(bochner.scan(FORMS[form](A, tmp_path)), 7)
    if "npy" not in form and "c" not in form:
        with pytest.raises(DataError, match=r"cannot be filled|is -inf"):
            whole(bochner.scan(FORMS[form](A, tmp_path), missing=0), 7)


def test_npy_files_that_are_no_rows(tmp_path):
    for array, said in [
        (np.arange(3.0), "a.npy: rows must form a two-dimensional array"),
        (np.array([["a"]]), "a.npy: row 0, column 0 holds 'a'"),
        (np.empty((0, 2)), "no rows"),
        (np.empty((3, 0)), "no column of 0 is left"),
    ]:
        with pytest.raises(DataError, match=said):
            bochner.scan(saved(tmp_path, "a.npy", array)).settle()
    np.save(tmp_path / "o.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(DataError, match=r"o.npy holds Python objects, which are never loaded"):
        bochner.scan(tmp_path / "o.npy")
    path = saved(tmp_path, "a.npy", X)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"a.npy cannot be read"):
        bochner.scan(path)
    with pytest.raises(DataError, match=r"b.npy has 4 columns, unlike .*a.npy, which has 5"):
        bochner.scan([saved(tmp_path, "a.npy", X), saved(tmp_path, "b.npy", X[:, 1:])])


def test_a_mapped_file_is_not_read_to_be_scanned(tmp_path):
    path = tmp_path / "big.npy"
    big = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1 << 22, 64))  # 1 GiB, sparse on disk
    big[-1] = 1.0
    del big
    source = bochner.scan(path)
    last = next(source.chunks(1 << 10, (1 << 22) - (1 << 10)))
    assert last.X[-1].tolist() == [1.0] * 64


# ---- the schema of a model ------------------------------------------------------------------------
def test_arrays_by_the_names_of_a_model():
    named = MemorySource(Rows(X, ("a", "b", "c", "d", "e")))
    picked = named.with_schema(Schema((Column("d"), Column("a"))))
    np.testing.assert_array_equal(whole(picked)["X"], X[:, [3, 0]])
    assert picked.schema.names == ("d", "a")
    with pytest.raises(DataError, match="the column 'z' of the model is missing; it needs 'a', 'z'"):
        named.with_schema(Schema((Column("a"), Column("z"))))
    plain = bochner.scan(X)
    assert plain.with_schema(named.schema).d == 5
    for model, said in [
        (Schema(plain=4), "the model was fitted on 4 columns, the rows have 5"),
        (Schema((Column("a", "category", categories=("x",)),)), "categories, which arrays do not have"),
    ]:
        for source in (plain, MemorySource(X)):
            with pytest.raises(DataError, match=said):
                source.with_schema(model)
    numbered = Numbered(named, np.arange(60) + 100).with_schema(Schema((Column("b"),)))
    assert next(numbered.chunks()).numbers[0] == 100


def test_fingerprints_tell_data_apart(tmp_path):
    prints = [bochner.scan(FORMS[form](X, tmp_path), y).fingerprint() for form in ("array", "csr")]
    assert prints[0] == bochner.scan(X, y).fingerprint()
    assert bochner.scan(X + 1, y).fingerprint() not in prints
    assert bochner.scan(X, 1 - y).fingerprint() not in prints


def test_a_sample_is_the_same_from_every_form(tmp_path):
    expected = bochner.scan(X, y).sample(20, seed=3)
    assert len(set(expected.numbers.tolist())) == 20
    np.testing.assert_array_equal(expected.X, X[expected.numbers])
    for form in FORMS:
        found = bochner.scan(FORMS[form](X, tmp_path), y).sample(20, seed=3)
        np.testing.assert_array_equal(found.numbers, expected.numbers)
        np.testing.assert_array_equal(found.y, expected.y)
