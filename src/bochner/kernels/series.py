"""Maclaurin series f(t) = Σ aₙ tⁿ with aₙ ≥ 0: the dot-product kernels (Schoenberg)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bochner.arrays import Float64
from bochner.errors import KernelError

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Series:
    """f, its first coefficients, and its radius of convergence.

    ``terms(count, reach)`` gives a₀ … a_{count−1}, trusted for |t| ≤ reach; closed forms ignore reach.
    """

    function: Callable[[Float64], Float64]
    terms: Callable[[int, float], Float64]
    radius: float = math.inf

    def coefficients(self, count: int, reach: float = 1.0) -> Float64:
        """a₀ … a_{count−1}."""
        return self.terms(count, reach)

    def significant(self, reach: float, tolerance: float = 1e-12, most: int = 512) -> Float64:
        """Coefficients up to the degree whose tail at ``reach`` falls below tolerance · f(reach)."""
        if reach >= self.radius:
            raise KernelError(
                f"the series converges for |<x,y>| < {self.radius:g}, and the data reach {reach:g}; "
                "scale the kernel (scale=…) or the data down"
            )
        a = self.coefficients(most, reach)
        with np.errstate(over="ignore", invalid="ignore"):
            mass = a * np.power(max(reach, 1e-300), np.arange(most))
        mass = np.where(np.isfinite(mass), mass, 0.0)
        tail = np.cumsum(mass[::-1])[::-1]
        needed = np.flatnonzero(tail > tolerance * tail[0])
        return a[: (int(needed[-1]) + 1 if needed.size else 1)]

    def scaled(self, factor: float) -> Series:
        """The series of factor · f."""
        return Series(lambda t: factor * self.function(t), lambda n, r: factor * self.terms(n, r), self.radius)

    def __add__(self, other: Series) -> Series:
        return Series(
            lambda t: self.function(t) + other.function(t),
            lambda n, r: self.terms(n, r) + other.terms(n, r),
            min(self.radius, other.radius),
        )

    def __mul__(self, other: Series) -> Series:
        return Series(
            lambda t: self.function(t) * other.function(t),
            lambda n, r: np.convolve(self.terms(n, r), other.terms(n, r))[:n],
            min(self.radius, other.radius),
        )


def polynomial(coefficients: Float64, radius: float = math.inf) -> Series:
    """The series of given coefficients; beyond them all are zero."""
    a = np.asarray(coefficients, dtype=np.float64)

    def terms(count: int, reach: float) -> Float64:
        out = np.zeros(count)
        out[: min(count, len(a))] = a[:count]
        return out

    return Series(lambda t: horner(a, t), terms, radius)


def horner(a: Float64, t: Float64) -> Float64:
    """Σ aₙ tⁿ, from the highest degree down."""
    out = np.zeros_like(np.asarray(t, dtype=np.result_type(t, np.float64)))
    for coefficient in a[::-1]:
        out = out * t + coefficient
    return out


def taylor(function: Callable[[Float64], Float64], count: int, reach: float, radius: float = math.inf) -> Float64:
    """Maclaurin coefficients by Cauchy's integral on a circle |z| = ρ beyond the reach.

    aₙ = Re fft(f(ρe^{iθ}))ₙ / (Mρⁿ); what lies below 16ε·max|f|/ρⁿ is rounding and becomes zero;
    a coefficient below minus that is refused, naming its degree.
    """
    if reach >= radius:
        raise KernelError(
            f"the series converges for |<x,y>| < {radius:g}, and it is wanted up to {reach:g}; "
            "scale the kernel (scale=…) or the data down"
        )
    rho = 2.0 * reach if math.isinf(radius) else math.sqrt(reach * radius)
    samples = 1024
    if math.isfinite(radius):  # aliasing decays like (ρ/radius)^samples
        samples = 1 << max(10, math.ceil(math.log2(40.0 / -math.log(rho / radius))))
    samples = max(samples, 1 << (2 * count - 1).bit_length())
    # A rotation off the real axis is not needed: conjugate symmetry keeps the result real.
    circle = rho * np.exp(2j * np.pi * np.arange(samples) / samples)
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(circle), dtype=np.complex128)
    except (TypeError, ValueError) as error:
        raise KernelError(
            f"the function must accept complex NumPy arrays, to find its series ({error}); "
            "write it with NumPy functions or give coefficients=[…]"
        ) from None
    if values.shape != circle.shape or not np.isfinite(values).all():
        raise KernelError(
            f"the function is not finite on the circle |t| = {rho:g}; give its radius of convergence (radius=…)"
        )
    scaled = np.fft.fft(values).real[:count] / samples
    noise = 16.0 * EPS * float(np.abs(values).max())
    negative = np.flatnonzero(scaled < -noise)
    if negative.size:
        n = int(negative[0])
        raise KernelError(
            f"the function is not a positive definite dot-product kernel: its Maclaurin coefficient of degree {n} "
            f"is {scaled[n] / rho**n:.6g} (all must be ≥ 0)"
        )
    return np.where(scaled > noise, scaled, 0.0) / rho ** np.arange(count)


def from_function(function: Callable[[Float64], Float64], radius: float = math.inf) -> Series:
    """The series of any function with non-negative coefficients."""
    return Series(function, lambda count, reach: taylor(function, count, reach, radius), radius)


def composed(outer: Series, inner: Series) -> Series:
    """outer(inner(t)); its radius is where inner leaves the radius of outer."""
    radius = inner.radius
    if math.isfinite(outer.radius):
        radius = min(radius, _preimage(inner, outer.radius))
    return from_function(lambda t: outer.function(inner.function(t)), radius)


def _preimage(series: Series, value: float) -> float:
    """The t ≥ 0 at which an increasing series reaches a value."""
    low, high = 0.0, 1.0 if math.isinf(series.radius) else series.radius * (1 - 1e-12)
    if math.isinf(series.radius):
        while float(series.function(np.float64(high))) < value and high < 1e12:
            high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(series.function(np.float64(middle))) < value else (low, middle)
    return low
