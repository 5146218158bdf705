"""Refinement: float64 residuals reach what float32 moments cannot, and say so when they do not."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bochner import KernelClassifier, KernelRegressor, features, kernels
from bochner.run import Flow, Local
from bochner.solvers import refine
from bochner.solvers.base import Outcome
from bochner.solvers.ridge import FLOAT32_NOISE, Prepared, cross_validated, precision_floor
from bochner.sources import MemorySource
from bochner.stats import Classes, Folds, Moments, Numbers

rng = np.random.default_rng(0)
N, D = 20_000, 128
X = rng.normal(size=(N, 2)).astype(np.float32)
y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=N)
LABELS = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
WEIGHT = rng.uniform(0.1, 3.0, N)
#: a wide kernel: most eigenvalues are far below the rounding of float32
RECIPE = features.RandomFourier(kernels.Gaussian(0.05), D)
DRAWN = RECIPE.draw(2, seed=0)
TARGETS = {
    "one": (y, Numbers()),
    "plane": (X @ [0.4, 0.3], Numbers()),
    "two": (np.column_stack([y, X[:, 1]]), Numbers(2, False)),
    "classes": (LABELS, None),
}


def flows(what, weight=None):
    target, kind = TARGETS[what]
    rough = Flow(MemorySource(X, target, weight), DRAWN, targets=kind or Classes(np.unique(LABELS)), folds=Folds(4))
    return rough, replace(rough, promoted=True)


def moments(flow):
    return Local(1).sweep(flow, Moments(D, flow.targets.outputs, folds=4))


def outputs(solution):
    return DRAWN(X[:2000]).astype(np.float64) @ solution.coef + solution.intercept


@pytest.mark.parametrize("what", ["one", "two", "classes"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_a_few_sweeps_give_what_float64_moments_give(what, weight):
    rough, sharp = flows(what, weight)
    part = moments(rough).total()
    low = precision_floor(part, FLOAT32_NOISE) / 2
    exact = Prepared(moments(sharp).total()).solve(low)
    assert exact.outcome is Outcome.CONVERGED
    before = Prepared(part, FLOAT32_NOISE).solve(low)
    assert before.outcome is Outcome.BELOW_PRECISION
    solution = refine.fit(partial(Local(1).sweep, sharp), part, low)
    assert solution.outcome is Outcome.CONVERGED
    lost, left = (np.abs(outputs(s) - outputs(exact)).max() for s in (before, solution))
    assert left < 1e-5
    assert left < lost / 100


def test_where_the_moments_suffice_there_is_little_to_do():
    rough, sharp = flows("one")
    part = moments(rough).total()
    high = 1e3 * precision_floor(part, FLOAT32_NOISE)
    solution = refine.fit(partial(Local(1).sweep, sharp), part, high)
    assert solution.info["sweeps"] <= 4
    np.testing.assert_allclose(outputs(solution), outputs(Prepared(moments(sharp).total()).solve(high)), atol=1e-7)


def test_too_few_sweeps_are_told():
    rough, sharp = flows("one")
    part = moments(rough).total()
    low = precision_floor(part, FLOAT32_NOISE) / 20
    assert refine.fit(partial(Local(1).sweep, sharp), part, low, max_sweeps=2).outcome is Outcome.BELOW_PRECISION


@pytest.mark.parametrize("estimator", [KernelRegressor, KernelClassifier])
@pytest.mark.parametrize(("share", "note"), [(0.5, "sweeps in float64"), (1e-3, "gathered again in float64")])
def test_estimators_put_it_right_by_themselves(estimator, share, note):
    target, what = (y, "one") if estimator is KernelRegressor else (LABELS, "classes")
    alpha = share * precision_floor(moments(flows(what)[0]).total(), FLOAT32_NOISE)
    options = {"map": DRAWN, "alpha": alpha, "random_state": 0, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = estimator(**options, precision="float32").fit(X, target)
        exact = estimator(**options, precision="float64").fit(X, target)
    assert note in str(model.report_)
    assert "in float64" not in str(exact.report_)
    np.testing.assert_allclose(model.model_.outputs(X[:500]), exact.model_.outputs(X[:500]), atol=2e-3)


def test_an_update_cannot_refine_and_says_so():
    alpha = precision_floor(moments(flows("one")[0]).total(), FLOAT32_NOISE) / 2
    model = KernelRegressor(map=DRAWN, alpha=alpha, random_state=0, n_jobs=1, precision="float32").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="precision"):
        model.partial_fit(X[:100], y[:100])


def test_a_penalty_that_float32_hides_is_found_and_updated_in_float64(monkeypatch):
    monkeypatch.setattr("bochner.estimators.supervised.SMALL", 0)
    options = {"map": DRAWN, "random_state": 0, "n_jobs": 1}
    model = KernelRegressor(**options).fit(X[:-100], y[:-100])
    rough = KernelRegressor(**options, precision="float32").fit(X[:-100], y[:-100])
    exact = KernelRegressor(**options, precision="float64").fit(X, y)
    assert "hides" in str(rough.report_)
    assert "gathered again in float64" in str(model.report_)
    assert model.report_.error < 0.9 * rough.report_.error
    model.partial_fit(X[-100:], y[-100:])
    assert "hides" not in str(model.report_)
    assert model.alpha_ == pytest.approx(exact.alpha_)
    assert model.report_.error == pytest.approx(exact.report_.error, rel=1e-3)


def test_errors_that_rounding_hides_are_not_believed():
    # A target without noise: what error is left is soon less than the rounding of the scatter.
    noise, folds = 1e-6, moments(flows("plane")[1]).labelled()
    path = np.geomspace(1e-5, 1e3, 9)
    truth = cross_validated(folds, path).mean[0]
    disturbed = []
    for fold in folds:
        errors = np.triu(rng.normal(scale=noise * np.trace(fold.scatter) / D, size=(D, D)))
        disturbed.append(replace(fold, scatter=fold.scatter + errors + np.triu(errors, 1).T))
    believed = cross_validated(disturbed, path).mean[0]
    told = np.isfinite(cross_validated(disturbed, path, noise=noise).mean[0])
    assert told[path > 0.005].all()
    wrong = np.abs(believed / truth - 1.0)
    assert wrong[told].max() < 0.02
    assert wrong[~told & np.isfinite(believed)].min() > 0.05


def test_rounding_of_float32_tiles_hides_no_more_than_it_must():
    rough, sharp = flows("one")
    path = np.geomspace(1e-13, 1e2, 16)
    truth = cross_validated(moments(sharp).labelled(), path).mean[0]
    honest = cross_validated(moments(rough).labelled(), path, noise=FLOAT32_NOISE)
    told = np.isfinite(honest.mean[0])
    assert told[path > 1e-3].all()
    np.testing.assert_allclose(honest.mean[0][told], truth[told], rtol=0.2)
    assert honest.hidden(D)
