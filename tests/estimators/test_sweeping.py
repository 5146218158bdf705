"""Estimators where features are many: sweeps and blocks give what moments give, choose sensibly, and say so."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from bochner import KernelClassifier, KernelRegressor, features, kernels
from bochner.errors import SolverError
from bochner.estimators import learning
from bochner.solvers import Outcome
from bochner.sources import MemorySource

N, D = 1200, 192
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0])]
w = rng.uniform(0.2, 3.0, N)
DRAWN = features.RandomFourier(kernels.Gaussian(0.4), D).draw(3, seed=5)
Z = DRAWN(X)
for array in (X, y, w, Z):
    array.flags.writeable = False


def regressor(solver, **options):
    options = {"map": DRAWN, "alpha": 0.3, "random_state": 0, "sweep_tol": 1e-14, "max_sweeps": 500, **options}
    return KernelRegressor(solver=solver, **options)


def relative(a, b):
    return np.abs(np.asarray(a) - b).max() / np.abs(b).max()


@pytest.mark.parametrize("solver", ["sweeps", "blocks"])
@pytest.mark.parametrize("weight", [None, w], ids=["plain", "weighted"])
def test_it_is_ridge_regression(solver, weight):
    memory = 1 << 20 if solver == "blocks" else 8 << 30
    model = regressor(solver, memory=memory, alpha=3.0).fit(X, y, weight)
    reference = Ridge(3.0, solver="cholesky").fit(Z, y, weight)
    assert relative(model.coef_, reference.coef_[None]) < 1e-5
    np.testing.assert_allclose(model.predict(X), reference.predict(Z), atol=1e-6)
    assert model.report_.solver == solver
    assert model.report_.rows == N
    assert model.report_.outcome is Outcome.CONVERGED


@pytest.mark.parametrize("solver", ["sweeps", "blocks"])
def test_classes_sparse_rows_and_chunks(solver):
    options = {"map": DRAWN, "alpha": 1.0, "sweep_tol": 1e-12, "max_sweeps": 500, "random_state": 0}
    exact = KernelClassifier(solver="moments", **options).fit(X, labels)
    model = KernelClassifier(solver=solver, **options).fit(sp.csr_array(X), labels)
    assert relative(model.coef_, exact.coef_) < 1e-4
    plain = [KernelClassifier(solver=s, calibrate=False, **options).fit(X, labels) for s in ("moments", solver)]
    assert (plain[0].predict(X) == plain[1].predict(X)).all()
    if solver == "sweeps":
        proba = model.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert np.abs(proba - exact.predict_proba(X)).mean() < 0.05


@pytest.mark.parametrize("two", [True, False])
def test_a_penalty_is_chosen_on_a_held_out_fold(two):
    target = labels == "a" if two else labels
    options = {"map": DRAWN, "random_state": 0}
    exact = KernelClassifier(solver="moments", **options).fit(X, target)
    model = KernelClassifier(solver="sweeps", **options).fit(X, target)
    fresh = np.random.default_rng(9).normal(size=(2000, 3))
    truth = np.array(["a", "b", "c"])[np.digitize(fresh[:, 0] + fresh[:, 1] ** 2, [0.0, 1.0])]
    truth = truth == "a" if two else truth
    assert model.score(fresh, truth) > exact.score(fresh, truth) - 0.02
    assert "held-out" in model.report_.penalty_why
    assert "sweeps to within" in str(model.report_)
    assert "sketch" in str(model.report_)


def test_a_list_of_penalties_is_compared():
    model = regressor("sweeps", alpha=[1e-4, 1e-1, 1e6]).fit(X, y)
    assert model.alpha_ in (1e-4, 1e-1)


def test_a_source_and_arrays_give_the_same_bits():
    left = regressor("sweeps", alpha="cv", sweep_tol=1e-4).fit(X, y)
    right = regressor("sweeps", alpha="cv", sweep_tol=1e-4, n_jobs=2).fit(MemorySource(X, y))
    np.testing.assert_array_equal(left.coef_, right.coef_)


def test_auto_sweeps_where_moments_do_not_fit_and_says_why():
    model = regressor("auto", memory=3 << 20).fit(X, y)
    assert model.report_.solver == "sweeps"
    assert "do not fit" in model.report_.solver_why
    assert regressor("auto").fit(X, y).report_.solver == "moments"
    with pytest.raises(SolverError, match="solver='moments'"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("solver", ["sweeps", "blocks"])
@pytest.mark.parametrize("options", [{"alpha": "gcv"}, {"alpha": 0.0}, {"n_features": [8, 16], "map": None}], ids=str)
def test_what_needs_moments_says_so(solver, options):
    with pytest.raises(SolverError, match="needs moments"):
        regressor(solver, **options).fit(X, y)


def test_too_few_sweeps_are_told():
    with pytest.warns(ConvergenceWarning, match="more sweeps"):
        model = regressor("sweeps", alpha=1e-6, max_sweeps=1).fit(X, y)
    assert model.report_.outcome is Outcome.STOPPED


def test_blocks_choose_a_penalty_and_other_losses_are_refused():
    model = regressor("blocks", alpha="cv", sweep_tol=1e-3, memory=1 << 20).fit(X, y)
    assert model.score(X, y) > 0.95
    assert "rounds over" in str(model.report_)
    with pytest.raises(SolverError, match="squared loss"):
        KernelClassifier(loss="logistic", solver="blocks").fit(X, labels)


def test_moments_are_never_made(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("moments")

    monkeypatch.setattr("bochner.estimators.supervised.Moments", refuse)
    monkeypatch.setattr(learning, "Moments", refuse)
    with warnings.catch_warnings():
        assert regressor("sweeps", alpha="cv", sweep_tol=1e-3).fit(X, y).score(X, y) > 0.9
