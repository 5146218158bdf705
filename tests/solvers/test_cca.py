"""Canonical correlations: a generalised eigenproblem and scikit-learn's CCA on the same columns."""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.cross_decomposition import CCA

from bochner.errors import SolverError
from bochner.solvers.cca import Views, _singular, correlations, cross_validated, penalties_for
from bochner.stats import Batch, Moments

rng = np.random.default_rng(0)
N, A, B, FOLDS = 800, 7, 5, 4
HIDDEN = rng.normal(size=(N, 2))
LEFT = HIDDEN @ rng.normal(size=(2, A)) + rng.normal(size=(N, A)) + 3.0
RIGHT = HIDDEN @ rng.normal(size=(2, B)) + 0.5 * rng.normal(size=(N, B)) - 2.0
BOTH = np.hstack([LEFT, RIGHT])
FOLD = rng.integers(0, FOLDS, N)
WEIGHT = rng.uniform(0.2, 2.0, N)
for array in (LEFT, RIGHT, BOTH, FOLD, WEIGHT):
    array.flags.writeable = False


def moments(weight=None):
    found = Moments(A + B)
    for f in range(FOLDS):
        here = f == FOLD
        found.update(Batch(BOTH[here].copy(), weight=None if weight is None else weight[here], fold=f))
    return found


def scores(found):
    return (LEFT - LEFT.mean(axis=0)) @ found.left, (RIGHT - RIGHT.mean(axis=0)) @ found.right


def test_without_a_penalty_they_are_those_of_scikit_learn():
    part = moments().total()
    found = Views.of(part, A).solve((0.0, 0.0), 4)
    reference = CCA(4, scale=False, max_iter=10_000, tol=1e-14).fit(LEFT, RIGHT)
    x, y = reference.transform(LEFT, RIGHT)
    np.testing.assert_allclose(found.values, [np.corrcoef(x[:, r], y[:, r])[0, 1] for r in range(4)], atol=1e-7)
    np.testing.assert_allclose(correlations(part, A, found), found.values, atol=1e-12)
    mine = scores(found)
    for left, right in zip(mine, (x, y), strict=True):
        for r in range(4):
            assert abs(np.corrcoef(left[:, r], right[:, r])[0, 1]) == pytest.approx(1.0, abs=1e-5)
        np.testing.assert_allclose(np.cov(left.T, ddof=0), np.eye(4), atol=1e-9)


@pytest.mark.parametrize("penalties", [(1.0, 1.0), (300.0, 2.0)])
def test_with_penalties_they_solve_the_generalised_eigenproblem(penalties):
    S = np.cov(BOTH.T) * (N - 1)
    cross, own = np.zeros_like(S), np.zeros_like(S)
    cross[:A, A:], cross[A:, :A] = S[:A, A:], S[A:, :A]
    own[:A, :A] = S[:A, :A] + penalties[0] * np.eye(A)
    own[A:, A:] = S[A:, A:] + penalties[1] * np.eye(B)
    values, vectors = eigh(cross, own)
    found = Views.of(moments().total(), A).solve(penalties, B)
    np.testing.assert_allclose(found.values, values[::-1][:B], rtol=1e-9)
    for r in range(B):
        for mine, wanted in ((found.left[:, r], vectors[:A, -1 - r]), (found.right[:, r], vectors[A:, -1 - r])):
            cosine = mine @ wanted / np.linalg.norm(mine) / np.linalg.norm(wanted)
            assert abs(cosine) == pytest.approx(1.0, abs=1e-9)
    x, y = scores(found)
    np.testing.assert_allclose(
        correlations(moments().total(), A, found), [np.corrcoef(x[:, r], y[:, r])[0, 1] for r in range(B)], rtol=1e-9
    )
    assert (np.einsum("ir,ir->r", x, y) > 0.0).all()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_weights(scale):
    found = Views.of(moments(scale * WEIGHT).total(), A).solve((0.0, 0.0), 3)
    x, y = scores(found)
    covariance = np.cov(np.hstack([x, y]).T, aweights=WEIGHT, ddof=0)
    np.testing.assert_allclose(covariance[:3, :3], np.eye(3), atol=1e-9)
    np.testing.assert_allclose(np.diag(covariance[:3, 3:]), found.values, atol=1e-9)


def test_held_out_correlations_are_those_of_refitting():
    part = moments().total()
    penalties = [penalties_for(part, A, share) for share in (1e-4, 1e-2, 1.0)]
    found = cross_validated(moments().labelled(), A, penalties, 3)
    wanted = np.zeros((3, 3))
    for f in range(FOLDS):
        train, held = f != FOLD, f == FOLD
        only = Moments(A + B)
        only.update(Batch(BOTH[train].copy()))
        for p, pair in enumerate(penalties):
            one = Views.of(only.total(), A).solve(pair, 3)
            x, y = LEFT[held] @ one.left, RIGHT[held] @ one.right
            wanted[p] += [np.corrcoef(x[:, r], y[:, r])[0, 1] * held.sum() / N for r in range(3)]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (40, 40)])
@pytest.mark.parametrize("decay", [0.95, 0.1, 0.0])
def test_few_singular_vectors_of_many(shape, decay):
    P, Q = (np.linalg.qr(rng.normal(size=(n, 40)))[0] for n in shape)
    M = P * decay ** np.arange(40) @ Q.T
    left, values, right = _singular(M, 5)
    np.testing.assert_allclose(values, decay ** np.arange(5), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(left * values @ right.T, P[:, :5] * values @ Q[:, :5].T, atol=1e-12)


def test_views_of_fewer_dimensions_than_scores_have_scores_of_zero():
    narrow = Moments(A + B)
    rows = BOTH.copy()
    rows[:, A:] = RIGHT[:, :1] * np.arange(1.0, B + 1)
    narrow.update(Batch(rows.copy()))
    found = Views.of(narrow.total(), A).solve((0.0, 0.0), 3)
    assert found.left.shape == (A, 3)
    assert 0.5 < found.values[0] < 1.0
    np.testing.assert_array_equal(found.values[1:], 0.0)
    np.testing.assert_array_equal(correlations(narrow.total(), A, found)[1:], 0.0)


def test_views_must_be_two_and_vary():
    with pytest.raises(SolverError, match="cannot be split after 12"):
        Views.of(moments().total(), A + B)
    still = Moments(2)
    still.update(Batch(np.column_stack([np.ones(9), np.arange(9.0)])))
    with pytest.raises(SolverError, match="does not vary"):
        Views.of(still.total(), 1)
