"""LASSO and elastic net from moments: what scikit-learn gives on materialised features, and honest ends."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, Ridge

from bochner import features, kernels
from bochner.errors import SolverError
from bochner.solvers import lasso
from bochner.solvers.base import Outcome
from bochner.solvers.paths import crossed, geometric, searched, without_each
from bochner.stats.base import Batch
from bochner.stats.moments import Moments, Part

rng = np.random.default_rng(0)
N, D, K, FOLDS = 700, 60, 2, 4
Z = np.cos(rng.normal(size=(N, 5)) @ rng.normal(size=(5, D)) + rng.uniform(0, 6, D)) + 0.3
T = Z[:, :7] @ rng.normal(size=(7, K)) + 0.5 * rng.normal(size=(N, K)) + 5.0
WEIGHT = rng.uniform(0.2, 2.0, N)
FOLD = rng.integers(0, FOLDS, N)
for array in (Z, T, WEIGHT, FOLD):
    array.flags.writeable = False


def moments(target=T, weight=None, chunk=N):
    found = Moments(D, target.shape[1])
    for start in range(0, N, chunk):
        rows = np.arange(start, min(start + chunk, N))
        for f in range(FOLDS):
            here = rows[FOLD[rows] == f]
            found.update(Batch(Z[here].copy(), target[here], None if weight is None else weight[here], f))
    return found


def reference(alpha, share, rows=slice(None), weight=None, target=T):
    model = ElasticNet(alpha, l1_ratio=share, tol=1e-13, max_iter=1_000_000)
    return model.fit(Z[rows], target[rows], sample_weight=None if weight is None else weight[rows])


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


@pytest.mark.parametrize("weight", [None, WEIGHT, 1e8 * WEIGHT, 1e-8 * WEIGHT], ids=["plain", "some", "e8", "e-8"])
@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("target", [T, 1e6 + T], ids=["near", "far"])
def test_coefficients_are_those_of_scikit_learn(weight, share, target):
    total = moments(target, weight).total()
    alphas = lasso.largest(total, share) / total.weight * np.array([0.5, 0.05, 0.002])
    for alpha, solution in zip(alphas, lasso.path(total, total.weight * alphas, share), strict=True):
        model = reference(alpha, share, weight=weight, target=target)
        assert solution.outcome is Outcome.CONVERGED
        assert relative(solution.coef, model.coef_.T) < 1e-6
        np.testing.assert_allclose(solution.intercept, model.intercept_, rtol=1e-6)
        np.testing.assert_array_equal(solution.coef != 0.0, model.coef_.T != 0.0)


def test_one_absolute_value_is_the_lasso_and_none_would_be_ridge():
    total = moments().total()
    (found,) = lasso.path(total, [30.0])
    model = Lasso(30.0 / N, tol=1e-13, max_iter=1_000_000).fit(Z, T)
    assert relative(found.coef, model.coef_.T) < 1e-6
    (nearly,) = lasso.path(total, [30.0], share=1e-7)
    assert relative(nearly.coef, Ridge(30.0).fit(Z, T).coef_.T) < 1e-5
    for share in (0.0, 1.5, -1.0):
        with pytest.raises(SolverError, match="share of absolute values"):
            lasso.path(total, [1.0], share)


def test_the_path_begins_where_nothing_is_selected():
    total = moments().total()
    path = lasso.penalties_for(total)
    solutions = lasso.path(total, path[::-1])[::-1]
    assert not solutions[0].coef.any()
    assert lasso.path(total, [0.999 * path[0]])[0].coef.any()
    assert path[-1] == pytest.approx(1e-3 * path[0])
    counts = [lasso.selected(solution) for solution in solutions]
    assert counts[0] == 0
    assert counts[-1] > 20
    for penalty, solution in zip(path, solutions, strict=True):
        # The order in which penalties are given makes no difference, nor does a cold start.
        np.testing.assert_allclose(lasso.path(total, [penalty])[0].coef, solution.coef, atol=1e-9)


def test_the_optimality_conditions_hold():
    total = moments(weight=WEIGHT).total()
    for share in (1.0, 0.5):
        for penalty in lasso.penalties_for(total, share)[4::8]:
            (found,) = lasso.path(total, [penalty], share)
            pull = total.cross - total.scatter @ found.coef - penalty * (1.0 - share) * found.coef
            inside = found.coef != 0.0
            np.testing.assert_allclose(pull[inside], penalty * share * np.sign(found.coef[inside]), rtol=1e-6)
            assert np.abs(pull[~inside]).max() <= penalty * share * (1.0 + 1e-6)


def test_a_penalty_of_zero_is_least_squares():
    found = lasso.path(moments().total(), [1.0, 0.0])[1]
    slow = np.linalg.lstsq(Z - Z.mean(axis=0), T - T.mean(axis=0), rcond=None)[0]
    assert relative(found.coef, slow) < 1e-7


def test_the_gap_bounds_what_is_missing_and_an_early_stop_is_told():
    total = moments().total()
    penalty = 1e-3 * lasso.largest(total)

    def objective(coef):
        squares = total.target_scatter - 2.0 * (coef * total.cross).sum(axis=0)
        return 0.5 * (squares + (coef * (total.scatter @ coef)).sum(axis=0)) + penalty * np.abs(coef).sum(axis=0)

    (best,) = lasso.path(total, [penalty], tol=1e-12)
    (early,) = lasso.path(total, [penalty], tol=1e-5, most=9)
    assert early.outcome is Outcome.STOPPED
    missing = (objective(early.coef) - objective(best.coef)) / total.target_scatter
    assert (missing > 1e-7).all()
    assert (missing <= early.info["gaps"]).all()
    assert early.info["steps"] == 9
    assert best.outcome is Outcome.CONVERGED


@pytest.mark.parametrize("share", [1e-3, 1e-4])
def test_features_of_a_smooth_kernel_need_few_steps(share):
    """Their Gram is singular to rounding: coordinate descent would take more than 20,000 sweeps."""
    drawn = features.RandomFourier(kernels.Gaussian(0.05), 128).draw(2, seed=0)
    X = np.random.default_rng(1).normal(size=(600, 2))
    found = Moments(128, 1)
    found.update(Batch(drawn(X), np.sin(3.0 * X[:, :1])))
    total = found.total()
    (solution,) = lasso.path(total, [share * lasso.largest(total)])
    assert solution.outcome is Outcome.CONVERGED
    assert solution.info["steps"] < 200
    pull = total.cross - total.scatter @ solution.coef
    assert np.abs(pull).max() <= solution.info["penalty"] * 1.001
    # Far below what rounding lets tell, it says so.
    (beyond,) = lasso.path(total, [1e-9 * lasso.largest(total)])
    assert beyond.outcome is Outcome.BELOW_PRECISION
    assert beyond.info["steps"] < 3000


def test_cross_validation_is_that_of_refitting():
    folds = moments(weight=WEIGHT).labelled()
    penalties = np.array([100.0, 10.0, 1.0])
    found = lasso.cross_validated(folds, penalties, tol=1e-12)
    slow = np.zeros((len(penalties), K))
    for f in range(FOLDS):
        train, held = FOLD != f, FOLD == f
        for p, penalty in enumerate(penalties):
            model = reference(penalty / WEIGHT[train].sum(), 1.0, train, WEIGHT)
            slow[p] += WEIGHT[held] @ (T[held] - model.predict(Z[held])) ** 2 / WEIGHT.sum()
    np.testing.assert_allclose(found.errors[0], slow, rtol=1e-9)
    assert found.best() == (D, penalties[np.argmin(slow.sum(axis=1))])
    for f, solution in without_each(moments(weight=WEIGHT).parts, 10.0, lasso.path).items():
        model = reference(10.0 / WEIGHT[FOLD != f].sum(), 1.0, FOLD != f, WEIGHT)
        assert relative(solution.coef, model.coef_.T) < 1e-6


def test_a_path_goes_on_while_its_end_is_the_best():
    folds = moments().labelled()
    short = geometric(lasso.largest(moments().total()), 5, 0.5)
    assert lasso.cross_validated(folds, short).best()[1] == short[-1]
    found = searched(folds, short, lasso.path)
    assert short[-1] > found.best()[1] > found.penalties.min()
    again = crossed(folds, found.penalties, lasso.path)
    np.testing.assert_allclose(found.mean, again.mean, rtol=1e-8)
    np.testing.assert_allclose(found.by_fold, again.by_fold, rtol=1e-8)


def test_chunks_make_no_difference():
    whole, pieces = (lasso.path(moments(chunk=size).total(), [20.0])[0].coef for size in (N, 37))
    np.testing.assert_allclose(pieces, whole, rtol=1e-9)


def test_constant_targets_and_features_select_nothing():
    flat = Moments(3, 1)
    flat.update(Batch(np.ones((5, 3)), np.arange(5.0)[:, None]))
    assert not lasso.path(flat.total(), [1.0])[0].coef.any()
    with pytest.raises(SolverError, match="nothing to select"):
        lasso.penalties_for(flat.total())
    with pytest.raises(SolverError, match="nothing to select"):
        lasso.penalties_for(Part.empty(3, 1))
