"""Maps made from data: landmarks, Nyström features, principal components."""

import feature_laws as laws
import numpy as np
import pytest
import scipy.sparse as sp

from bochner import features
from bochner.arrays import Rows
from bochner.errors import DataError, DomainError, MapError
from bochner.features.landmarks import LANDMARKS, centres, choose_landmarks, pivoted_rows
from bochner.kernels import Chi2, Exponential, Gaussian, Laplacian, Linear, Polynomial
from bochner.seeds import Seed

each_way = pytest.mark.parametrize("how", LANDMARKS)
CLUSTERS = np.concatenate(
    [centre + 0.1 * np.random.default_rng(i).normal(size=(60, 3)) for i, centre in enumerate(4.0 * np.eye(3))]
)


def error(kernel, X, size, how, seed=0):
    drawn = features.Nystroem(kernel, size, how).draw(X.shape[1], seed, sample=X)
    K = kernel.gram(X)
    return np.linalg.norm(drawn.gram(X) - K) / np.linalg.norm(K)


# ---- Nyström
@each_way
def test_the_error_falls_with_the_landmarks(how):
    X, kernel = laws.rows(Gaussian(0.1), 5, n=120), Gaussian(0.1)
    errors = [np.mean([error(kernel, X, size, how, seed) for seed in range(5)]) for size in (5, 15, 45)]
    assert errors[0] > 2.0 * errors[1] > 4.0 * errors[2]


@pytest.mark.parametrize("how", ["uniform", "rpcholesky", "leverage"])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Laplacian(0.3), Chi2(), Exponential(), Polynomial(3)], ids=str)
def test_all_rows_as_landmarks_are_exact(kernel, how):
    X = laws.rows(kernel, 6, n=40)
    assert error(kernel, X, 40, how) < 1e-6
    drawn = features.Nystroem(kernel, 40, how).draw(6, sample=X)
    assert drawn.residual(X) < 1e-9


@each_way
def test_the_residual_bounds_the_trace_error(how):
    X, kernel = laws.rows(Laplacian(0.3), 4, n=60), Laplacian(0.3)
    drawn = features.Nystroem(kernel, 10, how).draw(4, sample=X)
    K = kernel.gram(X)
    left = K - drawn.gram(X)
    assert np.linalg.eigvalsh(left).min() > -1e-9
    assert drawn.residual(X) == pytest.approx(np.trace(left) / np.trace(K), rel=1e-6)


def test_duplicates_among_the_landmarks_are_dropped():
    X, kernel = laws.rows(Gaussian(0.2), 3, n=30), Gaussian(0.2)
    given = np.concatenate([X[:5], X[:5], X[:5] + 1e-12, X[5:7]])
    drawn = features.Nystroem(kernel, 40, landmarks=given).draw(3)
    assert drawn.width == 6  # rows 0 and 2 of X are equal
    assert np.isfinite(drawn(X)).all()
    laws.close(drawn.gram(X[:7]), kernel.gram(X[:7]), 1e-6)


def test_single_precision_is_accurate():
    """An absolute floor on the eigenvalues, as some libraries have it, costs 4e-3 here."""
    X, kernel = laws.rows(Gaussian(0.05), 4, n=80).astype(np.float32), Gaussian(0.05)
    drawn = features.Nystroem(kernel, 80, "uniform").draw(4, sample=X)
    Z = drawn(X)
    assert Z.dtype == np.float32
    assert np.abs(Z @ Z.T - kernel.gram(X.astype(np.float64))).max() < 1e-6
    small = features.Nystroem(1e-10 * kernel, 80, "uniform").draw(4, sample=X)
    assert small.width == drawn.width
    laws.close(small.gram(X), 1e-10 * kernel.gram(X), 1e-5)


def test_rank_keeps_the_largest_directions():
    X, kernel = laws.rows(Gaussian(0.2), 5, n=50), Gaussian(0.2)
    whole = features.Nystroem(kernel, 20, "uniform").draw(5, seed=1, sample=X)
    part = features.Nystroem(kernel, 20, "uniform", rank=7).draw(5, seed=1, sample=X)
    assert part.width == 7
    laws.close(part(X), whole(X)[:, :7], 1e-9)
    assert (np.diff(whole.spectrum) < 0).all()
    given = features.Nystroem(kernel, 7, landmarks=whole.landmarks).draw(5)
    laws.close(given(X), part(X), 1e-9)


def test_landmarks_can_be_given():
    X = laws.rows(Gaussian(0.3), 3, n=30)
    recipe = features.Nystroem(Gaussian("median"), 8, landmarks=X[:8].tolist())
    assert recipe.draw(3, sample=X).map.kernel.gamma > 0
    resolved = features.Nystroem(Gaussian(0.3), 8, landmarks=sp.csr_array(X[:8]))
    laws.survives(resolved.draw(3), X)
    assert resolved.draw(3, seed=1)(X).tolist() == resolved.draw(3, seed=2)(X).tolist()
    with pytest.raises(DataError, match="the landmarks have 3 columns, the map is drawn for 4"):
        resolved.draw(4)
    with pytest.raises(DomainError, match="row 0, column 1 is -1"):
        features.Nystroem(Chi2(), 8, landmarks=[[0.0, -1.0]]).draw(2)
    with pytest.raises(DataError, match="nan"):
        features.Nystroem(Gaussian(0.3), 8, landmarks=[[0.0, np.nan]])


def test_nystroem_errors():
    X = laws.rows(Gaussian(0.3), 3, n=30)
    for options, message in [
        ({"landmarks": "grid"}, "landmarks must be one of"),
        ({"rank": 0}, "rank"),
        ({"rank": 9}, "rank"),
    ]:
        with pytest.raises(MapError, match=message):
            features.Nystroem(Gaussian(0.3), 8, **options)
    with pytest.raises(MapError, match="31 landmarks are asked for, the sample has 30 rows"):
        features.Nystroem(Gaussian(0.3), 31).draw(3, sample=X)
    for how in LANDMARKS:
        with pytest.raises(MapError, match="zero on all landmarks"):
            features.Nystroem(Linear(), 8, how).draw(3, sample=np.zeros((10, 3)))


@pytest.mark.parametrize("d", [1, 3])
@each_way
def test_sparse_samples_give_the_same_landmarks(how, d):
    X = laws.rows(Gaussian(0.3), d, n=40)
    dense, sparse = (features.Nystroem(Gaussian(0.3), 9, how).draw(d, 3, sample=S) for S in (X, sp.csr_array(X)))
    laws.close(sparse.landmarks, dense.landmarks, 1e-9)


# ---- choosing landmarks
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(0.01), Polynomial(3), Linear(), Laplacian(1.0)], ids=str)
@pytest.mark.parametrize(("n", "d"), [(300, 1), (200, 3)])
def test_pivots_differ_and_their_certificate_is_the_trace(kernel, n, d):
    X = np.random.default_rng(0).normal(size=(n, d))
    X[100:120] = X[:20]
    for seed in range(5):
        picks, left = pivoted_rows(kernel, X, 100, Seed(seed))
        assert len(set(picks.tolist())) == len(picks) <= 100
        L = kernel.gram(X, X[picks])
        K = L @ np.linalg.pinv(kernel.gram(X[picks]), rcond=1e-13, hermitian=True) @ L.T
        trace = kernel.diag(X).sum()
        assert left.min() >= 0.0
        assert left.sum() == pytest.approx(trace - np.trace(K), abs=1e-4 * trace)
        if isinstance(kernel, (Linear, Polynomial)):  # of finite rank, and no more pivots than a few over it
            rank = d if isinstance(kernel, Linear) else {1: 4, 3: 20}[d]
            assert rank <= len(picks) <= rank + 4


def test_the_certificate_decreases():
    X, kernel = np.random.default_rng(0).normal(size=(200, 4)), Laplacian(0.2)
    for seed in range(3):
        left = [pivoted_rows(kernel, X, count, Seed(seed))[1].sum() for count in (5, 10, 20, 40, 80, 200)]
        assert (np.diff(left) < 0).all()
        assert left[-1] < 1e-9 * 200


def test_pivots_follow_the_sequential_law():
    """The second pivot is drawn from the residual diagonal of the first, blocks or not."""
    X, kernel = np.array([[0.0], [0.2], [3.0], [9.0]]), Gaussian(0.5)
    K = kernel.gram(X)
    wanted = np.zeros((4, 4))
    for i in range(4):
        residual = np.maximum(np.diag(K) - K[i] ** 2, 0.0)
        wanted[i] = 0.25 * residual / residual.sum()
    seen = np.zeros((4, 4))
    for seed in range(1500):
        i, j = pivoted_rows(kernel, X, 2, Seed(seed))[0]
        seen[i, j] += 1 / 1500
    assert np.abs(seen - wanted).max() < 4.0 * np.sqrt(0.25 / 1500)


def test_few_landmarks_find_every_cluster():
    kernel = Gaussian(1.0)
    for how in ("rpcholesky", "kmeans"):
        for seed in range(10):
            chosen = choose_landmarks(how, kernel, CLUSTERS, 6, Seed(seed))
            assert {int(row.argmax()) for row in chosen} == {0, 1, 2}


def test_centres_are_means_of_their_clusters():
    C = centres(CLUSTERS, 3, Seed(0))
    wanted = np.stack([CLUSTERS[60 * i : 60 * (i + 1)].mean(axis=0) for i in range(3)])
    assert np.allclose(C[np.argsort(C.argmax(axis=1))], wanted, atol=1e-6)
    assert np.isfinite(centres(np.ones((10, 2)), 4, Seed(0))).all()


def test_rpcholesky_beats_uniform_landmarks_on_clusters():
    uneven = np.concatenate([np.repeat(CLUSTERS[:1], 300, axis=0), CLUSTERS[60:75], CLUSTERS[120:125]])
    uneven = uneven + 0.01 * np.random.default_rng(0).normal(size=uneven.shape)
    uniform, pivoted = (
        np.mean([error(Gaussian(1.0), uneven, 8, how, seed) for seed in range(5)]) for how in ("uniform", "rpcholesky")
    )
    assert pivoted < 0.5 * uniform


# ---- principal components
BASE = features.RandomFourier(Gaussian(0.1), 96)


@pytest.mark.parametrize("centred", [False, True])
def test_moments_and_a_sample_give_the_same_components(centred):
    X = laws.rows(Gaussian(0.1), 5, n=70)
    fitted = features.PCAFeatures(Gaussian(0.1), 12, base=BASE, centred=centred).draw(5, seed=3, sample=X)
    Z = fitted.base(X)
    away = Z - Z.mean(axis=0)
    made = features.PCAFeatures.from_moments(fitted.base, 12, away.T @ away, Z.mean(axis=0), 70, centred)
    laws.close(made(X), fitted(X), 1e-9)
    laws.survives(made, X)


def test_components_are_those_of_the_svd():
    X = laws.rows(Gaussian(0.1), 5, n=70)
    for centred in (False, True):
        drawn = features.PCAFeatures(Gaussian(0.1), 10, base=BASE, centred=centred).draw(5, sample=X)
        Z = drawn.base(X)
        Z = Z - Z.mean(axis=0) if centred else Z
        u, s, _ = np.linalg.svd(Z, full_matrices=False)
        laws.close(np.abs(drawn(X)), np.abs(u[:, :10] * s[:10]), 1e-8)


def test_components_of_features_with_a_large_mean():
    """Σ z zᵀ − n m mᵀ loses the digits that the mean takes; a centred merge does not."""
    kernel = Polynomial(1, offset=1e12)
    X = np.random.default_rng(0).normal(size=(5000, 3)) * [3.0, 2.0, 1.0]
    base = features.OptimalMaclaurin(kernel, 4)
    drawn = features.PCAFeatures(kernel, 3, base=base, centred=True).draw(3, sample=X)
    wanted = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    laws.close(np.abs(drawn(X)), np.abs(wanted[0] * wanted[1]), 1e-6)


def test_few_components_of_many_features_beat_as_many_features():
    X, kernel = laws.rows(Gaussian(0.02), 20, n=150), Gaussian(0.02)
    K = kernel.gram(X[100:])
    plain = np.mean(
        [np.square(features.RandomFourier(kernel, 40).draw(20, s).gram(X[100:]) - K).mean() for s in range(5)]
    )
    recipe = features.PCAFeatures(kernel, 40, base=features.RandomFourier(kernel, 1000))
    projected = np.mean([np.square(recipe.draw(20, s, sample=X[:100]).gram(X[100:]) - K).mean() for s in range(5)])
    assert projected < plain


def test_fitted_components_can_be_cut():
    X = laws.rows(Gaussian(0.1), 5, n=70)
    fitted = features.PCAFeatures(Gaussian(0.1), 12, base=BASE).draw(5, sample=X)
    laws.close(fitted.map.sized(4).draw(5)(X), fitted(X)[:, :4], 1e-14)
    prepared = features.PCAFeatures(Gaussian(0.1), 12, base=BASE).prepared(5, Seed(0), Rows(X))
    assert np.array_equal(prepared._draw(5, Seed(7))(X), prepared._draw(5, Seed(8))(X))


def test_pca_errors():
    X = laws.rows(Gaussian(0.1), 5, n=70)
    with pytest.raises(MapError, match="needs base="):
        features.PCAFeatures(Gaussian(0.1), 12).draw(5, sample=X)
    with pytest.raises(MapError, match="97 components of 96 features"):
        features.PCAFeatures(Gaussian(0.1), 97, base=BASE).draw(5, sample=X)
