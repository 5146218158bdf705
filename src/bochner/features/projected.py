"""Random combinations of the columns of a map: as many independent scalars as one likes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bochner.arrays import Float, Matrix, Rows, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register
from bochner.features.mercer import Mercer1D
from bochner.features.points import BLOCK
from bochner.features.sampled import SampledSignature
from bochner.kernels import Chi2, Hellinger
from bochner.seeds import Seed


@register
@dataclass(frozen=True, eq=False, repr=False)
class Projected(FeatureMap):
    """sᵀφ(x)/√D with Rademacher signs s, fresh for every column, of a map φ of the same kernel.

    Given φ the columns are independent with mean ⟨φ(x), φ(y)⟩: what products of factors need (section 5
    of Kar & Karnick).
    """

    inner: FeatureMap | None = None
    prefix_stable: ClassVar[bool] = True

    def _part(self) -> FeatureMap:
        if self.inner is None:
            raise MapError("Projected needs inner=, the recipe of the map to combine")
        return self.inner

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        return self._part().unbiased

    @property
    def independent_columns(self) -> bool:
        return True

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return self._part().needs_sample

    def is_fitted(self) -> bool:
        return self._part().is_fitted()

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        part = replace(self._part(), kernel=self.kernel)
        return replace(self, inner=part.prepared(d, seed.child("inner"), sample))

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnProjected(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Hellinger(), 64, inner=SampledSignature(Hellinger(), d))
        yield cls(Chi2(), 64, inner=Mercer1D(Chi2(), 5 * d))


class _DrawnProjected(Drawn):
    def __init__(self, recipe: Projected, d: int, seed: Seed):
        super().__init__(recipe, d, seed, recipe.n_features)
        self.inner = recipe._part()._draw(d, seed.child("inner"))
        blocks = [
            seed.stream("signs", j).signs(min(BLOCK, self.width - start), self.inner.width)
            for j, start in enumerate(range(0, self.width, BLOCK))
        ]
        self.signs = frozen(np.concatenate(blocks).T, np.int8)

    def _fill(self, X: Matrix, out: Float) -> None:
        Z: Any = np.empty((X.shape[0], self.inner.width), dtype=out.dtype)
        self.inner.fill(X, Z)
        np.matmul(Z, self.signs.astype(out.dtype), out=out)
        out *= out.dtype.type(self.width**-0.5)
