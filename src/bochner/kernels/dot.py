"""Dot-product kernels K(x, y) = f(⟨x, y⟩) with f(t) = Σ aₙ tⁿ, aₙ ≥ 0."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from bochner.arrays import Float64, Matrix, Rows
from bochner.errors import DomainError, KernelError
from bochner.kernels import series as maclaurin
from bochner.kernels.base import Kernel, number, whole
from bochner.kernels.pairwise import products, squared_distances, squared_norms
from bochner.kernels.register import register
from bochner.kernels.series import Series

#: scale / max‖x‖² chosen by scale="norm": above √6, where the variance of random Maclaurin maps with
#: p = 2 is finite even on the diagonal (formulary of the map: c² > pM, M ≤ 3‖x‖⁴).
NORM_MARGIN = 2.5


class DotKernel(Kernel):
    """What the dot-product kernels share."""

    @abstractmethod
    def function(self, t: Float64) -> Float64:
        """f, elementwise."""

    @abstractmethod
    def series(self) -> Series: ...

    def reach(self) -> float:
        """Only ‖x‖² below this is accepted (the radius of convergence, where it is finite)."""
        return self.series().radius

    def check(self, rows: Rows) -> None:
        limit = self.reach()
        if math.isinf(limit):
            return
        squared = squared_norms(rows.values)
        bad = np.flatnonzero(squared >= limit)
        if bad.size:
            raise DomainError(
                f"row {bad[0]} has <x, x> = {squared[bad[0]]:.6g}, but {self._who()} converges only for "
                f"|<x, y>| < {limit:.6g}; scale the rows down or use scale='norm'",
                int(bad[0]),
            )

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return self.function(products(X, Y))

    def _diag(self, X: Matrix) -> Float64:
        return self.function(squared_norms(X))


@register
@dataclass(frozen=True, repr=False)
class Linear(DotKernel):
    """⟨x, y⟩; the exact map is x itself."""

    def function(self, t: Float64) -> Float64:
        return t

    def _distance2(self, X: Matrix, Y: Matrix) -> Float64:
        return squared_distances(X, Y)

    def series(self) -> Series:
        return maclaurin.polynomial(np.array([0.0, 1.0]))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls()


@register
@dataclass(frozen=True, repr=False)
class Homogeneous(DotKernel):
    """⟨x, y⟩^degree."""

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole("degree", self.degree))

    def function(self, t: Float64) -> Float64:
        return t**self.degree

    def series(self) -> Series:
        return maclaurin.polynomial(np.append(np.zeros(self.degree), 1.0))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(3)


@register
@dataclass(frozen=True, repr=False)
class Polynomial(DotKernel):
    """(offset + ⟨x, y⟩)^degree."""

    degree: int
    offset: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole("degree", self.degree))
        object.__setattr__(self, "offset", number("offset", self.offset, strict=False))
        if self.offset > 1.0 and self.degree * math.log(self.offset) > 700.0:
            raise KernelError(
                f"(offset + <x, y>)^degree overflows at <x, y> = 0 for offset {self.offset:g} and degree {self.degree}"
            )

    def function(self, t: Float64) -> Float64:
        return (self.offset + t) ** self.degree

    def series(self) -> Series:
        n = np.arange(self.degree + 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            a = special.binom(self.degree, n) * np.power(self.offset, self.degree - n)
        if not np.isfinite(a).all():  # ∞, or ∞ · 0
            binomial = -special.betaln(self.degree - n + 1.0, n + 1.0) - math.log(self.degree + 1.0)
            with np.errstate(over="ignore"):
                exact = np.exp(binomial + special.xlogy(self.degree - n, self.offset))
            a = np.where(np.isfinite(a), a, exact)
        return replace(maclaurin.polynomial(a), function=self.function)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(3)
        yield cls(2, offset=0.5)


@register
@dataclass(frozen=True, repr=False)
class VovkReal(DotKernel):
    """Vovk's real polynomial 1 + t + … + t^(degree−1), which is (1 − t^degree)/(1 − t) without its 0/0."""

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole("degree", self.degree))

    def function(self, t: Float64) -> Float64:
        return maclaurin.horner(np.ones(self.degree), t)

    def series(self) -> Series:
        return maclaurin.polynomial(np.ones(self.degree))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(4)


def _coefficients(given: Any) -> tuple[float, ...]:
    if isinstance(given, str) or not np.iterable(given):
        raise KernelError(f"coefficients are a list [a0, a1, …], got {given!r}")
    values = []
    for n, a in enumerate(given):
        try:
            values.append(number(f"the Maclaurin coefficient of degree {n}", a, strict=False))
        except KernelError as error:
            raise KernelError(f"{error}; a positive definite dot-product kernel has coefficients ≥ 0") from None
    while values and values[-1] == 0.0:
        values.pop()
    return tuple(values)


def _norm_or_positive(name: str, value: Any) -> float | str:
    return value if isinstance(value, str) and value == "norm" else number(name, value)


def _scale_for(X: Matrix, radius: float) -> float:
    largest = float(squared_norms(X).max(initial=0.0))
    return NORM_MARGIN * largest / (radius if math.isfinite(radius) else 1.0) if largest > 0 else 1.0


@register
@dataclass(frozen=True, repr=False)
class VovkInfinite(DotKernel):
    """Vovk's infinite polynomial 1/(1 − ⟨x, y⟩/scale), for ‖x‖² < scale; "norm" reads scale from the data."""

    scale: float | str = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _norm_or_positive("scale", self.scale))

    def function(self, t: Float64) -> Float64:
        return np.asarray(1.0 / (1.0 - t / self.settled("scale")))

    def series(self) -> Series:
        c = self.settled("scale")
        return Series(self.function, lambda count, reach: maclaurin.powers(1.0 / c, count), radius=c)

    def reach(self) -> float:
        return float(self.settled("scale"))

    def check(self, rows: Rows) -> None:
        if not isinstance(self.scale, str):
            super().check(rows)

    def _resolved(self, X: Matrix) -> Kernel:
        return replace(self, scale=_scale_for(X, 1.0)) if self.scale == "norm" else self

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(4.0)


@register
@dataclass(frozen=True, repr=False)
class Exponential(DotKernel):
    """exp(⟨x, y⟩ / sigma²)."""

    sigma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", number("sigma", self.sigma))

    def function(self, t: Float64) -> Float64:
        return np.exp(t / self.sigma**2)

    def series(self) -> Series:
        def terms(count: int, reach: float) -> Float64:
            n = np.arange(count)
            with np.errstate(over="ignore"):  # beyond any degree that data in reach can use
                return np.asarray(np.exp(-2.0 * n * math.log(self.sigma) - special.gammaln(n + 1.0)))

        return Series(self.function, terms)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls()
        yield cls(sigma=0.8)


@register
@dataclass(frozen=True, repr=False, eq=False)
class DotProduct(DotKernel):
    """f(⟨x, y⟩ / scale) for given Maclaurin coefficients, or for any function that has non-negative ones.

    A function must accept complex NumPy arrays; its coefficients are found by Cauchy's integral and
    trusted for |t| ≤ ``trusted`` (‖x‖² of the data, learnt when a sample is seen).  ``radius`` is the
    radius of convergence of f; ``scale="norm"`` shrinks the data into it (section 3 of Kar & Karnick).

    >>> DotProduct(function=np.cosh).gram([[1.0]], [[0.5]]).round(4).tolist()
    [[1.1276]]
    """

    coefficients: tuple[float, ...] | None = None
    function_: Callable[[Float64], Float64] | None = None
    radius: float = math.inf
    scale: float | str = 1.0
    trusted: float = 1.0
    #: the coefficients stand for a function, and are refused beyond ``trusted``
    truncated: bool = False

    def __init__(
        self,
        coefficients: Any = None,
        function: Callable[[Float64], Float64] | None = None,
        radius: float | None = None,
        scale: float | str = 1.0,
        trusted: float = 1.0,
        truncated: bool = False,
    ):
        if (coefficients is None) == (function is None):
            raise KernelError("DotProduct takes either coefficients=[a0, a1, …] or function=f")
        if coefficients is not None:
            coefficients = _coefficients(coefficients)
        elif not callable(function):
            raise KernelError(f"function must be callable, got {function!r}")
        radius = math.inf if radius is None or radius == math.inf else number("radius", radius)
        # Coefficients that stand for themselves hold everywhere: `trusted` would only tell equal kernels apart.
        trusted = 1.0 if function is None and not truncated else min(number("trusted", trusted), 0.9 * radius)
        for name, value in (
            ("coefficients", coefficients),
            ("function_", function),
            ("radius", radius),
            ("scale", _norm_or_positive("scale", scale)),
            ("trusted", trusted),
            ("truncated", bool(truncated)),
        ):
            object.__setattr__(self, name, value)
        if not self._found():  # a function with a negative coefficient is refused here, not later
            raise KernelError("a dot-product kernel needs at least one positive coefficient")

    def _unit(self) -> Series:
        if self.coefficients is not None:
            return maclaurin.polynomial(np.array(self.coefficients), self.radius)
        assert self.function_ is not None
        return maclaurin.from_function(self.function_, self.radius)

    def function(self, t: Float64) -> Float64:
        return np.asarray(self._unit().function(t / self.settled("scale")))

    def series(self) -> Series:
        c, unit = self.settled("scale"), self._unit()

        def terms(count: int, reach: float) -> Float64:
            a = unit.terms(count, max(reach / c, self.trusted))
            return np.multiply(a, maclaurin.powers(1.0 / c, count), where=a > 0.0, out=np.zeros(count))

        return Series(self.function, terms, unit.radius * c, unit.length)

    def reach(self) -> float:
        limit = min(self.radius, self.trusted * (1.0 + 1e-9)) if self.truncated else self.radius
        return limit * float(self.settled("scale"))

    def check(self, rows: Rows) -> None:
        if not isinstance(self.scale, str):
            super().check(rows)

    def _resolved(self, X: Matrix) -> Kernel:
        scale = _scale_for(X, self.radius) if self.scale == "norm" else self.scale
        seen = float(squared_norms(X).max(initial=0.0)) / float(scale)
        trusted = self.trusted if self.truncated else max(self.trusted, seen)
        return DotProduct(self.coefficients, self.function_, self.radius, scale, trusted, self.truncated)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (*self._found(), self.radius, self.scale, self.trusted, self.truncated or self.function_ is not None)

    def _found(self) -> tuple[float, ...]:
        if self.coefficients is not None:
            return self.coefficients
        return tuple(np.trim_zeros(self._unit().significant(self.trusted, 1e-17), "b").tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DotProduct) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def render(self, text: bool) -> str:
        if self.function_ is None or text:
            shown = [f"coefficients=[{', '.join(map(repr, self._found()))}]"]
        else:
            shown = [f"function={getattr(self.function_, '__name__', '…')}"]
        if math.isfinite(self.radius):
            shown.append(f"radius={self.radius!r}")
        if self.scale != 1.0:
            shown.append(f"scale={self.scale if text else repr(self.scale)}")
        if self.truncated or (text and self.function_ is not None):
            shown += [f"trusted={self.trusted!r}", "truncated=True"]
        return f"{'dot_product' if text else 'DotProduct'}({', '.join(shown)})"

    def to_json(self) -> dict[str, Any]:
        return {
            "kernel": "DotProduct",
            "coefficients": list(self._found()),
            "radius": None if math.isinf(self.radius) else self.radius,
            "scale": self.scale,
            "trusted": self.trusted,
            "truncated": self.truncated or self.function_ is not None,
        }

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls([0.5, 0.0, 1.0, 0.25])
        yield cls(function=np.cosh)
