"""The scikit-learn shell: the contract, tables, names, pipelines."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import KernelFeatures, features, kernels
from bochner.errors import BochnerError

X = np.random.default_rng(0).random((60, 3))


@parametrize_with_checks([KernelFeatures(n_features=20, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(X, columns=list("abc")),
        pl.DataFrame(X, schema=list("abc")),
        pa.table(dict(zip("abc", X.T, strict=True))),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_tables_give_what_arrays_give(table):
    model = KernelFeatures("gaussian(gamma=2).on(a:b) + chi2().on(c)", 64, random_state=1).fit(table)
    same = KernelFeatures("gaussian(gamma=2).on(0:2) + chi2().on(2)", 64, random_state=1).fit(X)
    np.testing.assert_array_equal(model.transform(table), same.transform(X))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert len(model.get_feature_names_out()) == model.transform(table).shape[1]
    with pytest.raises(ValueError, match=r"feature|names"):
        model.transform(table[["c", "a", "b"]] if not isinstance(table, pa.Table) else table.select(["c", "a", "b"]))


def test_the_dtype_is_kept():
    model = KernelFeatures("laplacian(gamma=1)", 32, random_state=0).fit(X)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.transform(X).dtype == np.float64
    assert model.transform((10 * X).astype(int)).dtype == np.float64


def test_set_output_gives_a_table():
    out = KernelFeatures("laplacian(gamma=1)", 8, random_state=0).set_output(transform="pandas").fit_transform(X)
    assert list(out.columns) == [f"kernelfeatures{i}" for i in range(8)]


def test_the_alias_and_a_given_map_are_honoured():
    assert KernelFeatures("laplacian(gamma=1)", n_components=10, random_state=0).fit_transform(X).shape == (60, 10)
    recipe = features.RandomFourier(kernels.Gaussian(1.0), 12, form="phase")
    model = KernelFeatures(map=recipe, random_state=3).fit(X)
    np.testing.assert_array_equal(model.transform(X), recipe.draw(3, seed=3)(X))
    assert clone(model).map.form == "phase"


def test_auto_finds_the_number_of_features():
    Y = np.random.default_rng(1).random((400, 3))
    model = KernelFeatures("laplacian(gamma=1)", "auto", tol=0.1, random_state=0).fit(Y[:200])
    assert features.error(model.drawn_, Y[200:]).relative < 0.12
    assert "promised" in model.map_.why


def test_it_works_in_a_grid_search():
    rows = np.random.default_rng(2).random((300, 3))
    y = (np.abs(rows[:, 0] - 0.5) < 0.25).astype(int)
    pipe = make_pipeline(KernelFeatures(random_state=0, n_features=64), RidgeClassifier(alpha=1e-3))
    grid = {"kernelfeatures__kernel": [kernels.Linear(), "gaussian(gamma=5)"]}
    search = GridSearchCV(pipe, grid, cv=3).fit(rows, y)
    assert search.best_params_ == {"kernelfeatures__kernel": "gaussian(gamma=5)"}
    assert search.best_score_ > 0.85


def test_a_wrong_kernel_is_named():
    with pytest.raises(BochnerError, match="did you mean gaussian"):
        KernelFeatures("gausian(gamma=1)").fit(X)
