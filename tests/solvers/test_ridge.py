"""Ridge: what scikit-learn and direct formulas give on materialised features, and honest outcomes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge, Ridge

from bochner import features, kernels
from bochner.errors import DataError, SolverError
from bochner.solvers.base import Outcome
from bochner.solvers.ridge import (
    FLOAT32_NOISE,
    Prepared,
    cross_validated,
    held_out,
    narrowed,
    path_errors,
    penalties_for,
    require_penalties,
    solved,
    splits,
    without_each,
)
from bochner.stats.base import Batch
from bochner.stats.moments import Moments, Part

rng = np.random.default_rng(0)
N, D, K, FOLDS = 900, 150, 3, 4
Z = np.cos(rng.normal(size=(N, 8)) @ rng.normal(size=(8, D)) + rng.uniform(0, 6, D)) + 0.3
T = Z @ rng.normal(size=(D, K)) * 0.1 + rng.normal(size=(N, K)) + 5.0
CODES = T.argmax(axis=1)
WEIGHT = rng.uniform(0.2, 2.0, N)
FOLD = rng.integers(0, FOLDS, N)
PENALTIES = np.geomspace(1e-4, 1e4, 9)
SIZES = (20, 75, D)
for array in (Z, T, CODES, WEIGHT, FOLD, PENALTIES):
    array.flags.writeable = False


def moments(Z=Z, target=T, weight=None, fold=FOLD):
    found = Moments(Z.shape[1], K if target.ndim == 1 else target.shape[1])
    for f in np.unique(fold):
        here = fold == f
        found.update(Batch(Z[here].copy(), target[here], None if weight is None else weight[here], int(f)))
    return found


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


@pytest.mark.parametrize("target", [T, T[:, :1], CODES], ids=["three", "one", "classes"])
@pytest.mark.parametrize("weight", [None, WEIGHT, 1e8 * WEIGHT, 1e-8 * WEIGHT], ids=["plain", "weighted", "e8", "e-8"])
def test_coefficients_are_those_of_scikit_learn(target, weight):
    prepared = Prepared(moments(target=target, weight=weight).total())
    scale = 1.0 if weight is None else weight.mean()
    for penalty in scale * PENALTIES:
        reference = Ridge(penalty, solver="cholesky")
        reference.fit(Z, np.eye(K)[target] if target.ndim == 1 else target, sample_weight=weight)
        solution = prepared.solve(penalty)
        assert relative(solution.coef, np.atleast_2d(reference.coef_).T) < 1e-8
        assert relative(solution.intercept, np.atleast_1d(reference.intercept_)) < 1e-8
        assert solution.outcome is Outcome.CONVERGED
        assert relative(solved(prepared.part, penalty).coef, solution.coef) < 1e-9


def refitted(target, weight, penalty, size):
    """Held-out squared error by fitting each fold's complement again."""
    w = np.ones(N) if weight is None else weight
    wanted = np.eye(K)[target] if target.ndim == 1 else target
    total = np.zeros(wanted.shape[1])
    for f in range(FOLDS):
        train, test = FOLD != f, FOLD == f
        model = Ridge(penalty, solver="cholesky").fit(Z[train, :size], wanted[train], sample_weight=w[train])
        found = model.predict(Z[test, :size]).reshape(test.sum(), -1)
        total += w[test] @ (wanted[test] - found) ** 2
    return total / w.sum()


@pytest.mark.parametrize("target", [T, T[:, :1], CODES], ids=["three", "one", "classes"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_cross_validation_is_that_of_refitting(target, weight):
    found = cross_validated(moments(target=target, weight=weight).labelled(), PENALTIES, SIZES)
    for i, size in enumerate(SIZES):
        for j, penalty in enumerate(PENALTIES):
            np.testing.assert_allclose(found.errors[i, j], refitted(target, weight, penalty, size), rtol=1e-10)
    share = np.array([1.0 if weight is None else weight[FOLD == f].sum() / (FOLD == f).sum() for f in range(FOLDS)])
    share *= np.bincount(FOLD)
    np.testing.assert_allclose(np.average(found.by_fold, axis=0, weights=share), found.mean, rtol=1e-12)
    size, penalty = found.best()
    assert found.mean.min() == found.mean[found.sizes.index(size), list(PENALTIES).index(penalty)]
    assert found.best_for(size) == penalty


def test_cross_validation_with_a_large_mean_of_the_targets():
    near = cross_validated(moments().labelled(), PENALTIES)
    far = cross_validated(moments(target=T + 1e6).labelled(), PENALTIES)
    np.testing.assert_allclose(far.errors, near.errors, rtol=1e-8)


def test_the_baseline_is_the_error_of_the_mean():
    found = cross_validated(moments().labelled(), PENALTIES)
    slow = sum(((T[FOLD == f] - T[FOLD != f].mean(axis=0)) ** 2).sum(axis=0) for f in range(FOLDS)) / N
    np.testing.assert_allclose(found.baseline, slow, rtol=1e-12)
    np.testing.assert_allclose(cross_validated(moments().labelled(), [1e12]).errors[0, 0], slow, rtol=1e-5)


def test_many_targets_are_solved_in_blocks(monkeypatch):
    whole = cross_validated(moments().labelled(), PENALTIES)
    monkeypatch.setattr("bochner.solvers.ridge._BLOCK", 2 * D * K)
    np.testing.assert_allclose(cross_validated(moments().labelled(), PENALTIES).errors, whole.errors, rtol=1e-12)


def test_penalties_that_cannot_be_solved_are_infinitely_bad_and_no_more():
    good = moments().total()
    wrong = Part(**{**good.__dict__, "scatter": good.scatter - 1e3 * np.eye(D)})
    errors = path_errors(wrong, good, np.array([1.0, 1e5]))
    assert np.isinf(errors[0]).all()
    assert np.isfinite(errors[1]).all()


def test_cross_validation_needs_two_folds_and_sizes_that_exist():
    with pytest.raises(DataError, match="at least 2 folds"):
        cross_validated(moments(fold=np.zeros(N, dtype=int)).labelled(), PENALTIES)
    with pytest.raises(DataError, match="at least 2 folds"):
        cross_validated([], PENALTIES)
    for sizes in ([0], [D + 1]):
        with pytest.raises(SolverError, match=f"numbers of features lie between 1 and {D}"):
            cross_validated(moments().labelled(), PENALTIES, sizes)
    for penalties in ([-1.0], [np.nan], []):
        with pytest.raises(SolverError, match="finite numbers ≥ 0"):
            require_penalties(penalties)


def test_leading_features_are_the_narrower_draw():
    recipe = features.RandomFourier(kernels.Gaussian(0.3), 64)
    assert recipe.prefix_stable
    X = rng.normal(size=(400, 3))
    y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(400, 1))
    fold = rng.integers(0, 3, 400)
    wide, narrow = recipe.draw(3, seed=1), recipe.sized(16).draw(3, seed=1)
    total = moments(wide(X), y, fold=fold).total()
    own = moments(narrow(X), y, fold=fold).total()
    part, factor = narrowed(total, 16)
    np.testing.assert_allclose(part.scatter, own.scatter, atol=1e-11)
    as_drawn = Prepared(total.leading(16)).solve(0.5)
    again = Prepared(own).solve(0.5 * factor)
    np.testing.assert_allclose(as_drawn.rescaled(np.sqrt(factor)).coef, again.coef, rtol=1e-9)
    np.testing.assert_allclose(as_drawn.rescaled(np.sqrt(factor)).decision(narrow(X)), again.decision(narrow(X)))
    chosen = cross_validated(moments(wide(X), y, fold=fold).labelled(), [0.5], [16]).errors
    direct = cross_validated(moments(narrow(X), y, fold=fold).labelled(), [0.5 * factor]).errors
    np.testing.assert_allclose(chosen, direct, rtol=1e-10)


@pytest.mark.parametrize("size", [None, 40])
def test_each_fold_has_a_solution_that_has_not_seen_it(size):
    found = without_each(moments().parts, 2.0, size)
    assert list(found) == list(range(FOLDS))
    squared = np.zeros(K)
    for f, solution in found.items():
        reference = Ridge(2.0).fit(Z[FOLD != f, :size], T[FOLD != f])
        assert relative(solution.coef, reference.coef_.T) < 1e-9
        squared += ((T[FOLD == f] - solution.decision(Z[FOLD == f, :size])) ** 2).sum(axis=0)
    np.testing.assert_allclose(
        squared / N, cross_validated(moments().labelled(), [2.0], [size or D]).errors[0, 0], rtol=1e-10
    )


def test_held_out_errors_of_several_solutions_at_once():
    train, held = next(iter(splits(moments().labelled())))
    coefs = [Prepared(train).solve(p).coef for p in (0.1, 10.0)]
    both = held_out(held, train, np.hstack(coefs))
    np.testing.assert_allclose(both, np.concatenate([held_out(held, train, c) for c in coefs]), rtol=1e-12)


def test_residual_degrees_of_freedom_and_gcv():
    prepared = Prepared(moments(weight=WEIGHT).total())
    Zc = Z - WEIGHT @ Z / WEIGHT.sum()
    for penalty in PENALTIES:
        solution = prepared.solve(penalty)
        residual = WEIGHT @ (T - solution.decision(Z)) ** 2
        np.testing.assert_allclose(prepared.residual(penalty), residual, rtol=1e-10)
        root = Zc * np.sqrt(WEIGHT)[:, None]
        hat = root @ np.linalg.solve(root.T @ root + penalty * np.eye(D), root.T)
        df = 1.0 + np.trace(hat)
        assert prepared.degrees_of_freedom(penalty) == pytest.approx(df, rel=1e-10)
        n = WEIGHT.sum()
        np.testing.assert_allclose(prepared.gcv(penalty), n * residual / (n - df) ** 2, rtol=1e-9)
        np.testing.assert_allclose(prepared.noise_variance(penalty), residual / (n - df), rtol=1e-9)


def test_gcv_is_leave_one_out_with_the_mean_leverage():
    prepared = Prepared(moments().total())
    penalty = 3.0
    f = prepared.solve(penalty).decision(Z)
    leverage = prepared.degrees_of_freedom(penalty) / N
    np.testing.assert_allclose(prepared.gcv(penalty), np.mean(((T - f) / (1 - leverage)) ** 2, axis=0), rtol=1e-10)


def test_evidence_is_the_density_of_the_targets():
    rows = slice(0, 60)
    part = moments(Z[rows], T[rows], fold=np.zeros(60, dtype=int)).total()
    prepared = Prepared(part)
    # The intercept is integrated out by a contrast that is orthogonal to the ones.
    contrast = np.linalg.qr(np.column_stack([np.ones(60), rng.normal(size=(60, 59))]))[0][:, 1:]
    for penalty in (0.1, 3.0):
        C = contrast.T @ (np.eye(60) + Z[rows] @ Z[rows].T / penalty) @ contrast
        found = prepared.log_evidence(penalty)
        for j in range(K):
            t = contrast.T @ T[rows, j]
            best = t @ np.linalg.solve(C, t) / 59
            slow = multivariate_normal(np.zeros(59), best * C).logpdf(t)
            assert found[j] == pytest.approx(slow, rel=1e-9)
            for other in (0.9, 1.1):
                assert multivariate_normal(np.zeros(59), other * best * C).logpdf(t) < slow
    with pytest.raises(SolverError, match="needs a penalty > 0"):
        prepared.log_evidence(0.0)


def test_evidence_is_greatest_where_bayesian_ridge_ends():
    prepared = Prepared(moments().total())
    flat = 1e-12
    model = BayesianRidge(max_iter=3000, tol=1e-12, alpha_1=flat, alpha_2=flat, lambda_1=flat, lambda_2=flat)
    model.fit(Z, T[:, 0])
    grid = model.lambda_ / model.alpha_ * np.geomspace(0.5, 2.0, 201)
    best = grid[np.argmax([prepared.log_evidence(p)[0] for p in grid])]
    assert best == pytest.approx(model.lambda_ / model.alpha_, rel=0.02)


def test_predictive_spread_is_the_posterior_of_bayesian_ridge():
    prepared = Prepared(moments().total())
    model = BayesianRidge(max_iter=3000, tol=1e-12).fit(Z, T[:, 0])
    mean, std = model.predict(Z, return_std=True)
    penalty = model.lambda_ / model.alpha_
    F = prepared.spread(penalty)
    own = ((Z - Z.mean(axis=0)) @ F) ** 2
    # scikit-learn leaves out the spread of the intercept, σ²/n.
    np.testing.assert_allclose(std**2, (1.0 + own.sum(axis=1)) / model.alpha_, rtol=1e-8)
    np.testing.assert_allclose(prepared.solve(penalty).decision(Z)[:, 0], mean, rtol=1e-8)


def test_weights_count_as_repeated_rows():
    counts = rng.integers(1, 4, N)
    repeated = np.repeat(np.arange(N), counts)
    a = Prepared(moments(weight=counts.astype(float)).total())
    b = Prepared(moments(Z[repeated], T[repeated], fold=FOLD[repeated]).total())
    for found in ("gcv", "noise_variance", "log_evidence", "degrees_of_freedom"):
        np.testing.assert_allclose(getattr(a, found)(2.0), getattr(b, found)(2.0), rtol=1e-9)


def test_dependent_features_without_a_penalty_are_singular():
    doubled = np.hstack([Z[:, :10], Z[:, :10]])
    prepared = Prepared(moments(doubled).total())
    assert prepared.solve(0.0).outcome is Outcome.SINGULAR
    assert prepared.solve(0.0).outcome.advice
    # The answer is still the one of least norm.
    reference = np.linalg.lstsq(doubled - doubled.mean(axis=0), T - T.mean(axis=0), rcond=1e-10)[0]
    np.testing.assert_allclose(prepared.solve(0.0).coef, reference, atol=1e-8)
    assert prepared.solve(1e-3).outcome is Outcome.CONVERGED
    assert solved(prepared.part, 1e-3).outcome is Outcome.CONVERGED
    assert Prepared(moments().total()).solve(0.0).outcome is Outcome.CONVERGED


def test_penalties_below_the_precision_of_the_tiles_are_told_and_only_they():
    X = rng.normal(size=(20_000, 2))
    drawn = features.RandomFourier(kernels.Gaussian(0.05), 128).draw(2, seed=0)
    y = np.sin(3 * X[:, :1])
    exact, tiles = Moments(128, 1), Moments(128, 1)
    for part in np.array_split(np.arange(len(X)), 10):
        exact.update(Batch(drawn(X[part]), y[part]))
        tiles.update(Batch(drawn(X[part].astype(np.float32)), y[part]))
    rough, sharp = Prepared(tiles.total(), FLOAT32_NOISE), Prepared(exact.total())
    low, high = rough.floor / 100, rough.floor * 100
    assert rough.solve(low).outcome is Outcome.BELOW_PRECISION
    assert rough.solve(high).outcome is Outcome.CONVERGED
    assert sharp.solve(low).outcome is Outcome.CONVERGED
    assert relative(rough.solve(low).coef, sharp.solve(low).coef) > 0.1
    assert relative(rough.solve(high).coef, sharp.solve(high).coef) < 0.1
    # Features that are not dependent have no small eigenvalues: there a penalty may be small.
    assert Prepared(moments().total(), FLOAT32_NOISE).solve(0.0).outcome is Outcome.CONVERGED


def test_a_path_of_penalties_spans_the_eigenvalues():
    part = moments().total()
    path = penalties_for(part)
    assert len(path) == 25
    eigenvalues = Prepared(part).eigenvalues
    assert path[0] < 1e-3 * eigenvalues[0]
    assert path[-1] > np.median(eigenvalues)
    with pytest.raises(SolverError, match="do not vary"):
        penalties_for(Part.empty(3, 1))
