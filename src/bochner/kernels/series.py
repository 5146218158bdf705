"""Maclaurin series f(t) = Σ aₙ tⁿ with aₙ ≥ 0: the dot-product kernels (Schoenberg)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float64
from bochner.errors import KernelError

EPS = float(np.finfo(np.float64).eps)
_MOST_SAMPLES = 1 << 20
_LONGEST = 4096  # degrees of a polynomial


@dataclass(frozen=True)
class Series:
    """f, its first coefficients, and its radius of convergence.

    ``terms(count, reach)`` gives a₀ … a_{count−1}, trusted for |t| ≤ reach; closed forms ignore reach.
    A polynomial says how many coefficients it has (``length``).
    """

    function: Callable[[Float64], Float64]
    terms: Callable[[int, float], Float64]
    radius: float = math.inf
    length: int | None = None

    def coefficients(self, count: int, reach: float = 1.0) -> Float64:
        """a₀ … a_{count−1}."""
        return self.terms(count, reach)

    def at(self, t: float) -> float:
        """f(t)."""
        return float(self.function(np.full(1, t))[0])

    def significant(self, reach: float, tolerance: float = 1e-12, most: int = 512) -> Float64:
        """Coefficients up to where their tail at ``reach`` is below tolerance · f(reach).

        At most ``most``, and of a polynomial as many as it has.
        """
        if reach >= self.radius:
            raise KernelError(
                f"the series converges for |<x,y>| < {self.radius:g}, and the data reach {reach:g}; "
                "scale the kernel (scale=…) or the data down"
            )
        a = self.coefficients(most if self.length is None else max(1, min(self.length, _LONGEST)), reach)
        present = np.isfinite(a) & (a > 0.0)
        mass = np.zeros(len(a))
        if present.any():  # in logarithms: high powers overflow
            log = np.log(a[present]) + np.flatnonzero(present) * math.log(max(reach, 1e-300))
            mass[present] = np.exp(log - log.max())
        tail = np.cumsum(mass[::-1])[::-1]
        needed = np.flatnonzero(tail > tolerance * tail[0])
        return a[: (int(needed[-1]) + 1 if needed.size else 1)]

    def scaled(self, factor: float) -> Series:
        """The series of factor · f."""
        return replace(self, function=lambda t: factor * self.function(t), terms=lambda n, r: factor * self.terms(n, r))

    def __add__(self, other: Series) -> Series:
        return Series(
            lambda t: self.function(t) + other.function(t),
            lambda n, r: self.terms(n, r) + other.terms(n, r),
            min(self.radius, other.radius),
            _length(max, self, other),
        )

    def __mul__(self, other: Series) -> Series:
        return Series(
            lambda t: self.function(t) * other.function(t),
            lambda n, r: np.convolve(self.terms(n, r), other.terms(n, r))[:n],
            min(self.radius, other.radius),
            _length(lambda a, b: a + b - 1, self, other),
        )


def _length(combine: Callable[[int, int], int], first: Series, second: Series) -> int | None:
    return None if first.length is None or second.length is None else combine(first.length, second.length)


def polynomial(coefficients: Float64, radius: float = math.inf) -> Series:
    """The series of given coefficients; beyond them all are zero."""
    a = np.asarray(coefficients, dtype=np.float64)

    def terms(count: int, reach: float) -> Float64:
        out = np.zeros(count)
        out[: min(count, len(a))] = a[:count]
        return out

    return Series(lambda t: horner(a, t), terms, radius, len(a))


def powers(base: float, count: int) -> Float64:
    """1, base, base², …; infinite where they overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(np.power(base, np.arange(count, dtype=np.float64)))


def horner(a: Float64, t: Float64) -> Float64:
    """Σ aₙ tⁿ, from the highest degree down."""
    out: Float64 = np.zeros(np.shape(t), dtype=np.result_type(t, np.float64))
    for coefficient in a[::-1]:
        out = out * t + coefficient
    return out


def taylor(function: Callable[[Float64], Float64], count: int, reach: float, radius: float = math.inf) -> Float64:
    """Maclaurin coefficients by Cauchy's integral, aₙ = Re fft(f(ρe^{iθ}))ₙ / (Mρⁿ), on several circles.

    Each coefficient comes from the circle that gives it least noise; circles around a singularity show
    by their terms of negative degree and are left out.  What lies below the noise becomes zero; a
    coefficient below minus the noise is refused, naming its degree.
    """
    if reach >= radius:
        raise KernelError(
            f"the series converges for |<x,y>| < {radius:g}, and it is wanted up to {reach:g}; "
            "scale the kernel (scale=…) or the data down"
        )
    reach = reach or min(1.0, 0.5 * radius)
    a, noise, total = np.zeros(count), np.full(count, math.inf), math.nan
    for rho, samples in _circles(count, reach, radius):
        values = _on_circle(function, rho, samples)
        if not np.isfinite(values).all():
            if rho > reach:
                continue
            raise KernelError(
                f"the function is not finite on the circle |t| = {rho:g}; give its radius of convergence (radius=…)"
            )
        if rho == reach:
            total = float(values[0].real)
        found, half = np.fft.fft(values).real / samples, samples // 2
        largest, stray = float(np.abs(values).max()), float(np.abs(found[half:]).max())
        if stray > 1e-9 * largest:
            continue
        error = max(16.0 * EPS * largest, 4.0 * stray)
        if half > len(a):
            a = np.pad(a, (0, half - len(a)))
            noise = np.pad(noise, (0, half - len(noise)), constant_values=math.inf)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            power = rho ** np.arange(half)
            better = np.flatnonzero(error / power < noise[:half])
            a[better], noise[better] = found[better] / power[better], error / power[better]
    negative = np.flatnonzero(a < -noise)
    if negative.size:
        n = int(negative[0])
        raise KernelError(
            f"the function is not a positive definite dot-product kernel: its Maclaurin coefficient of degree {n} "
            f"is {a[n]:.6g} (all must be ≥ 0)"
        )
    a = np.where(a > noise, a, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        if not math.isclose(float(horner(a, np.full(1, reach))[0]), total, rel_tol=1e-9):
            raise KernelError(
                f"the Maclaurin series of the function does not sum to its value {total:g} at t = {reach:g}: it has a "
                "singularity nearby (give its radius of convergence, radius=…) or is not analytic"
            )
    return a[:count]


def _circles(count: int, reach: float, radius: float) -> Iterator[tuple[float, int]]:
    """Radii ρ and numbers of samples, so that aliasing, which decays like (ρ/radius)^samples, is negligible."""
    if math.isinf(radius):
        outer = [reach * 2.0 ** (0.5 * k) for k in range(10, 0, -1)]
    else:
        outer = [radius * (reach / radius) ** share for share in (0.125, 0.25, 0.5)]
    least = 1 << max(12, (2 * count - 1).bit_length())
    for rho in [*outer, *(reach * 2.0 ** (-0.5 * k) for k in range(17))]:
        samples = least
        if math.isfinite(radius):
            samples = max(samples, 1 << math.ceil(math.log2(40.0 / -math.log(rho / radius))))
        if samples <= _MOST_SAMPLES:
            yield rho, samples
        elif rho <= reach:
            raise KernelError(
                f"the data reach |<x,y>| = {reach:g}, too close to the radius of convergence {radius:g}; "
                "scale the kernel (scale=…) or the data down"
            )


def _on_circle(function: Callable[[Float64], Float64], rho: float, samples: int) -> NDArray[np.complex128]:
    circle: Any = rho * np.exp(2j * np.pi * np.arange(samples) / samples)
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(circle), dtype=np.complex128)
    except (TypeError, ValueError, ArithmeticError, AttributeError, np.exceptions.ComplexWarning) as error:
        raise KernelError(
            f"the function must accept complex NumPy arrays, to find its series ({error}); "
            "write it with NumPy functions or give coefficients=[…]"
        ) from None
    if values.shape != circle.shape:
        raise KernelError(
            f"the function must act on every entry, and it turns shape {circle.shape} into {values.shape}"
        )
    return values


def from_function(function: Callable[[Float64], Float64], radius: float = math.inf) -> Series:
    """The series of any function with non-negative coefficients."""
    return Series(function, lambda count, reach: taylor(function, count, reach, radius), radius)


def composed(outer: Series, inner: Series) -> Series:
    """outer(inner(t)); its radius is where inner leaves the radius of outer."""
    radius = inner.radius
    if math.isfinite(outer.radius):
        radius = min(radius, _preimage(inner, outer.radius))
    series = from_function(lambda t: outer.function(inner.function(t)), radius)
    return replace(series, length=_length(lambda a, b: (a - 1) * (b - 1) + 1, outer, inner))


def _preimage(series: Series, value: float) -> float:
    """The t ≥ 0 at which an increasing series reaches a value."""
    low, high = 0.0, 1.0 if math.isinf(series.radius) else series.radius * (1 - 1e-12)
    with np.errstate(over="ignore"):
        if math.isinf(series.radius):
            while series.at(high) < value and high < 1e12:
                high *= 2.0
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if series.at(middle) < value else (low, middle)
    return low
