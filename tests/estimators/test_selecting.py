"""Penalties that select and weights of kernels, in the estimators: equal to refitting, and told."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, Ridge

from bochner import KernelClassifier, KernelRegressor, features, kernels
from bochner.errors import SolverError
from bochner.solvers import weights
from bochner.sources import MemorySource
from bochner.stats import Folds

N = 600
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
w = rng.uniform(0.2, 3.0, N)
G = kernels.Gaussian(0.5)
KERNEL = G.on([0]) + G.on([1, 2]) + G.on([3])
DRAWN = features.choose(KERNEL, 150, sample=X, separate=True).draw(4, 0, X)
Z = DRAWN(X)
BLOCKS = [own for _, own in DRAWN.blocks()]
for array in (X, y, w, Z):
    array.flags.writeable = False


def regressor(**options):
    return KernelRegressor(**{"map": DRAWN, "random_state": 0, **options})


def relative(a, b):
    return np.abs(np.asarray(a) - b).max() / np.abs(b).max()


@pytest.mark.parametrize("weight", [None, w], ids=["none", "some"])
@pytest.mark.parametrize("targets", [y, np.column_stack([y, X[:, 3]])], ids=["one", "two"])
def test_lasso_and_elastic_net_are_those_of_scikit_learn(weight, targets):
    total = N if weight is None else weight.sum()
    options = {"tol": 1e-13, "max_iter": 1_000_000}
    for penalty, model in (
        ("lasso", Lasso(0.01, **options)),
        ("elasticnet", ElasticNet(0.01, l1_ratio=0.7, **options)),
    ):
        found = regressor(penalty=penalty, l1_ratio=0.7, alpha=0.01 * total).fit(X, targets, weight)
        model.fit(Z, targets, sample_weight=weight)
        assert relative(found.coef_, np.atleast_2d(model.coef_)) < 1e-6
        assert relative(found.predict(X), model.predict(Z)) < 1e-6
        members = found.report_.selection.members
        assert sum(member.selected for member in members) == np.atleast_2d(model.coef_).any(axis=0).sum()


def test_the_penalty_is_that_of_refitting_without_each_fold():
    path = np.geomspace(0.1, 30.0, 5)
    fold = Folds(4, 0).assign(0, N)
    model = regressor(penalty="lasso", alpha=path, folds=4).fit(X, y)
    errors = np.zeros(len(path))
    for k in range(4):
        train, held = fold != k, fold == k
        for i, penalty in enumerate(path):
            refit = Lasso(penalty / train.sum(), tol=1e-10, max_iter=1_000_000).fit(Z[train], y[train])
            errors[i] += np.square(y[held] - refit.predict(Z[held])).sum() / N
    np.testing.assert_allclose(model.report_.surface.mean[0], errors, rtol=2e-3)
    assert model.alpha_ == path[np.argmin(errors)]


def test_group_says_which_kernels_matter():
    frame = pd.DataFrame(X, columns=["height", "width", "depth", "noise"])
    model = KernelRegressor(KERNEL, 150, penalty="group", alpha=6.0, random_state=0).fit(frame, y)
    selection = model.report_.selection
    assert selection.kernels == ("gaussian(gamma=0.5).on(width, depth)", "gaussian(gamma=0.5).on(height)")
    out = selection.members[-1]
    assert (out.kernel, out.selected, out.norm, out.share) == ("gaussian(gamma=0.5).on(noise)", 0, 0.0, 0.0)
    assert "0.0000, gaussian(gamma=0.5).on(noise), 0 of" in str(model.report_)
    features_of = model.drawn_(X)
    for member in selection.members[:2]:
        own = next(
            s
            for k, s in model.drawn_.blocks()
            if str(k) == member.kernel.replace("height", "0").replace("width, depth", "1, 2")
        )
        part = features_of[:, own] @ model.coef_[0, own]
        assert member.share == pytest.approx(part.var() / y.var(), rel=1e-9)
        assert member.norm == pytest.approx(np.linalg.norm(model.coef_[0, own]))
    chosen = KernelRegressor(KERNEL, 150, penalty="group", random_state=0).fit(X, y)
    assert "exact cross-validation" in chosen.report_.penalty_why
    assert chosen.score(X, y) > 0.95


def test_given_weights_are_the_weighted_sum_of_the_kernels():
    of_kernels = [0.5, 3.0, 0.0]
    model = regressor(weights=of_kernels, alpha=0.2).fit(X, y, w)
    A = Z * weights.roots(np.array(of_kernels), BLOCKS)
    reference = Ridge(0.2, solver="cholesky").fit(A, y, sample_weight=w)
    assert relative(model.predict(X), reference.predict(A)) < 1e-8
    assert [member.weight for member in model.report_.selection.members if member.selected] == [3.0, 0.5]
    plain = regressor(alpha=0.2).fit(X, y)
    ones = regressor(weights=[1, 1, 1], alpha=0.2).fit(X, y)
    assert relative(ones.coef_, plain.coef_) < 1e-12
    for a, b in zip(ones.predict(X, return_std=True), plain.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    # The standard deviation is that of the model of the weighted features.
    _, std = model.predict(X, return_std=True)
    moved = (A - np.average(A, axis=0, weights=w)) * np.sqrt(w)[:, None]
    inverse = np.linalg.inv(moved.T @ moved + 0.2 * np.eye(A.shape[1]))
    centred = A - np.average(A, axis=0, weights=w)
    relative_variance = 1.0 + 1.0 / w.sum() + np.einsum("ij,jk,ik->i", centred, inverse, centred)
    np.testing.assert_allclose(std**2 / std[0] ** 2, relative_variance / relative_variance[0], rtol=1e-8)


def test_chosen_weights_have_the_error_of_refitting_and_are_told():
    model = regressor(weights="cv", folds=4).fit(X, y)
    fold = Folds(4, 0).assign(0, N)
    members = {member.kernel: member for member in model.report_.selection.members}
    of_kernels = np.array([members[str(kernel)].weight for kernel, _ in DRAWN.blocks()])
    A = Z * weights.roots(of_kernels, BLOCKS)
    squared = baseline = 0.0
    for k in range(4):
        train, held = fold != k, fold == k
        squared += np.square(
            y[held] - Ridge(model.alpha_, solver="cholesky").fit(A[train], y[train]).predict(A[held])
        ).sum()
        baseline += np.square(y[held] - y[train].mean()).sum()
    assert model.report_.error == pytest.approx(squared / baseline, rel=1e-9)
    assert relative(model.predict(X), Ridge(model.alpha_, solver="cholesky").fit(A, y).predict(A)) < 1e-7
    assert of_kernels[2] < 1e-3 * of_kernels.max()
    assert model.report_.error <= regressor(folds=4).fit(X, y).report_.error
    assert all(member.alone > model.report_.error for member in members.values())
    assert "weights chosen by exact cross-validation" in str(model.report_)


@pytest.mark.parametrize("options", [{"penalty": "lasso"}, {"penalty": "group"}, {"weights": "cv"}])
def test_arrays_and_sources_updates_and_threads(options):
    whole = regressor(**options).fit(X, y, w)
    np.testing.assert_array_equal(whole.coef_, regressor(**options).fit(MemorySource(X, y, w)).coef_)
    half = regressor(**options).fit(X[:300], y[:300], w[:300]).partial_fit(X[300:], y[300:], w[300:])
    assert relative(half.coef_, whole.coef_) < 1e-5
    assert half.alpha_ == pytest.approx(whole.alpha_, rel=1e-5)


@pytest.mark.parametrize(
    "options", [{"penalty": "lasso"}, {"penalty": "group"}, {"weights": "cv"}, {"weights": [1, 2, 0]}]
)
def test_classifiers_select_and_are_calibrated(options):
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    model = KernelClassifier(map=DRAWN, random_state=0, **options).fit(X, labels)
    assert model.score(X, labels) > 0.8
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    # Calibrated on scores of rows that were held out: the probabilities are about right.
    assert np.abs(proba.max(axis=1).mean() - model.score(X, labels)) < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l1"}, "penalty is one of ridge, lasso, elasticnet, group"),
        ({"penalty": "lasso", "alpha": "gcv"}, "alpha='gcv' is for penalty='ridge'"),
        ({"penalty": "elasticnet", "l1_ratio": 0.0}, "share of absolute values"),
        ({"penalty": "group", "weights": "cv"}, "weights of kernels go with penalty='ridge'"),
        ({"weights": "auto"}, 'weights is None, "cv" or one number'),
        ({"weights": "cv", "alpha": 1.0}, "leave alpha='cv'"),
        ({"weights": [1.0, 2.0]}, "weights are 3 finite numbers"),
        ({"penalty": "lasso", "n_features": [8, 16], "map": None, "kernel": G}, "compared for plain ridge"),
        ({"penalty": "lasso", "pca": 10}, "pca goes with"),
        ({"penalty": "group", "map": None, "kernel": G}, "gaussian.* is one kernel; give a sum"),
        ({"weights": "cv", "map": None, "kernel": G}, "weights is about the kernels of a sum"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(SolverError, match=message):
        regressor(**options).fit(X, y)


def test_other_solvers_are_refused():
    with pytest.raises(SolverError, match="solved from moments, not by solver='sweeps'"):
        KernelClassifier(map=DRAWN, solver="sweeps", penalty="lasso").fit(X, y > 0)


def test_other_losses_and_standard_deviations_are_refused():
    with pytest.raises(SolverError, match="are for the squared loss, not logistic"):
        KernelClassifier(map=DRAWN, loss="logistic", penalty="lasso").fit(X, y > 0)
    with pytest.raises(SolverError, match="known for penalty='ridge'"):
        regressor(penalty="lasso", alpha=1.0).fit(X, y).predict(X, return_std=True)


def test_penalties_below_the_precision_of_the_tiles_are_told(monkeypatch):
    rows = np.random.default_rng(1).normal(size=(20_000, 2))
    target = np.sin(3.0 * rows[:, 0])
    smooth = features.RandomFourier(kernels.Gaussian(0.05), 64).draw(2, seed=0)
    options = {"map": smooth, "penalty": "lasso", "random_state": 0, "n_jobs": 1}
    with pytest.warns(ConvergenceWarning, match="below the precision"):
        KernelRegressor(**options, alpha=1e-4, precision="float32").fit(rows, target)
    KernelRegressor(**options, alpha=1e-1, precision="float64").fit(rows, target)
    KernelRegressor(**options, alpha=10.0, precision="float32").fit(rows, target)
    # With the precision left open, the rows are swept again in float64.
    monkeypatch.setattr("bochner.estimators.supervised.SMALL", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # float64 is hardly enough here
        exact = KernelRegressor(**options, alpha=1e-2, precision="float64").fit(rows, target)
        again = KernelRegressor(**options, alpha=1e-2).fit(rows, target)
    with pytest.warns(ConvergenceWarning):
        rough = KernelRegressor(**options, alpha=1e-2, precision="float32").fit(rows, target)
    assert "gathered again in float64" in str(again.report_)
    far = [np.square(model.predict(rows) - exact.predict(rows)).mean() for model in (rough, again)]
    assert far[1] < 1e-3 * far[0]
