"""The papers' uniform bounds, corrected: how sure a number of features makes a given error.

With probability at least 1 − δ, sup |⟨Z(x), Z(y)⟩ − K(x, y)| ≤ ε over the whole compact domain.  The
bounds hold for the papers' plain maps and are far from tight: ``features.error`` measures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bochner.errors import MapError
from bochner.features.base import FeatureMap
from bochner.features.laplace import RandomLaplace
from bochner.features.maclaurin import Compositional, RandomMaclaurin, series_of
from bochner.kernels import Compose
from bochner.kernels.dot import DotKernel
from bochner.kernels.series import Series


@dataclass(frozen=True)
class Bound:
    """failure = exp(log_front − rate · D): the probability that some pair is off by more than epsilon."""

    theorem: str
    epsilon: float
    log_front: float
    rate: float
    n_features: int

    @property
    def probability(self) -> float:
        """The bound on the probability of failure at the recipe's number of features (at most 1)."""
        return min(1.0, math.exp(min(0.0, self.log_front - self.rate * self.n_features)))

    def features_for(self, delta: float) -> int:
        """The least number of features that brings the probability of failure below delta."""
        if not 0.0 < delta < 1.0:
            raise MapError(f"delta is a probability between 0 and 1, got {delta!r}")
        return max(1, math.ceil((self.log_front - math.log(delta)) / self.rate))


def bound(
    recipe: FeatureMap, d: int, epsilon: float, radius: float, *, least: float = 0.0, lipschitz: float | None = None
) -> Bound:
    """The bound of Theorem 8 or 9 of Kar & Karnick, or Theorem 5 of the random Laplace paper.

    ``radius``: for Maclaurin maps the largest ‖x‖₁, for Laplace maps the diameter of the domain.
    ``least``: for Laplace maps of the exponential-semigroup kernel, the least entry (Lemma 7 gives it as
    a shift; the recipe's own shift is added).  ``lipschitz``: for compositional maps, the expected
    Lipschitz constant of x ↦ W(x) (for √2 cos(wᵀx + b) it is √2 E‖w‖).

    >>> from bochner import features, kernels
    >>> b = bound(features.RandomMaclaurin(kernels.Polynomial(2), 1000), d=3, epsilon=0.5, radius=0.5)
    >>> b.theorem, b.features_for(0.05) > b.features_for(0.5)
    ('Kar & Karnick, Theorem 8', True)
    """
    if not (epsilon > 0.0 and radius > 0.0 and d >= 1):
        raise MapError("epsilon and radius must be > 0, and d ≥ 1")
    if isinstance(recipe, RandomMaclaurin):
        return _theorem_8(recipe, d, epsilon, radius)
    if isinstance(recipe, Compositional):
        return _theorem_9(recipe, d, epsilon, radius, lipschitz)
    if isinstance(recipe, RandomLaplace) and recipe.sampling == "plain":
        return _theorem_5(recipe, d, epsilon, radius, least + recipe.shift)
    raise MapError(
        f"the papers bound RandomMaclaurin, Compositional and plain RandomLaplace, not {type(recipe).__name__}; "
        "features.error measures any map"
    )


def _slope(series: Series, t: float) -> tuple[float, float]:
    """f and f′ at t > 0."""
    a = series.significant(t, 1e-14, most=1 << 14)
    n = np.arange(len(a))
    value = float(series.function(np.asarray(t, dtype=np.float64)))
    return value, float((a[1:] * n[1:] * np.power(t, n[1:] - 1.0)).sum())


def _theorem_8(recipe: RandomMaclaurin, d: int, epsilon: float, R: float) -> Bound:
    """2 (32RL/ε)^{2d} exp(−Dε²/(8C²)) with C = p f(pR²)/(p−1) and L = R f′(R²) + p²R√d f′(pR²)."""
    series, p = series_of(recipe.kernel), recipe.p
    at_p, slope_p = _slope(series, p * R * R)
    _, slope = _slope(series, R * R)
    C = p / (p - 1.0) * at_p
    L = R * slope + p * p * R * math.sqrt(d) * slope_p
    front = math.log(2.0) + 2.0 * d * math.log(max(32.0 * R * L / epsilon, 1.0))
    rate = epsilon**2 / (8.0 * max(C, 1e-150) ** 2)
    return Bound("Kar & Karnick, Theorem 8", epsilon, front, rate, recipe.n_features)


def _theorem_9(recipe: Compositional, d: int, epsilon: float, R: float, lipschitz: float | None) -> Bound:
    """2^{4/3} (32RL₁/ε) exp(−Dε²/(8C₁²(2d+1))) by a first-moment argument over a net.

    C₁ = p f(pC_W)/(p−1) with C_W = sup W² = 2 for the cosine; L₁ bounds the expected Lipschitz constant
    of ⟨Z(x), Z(·)⟩ and of the kernel: each factor of a product of n is at most √C_W and moves by at most
    ``lipschitz``, so that L₁ = (1 + p²/(p−1)) √C_W f′(pC_W) · lipschitz serves.
    """
    kernel, p = recipe.kernel, recipe.p
    assert isinstance(kernel, Compose) and isinstance(kernel.outer, DotKernel)
    if kernel.inner.spectrum() is None:
        raise MapError("Theorem 9 needs a bounded inner map: a shift-invariant inner kernel")
    if lipschitz is None or not lipschitz > 0.0:
        raise MapError("Theorem 9 needs lipschitz=, the expected Lipschitz constant of the inner scalar map")
    ceiling = 2.0 * float(kernel.inner._diag(np.zeros((1, d)))[0])
    at_p, slope_p = _slope(kernel.outer.series(), p * ceiling)
    C = p / (p - 1.0) * at_p
    L = (1.0 + p * p / (p - 1.0)) * math.sqrt(ceiling) * slope_p * lipschitz
    front = 4.0 / 3.0 * math.log(2.0) + math.log(max(32.0 * R * L / epsilon, 1.0))
    rate = epsilon**2 / (8.0 * C * C * (2.0 * d + 1.0))
    return Bound("Kar & Karnick, Theorem 9", epsilon, front, rate, recipe.n_features)


def _theorem_5(recipe: RandomLaplace, d: int, epsilon: float, R: float, least: float) -> Bound:
    """2^{(11d+4)/(d+2)} (RL/ε)^{2d/(d+2)} exp(−sε²/(d+2)), L² = d · E w² e^{−2w·least} (Lemma 6)."""
    measure = recipe.kernel.laplace()
    assert measure is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        square = d * measure.gradient2(2.0 * least)
    if not math.isfinite(square):
        raise MapError(
            "the exponential-semigroup kernel has no bounded slope at zero entries; shift them (Lemma 7: shift="
            "lemma_7_shift(beta, d, epsilon) costs at most ε/2)"
        )
    front = (11.0 * d + 4.0) / (d + 2.0) * math.log(2.0)
    front += d / (d + 2.0) * math.log(R * R * square / epsilon**2)
    return Bound("Yang et al., Theorem 5", epsilon, front, epsilon**2 / (d + 2.0), recipe.n_features)


def lemma_7_shift(beta: float, d: int, epsilon: float) -> float:
    """δ = ε²/(8β²d²): added to every entry, it moves exp(−β Σ √(x + y)) by at most ε/2.

    |Δk| ≤ β Σ (√(xⱼ + yⱼ + 2δ) − √(xⱼ + yⱼ)) ≤ βd√(2δ) = ε/2.
    """
    return epsilon**2 / (8.0 * beta**2 * d**2)
