"""A map whose rows are rescaled so that the diagonal of the Gram is exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bochner.arrays import Float, Matrix, Rows
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register
from bochner.features.optimal import OptimalMaclaurin
from bochner.kernels import Exponential, Polynomial
from bochner.seeds import Seed


@register
@dataclass(frozen=True, eq=False, repr=False)
class ExactDiagonal(FeatureMap):
    """z(x) √(K(x, x)) / ‖z(x)‖ for a map z of the same kernel.

    The norms of products of random projections have heavier tails than the angles between them.  Most of
    that error goes, at the price of a small bias.  Rows with ‖z(x)‖ = 0 stay zero.
    """

    inner: FeatureMap | None = None
    unbiased: ClassVar[bool] = False

    def _part(self) -> FeatureMap:
        if self.inner is None:
            raise MapError("ExactDiagonal needs inner=, the recipe of the map to rescale")
        return self.inner

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self._part().deterministic

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return self._part().needs_sample

    def is_fitted(self) -> bool:
        return self._part().is_fitted()

    def sized(self, n_features: int) -> Any:
        return replace(self, n_features=n_features, inner=self._part().sized(n_features))

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        return replace(self, inner=replace(self._part(), kernel=self.kernel).prepared(d, seed, sample))

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnExactDiagonal(self, d, self._part()._draw(d, seed))

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        for kernel in (Polynomial(10), Exponential(0.5)):
            yield cls(kernel, 64, OptimalMaclaurin(kernel, 64))


class _DrawnExactDiagonal(Drawn):
    def __init__(self, recipe: ExactDiagonal, d: int, inner: Drawn):
        super().__init__(recipe, d, inner.seed, inner.width)
        self.inner = inner

    def _fill(self, X: Matrix, out: Float) -> None:
        Z = np.empty(out.shape, dtype=out.dtype)  # sums of strided rows would differ in their last bits
        self.inner.fill(X, Z)
        square = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
        wanted = self.kernel._diag(X.astype(np.float64))
        root = np.sqrt(np.divide(wanted, square, out=np.zeros_like(square), where=square > 0.0))
        np.multiply(Z, root[:, None].astype(out.dtype), out=out)
