"""Principal components: scikit-learn's on materialised features, and every rank and penalty as if refitted."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from bochner.errors import SolverError
from bochner.solvers import cross_validated as plain
from bochner.solvers.pca import (
    block_basis,
    cross_validated,
    numerical_rank,
    principal,
    rank_for,
    ranks_up_to,
)
from bochner.stats.base import Batch
from bochner.stats.moments import UNLABELLED, Moments

rng = np.random.default_rng(0)
N, D, K, FOLDS = 700, 40, 2, 4
Z = np.cos(rng.normal(size=(N, 5)) @ rng.normal(size=(5, D)) + rng.uniform(0, 6, D)) + 3.0
T = np.sin(Z[:, :3]) @ rng.normal(size=(3, K)) + 0.5 * rng.normal(size=(N, K)) + 5.0
OTHER = np.cos(rng.normal(size=(300, 5)) @ rng.normal(size=(5, D)))
WEIGHT = rng.uniform(0.2, 2.0, N)
FOLD = rng.integers(0, FOLDS, N)
PENALTIES = np.geomspace(1e-3, 1e3, 7)
RANKS = [1, 3, 10, 25, D]
for array in (Z, T, OTHER, WEIGHT, FOLD, PENALTIES):
    array.flags.writeable = False


def moments(weight=None):
    found = Moments(D, K)
    for f in range(FOLDS):
        here = f == FOLD
        found.update(Batch(Z[here].copy(), T[here], None if weight is None else weight[here], f))
    return found


def test_components_are_those_of_scikit_learn():
    found, reference = principal(moments().total()), PCA().fit(Z)
    np.testing.assert_allclose(found.variance, reference.explained_variance_, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.ratio, reference.explained_variance_ratio_, rtol=1e-9, atol=1e-14)
    overlap = np.abs(np.sum(found.basis[:, :20] * reference.components_[:20].T, axis=0))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-9)
    scores = (Z - found.mean) @ found.leading(5).projection(whiten=True)
    np.testing.assert_allclose(np.cov(scores.T), np.eye(5), atol=1e-9)


def test_signs_are_settled():
    basis = principal(moments().total()).basis
    assert (basis[np.abs(basis).argmax(axis=0), np.arange(D)] > 0.0).all()


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-8])
def test_variances_do_not_depend_on_the_scale_of_weights(scale):
    found = principal(moments(scale * WEIGHT).total())
    wanted = np.linalg.eigvalsh(np.cov(Z.T, aweights=WEIGHT))[::-1]
    np.testing.assert_allclose(found.variance, wanted, rtol=1e-8, atol=1e-14)


def bases(train, other, rank, blocks, each):
    """An orthonormal basis of the components, from the rows themselves."""
    rows = Z[train] if other is None else np.vstack([Z[train], other])
    first = np.eye(D)
    if blocks is not None:
        parts = np.split(rows, np.cumsum(blocks)[:-1], axis=1)
        first = np.zeros((D, sum(each)))
        row = column = 0
        for part, keep in zip(parts, each, strict=True):
            width = part.shape[1]
            first[row : row + width, column : column + keep] = PCA(keep).fit(part).components_.T
            row, column = row + width, column + keep
    return first @ PCA(rank).fit(rows @ first).components_.T


@pytest.mark.parametrize("other", [None, OTHER], ids=["labelled", "semi-supervised"])
@pytest.mark.parametrize(("blocks", "each"), [(None, None), ((30, 10), (15, 10))], ids=["one", "two-stage"])
def test_every_rank_and_penalty_is_as_if_refitted(other, blocks, each):
    ranks = RANKS if blocks is None else RANKS[:-1]
    rows = None
    if other is not None:
        unlabelled = Moments(D, K)
        unlabelled.update(Batch(other.copy()))
        rows = unlabelled.parts[UNLABELLED]
    found = cross_validated(moments().labelled(), PENALTIES, ranks, rows, blocks, each)
    assert found.sizes == tuple(ranks)
    wanted = np.zeros((len(ranks), len(PENALTIES), K))
    for f in range(FOLDS):
        train, held = f != FOLD, f == FOLD
        whole = bases(train, other, ranks[-1], blocks, each)
        for i, rank in enumerate(ranks):
            U = whole[:, :rank]
            for j, penalty in enumerate(PENALTIES):
                model = Ridge(penalty, solver="svd").fit(Z[train] @ U, T[train])
                wanted[i, j] += np.square(T[held] - model.predict(Z[held] @ U)).sum(axis=0) / N
    np.testing.assert_allclose(found.errors, wanted, rtol=1e-10)
    i, j = np.unravel_index(wanted.sum(axis=2).argmin(), wanted.shape[:2])
    assert found.best() == (ranks[i], PENALTIES[j])


def test_weights_enter_cross_validation():
    found = cross_validated(moments(WEIGHT).labelled(), [1.0], [4])
    total = np.zeros(K)
    for f in range(FOLDS):
        train, held = f != FOLD, f == FOLD
        root = np.sqrt(WEIGHT[train])[:, None]
        centre = np.average(Z[train], axis=0, weights=WEIGHT[train])
        U = np.linalg.svd((Z[train] - centre) * root, full_matrices=False)[2][:4].T
        model = Ridge(1.0, solver="cholesky").fit(Z[train] @ U, T[train], sample_weight=WEIGHT[train])
        total += WEIGHT[held] @ np.square(T[held] - model.predict(Z[held] @ U)) / WEIGHT.sum()
    np.testing.assert_allclose(found.errors[0, 0], total, rtol=1e-9)


def test_the_whole_rank_is_plain_ridge_regression():
    folds = moments().labelled()
    np.testing.assert_allclose(cross_validated(folds, PENALTIES, [D]).errors, plain(folds, PENALTIES).errors, rtol=1e-9)


@pytest.mark.parametrize("other", [None, OTHER], ids=["labelled", "semi-supervised"])
def test_more_features_than_rows_are_no_trouble(other):
    few, rest = Moments(D, K), Moments(D, K)
    for f in range(FOLDS):
        few.update(Batch(Z[: D - 10][FOLD[: D - 10] == f].copy(), T[: D - 10][FOLD[: D - 10] == f], fold=f))
    if other is not None:
        rest.update(Batch(other[:5].copy()))
    unlabelled = rest.parts.get(UNLABELLED)
    found = cross_validated(few.labelled(), PENALTIES, [5, D], unlabelled)
    np.testing.assert_allclose(found.errors[1], plain(few.labelled(), PENALTIES).errors[0], rtol=1e-8)


def test_blocks_keep_their_own_components():
    part = moments().total()
    basis = block_basis(part, (30, 10), (4, 2))
    assert basis.shape == (D, 6)
    assert not basis[30:, :4].any()
    assert not basis[:30, 4:].any()
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-12)
    found = principal(part, (30, 10), (4, 2))
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(6), atol=1e-12)
    assert found.ratio.sum() < 1.0  # of the whole variance, not of what the blocks kept


def test_ranks():
    found = principal(moments().total())
    assert rank_for(found, None) == D
    assert rank_for(found, 7) == 7
    share = rank_for(found, 0.9)
    assert found.ratio[:share].sum() >= 0.9 > found.ratio[: share - 1].sum()
    assert share == PCA(0.9).fit(Z).n_components_
    assert ranks_up_to(20) == [1, 2, 3, 4, 6, 8, 11, 16, 20]
    assert ranks_up_to(1) == [1]
    assert numerical_rank(np.array([1.0, 1e-3, 1e-17]), 1.0, 3) == 2
    assert numerical_rank(np.array([1.0, 1e-3, 1e-9]), 1.0, 3, noise=2e-8) == 2
    for wrong in (0, 2.5, -1, "many", True):
        with pytest.raises(SolverError, match="whole number ≥ 1"):
            rank_for(found, wrong)
    with pytest.raises(SolverError, match="more than there are: 40"):
        rank_for(found, 41)
