"""Weights of summed kernels: every error is that of refitting, and the choice is as good as brute force."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from bochner.errors import SolverError
from bochner.solvers import group, weights
from bochner.solvers.ridge import penalties_for, surface
from bochner.stats.base import Batch
from bochner.stats.moments import Moments

rng = np.random.default_rng(0)
N, WIDTHS, K, FOLDS = 400, (30, 20, 25), 2, 4
BLOCKS, D = group.blocks_of(WIDTHS), sum(WIDTHS)
X = rng.normal(size=(N, 3))
Z = np.hstack(
    [
        np.cos(X @ rng.normal(size=(3, 30)) * 0.5 + rng.uniform(0, 6, 30)),
        np.cos(X[:, :1] @ rng.normal(size=(1, 20)) * 2.0 + rng.uniform(0, 6, 20)),
        3.0 * rng.normal(size=(N, 25)),  # noise, and loud
    ]
)
T = np.column_stack([np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1], X[:, 0] ** 2]) + 0.3 * rng.normal(size=(N, K)) + 5.0
WEIGHT = rng.uniform(0.2, 2.0, N)
FOLD = rng.integers(0, FOLDS, N)
for array in (X, Z, T, WEIGHT, FOLD):
    array.flags.writeable = False


def moments():
    found = Moments(D, K)
    for f in range(FOLDS):
        here = FOLD == f
        found.update(Batch(Z[here].copy(), T[here], WEIGHT[here], f))
    return found


FOLDS_OF = moments().labelled()


def refitted(of_kernels, penalty):
    """Held-out squared error of the weighted sum, by fitting each fold's complement again."""
    A = Z * weights.roots(of_kernels, BLOCKS)
    total = 0.0
    for f in range(FOLDS):
        train, held = FOLD != f, FOLD == f
        model = Ridge(penalty, solver="cholesky").fit(A[train], T[train], sample_weight=WEIGHT[train])
        total += (WEIGHT[held] @ (T[held] - model.predict(A[held])) ** 2).sum()
    return total


@pytest.mark.parametrize("of_kernels", [(1.0, 1.0, 1.0), (0.3, 5.0, 0.01), (1.0, 0.0, 2.0), (0.0, 3.0, 0.0)])
def test_errors_are_those_of_refitting(of_kernels):
    of_kernels = np.array(of_kernels)
    with np.errstate(divide="ignore"):
        penalties = 0.7 / of_kernels
    wanted = refitted(of_kernels, 0.7)
    assert weights.error_and_slope(FOLDS_OF, BLOCKS, penalties)[0] == pytest.approx(wanted, rel=1e-10)
    for which in range(3):
        trial = penalties.copy()
        trial[which] = 123.0
        if np.isfinite(np.delete(penalties, which)).any() or np.isfinite(penalties[which]):
            found = weights.errors_along(FOLDS_OF, BLOCKS, trial, which, np.array([9.0, penalties[which]]))
            assert found[1] == pytest.approx(wanted, rel=1e-10)
    # And those that a change of the moments gives.
    factors = weights.roots(of_kernels, BLOCKS)
    changed = surface(FOLDS_OF, [0.7], [D], lambda a, b: (a.scaled(factors), b.scaled(factors)))
    assert changed.mean[0, 0] * WEIGHT.sum() == pytest.approx(wanted, rel=1e-10)


def test_slopes_are_those_of_differences():
    logs = np.log([0.3, 2.0, 50.0])
    slopes = weights.error_and_slope(FOLDS_OF, BLOCKS, np.exp(logs))[1]
    for j in range(3):
        step = 1e-5 * np.eye(3)[j]
        up, down = (weights.error_and_slope(FOLDS_OF, BLOCKS, np.exp(logs + s * step))[0] for s in (1, -1))
        assert slopes[j] == pytest.approx((up - down) / 2e-5, rel=1e-5)
    assert weights.error_and_slope(FOLDS_OF, BLOCKS, np.array([0.3, np.inf, 50.0]))[1][1] == 0.0


def test_many_values_are_solved_in_blocks(monkeypatch):
    values = np.append(np.geomspace(1e-3, 1e3, 7), np.inf)
    whole = weights.errors_along(FOLDS_OF, BLOCKS, np.ones(3), 1, values)
    monkeypatch.setattr(weights, "_BLOCK", 2 * D * K)
    np.testing.assert_allclose(weights.errors_along(FOLDS_OF, BLOCKS, np.ones(3), 1, values), whole, rtol=1e-12)


def test_the_choice_is_as_good_as_a_fine_grid_and_tells_what_matters():
    found = weights.weighed(FOLDS_OF, BLOCKS)
    assert found.weights.mean() == pytest.approx(1.0)
    scale = float(surface(FOLDS_OF, [1.0], [D]).baseline.sum()) * WEIGHT.sum()
    assert found.error == pytest.approx(refitted(found.weights, found.penalty) / scale, rel=1e-8)
    grid = itertools.product(np.geomspace(1e-2, 1e4, 13), repeat=2)
    brute = min(
        weights.errors_along(
            FOLDS_OF, BLOCKS, np.array([a, b, 1.0]), 2, np.append(np.geomspace(1e-1, 1e6, 15), np.inf)
        ).min()
        for a, b in grid
    )
    assert found.error <= brute / scale * (1.0 + 1e-4)
    assert found.error < 0.9 * found.equal
    # The loud noise gets no weight; what each kernel is worth is what fits without it say.
    assert found.weights[2] == 0.0
    assert found.without[2] == found.error
    for j in (0, 1):
        others = np.where(np.arange(3) == j, 0.0, found.weights)
        assert found.without[j] == pytest.approx(refitted(others, found.penalty) / scale, rel=1e-8)
        alone = [refitted(np.eye(3)[j], p) / scale for p in penalties_for(moments().total())]
        assert found.alone[j] == pytest.approx(min(alone), rel=1e-8)
    assert found.without[1] > 2.0 * found.error


def test_one_kernel_has_all_the_weight_where_only_it_tells_anything():
    only = Moments(D, 1)
    for f in range(FOLDS):
        here = FOLD == f
        only.update(Batch(Z[here].copy(), Z[here, 35:36] - Z[here, 40:41], None, f))
    found = weights.weighed(only.labelled(), BLOCKS)
    np.testing.assert_array_equal(found.weights, [0.0, 3.0, 0.0])
    assert found.error < 1e-6


def test_weights_are_numbers_one_for_each_kernel():
    assert weights.require_weights([1, 0], 2).tolist() == [1.0, 0.0]
    for wrong in ([1.0], [-1.0, 1.0], [np.nan, 1.0], [0.0, 0.0], "equal", ["a", "b"]):
        with pytest.raises(SolverError, match="weights are 2 finite numbers"):
            weights.require_weights(wrong, 2)


def test_targets_that_do_not_vary_weigh_nothing():
    flat = Moments(D, 1)
    for f in range(FOLDS):
        flat.update(Batch(Z[FOLD == f].copy(), np.ones(((FOLD == f).sum(), 1)), None, f))
    with pytest.raises(SolverError, match="do not vary"):
        weights.weighed(flat.labelled(), BLOCKS)
