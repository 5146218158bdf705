"""Random Maclaurin maps as in the paper (Kar & Karnick 2012): plain, H0/1, truncated, compositional."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, Rows, dense, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register, who_lacks
from bochner.features.fourier import RandomFourier
from bochner.features.laplace import RandomLaplace
from bochner.features.points import BLOCK
from bochner.features.products import RademacherProducts, by_degree, per_factor
from bochner.features.projected import Projected
from bochner.features.sampled import SampledSignature
from bochner.kernels import Compose, Exponential, Gaussian, Hellinger, Polynomial, compose
from bochner.kernels.base import Kernel
from bochner.kernels.dot import DotKernel
from bochner.kernels.pairwise import products, squared_norms
from bochner.kernels.series import Series
from bochner.seeds import Seed

_TERMS = 256  # of the series of a variance
_LARGEST_DEGREE = 4096  # a term beyond it is nothing in floating point, or the series does not converge
ADVICE = "Maclaurin maps need a dot-product kernel; features.choose picks a map for any kernel"


def series_of(kernel: Kernel) -> Series:
    """The series, or who lacks it."""
    series = kernel.series()
    if series is None:
        raise who_lacks(kernel, "Maclaurin series", ADVICE)
    return series


def geometric_law(degrees: NDArray[np.int64], p: float) -> Float64:
    """P[n] = (p − 1)/p^(n+1): the paper's law, normalised for every p > 1."""
    return np.asarray((p - 1.0) * np.power(p, -(degrees + 1.0)))


def reach_of(sample: Rows | None) -> float:
    """The largest ‖x‖² of a sample, 1 without one."""
    return 1.0 if sample is None else float(squared_norms(sample.values).max()) or 1.0


def require_reach(reach: float | None) -> None:
    """A positive ‖x‖², or none yet."""
    if reach is not None and not (math.isfinite(reach) and reach > 0.0):
        raise MapError(f"reach is the largest ‖x‖², a number > 0; got {reach!r}")


def require_p(p: float) -> None:
    """p > 1, or the degrees have no law."""
    if not (math.isfinite(p) and p > 1.0):
        raise MapError(f"p must be a number > 1, got {p!r}")


@register
@dataclass(frozen=True, eq=False, repr=False)
class RandomMaclaurin(FeatureMap):
    """n_features columns √(aₙ/(P[n] D)) ∏_{j≤n} ωⱼᵀx with n of the geometric law and Rademacher ω.

    ``exact_low_orders`` is the paper's H0/1: √a₀, √a₁·x and n_features columns of degree n ≥ 2, so
    that the width is 1 + d + n_features.
    """

    p: float = 2.0
    exact_low_orders: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_p(self.p)

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]
        return not self.exact_low_orders  # the exact columns are not scaled by the number of the others

    @property
    def independent_columns(self) -> bool:
        return not self.exact_low_orders

    def _draw(self, d: int, seed: Seed) -> DrawnMaclaurin:
        return DrawnMaclaurin(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Exponential(), 64)
        yield cls(Polynomial(3), 64, p=3.0)
        yield cls(Polynomial(3), 64, exact_low_orders=True)


class DrawnMaclaurin(Drawn):
    """Degrees and signs of every column."""

    layout, tile = "F", 512
    variance_is_exact = True

    def __init__(self, recipe: RandomMaclaurin, d: int, seed: Seed):
        series = series_of(recipe.kernel)
        self.lowest = 2 if recipe.exact_low_orders else 0
        self.extra = 1 + d if recipe.exact_low_orders else 0
        super().__init__(recipe, d, seed, recipe.n_features + self.extra)
        drawn, signs = draw_products(recipe.n_features, d, recipe.p, seed)
        degrees = drawn + self.lowest
        if self.lowest:
            signs = _with_more_factors(drawn, signs, self.lowest, d, seed)
        a = series.coefficients(int(degrees.max()) + 1)
        self.low = np.sqrt(series.coefficients(2))
        weights = np.sqrt(a[degrees] / (geometric_law(drawn, recipe.p) * recipe.n_features))
        self.columns = RademacherProducts(degrees, weights, signs)

    def _fill(self, X: Matrix, out: Float) -> None:
        if self.extra:
            out[:, 0] = self.low[0]
            out[:, 1 : self.extra] = dense(X) * out.dtype.type(self.low[1])
        self.columns.fill(X, out[:, self.extra :])

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        """(Σ aₙ² Mⁿ/P[n] − f²)/D with M = ‖x‖²‖y‖² + 2t² − 2Σxᵢ²yᵢ², over the random degrees."""
        recipe = self.map
        assert isinstance(recipe, RandomMaclaurin)
        left, right = self._both(X, Y)
        t, M = second_moment(left, right)
        series = series_of(self.kernel)
        a = series.coefficients(series.length or _TERMS)
        log_M = np.log(np.maximum(M, 1e-300))
        second, term = np.zeros_like(M), np.zeros_like(M)
        with np.errstate(over="ignore"):
            for n in np.flatnonzero(a[self.lowest :]) + self.lowest:
                log_law = math.log(recipe.p - 1.0) - (n - self.lowest + 1.0) * math.log(recipe.p)
                term = np.exp(2.0 * math.log(a[n]) - log_law + n * log_M)
                second += term
        if series.length is None and a[-1] > 0.0:  # terms that do not fall: the variance is infinite
            second[term > 1e-3 * second] = np.inf
        mean = self.kernel._gram(left, right)
        if self.lowest:
            mean = mean - self.low[0] ** 2 - self.low[1] ** 2 * t
        return np.asarray(np.maximum(second - mean**2, 0.0) / recipe.n_features)


def second_moment(X: Float64, Y: Float64) -> tuple[Float64, Float64]:
    """⟨x, y⟩ and E (ωᵀx ωᵀy)² for Rademacher ω."""
    t = products(X, Y)
    norms = squared_norms(X)[:, None] * squared_norms(Y)[None, :]
    return t, np.asarray(np.maximum(norms + 2.0 * t**2 - 2.0 * products(X**2, Y**2), 0.0))


def draw_products(count: int, d: int, p: float, seed: Seed) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Geometric degrees and the sign rows of their factors, block by block."""
    degrees, signs = [], []
    for j, start in enumerate(range(0, count, BLOCK)):
        block = seed.stream("degrees", j).geometric(1.0 / p, min(BLOCK, count - start))
        degrees.append(block)
        signs.append(seed.stream("signs", j).signs(int(block.sum()), d))
    return np.concatenate(degrees), np.concatenate(signs)


def _with_more_factors(
    drawn: NDArray[np.int64], signs: NDArray[np.int8], more: int, d: int, seed: Seed
) -> NDArray[np.int8]:
    """The sign rows of every column with ``more`` factors put in front."""
    extra = np.concatenate(
        [
            seed.stream("more", j).signs(min(BLOCK, len(drawn) - start), more, d)
            for j, start in enumerate(range(0, len(drawn), BLOCK))
        ]
    ).reshape(-1, d)
    own = np.repeat(np.arange(len(drawn)), drawn)
    column = np.concatenate([np.repeat(np.arange(len(drawn)), more), own])
    return np.asarray(np.concatenate([extra, signs])[np.argsort(column, kind="stable")])


@register
@dataclass(frozen=True, eq=False, repr=False)
class TruncatedMaclaurin(FeatureMap):
    """Degrees n < degree only, each with its own share of the columns (section 4.2).

    The shares follow aₙ R^(2n), R the largest norm of the sample (1 without one).  The mean lacks the
    tail Σ_{n ≥ degree} aₙ tⁿ, which is at most Σ aₙ R^(2n): ``bias`` of the drawn map.
    """

    degree: int = 8
    reach: float | None = None
    unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = isinstance(self.degree, (int, np.integer)) and not isinstance(self.degree, bool)
        if not whole or not 1 <= self.degree <= _LARGEST_DEGREE:
            raise MapError(f"degree must be a whole number from 1 to {_LARGEST_DEGREE}, got {self.degree!r}")
        require_reach(self.reach)

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        return self if self.reach is not None else replace(self, reach=reach_of(sample))

    def _draw(self, d: int, seed: Seed) -> DrawnTruncated:
        return DrawnTruncated(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Polynomial(3), 64, degree=4)
        yield cls(Exponential(), 64, degree=12)


class DrawnTruncated(Drawn):
    """Strata of columns, one for each degree; ``bias`` bounds what is cut off."""

    layout, tile = "F", 512

    def __init__(self, recipe: TruncatedMaclaurin, d: int, seed: Seed):
        super().__init__(recipe, d, seed, recipe.n_features)
        series, reach = series_of(recipe.kernel), float(recipe.settled("reach"))
        a = series.coefficients(recipe.degree, reach)
        mass = a * np.power(reach, np.arange(recipe.degree))
        self.bias = max(0.0, series.at(reach) - float(mass.sum()))
        present = np.flatnonzero(a)
        if not len(present):
            raise MapError(f"{recipe.kernel} has no degree below {recipe.degree}; raise degree=")
        if len(present) > recipe.n_features:
            raise MapError(f"{recipe.n_features} features are too few for {len(present)} degrees")
        shares = np.ones(recipe.degree, dtype=np.int64) * (a > 0)
        if a[0] > 0:
            mass[0] = 0.0  # one constant column is exact
        if mass.sum() > 0:
            shares += apportion(mass, recipe.n_features - int(shares.sum()))
        self.width = int(shares.sum())
        degrees = np.repeat(np.arange(recipe.degree), shares)
        weights = np.sqrt(a[degrees] / shares[degrees])
        self.columns = RademacherProducts(degrees, weights, seed.stream("signs").signs(int(degrees.sum()), d))

    def _fill(self, X: Matrix, out: Float) -> None:
        self.columns.fill(X, out)


def apportion(mass: Float64, total: int) -> NDArray[np.int64]:
    """Whole shares of ``total`` in proportion to mass (largest remainders)."""
    exact = mass / mass.sum() * total
    shares = np.floor(exact).astype(np.int64)
    left = total - int(shares.sum())
    shares[np.argsort(-(exact - shares), kind="stable")[:left]] += 1
    return np.asarray(shares)


@register
@dataclass(frozen=True, eq=False, repr=False)
class Compositional(FeatureMap):
    """Random Maclaurin columns of an outer series over *any* inner map (section 5).

    Factor j of a column is a fresh independent scalar W with E W(x)W(y) = K_inner: a column of a map of
    independent columns, or a random combination of the columns of any other (``Projected``), whose own
    error then remains.  (One W used twice within a product is biased.)
    """

    p: float = 2.0
    inner: FeatureMap | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_p(self.p)
        if not isinstance(self.kernel, Compose):
            raise MapError(f"Compositional needs kernels.compose(outer, inner), not {self.kernel}")

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        assert isinstance(self.kernel, Compose)
        if self.inner is None:
            profile = self.kernel.inner.profile()
            return profile is None or profile.name == "root"
        inner = self.inner.inner if isinstance(self.inner, Projected) else self.inner
        return inner is not None and inner.unbiased and (inner.independent_columns or inner.deterministic)

    @property
    def independent_columns(self) -> bool:
        return True

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]
        return self.inner is None or self.inner.prefix_stable

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return self.inner is not None and self.inner.needs_sample

    def is_fitted(self) -> bool:
        return self.inner is None or self.inner.is_fitted()

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        assert isinstance(self.kernel, Compose)
        inner = self.inner or scalars(self.kernel.inner, self.p, d)
        if not inner.independent_columns:
            inner = Projected(self.kernel.inner, 1, inner=inner)
        inner = replace(inner, kernel=self.kernel.inner)
        return replace(self, inner=inner.prepared(d, seed.child("inner"), sample))

    def _draw(self, d: int, seed: Seed) -> DrawnCompositional:
        return DrawnCompositional(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(compose(Exponential(1.5), Gaussian(0.5 / d)), 64)
        yield cls(compose(Polynomial(2), compose(Polynomial(2, offset=0.5), Gaussian(0.5 / d))), 64)
        yield cls(compose(Polynomial(2), Hellinger()), 64)


def scalars(kernel: Kernel, p: float, d: int) -> FeatureMap:
    """A map for the factors of a product: of independent columns where there is one."""
    if kernel.spectrum() is not None:
        return RandomFourier(kernel, 1, form="phase")
    if kernel.laplace() is not None:
        return RandomLaplace(kernel, 1, sampling="plain")
    if kernel.series() is not None:
        return RandomMaclaurin(kernel, 1, p=p)
    if isinstance(kernel, Compose):
        return Compositional(kernel, 1, p=p)
    profile = kernel.profile()
    if profile is not None:
        return SampledSignature(kernel, d if profile.name == "root" else 5 * d)
    raise who_lacks(kernel, "map of its own for the factors", "pass inner=, the recipe of any map of it")


class DrawnCompositional(Drawn):
    """Degrees, and one wide draw of the inner map whose columns are the factors."""

    def __init__(self, recipe: Compositional, d: int, seed: Seed):
        super().__init__(recipe, d, seed, recipe.n_features)
        assert isinstance(recipe.kernel, Compose) and isinstance(recipe.kernel.outer, DotKernel)
        blocks = range(0, recipe.n_features, BLOCK)
        degrees = np.concatenate(
            [
                seed.stream("degrees", j).geometric(1.0 / recipe.p, min(BLOCK, recipe.n_features - start))
                for j, start in enumerate(blocks)
            ]
        )
        total = max(1, int(degrees.sum()))
        inner = recipe.settled("inner").sized(total)._draw(d, seed.child("inner"))
        self.inner, self.scale = inner, math.sqrt(total)
        a = recipe.kernel.outer.series().coefficients(int(degrees.max()) + 1)
        weights = np.sqrt(a[degrees] / (geometric_law(degrees, recipe.p) * recipe.n_features))
        self.order, self.levels = by_degree(degrees)
        self.start = (np.cumsum(degrees) - degrees)[self.order]
        self.constant = frozen(np.where(degrees == 0, weights, 1.0)[self.order])
        self.roots = frozen(per_factor(weights, degrees)[self.order] * self.scale)

    def _fill(self, X: Matrix, out: Float) -> None:
        factors = np.empty((X.shape[0], self.inner.width), dtype=out.dtype)
        self.inner.fill(X, factors)
        product = np.empty(out.shape, dtype=out.dtype)
        product[:] = self.constant
        for level, count in enumerate(self.levels):
            product[:, :count] *= factors[:, self.start[:count] + level] * self.roots[:count].astype(out.dtype)
        out[:, self.order] = product
