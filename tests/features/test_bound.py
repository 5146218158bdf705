"""The papers' theorems: their constants are true bounds, and the arithmetic is right."""

import math

import numpy as np
import pytest

from bochner import features, kernels
from bochner.errors import MapError


def test_theorem_8_is_the_printed_formula():
    # (1 + t)², p = 2, R = 1, d = 1: f(2) = 9, f'(1) = 4, f'(2) = 6; C = 18, L = 4 + 4·6 = 28
    b = features.bound(features.RandomMaclaurin(kernels.Polynomial(2), 1000), d=1, epsilon=0.5, radius=1.0)
    assert b.rate == pytest.approx(0.25 / (8 * 18**2))
    assert b.log_front == pytest.approx(math.log(2) + 2 * math.log(32 * 28 / 0.5))
    D = b.features_for(0.05)
    assert b.log_front - b.rate * D <= math.log(0.05) < b.log_front - b.rate * (D - 1)
    assert b.probability == 1.0


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("kernel", [kernels.Polynomial(3), kernels.Exponential()], ids=str)
def test_no_column_exceeds_the_constant_of_theorem_8(kernel, p):
    """|D z(x) z(y)| ≤ p f(pR²)/(p − 1) with R the largest ‖x‖₁."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X /= np.abs(X).sum(axis=1, keepdims=True)
    X[:3] = np.eye(3)
    Z = features.RandomMaclaurin(kernel, 4000, p=p).draw(3, seed=0)(X)
    largest = 4000 * np.abs(Z[:, None, :] * Z[None, :, :]).max()
    C = p / (p - 1) * float(kernel.function(np.float64(p)))
    assert largest <= C * (1 + 1e-12)
    assert largest > 0.05 * C


def test_theorem_9_has_the_corrected_exponent():
    kernel = kernels.compose(kernels.Polynomial(1), kernels.Gaussian(0.5))
    b = features.bound(features.Compositional(kernel, 10**6), d=3, epsilon=0.5, radius=1.0, lipschitz=2.0)
    # f(t) = 1 + t, p = 2, C_W = 2: C = 2 f(4) = 10, f' = 1, L₁ = (1 + 4) √2 · 2
    assert b.rate == pytest.approx(0.25 / (8 * 100 * 7))
    assert b.log_front == pytest.approx(math.log(2 ** (4 / 3) * 32 * 10 * math.sqrt(2) / 0.5))
    with pytest.raises(MapError, match="lipschitz"):
        features.bound(features.Compositional(kernel, 10), d=3, epsilon=0.5, radius=1.0)


def test_theorem_5_holds_for_the_reciprocal_kernel():
    lam, d, epsilon = 2.0, 2, 0.3
    b = features.bound(features.RandomLaplace(kernels.ReciprocalSemigroup(lam), 100), d, epsilon, radius=1.5)
    assert b.rate == pytest.approx(epsilon**2 / (d + 2))
    # E w² = 2/λ²: no shift is needed
    square = d * 2 / lam**2
    front = (11 * d + 4) / (d + 2) * math.log(2) + d / (d + 2) * math.log(1.5**2 * square / epsilon**2)
    assert b.log_front == pytest.approx(front)
    s = b.features_for(0.1)
    X = np.random.default_rng(0).random((300, d))
    drawn = features.RandomLaplace(kernels.ReciprocalSemigroup(lam), s).draw(d, seed=0)
    assert np.abs(drawn.gram(X) - drawn.kernel.gram(X)).max() < epsilon


def test_theorem_5_needs_a_shift_for_the_exponential_kernel():
    recipe = features.RandomLaplace(kernels.ExponentialSemigroup(1.0), 100)
    with pytest.raises(MapError, match="shift"):
        features.bound(recipe, 2, 0.3, radius=1.0)
    shift = features.lemma_7_shift(1.0, 2, 0.3)
    shifted = features.RandomLaplace(kernels.ExponentialSemigroup(1.0), 100, shift=shift)
    assert features.bound(shifted, 2, 0.3, radius=1.0).features_for(0.1) > 0
    assert (
        features.bound(recipe, 2, 0.3, radius=1.0, least=0.5).log_front
        < features.bound(shifted, 2, 0.3, radius=1.0).log_front
    )


@pytest.mark.parametrize(("beta", "d", "epsilon"), [(1.0, 1, 0.1), (0.3, 5, 0.05), (4.0, 3, 0.5)])
def test_the_shift_of_lemma_7_costs_at_most_half_of_epsilon(beta, d, epsilon):
    shift = features.lemma_7_shift(beta, d, epsilon)
    X = np.vstack([np.zeros((1, d)), np.random.default_rng(0).random((50, d)) * (np.arange(50) % 3)[:, None]])
    kernel = kernels.ExponentialSemigroup(beta)
    moved = np.abs(kernel.gram(X + shift) - kernel.gram(X)).max()
    assert moved <= 0.5 * epsilon
    assert moved > 0.3 * epsilon  # at zero entries the bound is nearly met


def test_what_the_papers_do_not_bound_is_refused():
    with pytest.raises(MapError, match="measures any map"):
        features.bound(features.RandomFourier(kernels.Gaussian(1.0), 10), 2, 0.1, radius=1.0)
    with pytest.raises(MapError, match="> 0"):
        features.bound(features.RandomMaclaurin(kernels.Linear(), 10), 2, 0.0, radius=1.0)
