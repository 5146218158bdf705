"""Gaussian and exponential kernels through each other: exp(−γ‖x−y‖²) = e^{−γ‖x‖²} e^{2γ⟨x,y⟩} e^{−γ‖y‖²}."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Matrix, Rows, dense, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, option, register, who_lacks
from bochner.features.fourier import RandomFourier
from bochner.features.frequencies import LAWS
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
        if not isinstance(self.kernel, Gaussian):
            raise who_lacks(self.kernel, "Gaussian form", "TaylorGaussian is for kernels.Gaussian")
        if self.inner is not None:
            return self
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

    def sized(self, n_features: int) -> Any:
        inner = None if self.inner is None else self.inner.sized(n_features)
        return replace(self, n_features=n_features, inner=inner)

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnTaylor(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Gaussian(0.25), 64)


class _DrawnTaylor(Drawn):
    tile = 256

    def __init__(self, recipe: TaylorGaussian, d: int, seed: Seed):
        self.inner = recipe.settled("inner")._draw(d, seed)
        super().__init__(recipe, d, seed, self.inner.width)

    def _fill(self, X: Matrix, out: Float) -> None:
        recipe = self.map
        assert isinstance(recipe, TaylorGaussian)
        u = recipe._moved(dense(X))
        norms = squared_norms(u)
        # Far out, monomials overflow float32 before e^{−‖u‖²} brings them down.
        far = out.dtype != np.float64 and float(norms.max()) > 16.0
        features = np.empty(out.shape) if far else out
        self.inner.fill(u.astype(features.dtype, copy=False), features)
        features *= np.exp(-norms)[:, None].astype(features.dtype)
        if far:
            out[:] = features


@register
@dataclass(frozen=True, eq=False, repr=False)
class TaylorExponential(FeatureMap):
    """e^{(⟨μ, x⟩ − ‖μ‖²/2)/σ²} times an optimal Maclaurin map of exp(⟨x − μ, y − μ⟩/σ²), μ = ``centre``.

    An identity of the exponential kernel: around the mean of the data products are small, and the
    series is short.  (Other dot-product kernels do not shift.)
    """

    centre: NDArray[Any] | None = None
    inner: FeatureMap | None = None
    needs_sample: ClassVar[bool] = True

    def is_fitted(self) -> bool:
        return self.inner is not None

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if not isinstance(self.kernel, Exponential):
            raise who_lacks(self.kernel, "exponential form", "TaylorExponential is for kernels.Exponential")
        if self.inner is not None:
            return self
        assert sample is not None
        rows = dense(sample.values).astype(np.float64)
        centre = rows.mean(axis=0)
        inner = OptimalMaclaurin(self.kernel, self.n_features).prepared(d, seed, Rows(rows - centre))
        return replace(self, centre=frozen(centre), inner=inner)

    def sized(self, n_features: int) -> Any:
        inner = None if self.inner is None else self.inner.sized(n_features)
        return replace(self, n_features=n_features, inner=inner)

    def _draw(self, d: int, seed: Seed) -> Drawn:
        return _DrawnCentred(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Exponential(0.8), 64)


class _DrawnCentred(Drawn):
    tile = 256

    def __init__(self, recipe: TaylorExponential, d: int, seed: Seed):
        assert isinstance(recipe.kernel, Exponential)
        self.inner = recipe.settled("inner")._draw(d, seed)
        self.centre = np.asarray(recipe.settled("centre"))
        self.inverse = recipe.kernel.sigma**-2
        super().__init__(recipe, d, seed, self.inner.width)

    def _fill(self, X: Matrix, out: Float) -> None:
        rows = dense(X)
        self.inner.fill(rows - self.centre.astype(rows.dtype), out)
        shift = (rows @ self.centre - 0.5 * self.centre @ self.centre) * self.inverse
        out *= np.exp(shift)[:, None].astype(out.dtype)


@register
@dataclass(frozen=True, eq=False, repr=False)
class FourierExponential(FeatureMap):
    """e^{‖x‖²/2σ²} times Fourier features of the Gaussian with γ = 1/(2σ²): for exp(⟨x, y⟩/σ²) far out."""

    frequencies: str = "orthogonal"

    def __post_init__(self) -> None:
        super().__post_init__()
        option("frequencies", self.frequencies, LAWS)

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]
        return self.frequencies != "latin"

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
        with np.errstate(over="ignore"):
            growth = np.exp(self.half * squared_norms(X)).astype(out.dtype)
        if not np.isfinite(growth).all():
            raise MapError(f"exp(‖x‖²/2σ²) overflows {out.dtype}; scale the rows down or raise sigma")
        out *= growth[:, None]
