"""Maps of a kernel made of one other: scaled, on some columns, normalised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bochner.arrays import Float, Float64, Matrix, Rows
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register
from bochner.features.fourier import RandomFourier
from bochner.features.optimal import OptimalMaclaurin
from bochner.kernels import Gaussian, Kernel, Normalized, On, Polynomial, Scale
from bochner.seeds import Seed


@dataclass(frozen=True, eq=False, repr=False)
class _Wrapped(FeatureMap):
    """A map made of one other, for a kernel made of one other."""

    inner: FeatureMap | None = None
    form: ClassVar[str]

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        return self._part().unbiased

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self._part().deterministic

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]
        return self._part().prefix_stable

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return self._part().needs_sample

    def is_fitted(self) -> bool:
        return self._part().is_fitted()

    def _part(self) -> FeatureMap:
        if self.inner is None:
            raise MapError(f"{type(self).__name__} needs inner=, the recipe of the map inside")
        return self.inner

    def sized(self, n_features: int) -> Any:
        return replace(self, n_features=n_features, inner=self._part().sized(n_features))

    def _refused(self) -> MapError:
        return MapError(f"{type(self).__name__} is for {self.form}, not for {self.kernel}")

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if not isinstance(self.kernel, (Scale, Normalized)):
            raise self._refused()
        part = replace(self._part(), kernel=self.kernel.inner)
        return replace(self, inner=part.prepared(d, seed, sample))


class _DrawnWrapped(Drawn):
    def __init__(self, recipe: _Wrapped, d: int, inner: Drawn):
        super().__init__(recipe, d, inner.seed, inner.width)
        self.inner, self.variance_is_exact = inner, inner.variance_is_exact


@register
@dataclass(frozen=True, eq=False, repr=False)
class Scaled(_Wrapped):
    """√c · z(x) for the kernel c · K."""

    form: ClassVar[str] = "c * k"

    def _draw(self, d: int, seed: Seed) -> Drawn:
        if not isinstance(self.kernel, Scale):
            raise self._refused()
        return DrawnScaled(self, d, self._part()._draw(d, seed), self.kernel.factor)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(2.5 * Gaussian(0.5 / d), 64, RandomFourier(Gaussian(0.5 / d), 64))


class DrawnScaled(_DrawnWrapped):
    def __init__(self, recipe: Scaled, d: int, inner: Drawn, factor: float):
        super().__init__(recipe, d, inner)
        self.factor = factor

    def _fill(self, X: Matrix, out: Float) -> None:
        self.inner.fill(X, out)
        out *= out.dtype.type(np.sqrt(self.factor))

    def blocks(self) -> tuple[tuple[Kernel, slice], ...]:
        return tuple((self.factor * kernel, own) for kernel, own in self.inner.blocks())

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        return self.factor**2 * self.inner.variance(X, Y, replicates)


@register
@dataclass(frozen=True, eq=False, repr=False)
class OnColumns(_Wrapped):
    """A map of some columns only, for ``k.on(columns)``."""

    form: ClassVar[str] = "k.on(columns)"

    def _index(self) -> list[int]:
        if not isinstance(self.kernel, On):
            raise self._refused()
        return [int(j) for j in self.kernel.columns]

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        index = self._index()
        assert isinstance(self.kernel, On)
        part = replace(self._part(), kernel=self.kernel.inner)
        chosen = None if sample is None else Rows(sample.values[:, index])
        return replace(self, inner=part.prepared(len(index), seed, chosen))

    def _draw(self, d: int, seed: Seed) -> Drawn:
        index = self._index()
        return DrawnOn(self, d, self._part()._draw(len(index), seed), index)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        kernel = Gaussian(0.5)
        yield cls(kernel.on([d - 1]), 64, RandomFourier(kernel, 64))


class DrawnOn(_DrawnWrapped):
    def __init__(self, recipe: OnColumns, d: int, inner: Drawn, index: list[int]):
        super().__init__(recipe, d, inner)
        self.index = index

    def _fill(self, X: Matrix, out: Float) -> None:
        self.inner.fill(X[:, self.index], out)

    def blocks(self) -> tuple[tuple[Kernel, slice], ...]:
        return tuple((On(kernel, tuple(self.index)), own) for kernel, own in self.inner.blocks())

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        left, right = self._both(X, Y)
        return self.inner.variance(left[:, self.index], right[:, self.index], replicates)


@register
@dataclass(frozen=True, eq=False, repr=False)
class NormalizedMap(_Wrapped):
    """z(x)/√K(x, x) for ``k.normalized()``; zero where K(x, x) is."""

    form: ClassVar[str] = "k.normalized()"

    def _draw(self, d: int, seed: Seed) -> Drawn:
        if not isinstance(self.kernel, Normalized):
            raise self._refused()
        return _DrawnNormalized(self, d, self._part()._draw(d, seed))

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        kernel = Polynomial(2)
        yield cls(kernel.normalized(), 64, OptimalMaclaurin(kernel, 64))


class _DrawnNormalized(_DrawnWrapped):
    def _inverse_root(self, X: Matrix) -> Float64:
        square = self.inner.kernel._diag(X.astype(np.float64))
        return np.asarray(np.where(square > 0.0, 1.0 / np.sqrt(np.where(square > 0.0, square, 1.0)), 0.0))

    def _fill(self, X: Matrix, out: Float) -> None:
        self.inner.fill(X, out)
        out *= self._inverse_root(X)[:, None].astype(out.dtype)

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        left, right = self._both(X, Y)
        root = self._inverse_root(left)[:, None] * self._inverse_root(right)
        return root**2 * self.inner.variance(left, right, replicates)
