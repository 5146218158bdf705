"""Kernels on histograms: additive ones (homogeneous on x ≥ 0), skewed ones, and exponentiated χ²."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bochner.arrays import NON_NEGATIVE, Domain, Float64, Matrix, Rows, dense, is_sparse, spread
from bochner.errors import DataError
from bochner.kernels.base import Kernel, bandwidth, number
from bochner.kernels.pairwise import absolute_distances, sum_over_columns, upper
from bochner.kernels.profile import Profile
from bochner.kernels.register import register
from bochner.kernels.spectrum import Independent, Spectrum
from bochner.kernels.stationary import Gaussian, threshold

_TINY = float(np.finfo(np.float64).tiny)


def chi2_distance(x: Float64, y: Float64) -> Float64:
    """(x − y)²/(x + y), which is the squared distance in the feature space of the additive χ² kernel."""
    difference, total = x - y, x + y
    return difference * (difference / np.where(total > 0.0, total, 1.0))


def sech(t: Float64) -> Float64:
    """1/cosh(t), without overflow."""
    e = np.exp(-np.abs(t))
    return 2.0 * e / (1.0 + e * e)


class Additive(Kernel):
    """Σⱼ k(xⱼ, yⱼ) with k(cx, cy) = c^degree k(x, y); degree 1 unless asked otherwise.

    The kernel of another degree is (xy)^{(degree−1)/2} times the one of degree 1.
    """

    domain: ClassVar[Domain] = NON_NEGATIVE
    degree: float
    kinked: ClassVar[bool] = False
    short: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", number("degree", self.degree))

    @staticmethod
    @abstractmethod
    def pair(x: Float64, y: Float64) -> Float64:
        """The one-dimensional kernel of degree 1."""

    @staticmethod
    @abstractmethod
    def signature(t: Float64) -> Float64:
        """k(1, eᵗ) e^{−t/2}."""

    @staticmethod
    @abstractmethod
    def density(w: Float64) -> Float64:
        """The spectrum of the signature."""

    @staticmethod
    def periods() -> dict[str, Any]:
        """Default sampling periods of Vedaldi and Zisserman, as VLFeat has them."""
        return {}

    def _pair(self, x: Float64, y: Float64) -> Float64:
        value = self.pair(x, y)
        if self.degree == 1.0:
            return value
        power = 0.5 * (self.degree - 1.0)  # of x and of y: their product may underflow
        return value * (np.where(x > 0.0, x, 1.0) ** power * np.where(y > 0.0, y, 1.0) ** power)

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return sum_over_columns(self._pair, X, Y)

    def _diag(self, X: Matrix) -> Float64:
        powered = X.power(self.degree) if is_sparse(X) else X**self.degree
        return np.asarray(powered.sum(axis=1), dtype=np.float64).ravel()

    def profile(self) -> Profile:
        return Profile(self._pair, self.degree, self.signature, self.density, self.periods(), self.kinked, self.short)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls()
        yield cls(degree=0.5)  # type: ignore[call-arg]


@register
@dataclass(frozen=True, repr=False)
class Hellinger(Additive):
    """Σ √(xy); the map √x is exact."""

    degree: float = 1.0
    short: ClassVar[str] = "root"

    @staticmethod
    def pair(x: Float64, y: Float64) -> Float64:
        return np.sqrt(x) * np.sqrt(y)

    @staticmethod
    def signature(t: Float64) -> Float64:
        return np.ones_like(t)

    @staticmethod
    def density(w: Float64) -> Float64:
        return np.where(w == 0.0, np.inf, 0.0)


@register
@dataclass(frozen=True, repr=False)
class Chi2(Additive):
    """Σ 2xy/(x + y), with 0/0 = 0; for rows that sum to one it is 1 − ½ Σ (x − y)²/(x + y)."""

    degree: float = 1.0
    short: ClassVar[str] = "chi2"

    @staticmethod
    def pair(x: Float64, y: Float64) -> Float64:
        high, low = np.maximum(x, y), np.minimum(x, y)  # whose product may underflow
        return low * (2.0 * high / np.where(high > 0.0, high + low, 1.0))

    @staticmethod
    def signature(t: Float64) -> Float64:
        return sech(0.5 * t)

    @staticmethod
    def density(w: Float64) -> Float64:
        return sech(np.pi * w)

    @staticmethod
    def periods() -> dict[str, Any]:
        return {
            "uniform": lambda r: 5.86 * math.sqrt(r) + 3.65,
            "rect": lambda r: 8.80 * math.sqrt(r + 4.44) - 12.6,
        }

    def _distance2(self, X: Matrix, Y: Matrix) -> Float64:
        return sum_over_columns(chi2_distance, X, Y) if self.degree == 1.0 else super()._distance2(X, Y)


@register
@dataclass(frozen=True, repr=False)
class Intersection(Additive):
    """Σ min(x, y)."""

    degree: float = 1.0
    kinked: ClassVar[bool] = True

    @staticmethod
    def pair(x: Float64, y: Float64) -> Float64:
        return np.minimum(x, y)

    @staticmethod
    def signature(t: Float64) -> Float64:
        return np.exp(-0.5 * np.abs(t))

    @staticmethod
    def density(w: Float64) -> Float64:
        return 2.0 / (np.pi * (1.0 + 4.0 * w * w))

    @staticmethod
    def periods() -> dict[str, Any]:
        return {
            "uniform": lambda r: 2.38 * math.log(r + 0.8) + 5.6,
            "rect": lambda r: 2.0 * math.log(r + 0.99) + 3.52,
        }


@register
@dataclass(frozen=True, repr=False)
class JensenShannon(Additive):
    """Σ x/2 · log₂((x + y)/x) + y/2 · log₂((x + y)/y), with 0 log 0 = 0."""

    degree: float = 1.0

    @staticmethod
    def pair(x: Float64, y: Float64) -> Float64:
        # By the ratio of the smaller entry to the larger, which cannot overflow; zero where an entry is.
        high, low = np.maximum(x, y), np.minimum(x, y)
        ratio = low / np.where(high > 0.0, high, 1.0)
        tail = np.log1p(ratio)
        total: Float64 = high * tail + low * (tail - np.log(np.maximum(ratio, _TINY)))
        return total / (2.0 * math.log(2.0))

    @staticmethod
    def signature(t: Float64) -> Float64:
        a = np.minimum(np.abs(t), 700.0)  # even in t; log1p(eᵃ) = a + log1p(e⁻ᵃ) keeps the second term finite
        tail = np.log1p(np.exp(-a))
        total: Float64 = np.exp(0.5 * a) * tail + np.exp(-0.5 * a) * (a + tail)
        return total / (2.0 * math.log(2.0))

    @staticmethod
    def density(w: Float64) -> Float64:
        return 2.0 * sech(np.pi * w) / (math.log(4.0) * (1.0 + 4.0 * w * w))

    @staticmethod
    def periods() -> dict[str, Any]:
        return {
            "uniform": lambda r: 6.64 * math.sqrt(r) + 7.24,
            "rect": lambda r: 9.63 * math.sqrt(r + 1.0) - 2.93,
        }


@register
@dataclass(frozen=True, repr=False)
class ExpChi2(Kernel):
    """exp(−gamma Σ (x − y)²/(x + y)): a Gaussian over the additive χ² kernel.

    "mean" sets gamma to 1/mean of the distance, "median" to 1/(2 median).
    """

    gamma: Any = "mean"
    domain: ClassVar[Domain] = NON_NEGATIVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", bandwidth("gamma", self.gamma, ("median", "mean")))
        if isinstance(self.gamma, tuple):  # a scale for each column would not be a function of the distance
            number("gamma", self.gamma)

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return np.asarray(np.exp(-self.settled("gamma") * sum_over_columns(chi2_distance, X, Y)))

    def _diag(self, X: Matrix) -> Float64:
        return np.ones(X.shape[0])

    def _resolved(self, X: Matrix) -> Kernel:
        if not isinstance(self.gamma, str):
            return self
        outer = Gaussian(self.gamma).resolved_by_distance(upper(sum_over_columns(chi2_distance, X, X)))
        return replace(self, gamma=outer.gamma)  # type: ignore[attr-defined]

    def radial(self) -> tuple[Kernel, Kernel]:
        return Gaussian(self.settled("gamma")), Chi2()

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.7)


class Skewed(Kernel):
    """Shift-invariant kernels of log(x + skew), for x > −skew.

    skew="median" puts the median kernel value of a sample at e^(−½), as the median rule of the
    Gaussian does; a fixed small skew in many dimensions drives every value to zero.
    """

    skew: float | str

    def __post_init__(self) -> None:
        value = bandwidth("skew", self.skew, ("median",))
        object.__setattr__(self, "skew", value if isinstance(value, str) else number("skew", value))

    def check(self, rows: Rows) -> None:
        lower = Domain(0.0) if isinstance(self.skew, str) else Domain(-self.skew, open=True)
        lower.require(rows, self._who())

    def _log(self, X: Matrix) -> Float64:
        return np.asarray(np.log(dense(X) + self.settled("skew")))

    def _diag(self, X: Matrix) -> Float64:
        return np.ones(X.shape[0])

    def _resolved(self, X: Matrix) -> Kernel:
        if self.skew != "median":
            return self
        few = spread(X, 150)  # for each of some thirty Grams; 11,175 pairs settle a median well
        if few.shape[0] < 2:
            raise DataError("the rule 'median' compares pairs of rows and needs at least two")

        def middle(skew: float) -> float:
            kernel = replace(self, skew=skew)  # type: ignore[type-var]
            return float(np.median(upper(kernel._gram(few, few))))

        # Values increase with the skew.  In few columns even a skew of zero may leave them above the mark:
        # then it only has to be small against the data.
        least = 1e-3 * float(few.sum()) / max(1, few.shape[0] * few.shape[1])
        skew = max(least, math.exp(threshold(lambda logarithm: middle(math.exp(logarithm)) < math.exp(-0.5))))
        if middle(skew) > 1.0 - 1e-9:
            raise DataError("the rule 'median' finds most rows of the sample equal; give the parameter as a number")
        return replace(self, skew=skew)  # type: ignore[type-var]


@register
@dataclass(frozen=True, repr=False)
class SkewedChi2(Skewed):
    """∏ 2 √((x + ε)(y + ε)) / (x + y + 2ε), ε = skew."""

    skew: float | str = "median"

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        def log_cosh(x: Float64, y: Float64) -> Float64:
            return np.log(np.cosh(np.minimum(0.5 * np.abs(x - y), 700.0)))

        return np.exp(-sum_over_columns(log_cosh, self._log(X), self._log(Y)))

    def spectrum(self) -> Spectrum:
        return Independent(1.0, law="sech", shift=self.settled("skew"))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.5)


@register
@dataclass(frozen=True, repr=False)
class SkewedIntersection(Skewed):
    """∏ min(√(a/b), √(b/a)) with a = x + ε, b = y + ε, ε = skew: exp(−½ ‖log a − log b‖₁)."""

    skew: float | str = "median"

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return np.exp(-0.5 * absolute_distances(self._log(X), self._log(Y)))

    def spectrum(self) -> Spectrum:
        return Independent(0.5, law="cauchy", shift=self.settled("skew"))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.5)
