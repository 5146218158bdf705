"""Kernels made of kernels, as one calculates: sum, product, scale, normalisation, columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bochner.arrays import Float64, Matrix, Rows
from bochner.errors import DataError, KernelError
from bochner.kernels.base import Kernel, number, require_kernels
from bochner.kernels.columns import expanded, is_plain, positions, ranges, selection
from bochner.kernels.dot import DotProduct, Linear, Polynomial
from bochner.kernels.profile import Profile
from bochner.kernels.register import register
from bochner.kernels.series import Series
from bochner.kernels.spectrum import OnColumns, Spectrum, added
from bochner.kernels.stationary import Gaussian, Laplacian, Matern


def as_kernel(value: Any) -> Kernel:
    """A kernel, or a positive number as a constant kernel."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return DotProduct([number("a constant kernel", value)])
    raise KernelError(f"kernels combine with kernels and positive numbers, not with {value!r}")


def add(first: Any, second: Any) -> Kernel:
    """first + second; a number is a constant kernel."""
    return Sum((as_kernel(first), as_kernel(second)))


def multiply(first: Any, second: Any) -> Kernel:
    """first · second; a number scales."""
    if isinstance(first, Kernel) and isinstance(second, Kernel):
        return Product((first, second))
    factor, kernel = (second, first) if isinstance(first, Kernel) else (first, second)
    if isinstance(factor, bool) or not isinstance(factor, (int, float, np.number)):
        raise KernelError(f"kernels combine with kernels and positive numbers, not with {factor!r}")
    return Scale(number("the factor of a kernel", factor), kernel)


def _enclosed(kernel: Kernel, text: bool, loose: tuple[type, ...]) -> str:
    shown = kernel.render(text)
    return f"({shown})" if isinstance(kernel, loose) else shown


@register
@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """k₁ + k₂ + …"""

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        require_kernels("a sum", self.parts, least=2)
        object.__setattr__(self, "parts", _flat(self.parts, Sum))

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return sum((k._gram(X, Y) for k in self.parts[1:]), self.parts[0]._gram(X, Y))

    def _diag(self, X: Matrix) -> Float64:
        return sum((k._diag(X) for k in self.parts[1:]), self.parts[0]._diag(X))

    def _distance2(self, X: Matrix, Y: Matrix) -> Float64:
        return sum((k._distance2(X, Y) for k in self.parts[1:]), self.parts[0]._distance2(X, Y))

    def series(self) -> Series | None:
        found = [k.series() for k in self.parts]
        return None if None in found else _fold(found, lambda a, b: a + b)

    def profile(self) -> Profile | None:
        found = [k.profile() for k in self.parts]
        return None if None in found else _fold(found, lambda a, b: a + b)

    def joined(self, places: Sequence[int]) -> Kernel:
        """The sum of some of the parts."""
        found = tuple(self.parts[i] for i in places)
        return found[0] if len(found) == 1 else Sum(found)

    def render(self, text: bool) -> str:
        return " + ".join(k.render(text) for k in self.parts)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield Gaussian(0.5) + 0.3 * Polynomial(2)
        yield Laplacian(0.4) + Matern(1.5, 1.0) + 0.5


@register
@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """k₁ · k₂ · …"""

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        require_kernels("a product", self.parts, least=2)
        object.__setattr__(self, "parts", _flat(self.parts, Product))

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return math.prod((k._gram(X, Y) for k in self.parts[1:]), start=self.parts[0]._gram(X, Y))

    def _diag(self, X: Matrix) -> Float64:
        return math.prod((k._diag(X) for k in self.parts[1:]), start=self.parts[0]._diag(X))

    def spectrum(self) -> Spectrum | None:
        found = [k.spectrum() for k in self.parts]
        return None if None in found else _fold(found, added)

    def series(self) -> Series | None:
        found = [k.series() for k in self.parts]
        return None if None in found else _fold(found, lambda a, b: a * b)

    def render(self, text: bool) -> str:
        return " * ".join(_enclosed(k, text, (Sum, Scale)) for k in self.parts)

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield Gaussian(0.3) * Matern(1.5, 1.5)
        yield (Gaussian(0.3) + Linear()) * Polynomial(2)


@register
@dataclass(frozen=True, repr=False)
class Scale(Kernel):
    """factor · k with factor > 0."""

    factor: float
    inner: Kernel

    def __post_init__(self) -> None:
        require_kernels("a scaled kernel", (self.inner,))
        factor = number("the factor of a kernel", self.factor)
        if isinstance(self.inner, Scale):
            factor = number("the factor of a kernel", factor * self.inner.factor)
            object.__setattr__(self, "inner", self.inner.inner)
        object.__setattr__(self, "factor", factor)

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return self.factor * self.inner._gram(X, Y)

    def _diag(self, X: Matrix) -> Float64:
        return self.factor * self.inner._diag(X)

    def _distance2(self, X: Matrix, Y: Matrix) -> Float64:
        return self.factor * self.inner._distance2(X, Y)

    def spectrum(self) -> Spectrum | None:
        spectrum = self.inner.spectrum()
        return None if spectrum is None else spectrum.scaled(self.factor)

    def series(self) -> Series | None:
        series = self.inner.series()
        return None if series is None else series.scaled(self.factor)

    def profile(self) -> Profile | None:
        profile = self.inner.profile()
        return None if profile is None else profile.scaled(self.factor)

    def render(self, text: bool) -> str:
        return f"{self.factor!r}*{_enclosed(self.inner, text, (Sum, Product))}"

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield 2.5 * Gaussian(0.5)


@register
@dataclass(frozen=True, repr=False)
class Normalized(Kernel):
    """K(x, y) / √(K(x, x) K(y, y)); rows with K(x, x) = 0 give zero."""

    inner: Kernel

    def __post_init__(self) -> None:
        require_kernels("a normalised kernel", (self.inner,))

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        left, right = self.inner._diag(X), self.inner._diag(Y)
        return self.inner._gram(X, Y) * _inverse_root(left)[:, None] * _inverse_root(right)[None, :]

    def _diag(self, X: Matrix) -> Float64:
        return (self.inner._diag(X) > 0.0).astype(np.float64)

    def render(self, text: bool) -> str:
        return f"{_enclosed(self.inner, text, (Sum, Product, Scale))}.normalized()"

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield Polynomial(2).normalized()


def _inverse_root(values: Float64) -> Float64:
    return np.where(values > 0.0, 1.0 / np.sqrt(np.where(values > 0.0, values, 1.0)), 0.0)


@register
@dataclass(frozen=True, repr=False)
class On(Kernel):
    """A kernel on some columns: each item is a position, a name, or a range "10:300" or "f10:f300".

    Ranges of positions exclude their end, as slices do; ranges of names include it.
    """

    inner: Kernel
    columns: tuple[int | str, ...]

    def __post_init__(self) -> None:
        require_kernels("a kernel on columns", (self.inner,))
        columns = tuple(place for item in selection(self.columns) for place in expanded(item))
        if not columns:
            raise KernelError("a kernel on columns needs at least one column")
        object.__setattr__(self, "columns", columns)

    def bound(self, names: Sequence[str] | None, d: int) -> On:
        index = positions(self.columns, names, d)
        inner_names = None if names is None else [names[j] for j in index]
        return On(self.inner.bound(inner_names, len(index)), index)

    def _index(self) -> list[int]:
        if not all(isinstance(c, int) for c in self.columns):
            raise KernelError(f"the columns of {self} are not bound to positions; call kernel.bound(names, d)")
        return [int(c) for c in self.columns]

    def check(self, rows: Rows) -> None:
        index = self._index()
        names = tuple(rows.names[j] if rows.names else str(j) for j in index)  # as the whole rows call them
        try:
            self.inner.check(Rows(rows.values[:, index], names))
        except DataError as error:
            if isinstance(error.column, int):
                error.column = index[error.column]
            raise

    def _resolved(self, X: Matrix) -> Kernel:
        return On(self.inner._resolved(X[:, self._index()]), self.columns)

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        left = X[:, self._index()]
        return self.inner._gram(left, left if Y is X else Y[:, self._index()])

    def _diag(self, X: Matrix) -> Float64:
        return self.inner._diag(X[:, self._index()])

    def _distance2(self, X: Matrix, Y: Matrix) -> Float64:
        left = X[:, self._index()]
        return self.inner._distance2(left, left if Y is X else Y[:, self._index()])

    def spectrum(self) -> Spectrum | None:
        inner = self.inner.spectrum()
        if inner is None or not all(isinstance(c, int) for c in self.columns):
            return None
        return OnColumns(1.0, inner.mass, replace(inner, mass=1.0), tuple(self._index()))

    def render(self, text: bool) -> str:
        shown = ranges(self.columns)
        plain = all(isinstance(c, int) or is_plain(c) for c in shown)
        inside = ", ".join(map(str if text and plain else repr, shown))
        if not text and not (plain and len(shown) == 1):
            inside = f"[{inside}]"
        return f"{_enclosed(self.inner, text, (Sum, Product, Scale))}.on({inside})"

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield Gaussian(0.5).on([0]) + Polynomial(2).on([0])


def _flat(parts: tuple[Kernel, ...], kind: type[Sum | Product]) -> tuple[Kernel, ...]:
    return tuple(inner for k in parts for inner in (k.parts if isinstance(k, kind) else (k,)))


def _fold(items: Sequence[Any], combine: Any) -> Any:
    result = items[0]
    for item in items[1:]:
        result = combine(result, item)
    return result
