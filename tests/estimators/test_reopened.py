"""Estimators from files go on as those that were saved."""

import numpy as np
import pytest
from sklearn.utils.validation import check_is_fitted

import bochner
from bochner import KernelClassifier, KernelRegressor, Reduction, kernels, saved
from bochner.errors import FileError, SolverError

rng = np.random.default_rng(0)
X, MORE = rng.normal(size=(300, 3)), rng.normal(size=(50, 3))
WEIGHT = rng.uniform(0.5, 2.0, 300)


def numbers(X):
    return np.sin(2 * X[:, 0]) + X[:, 1]


def labels(X):
    return np.array(["low", "mid", "high"])[np.digitize(numbers(X), [-0.7, 0.7])]


CASES = [
    pytest.param(KernelRegressor("gaussian(gamma=0.3)", 64, random_state=3), id="ridge"),
    pytest.param(KernelRegressor(random_state=3), id="automatic"),
    pytest.param(KernelRegressor("gaussian(gamma=0.3)", 64, alpha=[0.1, 1.0], folds=3, random_state=3), id="list"),
    pytest.param(KernelRegressor("gaussian(gamma=0.3)", 64, pca="cv", random_state=3), id="pca"),
    pytest.param(KernelRegressor("gaussian(gamma=0.3)", 64, pca=Reduction([5, 20]), random_state=3), id="reduction"),
    pytest.param(KernelRegressor("gaussian(gamma=0.3)", 64, penalty="lasso", random_state=3), id="lasso"),
    pytest.param(KernelRegressor("gaussian(gamma=0.3) + linear()", 64, weights="cv", random_state=3), id="weights"),
    pytest.param(KernelRegressor(kernels.Gaussian(0.3), 64, precision="float32", random_state=3), id="float32"),
    pytest.param(KernelClassifier("gaussian(gamma=0.3)", 64, random_state=3), id="classes"),
    pytest.param(KernelClassifier("gaussian(gamma=0.3)", 64, scaling="standard", random_state=3), id="scaled"),
]


def target(estimator, X):
    return labels(X) if isinstance(estimator, KernelClassifier) else numbers(X)


@pytest.mark.parametrize("estimator", CASES)
def test_what_is_loaded_predicts_and_learns_on_as_what_was_saved(estimator, tmp_path):
    fitted = estimator.fit(X, target(estimator, X), WEIGHT)
    fitted.save(tmp_path / "m", moments=True)
    again = type(estimator).load(tmp_path / "m")
    check_is_fitted(again)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert str(again.report_) == str(fitted.report_)
    assert again.report_.error == fitted.report_.error
    assert again.report_.to_json() == fitted.report_.to_json()
    if isinstance(estimator, KernelClassifier):
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
        assert again.classes_.tolist() == fitted.classes_.tolist()
    elif estimator.penalty == "ridge" and estimator.pca is None:
        for one, other in zip(again.predict(X, return_std=True), fitted.predict(X, return_std=True), strict=True):
            np.testing.assert_array_equal(one, other)
    for model in (again, fitted):
        model.partial_fit(MORE, target(estimator, MORE))
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    np.testing.assert_array_equal(again.predict(MORE), fitted.predict(MORE))
    for model in (again, fitted):
        model.forget(X[:20], target(estimator, X[:20]), WEIGHT[:20], rows=np.arange(20))
    np.testing.assert_array_equal(again.coef_, fitted.coef_)


def test_moments_from_elsewhere_join_a_loaded_model(tmp_path):
    base = KernelRegressor("gaussian(gamma=0.3)", 64, random_state=3).fit(X, numbers(X))
    base.save(tmp_path / "base", moments=True)
    elsewhere = KernelRegressor.load(tmp_path / "base").collect(MORE, numbers(MORE), first=300)
    saved.save_moments(elsewhere, tmp_path / "part")
    joined = KernelRegressor.load(tmp_path / "base").absorb(saved.load_moments(tmp_path / "part")[0])
    whole = base.partial_fit(MORE, numbers(MORE))
    np.testing.assert_array_equal(joined.coef_, whole.coef_)


def test_without_moments_it_predicts_and_says_why_it_does_not_learn(tmp_path):
    KernelRegressor("gaussian(gamma=0.3)", 64, random_state=3).fit(X, numbers(X)).save(tmp_path / "m")
    model = KernelRegressor.load(tmp_path / "m")
    assert model.predict(X).shape == (300,)
    with pytest.raises(SolverError, match="moments"):
        model.partial_fit(MORE, numbers(MORE))


def test_another_estimator_and_another_file_are_refused(tmp_path):
    fitted = KernelRegressor("gaussian(gamma=0.3)", 64, random_state=3).fit(X, numbers(X))
    fitted.save(tmp_path / "m")
    with pytest.raises(FileError, match="holds a KernelRegressor"):
        KernelClassifier.load(tmp_path / "m")
    saved.save(fitted.model_, tmp_path / "plain")
    assert bochner.load(tmp_path / "plain").predict(X).shape == (300,)
    with pytest.raises(FileError, match=r"was not written by KernelRegressor\.save"):
        KernelRegressor.load(tmp_path / "plain")


def test_components_of_two_passes_have_no_moments_to_keep(tmp_path):
    kernel = kernels.Gaussian(0.3) + kernels.Laplacian(0.3)
    how = Reduction(8, each=8, memory=1)
    model = KernelRegressor(kernel, 64, pca=how, random_state=3).fit(X, numbers(X))
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(bochner.load(tmp_path / "m").predict(X), model.predict(X))
    with pytest.raises(SolverError, match="without moments"):
        model.save(tmp_path / "m", moments=True)
