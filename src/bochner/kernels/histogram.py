"""Kernels on histograms: additive ones (homogeneous on x ≥ 0), skewed ones, and exponentiated χ²."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bochner.arrays import NON_NEGATIVE, Domain, Float64, Matrix, Rows, dense
from bochner.errors import DataError
from bochner.kernels.base import Kernel, bandwidth, number
from bochner.kernels.pairwise import absolute_distances, sum_over_columns, upper
from bochner.kernels.profile import Profile
from bochner.kernels.register import register
from bochner.kernels.spectrum import Independent, Spectrum
from bochner.kernels.stationary import Gaussian


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
        return value if self.degree == 1.0 else np.power(x * y, 0.5 * (self.degree - 1.0), where=value > 0.0, out=np.zeros_like(value)) * value

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return sum_over_columns(self._pair, X, Y)

    def _diag(self, X: Matrix) -> Float64:
        powered = X if self.degree == 1.0 else X.power(self.degree) if hasattr(X, "multiply") else X**self.degree
        return np.asarray(powered.sum(axis=1), dtype=np.float64).ravel()

    def profile(self) -> Profile:
        return Profile(
            self._pair, self.degree, self.signature, self.density, self.periods(), self.kinked, self.short
        )

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
        return np.sqrt(x * y)

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
        total = x + y
        return 2.0 * x * y / np.where(total > 0.0, total, 1.0)

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
        # Both terms vanish where an entry is zero: k(x, 0) = 0 by (x/2) log₂ 1 and 0 log 0.
        safe_x, safe_y = np.where(x > 0.0, x, 1.0), np.where(y > 0.0, y, 1.0)
        both = (x > 0.0) & (y > 0.0)
        value = x * np.log1p(safe_y / safe_x) + y * np.log1p(safe_x / safe_y)
        return np.where(both, value / (2.0 * math.log(2.0)), 0.0)

    @staticmethod
    def signature(t: Float64) -> Float64:
        a = np.abs(t)  # even in t; log1p(eᵃ) = a + log1p(e⁻ᵃ) keeps the second term finite
        tail = np.log1p(np.exp(-a))
        return (np.exp(0.5 * a) * tail + np.exp(-0.5 * a) * (a + tail)) / (2.0 * math.log(2.0))

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
        if isinstance(self.gamma, tuple):
            number("gamma", self.gamma)

    @staticmethod
    def _chi2(x: Float64, y: Float64) -> Float64:
        total = x + y
        return (x - y) ** 2 / np.where(total > 0.0, total, 1.0)

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return np.exp(-self.gamma * sum_over_columns(self._chi2, X, Y))

    def _diag(self, X: Matrix) -> Float64:
        return np.ones(X.shape[0])

    def _resolved(self, X: Matrix) -> Kernel:
        if not isinstance(self.gamma, str):
            return self
        outer = Gaussian(self.gamma).resolved_by_distance(upper(sum_over_columns(self._chi2, X, X)))
        return replace(self, gamma=outer.gamma)  # type: ignore[attr-defined]

    def radial(self) -> tuple[Kernel, Kernel]:
        return Gaussian(self.gamma), Chi2()

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
        return np.log(dense(X) + self.skew)

    def _diag(self, X: Matrix) -> Float64:
        return np.ones(X.shape[0])

    def _resolved(self, X: Matrix) -> Kernel:
        if self.skew != "median":
            return self
        low, high = -60.0, 60.0  # log skew; kernel values increase with it
        for _ in range(60):
            middle = 0.5 * (low + high)
            kernel = replace(self, skew=math.exp(middle))  # type: ignore[type-var]
            low, high = (low, middle) if np.median(upper(kernel._gram(X, X))) > math.exp(-0.5) else (middle, high)
        if low < -59.0 or high > 59.0:
            raise DataError("the rule 'median' finds no skew for this sample (are its rows equal?); give a number")
        return replace(self, skew=math.exp(0.5 * (low + high)))  # type: ignore[type-var]


@register
@dataclass(frozen=True, repr=False)
class SkewedChi2(Skewed):
    """∏ 2 √((x + ε)(y + ε)) / (x + y + 2ε), ε = skew."""

    skew: float | str = "median"

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        logs = sum_over_columns(lambda x, y: np.log(np.cosh(0.5 * np.clip(x - y, -700, 700))), self._log(X), self._log(Y))
        return np.exp(-logs)

    def spectrum(self) -> Spectrum:
        return Independent(1.0, law="sech", shift=float(self.skew))

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
        return Independent(0.5, law="cauchy", shift=float(self.skew))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.5)
