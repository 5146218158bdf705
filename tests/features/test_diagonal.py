"""Maps with an exact diagonal: what they gain, what they cost, and that a wrong one is seen."""

import feature_laws as laws
import numpy as np
import pytest
from broken_maps import rejects

from bochner import features
from bochner.arrays import as_rows
from bochner.errors import MapError
from bochner.features import diagonal
from bochner.kernels import Exponential, Homogeneous, Polynomial
from bochner.seeds import Seed

KERNELS = [Polynomial(10), Exponential(0.5), Homogeneous(5)]


def exact_diagonal(kernel, d, dtype):
    X = laws.rows(kernel, d).astype(dtype)
    X[0] = 0.0
    inner = features.OptimalMaclaurin(kernel, 64)
    drawn = features.ExactDiagonal(kernel, 64, inner).draw(d, 1, sample=X)
    np.testing.assert_allclose(np.diagonal(drawn.gram(X)), kernel.diag(X), rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 10, 64])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_diagonal_is_exact(kernel, d, dtype):
    exact_diagonal(kernel, d, dtype)


def test_a_wrong_norm_is_seen(monkeypatch):
    class Wrong(diagonal._DrawnExactDiagonal):
        def _fill(self, X, out):
            super()._fill(X, out)
            out *= 1.01

    monkeypatch.setattr(diagonal, "_DrawnExactDiagonal", Wrong)
    with rejects:
        exact_diagonal(Polynomial(10), 3, np.float64)


def errors(recipe, kernel, X, sample, seeds=12):
    prepared, exact = recipe.prepared(X.shape[1], Seed(0), as_rows(sample)), kernel.gram(X)
    grams = [prepared._draw(X.shape[1], Seed(seed)).gram(X) for seed in range(seeds)]
    off = ~np.eye(len(X), dtype=bool)
    bias = np.linalg.norm(np.mean(grams, axis=0)[off] - exact[off]) / np.linalg.norm(exact[off])
    return np.sqrt(np.mean([np.linalg.norm(G - exact) ** 2 for G in grams])) / np.linalg.norm(exact), bias


@pytest.mark.parametrize("d", [8, 64])
def test_heavy_tails_lose_a_part_of_their_error(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(160, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Polynomial(10)
    inner = features.OptimalMaclaurin(kernel, 512)
    before, _ = errors(inner, kernel, X[:60], X[60:])
    after, _ = errors(features.ExactDiagonal(kernel, 512, inner), kernel, X[:60], X[60:])
    assert after < 0.9 * before


def test_the_bias_falls_with_the_width():
    """A ratio of means: of order 1/D, below the error of order 1/√D."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Exponential(0.8)
    found = [
        errors(features.ExactDiagonal(kernel, D, features.OptimalMaclaurin(kernel, D)), kernel, X[:40], X[40:], 60)[1]
        for D in (64, 1024)
    ]
    assert found[1] < 0.3 * found[0]


def test_it_needs_a_map_inside():
    with pytest.raises(MapError, match="needs inner="):
        features.ExactDiagonal(Polynomial(3), 16).draw(2)
