"""Group LASSO from moments: its optimality conditions, and an independent slow solver."""

import numpy as np
import pytest

from bochner.errors import SolverError
from bochner.solvers import group
from bochner.solvers.base import Outcome
from bochner.solvers.paths import without_each
from bochner.stats.base import Batch
from bochner.stats.moments import Moments

rng = np.random.default_rng(0)
N, WIDTHS, K, FOLDS = 500, (12, 1, 20, 8, 15), 2, 3
BLOCKS = group.blocks_of(WIDTHS)
D = sum(WIDTHS)
Z = np.cos(rng.normal(size=(N, 5)) @ rng.normal(size=(5, D)) + rng.uniform(0, 6, D)) + 0.3
# The last block is nearly a copy of a part of the first: the hard case for descent by blocks.
Z[:, BLOCKS[4]] = Z[:, :15] + 0.05 * rng.normal(size=(N, 15))
T = Z[:, BLOCKS[2]] @ rng.normal(size=(20, K)) + 0.3 * Z[:, :1] + 0.5 * rng.normal(size=(N, K)) + 5.0
WEIGHT = rng.uniform(0.2, 2.0, N)
FOLD = rng.integers(0, FOLDS, N)
for array in (Z, T, WEIGHT, FOLD):
    array.flags.writeable = False


def moments(Z=Z, target=T, weight=None):
    found = Moments(Z.shape[1], target.shape[1])
    for f in range(FOLDS):
        here = FOLD == f
        found.update(Batch(Z[here].copy(), target[here], None if weight is None else weight[here], f))
    return found


def grouped(part, blocks=BLOCKS):
    return group.Grouped(part, blocks, group.prices_for(part, blocks))


def norms(coef, blocks=BLOCKS):
    return np.array([np.linalg.norm(coef[block]) for block in blocks])


def slowly(Z, target, weight, penalty, blocks, prices, steps=30_000):
    """Accelerated proximal gradients on the rows themselves, with restarts."""
    weight = np.ones(len(Z)) if weight is None else weight
    root = np.sqrt(weight)[:, None]
    A = (Z - np.average(Z, axis=0, weights=weight)) * root
    B = (target - np.average(target, axis=0, weights=weight)) * root
    size = 1.0 / np.linalg.norm(A, 2) ** 2
    V = ahead = np.zeros((Z.shape[1], target.shape[1]))
    t = 1.0
    for _ in range(steps):
        after = ahead - size * (A.T @ (A @ ahead - B))
        for block, price in zip(blocks, prices, strict=True):
            norm = np.linalg.norm(after[block])
            after[block] *= max(0.0, 1.0 - size * penalty * price / norm) if norm else 0.0
        restart = ((ahead - after) * (after - V)).sum() > 0.0
        t, before = (1.0, 1.0) if restart else (0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)), t)
        ahead = after + (0.0 if restart else (before - 1.0) / t) * (after - V)
        V = after
    return V


@pytest.mark.parametrize("weight", [None, WEIGHT, 1e8 * WEIGHT], ids=["plain", "weighted", "e8"])
@pytest.mark.parametrize("share", [0.5, 0.05, 0.003])
def test_a_slow_solver_finds_the_same(weight, share):
    part = moments(weight=weight).total()
    problem = grouped(part)
    penalty = share * problem.largest()
    (found,) = problem.path([penalty])
    slow = slowly(Z, T, weight, penalty, BLOCKS, problem.prices, steps=4000)
    assert found.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(found.coef, slow, atol=1e-5 * np.abs(slow).max())
    np.testing.assert_array_equal(found.info["norms"] > 0.0, norms(slow) > 0.0)
    np.testing.assert_allclose(found.info["norms"], norms(found.coef), rtol=1e-12)


@pytest.mark.parametrize("target", [T, T[:, :1], 1e6 + T], ids=["two", "one", "far"])
def test_the_optimality_conditions_hold(target):
    part = moments(target=target).total()
    problem = grouped(part)
    for penalty, found in zip(path := problem.largest() * np.geomspace(1, 1e-4, 9), problem.path(path), strict=True):
        pull = part.cross - part.scatter @ found.coef
        for block, price in zip(BLOCKS, problem.prices, strict=True):
            norm = np.linalg.norm(found.coef[block])
            if norm == 0.0:
                assert np.linalg.norm(pull[block]) <= penalty * price * (1.0 + 1e-9)
            else:
                wanted = penalty * price * found.coef[block] / norm
                assert np.abs(pull[block] - wanted).max() <= 3e-5 * penalty * price
        assert found.outcome is Outcome.CONVERGED
        np.testing.assert_allclose(found.intercept, part.target_mean - part.mean @ found.coef)


def test_blocks_of_one_feature_are_the_lasso():
    from bochner.solvers import lasso

    part = moments(target=T[:, :1]).total()
    ones = group.blocks_of([1] * D)
    for penalty in (30.0, 3.0, 0.3):
        (found,) = group.Grouped(part, ones, np.ones(D)).path([penalty])
        (wanted,) = lasso.path(part, [penalty])
        np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-6 * np.abs(wanted.coef).max())


def test_the_path_begins_where_no_block_is_in():
    part = moments().total()
    problem = grouped(part)
    assert not problem.path([problem.largest()])[0].coef.any()
    first = problem.path([0.999 * problem.largest()])[0].info["norms"]
    assert (first > 0.0).sum() == 1
    assert group.penalties_for(part, BLOCKS, problem.prices)[0] == problem.largest()
    cold = problem.path([0.01 * problem.largest()])[0].coef
    warm = problem.path(problem.largest() * np.array([0.01, 1.0, 0.1]))[0].coef
    np.testing.assert_allclose(cold, warm, atol=1e-5 * np.abs(cold).max())


def test_a_factor_of_a_kernel_makes_no_difference_to_what_is_in():
    factors = np.concatenate([np.full(width, f) for width, f in zip(WIDTHS, (3.0, 1.0, 0.01, 100.0, 1.0), strict=True)])
    plain, scaled = grouped(moments().total()), grouped(moments(Z * factors).total())
    for a, b in zip(plain.path([30.0, 3.0]), scaled.path([30.0, 3.0]), strict=True):
        np.testing.assert_allclose(b.coef * factors[:, None], a.coef, atol=1e-7 * np.abs(a.coef).max())


def test_a_penalty_of_zero_is_least_squares():
    found = grouped(moments().total()).path([1.0, 0.0])[1]
    slow = np.linalg.lstsq(Z - Z.mean(axis=0), T - T.mean(axis=0), rcond=None)[0]
    np.testing.assert_allclose(found.coef, slow, atol=1e-7 * np.abs(slow).max())


def test_cross_validation_is_that_of_refitting():
    both = moments(weight=WEIGHT)
    prices = group.prices_for(both.total(), BLOCKS)
    penalties = np.array([300.0, 30.0, 3.0])
    found = group.cross_validated(both.labelled(), penalties, BLOCKS, prices)
    slow = np.zeros((len(penalties), K))
    for f in range(FOLDS):
        train, held = FOLD != f, FOLD == f
        for p, penalty in enumerate(penalties):
            V = slowly(Z[train], T[train], WEIGHT[train], penalty, BLOCKS, prices, steps=3000)
            b = np.average(T[train] - Z[train] @ V, axis=0, weights=WEIGHT[train])
            slow[p] += WEIGHT[held] @ (T[held] - Z[held] @ V - b) ** 2 / WEIGHT.sum()
    np.testing.assert_allclose(found.errors[0], slow, rtol=1e-5)
    solutions = without_each(both.parts, 30.0, lambda part, p: group.Grouped(part, BLOCKS, prices).path(p))
    squared = sum(
        WEIGHT[FOLD == f] @ (T[FOLD == f] - solution.decision(Z[FOLD == f])) ** 2 for f, solution in solutions.items()
    )
    np.testing.assert_allclose(squared / WEIGHT.sum(), found.errors[0, 1], rtol=1e-9)


def test_an_early_stop_is_told_with_a_gap_that_bounds_what_is_missing():
    part = moments().total()
    problem = grouped(part)
    penalty = 1e-4 * problem.largest()

    def objective(coef):
        squares = part.target_scatter.sum() - 2.0 * (coef * part.cross).sum() + (coef * (part.scatter @ coef)).sum()
        return 0.5 * squares + penalty * problem.prices @ norms(coef)

    early, best = problem.path([penalty], most=1)[0], problem.path([penalty], tol=1e-14)[0]
    assert early.outcome is Outcome.STOPPED
    missing = (objective(early.coef) - objective(best.coef)) / part.target_scatter.sum()
    assert 0.0 < missing <= early.info["gap"]


def test_the_minimum_over_one_block():
    for values in (np.linspace(0.0, 5.0, 6), np.full(6, 2.0), np.array([1e-12, 1e-6, 1.0, 10.0, 1e3, 1e6])):
        pull = rng.normal(size=(6, 3)) * np.sqrt(values)[:, None] * 10.0
        for bound in (0.1, 1.0, 10.0):
            V = group.shrunk(pull, values, bound)
            assert V.any()
            np.testing.assert_allclose(
                values[:, None] * V + bound * V / np.linalg.norm(V), pull, atol=1e-9 * np.abs(pull).max()
            )
        assert not group.shrunk(pull, values, np.linalg.norm(pull)).any()


def test_blocks_cover_the_features_and_have_prices():
    part = moments().total()
    for blocks in ([slice(0, 3)], [slice(0, 3), slice(4, D)], group.blocks_of([D, 1])):
        with pytest.raises(SolverError, match="not consecutive parts"):
            group.Grouped(part, blocks, np.ones(len(blocks)))
    with pytest.raises(SolverError, match="price > 0"):
        group.Grouped(part, BLOCKS, np.zeros(5))
    flat = moments(np.hstack([Z[:, :3], np.ones((N, 2))])).total()
    assert group.prices_for(flat, group.blocks_of([3, 2]))[1] > 0.0
