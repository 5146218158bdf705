"""Gaussian and exponential kernels through each other: exp(−γ‖x−y‖²) = e^{−γ‖x‖²} e^{2γ⟨x,y⟩} e^{−γ‖y‖²}."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Matrix, Rows, dense, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register, who_lacks
from bochner.features.fourier import RandomFourier
from bochner.features.optimal import OptimalMaclaurin
from bochner.kernels import Exponential, Gaussian
from bochner.kernels.pairwise import squared_norms
from bochner.seeds import Seed


@register
@dataclass(frozen=True, eq=False, repr=False)
class TaylorGaussian(FeatureMap):
    """e^{−‖u‖²} times an optimal Maclaurin map of exp(2⟨u, v⟩), u = √γ (x − centre).

    The better map of *wide* Gaussians: low degrees are exact, and hardly anything is left over.
    ``centre`` is the mean of the sample (zero without one).
    """

    centre: NDArray[Any] | None = None
    inner: FeatureMap | None = None

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if self.inner is not None:
            return self
        if not isinstance(self.kernel, Gaussian):
            raise who_lacks(self.kernel, "Gaussian form", "TaylorGaussian is for kernels.Gaussian")
        rows = None if sample is None else dense(sample.values).astype(np.float64)
        centre = np.zeros(d) if rows is None else rows.mean(axis=0)
        fitted = replace(self, centre=frozen(centre))
        shifted = None if rows is None else Rows(fitted._moved(rows))
        inner = OptimalMaclaurin(Exponential(sigma=np.sqrt(0.5)), self.n_features)
        return replace(fitted, inner=inner.prepared(d, seed, shifted))

    def _moved(self, X: Float) -> Float:
        assert isinstance(self.kernel, Gaussian)
        root = np.asarray(self.kernel.factors(), dtype=X.dtype)
        return np.asarray((X - np.asarray(self.centre, dtype=X.dtype)) * root)

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnTaylor(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Gaussian(0.25), 64)


class _DrawnTaylor(Drawn):
    tile = 256

    def __init__(self, recipe: TaylorGaussian, d: int, seed: Seed):
        assert recipe.inner is not None
        self.inner = recipe.inner._draw(d, seed)
        super().__init__(recipe, d, seed, self.inner.width)

    def _fill(self, X: Matrix, out: Float) -> None:
        recipe = self.map
        assert isinstance(recipe, TaylorGaussian)
        u = recipe._moved(dense(X))
        self.inner.fill(u, out)
        out *= np.exp(-squared_norms(u))[:, None].astype(out.dtype)


@register
@dataclass(frozen=True, eq=False, repr=False)
class FourierExponential(FeatureMap):
    """e^{‖x‖²/2σ²} times Fourier features of the Gaussian with γ = 1/(2σ²): for exp(⟨x, y⟩/σ²) far out."""

    frequencies: str = "orthogonal"
    unbiased: ClassVar[bool] = True
    prefix_stable: ClassVar[bool] = True

    def _draw(self, d: int, seed: Seed) -> Drawn:
        if not isinstance(self.kernel, Exponential):
            raise who_lacks(self.kernel, "exponential form", "FourierExponential is for kernels.Exponential")
        return _DrawnExponential(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Exponential(), 64)


class _DrawnExponential(Drawn):
    def __init__(self, recipe: FourierExponential, d: int, seed: Seed):
        assert isinstance(recipe.kernel, Exponential)
        self.half = 0.5 / recipe.kernel.sigma**2
        fourier = RandomFourier(Gaussian(self.half), recipe.n_features, frequencies=recipe.frequencies)
        self.inner = fourier._draw(d, seed)
        super().__init__(recipe, d, seed, self.inner.width)

    def _fill(self, X: Matrix, out: Float) -> None:
        self.inner.fill(X, out)
        growth = np.exp(self.half * squared_norms(X))[:, None].astype(out.dtype)
        if not np.isfinite(growth).all():
            raise MapError("exp(‖x‖²/2σ²) overflows; scale the rows down or use OptimalMaclaurin")
        out *= growth
