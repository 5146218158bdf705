"""Random Laplace features of semigroup kernels (Yang et al. 2014), plain and by importance sampling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, Rows, as_rows, dense, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, option, register, who_lacks
from bochner.features.points import BLOCK, POINTS
from bochner.kernels import ExponentialSemigroup, ReciprocalSemigroup
from bochner.kernels.laplace import Measure
from bochner.seeds import Seed

ADVICE = "Laplace features need a semigroup kernel; features.choose picks a map for any kernel"
_REFERENCE = 256


@register
@dataclass(frozen=True, eq=False, repr=False)
class RandomLaplace(FeatureMap):
    """e^{−wᵀx}/√s with w from the Laplace measure of the kernel.

    sampling="plain" is the paper's.  sampling="tilted" draws a share ``plain_share`` of the columns
    so, and the others from the densities p(w) e^{−2xᵢᵀw}/φ(2xᵢ) of reference rows xᵢ, weighted by the
    likelihood ratio, which is at most 1/plain_share: unbiased for every x, of finite variance.
    ``shift`` is the δ of Lemma 7, added to every entry.  ``points``: "iid", "sobol" or "latin".
    """

    sampling: str = "plain"
    points: str = "iid"
    shift: float = 0.0
    plain_share: float = 0.1
    reference: NDArray[Any] | None = None
    prefix_stable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        option("sampling", self.sampling, ("plain", "tilted"))
        option("points", self.points, POINTS)
        if not 0.0 < self.plain_share <= 1.0:
            raise MapError(f"plain_share must lie in (0, 1], got {self.plain_share!r}")
        if not (np.isfinite(self.shift) and self.shift >= 0.0):
            raise MapError(f"shift must be a finite number ≥ 0, got {self.shift!r}")

    def is_fitted(self) -> bool:
        return self.sampling == "plain" or self.reference is not None

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return self.sampling == "tilted"

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if self.is_fitted() or sample is None:
            return self
        values = sample.values
        picks = np.linspace(0, values.shape[0] - 1, min(_REFERENCE, values.shape[0])).astype(int)
        return replace(self, reference=frozen(dense(values[picks]), np.float64))

    def _draw(self, d: int, seed: Seed) -> DrawnLaplace:
        return DrawnLaplace(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        for kernel in (ExponentialSemigroup(0.6 / d), ReciprocalSemigroup(4.0 * d)):
            yield cls(kernel, 64)
            yield cls(kernel, 64, points="sobol")
            yield cls(kernel, 64, sampling="tilted")
        yield cls(ReciprocalSemigroup(4.0 * d), 64, sampling="tilted", points="sobol")


def _measure(recipe: RandomLaplace) -> Measure:
    measure = recipe.kernel.laplace()
    if measure is None:
        raise who_lacks(recipe.kernel, "Laplace measure", ADVICE)
    return measure


class DrawnLaplace(Drawn):
    """Frequencies w ≥ 0 and the logarithm of the weight of each column."""

    def __init__(self, recipe: RandomLaplace, d: int, seed: Seed):
        super().__init__(recipe, d, seed, recipe.n_features)
        measure, s = _measure(recipe), recipe.n_features
        if recipe.sampling == "plain":
            w = measure.quantile(POINTS[recipe.points](seed, s, d))
            log_ratio = np.zeros(s)
        else:
            w, log_ratio = _tilted(recipe, measure, d, seed)
        # An infinite frequency would make 0 · ∞ at zero entries; beyond 1e300 e^{−wx} is 0 all the same.
        self.w = frozen(np.minimum(w, 1e300).T)
        self.log_weight = frozen(0.5 * (log_ratio - np.log(s)) - recipe.shift * self.w.sum(axis=0))
        self.variance_is_exact = recipe.sampling == "plain" and recipe.points == "iid"

    def _fill(self, X: Matrix, out: Float) -> None:
        exponent = self.log_weight - X.astype(np.float64) @ self.w
        np.exp(exponent, out=exponent)
        out[:] = exponent

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        """(φ(2σ) − φ(σ)²)/s with σ = x + y, for plain independent draws."""
        recipe = self.map
        assert isinstance(recipe, RandomLaplace)
        if not self.variance_is_exact:
            return super().variance(X, Y, replicates)
        left = dense(as_rows(X).values).astype(np.float64) + recipe.shift
        right = left if Y is None else dense(as_rows(Y).values).astype(np.float64) + recipe.shift
        second = self.kernel._gram(2.0 * left, 2.0 * right)
        return np.asarray((second - self.kernel._gram(left, right) ** 2) / self.width)


def _tilted(recipe: RandomLaplace, measure: Measure, d: int, seed: Seed) -> tuple[Float64, Float64]:
    """Frequencies (s, d) of the mixture, and log of plain density / mixture density."""
    if recipe.reference is None:
        raise MapError("tilted Laplace features are made from data: pass draw(d, seed, sample=rows)")
    theta = 2.0 * np.asarray(recipe.reference)
    log_phi = measure.log_phi(theta)
    share, s = recipe.plain_share, recipe.n_features
    law = np.exp(log_phi - log_phi.max())
    law /= law.sum()
    uniforms = POINTS[recipe.points](seed, s, 1 + d * measure.tilt_dims)
    # Component −1 is the plain law; the components are taken by evenly spread uniforms.
    first = uniforms[:, 0]
    plain = first < share
    inside = np.clip((first - share) / max(1.0 - share, 1e-300), 0.0, 1.0 - 1e-16)
    component = np.searchsorted(np.cumsum(law), inside * np.cumsum(law)[-1], side="right").clip(max=len(law) - 1)
    coordinates = [uniforms[:, 1 + i * d : 1 + (i + 1) * d] for i in range(measure.tilt_dims)]
    w = np.where(plain[:, None], measure.quantile(coordinates[0]), measure.tilted(theta[component], *coordinates))
    w = np.minimum(w, 1e300)
    # Σᵢ e^{−θᵢᵀw} / Σᵢ φ(θᵢ), in logarithms
    ratio = np.empty(s)
    for start in range(0, s, BLOCK):
        exponents = -(w[start : start + BLOCK] @ theta.T)
        top = exponents.max(axis=1)
        mean = np.log(np.exp(exponents - top[:, None]).sum(axis=1)) + top
        total = np.log(np.exp(log_phi - log_phi.max()).sum()) + log_phi.max()
        ratio[start : start + BLOCK] = -np.logaddexp(np.log(share), np.log1p(-share) + mean - total) if share < 1 else 0
    return w, ratio
