"""A fit on a source is the fit on the same rows in memory, whatever the source; and so are predictions."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from writers import ALL, csv, parquet

import bochner
from bochner import KernelClassifier, KernelFeatures, KernelRegressor, kernels
from bochner.errors import DataError

rng = np.random.default_rng(0)
N, NEW = 9000, 100  # more than one chunk
X = np.round(rng.normal(size=(N + NEW, 4)), 3)
number = np.round(np.sin(X[:, 0]) + X[:, 1] ** 2, 3)
label = np.array(["low", "middle", "high"])[np.digitize(number, [0.5, 1.5])]
weight = np.round(rng.uniform(0.5, 2.0, N + NEW), 2)
group = rng.integers(0, 40, N + NEW)
TABLE = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "number": number, "label": label, "w": weight, "g": group})
COLUMNS = ["x0", "x1", "x2", "x3"]
SETTINGS = {"kernel": "gaussian(gamma=median)", "n_features": 32, "random_state": 0}
PARTS = {"target": "number", "features": COLUMNS, "weight": "w", "group": "g"}


@pytest.fixture(scope="module")
def regressor():
    return KernelRegressor(**SETTINGS).fit(X[:N], number[:N], weight[:N], groups=group[:N])


@pytest.fixture(scope="module")
def classifier():
    return KernelClassifier(**SETTINGS).fit(X[:N], label[:N])


@pytest.mark.parametrize("form", ALL)
def test_a_regression_on_a_table(tmp_path, regressor, form):
    source = bochner.scan(ALL[form](TABLE.slice(0, N), tmp_path), **PARTS)
    found = KernelRegressor(**SETTINGS).fit(source)
    np.testing.assert_array_equal(found.coef_, regressor.coef_)
    assert found.alpha_ == regressor.alpha_
    np.testing.assert_array_equal(found.predict(source)[:NEW], regressor.predict(X[:NEW]))
    new = bochner.scan(ALL[form](TABLE.slice(N).drop_columns(["number", "w"]), tmp_path))
    np.testing.assert_array_equal(found.predict(new), regressor.predict(X[N:]))


@pytest.mark.parametrize("form", ["parquet", "csv.gz", "pandas"])
def test_a_classification_on_a_table(tmp_path, classifier, form):
    source = bochner.scan(ALL[form](TABLE.slice(0, N), tmp_path), "label", COLUMNS)
    found = KernelClassifier(**SETTINGS).fit(source)
    np.testing.assert_array_equal(found.coef_, classifier.coef_)
    assert found.classes_.tolist() == ["high", "low", "middle"]
    new = bochner.scan(ALL[form](TABLE.slice(N), tmp_path))
    np.testing.assert_array_equal(found.predict(new), classifier.predict(X[N:]))
    np.testing.assert_array_equal(found.predict_proba(new), classifier.predict_proba(X[N:]))


@pytest.mark.parametrize("form", ["array", "mapped", "npy", "columns"])
def test_fits_on_arrays(tmp_path, regressor, form):
    np.save(tmp_path / "X.npy", X[:N])
    np.save(tmp_path / "y.npy", number[:N])
    np.save(tmp_path / "all.npy", np.column_stack([X, number, weight, group])[:N])
    more = weight[:N], group[:N]
    source = {
        "array": lambda: bochner.scan(X[:N], number[:N], weight=weight[:N], group=group[:N]),
        "mapped": lambda: bochner.scan(np.load(tmp_path / "X.npy", "r"), tmp_path / "y.npy", None, None, *more),
        "npy": lambda: bochner.scan(tmp_path / "X.npy", tmp_path / "y.npy", weight=weight[:N], group=group[:N]),
        "columns": lambda: bochner.scan(tmp_path / "all.npy", 4, weight=5, group=6),
    }[form]()  # fmt: skip
    found = KernelRegressor(**SETTINGS).fit(source)
    if form == "columns":  # groups are floats there, whose folds are others
        assert found.moments_.total().weight == pytest.approx(regressor.moments_.total().weight)
        np.testing.assert_allclose(found.moments_.total().mean, regressor.moments_.total().mean, atol=1e-12)
        return
    np.testing.assert_array_equal(found.coef_, regressor.coef_)
    np.testing.assert_array_equal(found.predict(bochner.scan(X[N:])), regressor.predict(X[N:]))


@pytest.mark.parametrize("how", ["", ".gz"])
def test_fits_on_sparse_rows(tmp_path, how):
    import gzip

    S = sp.csr_array(np.round(np.where(rng.random(X.shape) < 0.5, X, 0.0), 2))
    codes = np.digitize(number, [1.0])
    dump_svmlight_file(S[:N], codes[:N], str(tmp_path / "a.svm"), zero_based=False)
    path = tmp_path / f"a.svm{how}"
    if how:
        path.write_bytes(gzip.compress((tmp_path / "a.svm").read_bytes()))
    memory = KernelClassifier(**SETTINGS).fit(S[:N], codes[:N])
    for source in (bochner.scan(path), bochner.scan(S[:N], codes[:N])):
        found = KernelClassifier(**SETTINGS).fit(source)
        np.testing.assert_array_equal(found.coef_, memory.coef_)
        np.testing.assert_array_equal(found.predict(source), memory.predict(S[:N]))
    dump_svmlight_file(S[N:], codes[N:], str(tmp_path / "new.svm"), zero_based=False)
    np.testing.assert_array_equal(found.predict(bochner.scan(tmp_path / "new.svm")), memory.predict(S[N:]))


def test_features_of_a_source(tmp_path):
    path = parquet(TABLE, tmp_path)
    source = bochner.scan(path, features=COLUMNS)
    memory = KernelFeatures("laplacian(gamma=median)", 16, random_state=0).fit(X)
    found = KernelFeatures("laplacian(gamma=median)", 16, random_state=0).fit(source)
    np.testing.assert_array_equal(found.transform(source), memory.transform(X))
    np.testing.assert_array_equal(found.transform(bochner.scan(path)), memory.transform(X))
    assert found.feature_names_in_.tolist() == COLUMNS


def test_other_losses_sweep_a_source_again(tmp_path):
    source = bochner.scan(parquet(TABLE.slice(0, 2000), tmp_path, row_group_size=300), "label", COLUMNS)
    settings = SETTINGS | {"loss": "logistic", "alpha": 1.0}
    found = KernelClassifier(**settings).fit(source)
    memory = KernelClassifier(**settings).fit(X[:2000], label[:2000])
    np.testing.assert_array_equal(found.coef_, memory.coef_)


def test_many_files_are_fitted_as_one(tmp_path, regressor):
    for i, (start, stop) in enumerate([(0, 1), (1, 5000), (5000, N)]):
        parquet(TABLE.slice(start, stop - start), tmp_path, f"part-{i}", row_group_size=700)
    found = KernelRegressor(**SETTINGS).fit(bochner.scan(tmp_path / "part-*.parquet", **PARTS))
    np.testing.assert_array_equal(found.coef_, regressor.coef_)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_single_precision_rows(tmp_path, precision):
    narrow = X[:N].astype(np.float32)
    path = parquet(pa.table({f"x{j}": narrow[:, j] for j in range(4)} | {"y": number[:N]}), tmp_path)
    settings = SETTINGS | {"precision": precision}
    found = KernelRegressor(**settings).fit(bochner.scan(path, "y"))
    memory = KernelRegressor(**settings).fit(narrow, number[:N])
    np.testing.assert_array_equal(found.coef_, memory.coef_)


def test_histograms_in_one_column(tmp_path):
    H = rng.dirichlet(np.ones(6), 500).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(H.ravel()), 6)
    path = parquet(pa.table({"h": column, "y": label[:500]}), tmp_path)
    settings = SETTINGS | {"kernel": kernels.Chi2(), "scaling": "l1"}
    found = KernelClassifier(**settings).fit(bochner.scan(path, "y"))
    memory = KernelClassifier(**settings).fit(H, label[:500])
    np.testing.assert_array_equal(found.coef_, memory.coef_)
    np.testing.assert_array_equal(found.predict(bochner.scan(path)), memory.predict(H))


def test_a_row_that_a_kernel_refuses_is_numbered_in_the_source(tmp_path):
    H = rng.dirichlet(np.ones(4), N)
    fitted = KernelRegressor(kernels.Chi2(), 16, random_state=0).fit(H[:500], number[:500])
    H[8500, 2] = -1.0
    path = parquet(pa.table(dict(zip("abcd", H.T, strict=True))), tmp_path)
    for predict in (fitted.predict, fitted.model_.predict):
        with pytest.raises(DataError, match=r"row 8500, column .* is -1") as error:
            predict(bochner.scan(path))
        assert error.value.row == 8500


def test_scores_of_a_source(tmp_path, regressor, classifier):
    held = TABLE.slice(N)
    path = parquet(held, tmp_path)
    found = regressor.score(bochner.scan(path, "number", COLUMNS, weight="w"))
    assert found == pytest.approx(regressor.score(X[N:], number[N:], weight[N:]), rel=1e-12)
    assert classifier.score(bochner.scan(path, "label", COLUMNS)) == classifier.score(X[N:], label[N:])
    gappy = label[N:].astype(object)
    gappy[::2] = None
    path = parquet(held.set_column(5, "label", pa.array(gappy)), tmp_path, "gappy")
    assert classifier.score(bochner.scan(path, "label", COLUMNS)) == classifier.score(X[N + 1 :: 2], label[N + 1 :: 2])
    with pytest.raises(DataError, match="the source has no target to compare with"):
        classifier.score(bochner.scan(X))


# ---- what a model knows of its columns ------------------------------------------------------------
MIXED = pd.DataFrame(
    {
        "age": [30.0, 41.0, None, 25.0, 60.0, 33.0] * 20,
        "colour": ["red", "blue", "red", "green", "blue", "red"] * 20,
        "y": [1.0, 2.0, 1.5, 0.5, 3.0, 1.2] * 20,
    }
)


@pytest.fixture
def mixed(tmp_path):
    path = csv(pa.Table.from_pandas(MIXED), tmp_path)
    return KernelRegressor(**SETTINGS).fit(bochner.scan(path, "y", missing="median"))


def test_rows_to_predict_are_read_as_those_that_were_fitted(tmp_path, mixed):
    expected = mixed.predict(bochner.scan(MIXED, "y"))
    assert mixed.feature_names_in_.tolist() == ["age", "colour=blue", "colour=green", "colour=red"]
    new = MIXED.assign(day=pd.Timestamp("2020-01-01"))[["day", "colour", "age"]]  # another order, and one more
    for rows in (
        new,
        pa.Table.from_pandas(new),
        bochner.scan(new),
        bochner.scan(parquet(pa.Table.from_pandas(new), tmp_path)),
    ):
        np.testing.assert_array_equal(mixed.predict(rows), expected)
        np.testing.assert_array_equal(mixed.model_.predict(rows), expected)
    one = MIXED.iloc[2:3][["colour", "age"]]  # its only category and its gap say nothing about the others
    np.testing.assert_allclose(mixed.predict(one), expected[2:3], rtol=1e-12)
    with pytest.raises(DataError, match="the columns 'age', 'colour' of the model are missing"):
        mixed.predict(MIXED[["y"]])
    with pytest.raises(DataError, match="row 1, column 'colour' holds 'pink', which is none of the 3 known categories"):
        mixed.predict(pd.DataFrame({"age": [1.0, 2.0], "colour": ["red", "pink"]}))
    with pytest.raises(DataError, match="the column 'age' is a category, but the model knows it as a number"):
        mixed.predict(pd.DataFrame({"age": ["old"], "colour": ["red"]}))
    with pytest.raises(DataError, match="categories, which arrays do not have"):
        mixed.predict(bochner.scan(np.zeros((1, 4))))


def test_updates_read_new_rows_as_the_first_ones(tmp_path, mixed):
    whole = KernelRegressor(**SETTINGS, map=mixed.drawn_, scaling=mixed.scaling_).fit(
        bochner.scan(pd.concat([MIXED, MIXED[:7]]), "y", missing=33.0)
    )
    mixed.partial_fit(bochner.scan(MIXED[:7], "y"))
    np.testing.assert_allclose(mixed.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    more = KernelRegressor(**SETTINGS).fit(bochner.scan(MIXED, "y", missing="median"))
    more.partial_fit(MIXED[:7].drop(columns="y"), MIXED["y"][:7])
    np.testing.assert_allclose(mixed.coef_, more.coef_, rtol=1e-10, atol=1e-12)


def test_unlabelled_rows_are_kept_and_counted(tmp_path):
    gappy = np.where(np.arange(600) % 3 == 0, None, label[:600])
    path = parquet(TABLE.slice(0, 600).set_column(5, "label", pa.array(gappy)), tmp_path)
    found = KernelClassifier(**SETTINGS).fit(bochner.scan(path, "label", COLUMNS))
    memory = KernelClassifier(**SETTINGS).fit(X[:600], gappy)
    np.testing.assert_array_equal(found.coef_, memory.coef_)
    assert (found.report_.rows, found.report_.unlabelled) == (400, 200)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_weights_of_any_size(tmp_path, scale):
    table = TABLE.slice(0, 500).append_column("large", pa.array(weight[:500] * scale))
    path = parquet(table, tmp_path)
    plain = KernelRegressor(**SETTINGS, alpha=1e-2).fit(bochner.scan(path, "number", COLUMNS, weight="w"))
    scaled = KernelRegressor(**SETTINGS, alpha=1e-2 * scale).fit(bochner.scan(path, "number", COLUMNS, weight="large"))
    new = bochner.scan(path, features=COLUMNS)
    np.testing.assert_allclose(scaled.predict(new), plain.predict(new), rtol=1e-6)


def test_a_source_is_asked_for_what_it_lacks(tmp_path, regressor):
    path = parquet(TABLE, tmp_path)
    with pytest.raises(DataError, match="the source has no target; name one with scan"):
        KernelRegressor(**SETTINGS).fit(bochner.scan(path, features=COLUMNS))
    with pytest.raises(DataError, match="a source brings its own target"):
        KernelRegressor(**SETTINGS).fit(bochner.scan(path, "number", COLUMNS), number)
    with pytest.raises(DataError, match="4 columns of numbers without names; here are 8 columns"):
        regressor.predict(bochner.scan(path))
    with pytest.raises(DataError, match="is not a number; classify, or encode it"):
        KernelRegressor(**SETTINGS).fit(bochner.scan(path, "label", COLUMNS))
