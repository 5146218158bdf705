"""Maps made of maps, mirroring the algebra of kernels: chains, sums and products; those of one map are in wrapped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bochner.arrays import Float, Float64, Matrix, Rows, spread
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register, who_lacks
from bochner.features.fourier import RandomFourier
from bochner.features.mercer import Mercer1D
from bochner.features.optimal import OptimalMaclaurin
from bochner.features.products import ComplexSketch
from bochner.features.wrapped import NormalizedMap, OnColumns, Scaled
from bochner.kernels import Chi2, Compose, Exponential, Gaussian, Linear, Matern, Polynomial, Product, Sum
from bochner.kernels.base import Kernel
from bochner.seeds import Seed

__all__ = ["Chain", "Concatenate", "NormalizedMap", "OnColumns", "ProductSketch", "Scaled"]


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
        through = None if sample is None else Rows(drawn(Rows(spread(sample.values, 1000))))
        outer = replace(self._parts()[1], kernel=found[0]).prepared(drawn.width, seed.child("outer"), through)
        return replace(self, inner=inner, outer=outer)

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return DrawnChain(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        chi2, linear = Chi2(), Linear()
        yield cls(Gaussian(0.5).over(chi2), 64, Mercer1D(chi2, 5 * d), RandomFourier(Gaussian(0.5), 64))
        yield cls(Matern(1.5, 1.0).over(linear), 64, OptimalMaclaurin(linear, d), RandomFourier(Matern(1.5, 1.0), 64))


class DrawnChain(Drawn):
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
    #: what joins the kernels of the parts
    joined: ClassVar[type[Kernel]]

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
        given, kernels = self.parts, self.kernel.children()
        if len(given) == len(kernels):  # what the data decide is decided once, for the whole kernel
            given = tuple(
                replace(part, kernel=kernel) if part.kernel.unresolved() else part
                for part, kernel in zip(given, kernels, strict=True)
            )
        parts = tuple(part.prepared(d, seed.child(i), sample) for i, part in enumerate(given))
        found = [leaf for part in parts for leaf in _leaves(part.kernel, self.joined)]
        if Counter(found) != Counter(_leaves(self.kernel, self.joined)):
            raise MapError(
                f"{type(self).__name__} for {self.kernel} has maps of {', '.join(str(part.kernel) for part in parts)}: "
                "give one map for each part of the kernel"
            )
        return replace(self, parts=parts)


def _leaves(kernel: Kernel, joined: type[Kernel]) -> list[Kernel]:
    """The parts of sums of sums, or of products of products."""
    if not isinstance(kernel, joined):
        return [kernel]
    return [leaf for part in kernel.children() for leaf in _leaves(part, joined)]


@register
@dataclass(frozen=True, eq=False, repr=False)
class Concatenate(_Parts):
    """[z₁(x), z₂(x), …] for k₁ + k₂ + …: stacked maps."""

    joined: ClassVar[type[Kernel]] = Sum

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return all(part.deterministic for part in self.parts)

    def sized(self, n_features: int) -> Any:
        total = sum(part.n_features for part in self.parts)
        scaled = tuple(part.sized(max(1, part.n_features * n_features // total)) for part in self.parts)
        return replace(self, n_features=n_features, parts=scaled)

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return DrawnParts(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        first, second = Gaussian(0.5 / d), Exponential()
        yield cls(first + second, 96, (RandomFourier(first, 64), OptimalMaclaurin(second, 32)))


class DrawnParts(Drawn):
    def __init__(self, recipe: Concatenate, d: int, seed: Seed):
        self.parts = [part._draw(d, seed.child(i)) for i, part in enumerate(recipe.parts)]
        super().__init__(recipe, d, seed, sum(part.width for part in self.parts))
        self.variance_is_exact = all(part.variance_is_exact for part in self.parts)

    def _fill(self, X: Matrix, out: Float) -> None:
        start = 0
        for part in self.parts:
            part.fill(X, out[:, start : start + part.width])
            start += part.width

    def blocks(self) -> tuple[tuple[Kernel, slice], ...]:
        found: list[tuple[Kernel, slice]] = []
        start = 0
        for part in self.parts:
            found += [(kernel, slice(start + own.start, start + own.stop)) for kernel, own in part.blocks()]
            start += part.width
        return tuple(found)

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        return np.asarray(sum(part.variance(X, Y, replicates) for part in self.parts))


@register
@dataclass(frozen=True, eq=False, repr=False)
class ProductSketch(_Parts):
    """z₁(x) ⊗ z₂(x) ⊗ … for k₁ · k₂ · …: whole where it fits, else by products of complex sketches."""

    joined: ClassVar[type[Kernel]] = Product

    def sized(self, n_features: int) -> Any:
        parts = tuple(part.sized(max(1, part.n_features * n_features // self.n_features)) for part in self.parts)
        return replace(self, n_features=n_features, parts=parts)

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
            count = recipe.n_features // 2
            if count == 0:
                raise MapError("a sketched product needs at least 2 features, a real and an imaginary part")
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
