"""Maps made of maps, mirroring the algebra of kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bochner.arrays import Float, Matrix, Rows
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register, who_lacks
from bochner.features.fourier import RandomFourier
from bochner.features.mercer import Mercer1D
from bochner.features.optimal import OptimalMaclaurin
from bochner.features.products import ComplexSketch
from bochner.kernels import Chi2, Compose, Exponential, Gaussian, Linear, Matern, Normalized, On, Polynomial, Scale
from bochner.seeds import Seed


@dataclass(frozen=True, eq=False, repr=False)
class _Made(FeatureMap):
    """A map made of one other, whose kernel is ``part_kernel``."""

    inner: FeatureMap | None = None

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


@register
@dataclass(frozen=True, eq=False, repr=False)
class Scaled(_Made):
    """√c · z(x) for the kernel c · K."""

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if not isinstance(self.kernel, Scale):
            raise who_lacks(self.kernel, "factor", "Scaled is for c * k")
        part = replace(self._part(), kernel=self.kernel.inner)
        return replace(self, inner=part.prepared(d, seed, sample))

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnScaled(self, self._part()._draw(d, seed))

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(2.5 * Gaussian(0.5 / d), 64, RandomFourier(Gaussian(0.5 / d), 64))


class _DrawnScaled(Drawn):
    def __init__(self, recipe: Scaled, inner: Drawn):
        super().__init__(recipe, inner.d, inner.seed, inner.width)
        assert isinstance(recipe.kernel, Scale)
        self.inner, self.root = inner, float(np.sqrt(recipe.kernel.factor))

    def _fill(self, X: Matrix, out: Float) -> None:
        self.inner.fill(X, out)
        out *= out.dtype.type(self.root)

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Any:
        return self.root**4 * self.inner.variance(X, Y, replicates)


@register
@dataclass(frozen=True, eq=False, repr=False)
class OnColumns(_Made):
    """A map of some columns only, for ``k.on(columns)``."""

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if not isinstance(self.kernel, On):
            raise who_lacks(self.kernel, "columns", "OnColumns is for k.on(columns)")
        index = list(self.kernel.columns)
        part = replace(self._part(), kernel=self.kernel.inner)
        chosen = None if sample is None else Rows(sample.values[:, index])
        return replace(self, inner=part.prepared(len(index), seed, chosen))

    def _draw(self, d: int, seed: Seed) -> Drawn:
        assert isinstance(self.kernel, On)
        return _DrawnOn(self, d, self._part()._draw(len(self.kernel.columns), seed))

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        kernel = Gaussian(0.5)
        yield cls(kernel.on([d - 1]), 64, RandomFourier(kernel, 64))


class _DrawnOn(Drawn):
    def __init__(self, recipe: OnColumns, d: int, inner: Drawn):
        super().__init__(recipe, d, inner.seed, inner.width)
        assert isinstance(recipe.kernel, On)
        self.inner, self.index = inner, [int(j) for j in recipe.kernel.columns]

    def _fill(self, X: Matrix, out: Float) -> None:
        self.inner.fill(X[:, self.index], out)


@register
@dataclass(frozen=True, eq=False, repr=False)
class NormalizedMap(_Made):
    """z(x)/√K(x, x) for ``k.normalized()``; zero where K(x, x) is."""

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if not isinstance(self.kernel, Normalized):
            raise who_lacks(self.kernel, "normalisation", "NormalizedMap is for k.normalized()")
        part = replace(self._part(), kernel=self.kernel.inner)
        return replace(self, inner=part.prepared(d, seed, sample))

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnNormalized(self, self._part()._draw(d, seed))

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        kernel = Polynomial(2)
        yield cls(kernel.normalized(), 64, OptimalMaclaurin(kernel, 64))


class _DrawnNormalized(Drawn):
    def __init__(self, recipe: NormalizedMap, inner: Drawn):
        super().__init__(recipe, inner.d, inner.seed, inner.width)
        self.inner = inner

    def _fill(self, X: Matrix, out: Float) -> None:
        self.inner.fill(X, out)
        square = self.inner.kernel._diag(X.astype(np.float64))
        root = np.where(square > 0.0, 1.0 / np.sqrt(np.where(square > 0.0, square, 1.0)), 0.0)
        out *= root[:, None].astype(out.dtype)


@register
@dataclass(frozen=True, eq=False, repr=False)
class Chain(FeatureMap):
    """outer(inner(x)): a radial kernel over another kernel, or a series of another kernel.

    The inner map stands for the feature space, so that its error remains however wide the outer one is.
    """

    inner: FeatureMap | None = None
    outer: FeatureMap | None = None
    unbiased: ClassVar[bool] = False

    def _parts(self) -> tuple[FeatureMap, FeatureMap]:
        if self.inner is None or self.outer is None:
            raise MapError("Chain needs inner= and outer=, two recipes")
        return self.inner, self.outer

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]
        return self._parts()[1].prefix_stable

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return any(part.needs_sample for part in self._parts())

    def is_fitted(self) -> bool:
        return all(part.is_fitted() for part in self._parts())

    def sized(self, n_features: int) -> Any:
        return replace(self, n_features=n_features, outer=self._parts()[1].sized(n_features))

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        found = self.kernel.radial()
        if found is None and isinstance(self.kernel, Compose):
            found = self.kernel.outer, self.kernel.inner
        if found is None:
            raise who_lacks(self.kernel, "inner kernel", "Chain is for outer.over(inner) and compose(outer, inner)")
        inner = replace(self._parts()[0], kernel=found[1]).prepared(d, seed.child("inner"), sample)
        drawn = inner._draw(d, seed.child("inner"))
        through = None if sample is None else Rows(drawn(Rows(sample.values[:1000])))
        outer = replace(self._parts()[1], kernel=found[0]).prepared(drawn.width, seed.child("outer"), through)
        return replace(self, inner=inner, outer=outer)

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnChain(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        chi2, linear = Chi2(), Linear()
        yield cls(Gaussian(0.5).over(chi2), 64, Mercer1D(chi2, 5 * d), RandomFourier(Gaussian(0.5), 64))
        yield cls(
            Matern(1.5, 1.0).over(linear), 64, OptimalMaclaurin(linear, d), RandomFourier(Matern(1.5, 1.0), 64)
        )


class _DrawnChain(Drawn):
    tile = 256

    def __init__(self, recipe: Chain, d: int, seed: Seed):
        inner, outer = recipe._parts()
        self.inner = inner._draw(d, seed.child("inner"))
        self.outer = outer._draw(self.inner.width, seed.child("outer"))
        super().__init__(recipe, d, seed, self.outer.width)

    def _fill(self, X: Matrix, out: Float) -> None:
        middle = np.empty((X.shape[0], self.inner.width), dtype=out.dtype)
        self.inner.fill(X, middle)
        self.outer.fill(middle, out)


@dataclass(frozen=True, eq=False, repr=False)
class _Parts(FeatureMap):
    """A map made of one map for each part of a sum or product."""

    parts: tuple[FeatureMap, ...] = ()

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        return all(part.unbiased for part in self.parts)

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return any(part.needs_sample for part in self.parts)

    def is_fitted(self) -> bool:
        return all(part.is_fitted() for part in self.parts)

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if not self.parts:
            raise MapError(f"{type(self).__name__} needs parts=, one recipe for each")
        parts = tuple(part.prepared(d, seed.child(i), sample) for i, part in enumerate(self.parts))
        return replace(self, parts=parts)


@register
@dataclass(frozen=True, eq=False, repr=False)
class Concatenate(_Parts):
    """[z₁(x), z₂(x), …] for k₁ + k₂ + …: stacked maps."""

    def sized(self, n_features: int) -> Any:
        total = sum(part.n_features for part in self.parts)
        scaled = tuple(part.sized(max(1, part.n_features * n_features // total)) for part in self.parts)
        return replace(self, n_features=n_features, parts=scaled)

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnParts(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        first, second = Gaussian(0.5 / d), Exponential()
        yield cls(first + second, 96, (RandomFourier(first, 64), OptimalMaclaurin(second, 32)))


class _DrawnParts(Drawn):
    def __init__(self, recipe: Concatenate, d: int, seed: Seed):
        self.parts = [part._draw(d, seed.child(i)) for i, part in enumerate(recipe.parts)]
        super().__init__(recipe, d, seed, sum(part.width for part in self.parts))

    def _fill(self, X: Matrix, out: Float) -> None:
        start = 0
        for part in self.parts:
            part.fill(X, out[:, start : start + part.width])
            start += part.width

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Any:
        return sum(part.variance(X, Y, replicates) for part in self.parts)


@register
@dataclass(frozen=True, eq=False, repr=False)
class ProductSketch(_Parts):
    """z₁(x) ⊗ z₂(x) ⊗ … for k₁ · k₂ · …: whole where it fits, else by products of complex sketches."""

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnProduct(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        first, second = Gaussian(0.5 / d), Polynomial(2)
        yield cls(first * second, 64, (RandomFourier(first, 256), OptimalMaclaurin(second, 256)))
        if d == 1:
            yield cls(first * second, 64, (RandomFourier(first, 16), OptimalMaclaurin(second, 4)))


class _DrawnProduct(Drawn):
    tile = 256

    def __init__(self, recipe: ProductSketch, d: int, seed: Seed):
        self.parts = [part._draw(d, seed.child(i)) for i, part in enumerate(recipe.parts)]
        whole = int(np.prod([part.width for part in self.parts], dtype=object))
        self.sketches: list[ComplexSketch] = []
        width = whole
        if whole > recipe.n_features:
            count = max(1, recipe.n_features // 2)
            width = 2 * count
            self.sketches = [
                ComplexSketch(part.width, count, seed.child("sketch", i)) for i, part in enumerate(self.parts)
            ]
        super().__init__(recipe, d, seed, width)

    def _fill(self, X: Matrix, out: Float) -> None:
        factors = []
        for part in self.parts:
            z = np.empty((X.shape[0], part.width), dtype=out.dtype)
            part.fill(X, z)
            factors.append(z)
        if not self.sketches:
            product = factors[0]
            for z in factors[1:]:
                product = (product[:, :, None] * z[:, None, :]).reshape(len(z), -1)
            out[:] = product
            return
        sketched = self.sketches[0](factors[0])
        for sketch, z in zip(self.sketches[1:], factors[1:], strict=True):
            sketched *= sketch(z)
        sketched *= np.sqrt(2.0 / self.width).astype(out.dtype)
        out[:, 0::2] = sketched.real
        out[:, 1::2] = sketched.imag


