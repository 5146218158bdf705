"""Shift-invariant kernels: functions of the (scaled) difference of two rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import special

from bochner.arrays import Float64, Matrix, Rows, is_sparse
from bochner.errors import DataError, KernelError
from bochner.kernels.base import Kernel, bandwidth, number
from bochner.kernels.pairwise import absolute_distances, squared_distances, upper
from bochner.kernels.register import register
from bochner.kernels.spectrum import Independent, Radial, Scale, Spectrum

RULES = ("scale", "median", "mean")


def typical(values: Float64, rule: str) -> float:
    """The median or mean of pairwise values; the mean where the median is zero."""
    if values.size == 0:
        raise DataError(f"the rule {rule!r} compares pairs of rows and needs at least two")
    middle = float(np.median(values)) if rule == "median" else 0.0
    middle = middle or float(values.mean())
    if middle <= 0.0:
        raise DataError(f"the rule {rule!r} finds all sampled rows equal; give the parameter as a number")
    return middle


def threshold(before: Callable[[float], bool]) -> float:
    """The point of [−60, 60] at which a monotone property stops to hold, by bisection."""
    low, high = -60.0, 60.0
    while high - low > 1e-7:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if before(middle) else (low, middle)
    return 0.5 * (low + high)


def total_variance(X: Matrix) -> float:
    """d · var(X) over all entries, as scikit-learn's gamma="scale" has it."""
    n, d = X.shape
    entries = X.data if is_sparse(X) else X
    mean = float(entries.sum()) / max(1, n * d)
    squares = float(((entries - mean) ** 2).sum()) + (n * d - entries.size) * mean * mean
    if squares <= 0.0:
        raise DataError("the rule 'scale' finds all entries of the sample equal; give the parameter as a number")
    return float(squares / n)


def as_scale(value: Any) -> Scale:
    """A number, or one for each column."""
    array = np.asarray(value, dtype=np.float64)
    return tuple(array.tolist()) if array.ndim else float(array)


class Stationary(Kernel):
    """K = f(‖s∘(x − y)‖²) with one factor s for each column."""

    parameter: ClassVar[str] = "gamma"

    @abstractmethod
    def factors(self) -> Scale:
        """What multiplies the columns, so that the kernel is a fixed function of the distance."""

    @abstractmethod
    def of_squared(self, squared: Float64) -> Float64:
        """The kernel as a function of the scaled squared distance; may overwrite its argument."""

    @abstractmethod
    def from_distance(self, rule: str, squared: Float64) -> float:
        """The parameter that a rule gives for these squared pairwise distances."""

    def from_scale(self, variance: float) -> float:
        """The parameter that the rule "scale" gives for the total variance."""
        return 1.0 / variance

    def __post_init__(self) -> None:
        value = bandwidth(self.parameter, getattr(self, self.parameter), RULES)
        object.__setattr__(self, self.parameter, value)

    def _scaled(self, X: Matrix) -> Matrix:
        s = np.asarray(self.factors(), dtype=np.float64)
        return X.multiply(s).tocsr() if is_sparse(X) and s.ndim else X * s

    def check(self, rows: Rows) -> None:
        value = getattr(self, self.parameter)
        if isinstance(value, tuple) and len(value) != rows.values.shape[1]:
            raise DataError(
                f"{self._who()} has {len(value)} values of {self.parameter}, the rows have "
                f"{rows.values.shape[1]} columns"
            )

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        left = self._scaled(X)
        return self.of_squared(squared_distances(left, left if Y is X else self._scaled(Y)))

    def _diag(self, X: Matrix) -> Float64:
        return np.ones(X.shape[0])

    def _resolved(self, X: Matrix) -> Kernel:
        rule = getattr(self, self.parameter)
        if not isinstance(rule, str):
            return self
        if rule == "scale":
            return replace(self, **{self.parameter: self.from_scale(total_variance(X))})  # type: ignore[type-var]
        return self.resolved_by_distance(upper(squared_distances(X, X)))

    def resolved_by_distance(self, squared: Float64) -> Kernel:
        """The kernel with its parameter read from squared pairwise distances."""
        rule = getattr(self, self.parameter)
        if rule == "scale":
            raise KernelError("a kernel over another kernel has no rule 'scale'; use 'median' or 'mean'")
        return replace(self, **{self.parameter: self.from_distance(rule, squared)})  # type: ignore[type-var]

    def over(self, inner: Kernel) -> Kernel:
        """This radial kernel of the distance in the feature space of another kernel."""
        from bochner.kernels import nested

        return nested.Over(self, inner)


@register
@dataclass(frozen=True, repr=False)
class Gaussian(Stationary):
    """exp(−gamma ‖x − y‖²), with one gamma or one for each column (Σ gammaⱼ (xⱼ − yⱼ)²).

    Left to the data: "median" is 1/(2 median ‖x − y‖²), "mean" is 1/mean ‖x − y‖², "scale" is
    1/(d · var), as in scikit-learn.
    """

    gamma: Any = "median"

    def factors(self) -> Scale:
        return as_scale(np.sqrt(self.settled("gamma")))

    def of_squared(self, squared: Float64) -> Float64:
        np.negative(squared, out=squared)
        return np.exp(squared, out=squared)

    def from_distance(self, rule: str, squared: Float64) -> float:
        return 1.0 / ((2.0 if rule == "median" else 1.0) * typical(squared, rule))

    def spectrum(self) -> Spectrum:
        return Radial(as_scale(np.sqrt(2.0) * np.asarray(self.factors())))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.5)


@register
@dataclass(frozen=True, repr=False)
class Laplacian(Stationary):
    """exp(−gamma ‖x − y‖₁); "median" and "mean" are 1/(typical ‖x − y‖₁), "scale" is 1/√(d · var)."""

    gamma: Any = "median"

    def factors(self) -> Scale:
        return as_scale(self.settled("gamma"))

    def of_squared(self, squared: Float64) -> Float64:
        raise KernelError(
            "the Laplacian kernel is not a function of the Euclidean distance; for exp(−γ‖φ(x) − φ(y)‖) use "
            "Matern(0.5, 1/γ).over(…)"
        )

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return np.exp(-absolute_distances(self._scaled(X), self._scaled(Y)))

    def _resolved(self, X: Matrix) -> Kernel:
        if self.gamma in ("median", "mean"):
            return replace(self, gamma=1.0 / typical(upper(absolute_distances(X, X)), self.gamma))
        return super()._resolved(X)

    def from_distance(self, rule: str, squared: Float64) -> float:
        return float(self.of_squared(squared)[0])

    def from_scale(self, variance: float) -> float:
        return 1.0 / float(np.sqrt(variance))

    def spectrum(self) -> Spectrum:
        return Independent(self.factors())

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.5)


@register
@dataclass(frozen=True, repr=False)
class Matern(Stationary):
    """2^(1−ν)/Γ(ν) z^ν K_ν(z) with z = √(2ν) ‖x − y‖ / lengthscale; one lengthscale or one for each column."""

    nu: float
    lengthscale: Any = "median"
    parameter: ClassVar[str] = "lengthscale"

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", number("nu", self.nu))
        if self.nu > 100.0:  # Bessel functions of larger order overflow
            raise KernelError(f"nu must be at most 100, got {self.nu:g}; the limit of large nu is the Gaussian kernel")
        super().__post_init__()

    def factors(self) -> Scale:
        return as_scale(1.0 / np.asarray(self.settled("lengthscale")))

    def of_squared(self, squared: Float64) -> Float64:
        z = np.minimum(np.sqrt(2.0 * self.nu * squared), 1e4)  # K is 0 there, and polynomials stay finite
        if self.nu == 0.5:
            return np.exp(-z)
        if self.nu == 1.5:
            return (1.0 + z) * np.exp(-z)
        if self.nu == 2.5:
            return (1.0 + z + z * z / 3.0) * np.exp(-z)
        bessel = special.kve(self.nu, z)
        with np.errstate(all="ignore"):  # K_ν overflows for z → 0, where the leading terms are exact
            value = np.exp(self.nu * np.log(0.5 * z) - special.gammaln(self.nu) + np.log(2.0) + np.log(bessel) - z)
        near = 1.0 - z * z / (4.0 * self.nu - 4.0) if self.nu > 2.0 else 1.0
        return np.minimum(np.where(np.isfinite(bessel), value, near), 1.0)

    def from_distance(self, rule: str, squared: Float64) -> float:
        return float(np.sqrt(typical(squared, rule)))

    def from_scale(self, variance: float) -> float:
        return float(np.sqrt(variance))

    def spectrum(self) -> Spectrum:
        return Radial(self.factors(), mixing="inverse", shape=self.nu)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        for nu in (0.5, 1.5, 2.5, 3.2):
            yield cls(nu, 1.5)
        yield cls(1.5, 0.7)


@register
@dataclass(frozen=True, repr=False)
class Cauchy(Stationary):
    """1/(1 + gamma ‖x − y‖²); "median" and "mean" are 1/(typical ‖x − y‖²)."""

    gamma: Any = "median"

    def factors(self) -> Scale:
        return as_scale(np.sqrt(self.settled("gamma")))

    def of_squared(self, squared: Float64) -> Float64:
        return 1.0 / (1.0 + squared)

    def from_distance(self, rule: str, squared: Float64) -> float:
        return 1.0 / typical(squared, rule)

    def spectrum(self) -> Spectrum:
        return Radial(as_scale(np.sqrt(2.0) * np.asarray(self.factors())), mixing="gamma", shape=1.0)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.5)


@register
@dataclass(frozen=True, repr=False)
class RationalQuadratic(Stationary):
    """(1 + ‖x − y‖² / (2 alpha lengthscale²))^(−alpha)."""

    alpha: float
    lengthscale: Any = "median"
    parameter: ClassVar[str] = "lengthscale"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number("alpha", self.alpha))
        super().__post_init__()

    def factors(self) -> Scale:
        return as_scale(1.0 / np.asarray(self.settled("lengthscale")))

    def of_squared(self, squared: Float64) -> Float64:
        return np.exp(-self.alpha * np.log1p(squared / (2.0 * self.alpha)))

    def from_distance(self, rule: str, squared: Float64) -> float:
        return float(np.sqrt(typical(squared, rule)))

    def from_scale(self, variance: float) -> float:
        return float(np.sqrt(variance))

    def spectrum(self) -> Spectrum:
        return Radial(self.factors(), mixing="gamma", shape=self.alpha)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(2.0, 1.2)
