"""Random Laplace features of semigroup kernels (Yang et al. 2014), plain and by importance sampling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bochner.arrays import Float, Float64, Matrix, Rows, as_rows, dense, frozen, spread, tiles
from bochner.errors import DataError, MapError
from bochner.features.base import Drawn, FeatureMap, option, register, who_lacks
from bochner.features.landmarks import centres
from bochner.features.points import BLOCK, POINTS, sobol
from bochner.kernels import ExponentialSemigroup, ReciprocalSemigroup
from bochner.kernels.laplace import Measure
from bochner.seeds import Seed

ADVICE = "Laplace features need a semigroup kernel; features.choose picks a map for any kernel"
_FEW = 64
_LAWS = ("iid", "sobol", "latin", "mirrored")
#: for infinite frequencies, which would make 0 · ∞ at zero entries; e^{−wx} is 0 all the same elsewhere
_HUGE = 1e200


@register
@dataclass(frozen=True, eq=False, repr=False)
class RandomLaplace(FeatureMap):
    """e^{−wᵀx}/√s with w from the Laplace measure of the kernel.

    sampling="plain" is the paper's.  sampling="tilted" draws a share ``plain_share`` of the columns
    so, and the others from the densities p(w) e^{−2xᵢᵀw}/φ(2xᵢ) of reference rows xᵢ, weighted by the
    likelihood ratio, which is at most 1/plain_share: unbiased for every x, of finite variance.
    There are at most ``components`` reference rows: with Sobol' points few centres can do better.
    ``shift`` is the δ of Lemma 7, added to every entry.  ``points``: "iid", "sobol", "latin" or
    "mirrored" (u and 1 − u for the quantiles of orthogonal normals: for many columns of small entries).
    """

    sampling: str = "plain"
    points: str = "iid"
    shift: float = 0.0
    plain_share: float = 0.1
    components: int = 256
    reference: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        option("sampling", self.sampling, ("plain", "tilted"))
        option("points", self.points, _LAWS)
        if not 0.0 < self.plain_share <= 1.0:
            raise MapError(f"plain_share must lie in (0, 1], got {self.plain_share!r}")
        if self.components < 1:
            raise MapError(f"components must be ≥ 1, got {self.components!r}")
        if not (np.isfinite(self.shift) and self.shift >= 0.0):
            raise MapError(f"shift must be a finite number ≥ 0, got {self.shift!r}")

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        return self.shift == 0.0

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]
        return self.points != "latin"

    @property
    def independent_columns(self) -> bool:
        return self.points == "iid"

    def is_fitted(self) -> bool:
        return self.sampling == "plain" or self.reference is not None

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return self.sampling == "tilted"

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if self.sampling == "plain":
            return self
        if self.reference is not None:
            rows = as_rows(self.reference)
            if rows.values.shape[1] != d:
                raise DataError(f"the reference rows have {rows.values.shape[1]} columns, the map is drawn for {d}")
            self.kernel.check(rows)
        else:
            assert sample is not None
            rows = Rows(reference_rows(dense(sample.values).astype(np.float64), self.components, seed))
        return replace(self, reference=frozen(dense(rows.values), np.float64))

    def _draw(self, d: int, seed: Seed) -> DrawnLaplace:
        return DrawnLaplace(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        for kernel in (ExponentialSemigroup(0.6 / d), ReciprocalSemigroup(4.0 * d)):
            yield cls(kernel, 64)
            yield cls(kernel, 64, points="sobol")
            yield cls(kernel, 64, sampling="tilted")
        yield cls(ReciprocalSemigroup(4.0 * d), 64, sampling="tilted", points="sobol")


def reference_rows(X: Float64, count: int, seed: Seed) -> Float64:
    """Rows to tilt to, ordered along their first principal axis.

    The order makes the component a smooth function of its uniform, which is what Sobol' points need.
    Few components are centres of clusters, many are rows.
    """
    few = count <= _FEW and count < X.shape[0]
    rows = centres(X, count, seed) if few else spread(X, count)
    axis = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][0]
    return np.asarray(rows[np.argsort(rows @ axis, kind="stable")])


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
            w, log_ratio = np.minimum(measure.quantile(POINTS[recipe.points](seed, s, d)), _HUGE), np.zeros(s)
        else:
            w, log_ratio = _tilted(recipe, measure, d, seed)
        self.w = frozen(w.T)
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
        left, right = (rows + recipe.shift for rows in self._both(X, Y))
        second = self.kernel._gram(2.0 * left, 2.0 * right)
        return np.asarray(np.maximum(second - self.kernel._gram(left, right) ** 2, 0.0) / self.width)


def _tilted(recipe: RandomLaplace, measure: Measure, d: int, seed: Seed) -> tuple[Float64, Float64]:
    """Frequencies (s, d) of the mixture, and log of plain density / mixture density."""
    theta = 2.0 * np.asarray(recipe.settled("reference"))
    log_phi = measure.log_phi(theta)
    share, s = recipe.plain_share, recipe.n_features
    law = np.exp(log_phi - log_phi.max())
    steps = np.cumsum(law)
    # The first uniform tells the plain law from the tilted ones, and which of those.
    if recipe.points == "mirrored":  # two of a pair belong together
        first = sobol(seed, -(-s // 2), 1)[:, 0].repeat(2)[:s]
        uniforms = POINTS["mirrored"](seed, s, d * measure.tilt_dims)
    else:
        first, uniforms = np.split(POINTS[recipe.points](seed, s, 1 + d * measure.tilt_dims), [1], axis=1)
        first = first[:, 0]
    plain = first < share
    inside = (first - share) / (1.0 - share) if share < 1.0 else np.zeros(s)
    component = np.searchsorted(steps, inside * steps[-1], side="right").clip(max=len(law) - 1)
    coordinates = [uniforms[:, i * d : (i + 1) * d] for i in range(measure.tilt_dims)]
    w = np.where(plain[:, None], measure.quantile(coordinates[0]), measure.tilted(theta[component], *coordinates))
    w = np.minimum(w, _HUGE)
    if share == 1.0:
        return w, np.zeros(s)
    total = special.logsumexp(log_phi)
    log_ratio = np.empty(s)
    for columns in tiles(s, BLOCK):  # 1 / (α + (1 − α) Σᵢ e^{−θᵢᵀw} / Σᵢ φ(θᵢ)), in logarithms
        tilted = special.logsumexp(-(w[columns] @ theta.T), axis=1) - total
        log_ratio[columns] = -np.logaddexp(np.log(share), np.log1p(-share) + tilted)
    return w, log_ratio
