"""Spectra: the law of the frequencies w with K(x, y) = mass · E cos(wᵀ(e(x) − e(y))).

``e`` is the identity for shift-invariant kernels (Bochner) and x ↦ log(x + ε) for skewed ones.
Every law is given by its quantiles, so that the same object serves pseudo-random and low-discrepancy
points; radial laws also tell the law of ‖w‖, which is what orthogonal frequencies need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from bochner.arrays import Float64, Matrix, dense
from bochner.errors import KernelError

Scale = float | tuple[float, ...]


def chi_quantile(uniforms: Float64, degrees: int) -> Float64:
    """Quantiles of the norm of a standard normal vector."""
    return np.asarray(np.sqrt(2.0 * special.gammaincinv(0.5 * degrees, uniforms)))


@dataclass(frozen=True)
class Spectrum(ABC):
    """The law of one frequency in d dimensions."""

    scale: Scale
    mass: float = 1.0

    def embed(self, X: Matrix) -> Matrix:
        """The coordinates in which the kernel is shift-invariant."""
        return X

    @property
    def view(self) -> tuple[Any, ...]:
        """What ``embed`` does, comparable: equal views allow frequencies to be added."""
        return ()

    def width(self, d: int) -> int:
        """The number of embedded coordinates."""
        return d

    @property
    def heavy(self) -> bool:
        """Whether phases grow so large that float32 loses them."""
        return False

    @abstractmethod
    def dims(self, d: int) -> int:
        """How many uniforms make one frequency."""

    @abstractmethod
    def quantile(self, uniforms: Float64, d: int) -> Float64:
        """Frequencies (width, m) from uniforms (m, dims)."""

    @property
    def radius_dims(self) -> int:
        """How many uniforms make the norm of a frequency; 0 unless the law is radial."""
        return 0

    def radii(self, uniforms: Float64, degrees: int) -> Float64:
        """Norms of unscaled frequencies in ``degrees`` dimensions from uniforms (m, radius_dims)."""
        raise KernelError("only a radial spectrum has norms independent of directions")

    def scaled(self, factor: float) -> Spectrum:
        """The spectrum of factor · K."""
        return replace(self, mass=self.mass * factor)

    def columns(self, d: int) -> Float64:
        """The scale as a column, one entry for each embedded coordinate."""
        return np.broadcast_to(np.asarray(self.scale, dtype=np.float64), (self.width(d),))[:, None]


@dataclass(frozen=True)
class Radial(Spectrum):
    """w = scale · √s · g with g normal and s from a mixing law: all Gaussian scale mixtures.

    ``mixing`` is "none" (s = 1: Gaussian), "inverse" (s = ν / Gamma(ν): Matérn, a multivariate t of
    2ν degrees) or "gamma" (s = Gamma(α)/α: rational quadratic); ``shape`` is ν or α.
    """

    mixing: str = "none"
    shape: float = 1.0

    @property
    def heavy(self) -> bool:
        return self.mixing == "inverse" and self.shape < 2.0

    def dims(self, d: int) -> int:
        return d if self.mixing == "none" else d + 1

    def _root_mix(self, uniforms: Float64) -> Float64:
        gamma = np.maximum(special.gammaincinv(self.shape, uniforms), 1e-200)  # tiny shapes underflow
        return np.asarray(np.sqrt(self.shape / gamma if self.mixing == "inverse" else gamma / self.shape))

    def quantile(self, uniforms: Float64, d: int) -> Float64:
        if self.mixing == "none":
            return np.asarray(self.columns(d) * special.ndtri(uniforms).T)
        # The mixing variable takes the first coordinate: low-discrepancy points are best there.
        return np.asarray(self.columns(d) * (special.ndtri(uniforms[:, 1:]).T * self._root_mix(uniforms[:, 0])))

    @property
    def radius_dims(self) -> int:
        return 1 if self.mixing == "none" else 2

    def radii(self, uniforms: Float64, degrees: int) -> Float64:
        norms = chi_quantile(uniforms[:, -1], degrees)
        return norms if self.mixing == "none" else norms * self._root_mix(uniforms[:, 0])


@dataclass(frozen=True)
class Independent(Spectrum):
    """Independent coordinates: "cauchy" (Laplacian kernel) or "sech" (skewed χ²).

    With ``shift`` ε the coordinates are log(x + ε), otherwise x itself.
    """

    law: str = "cauchy"
    shift: float | None = None

    @property
    def heavy(self) -> bool:
        return self.law == "cauchy"

    @property
    def view(self) -> tuple[Any, ...]:
        return () if self.shift is None else ("log", self.shift)

    def embed(self, X: Matrix) -> Matrix:
        return X if self.shift is None else np.log(dense(X) + np.asarray(self.shift, dtype=X.dtype))

    def dims(self, d: int) -> int:
        return d

    def quantile(self, uniforms: Float64, d: int) -> Float64:
        if self.law == "cauchy":
            return self.columns(d) * np.tan(np.pi * (uniforms.T - 0.5))
        # Density sech(πw): the distribution function is (2/π) arctan(exp(πw)).
        return self.columns(d) * np.log(np.tan(0.5 * np.pi * uniforms.T)) / np.pi


@dataclass(frozen=True)
class OnColumns(Spectrum):
    """A spectrum on some columns only."""

    inner: Spectrum = Radial(1.0)
    index: tuple[int, ...] = ()

    @property
    def view(self) -> tuple[Any, ...]:
        return ("on", self.index, self.inner.view)

    @property
    def heavy(self) -> bool:
        return self.inner.heavy

    def embed(self, X: Matrix) -> Matrix:
        return self.inner.embed(X[:, list(self.index)])

    def width(self, d: int) -> int:
        return self.inner.width(len(self.index))

    def dims(self, d: int) -> int:
        return self.inner.dims(len(self.index))

    def quantile(self, uniforms: Float64, d: int) -> Float64:
        return self.inner.quantile(uniforms, len(self.index))

    @property
    def radius_dims(self) -> int:
        return self.inner.radius_dims

    def radii(self, uniforms: Float64, degrees: int) -> Float64:
        return self.inner.radii(uniforms, degrees)

    def columns(self, d: int) -> Float64:
        return self.inner.columns(len(self.index))


@dataclass(frozen=True)
class Added(Spectrum):
    """The product of two kernels: independent frequencies add (or stand side by side)."""

    first: Spectrum = Radial(1.0)
    second: Spectrum = Radial(1.0)

    @property
    def _together(self) -> bool:
        return self.first.view == self.second.view

    @property
    def view(self) -> tuple[Any, ...]:
        return self.first.view if self._together else ("both", self.first.view, self.second.view)

    @property
    def heavy(self) -> bool:
        return self.first.heavy or self.second.heavy

    def embed(self, X: Matrix) -> Matrix:
        if self._together:
            return self.first.embed(X)
        return np.concatenate([dense(self.first.embed(X)), dense(self.second.embed(X))], axis=1)

    def width(self, d: int) -> int:
        return self.first.width(d) if self._together else self.first.width(d) + self.second.width(d)

    def dims(self, d: int) -> int:
        return self.first.dims(d) + self.second.dims(d)

    def quantile(self, uniforms: Float64, d: int) -> Float64:
        cut = self.first.dims(d)
        parts = [self.first.quantile(uniforms[:, :cut], d), self.second.quantile(uniforms[:, cut:], d)]
        return parts[0] + parts[1] if self._together else np.concatenate(parts)


def added(first: Spectrum, second: Spectrum) -> Spectrum:
    """The spectrum of a product of kernels; a product of Gaussians stays Gaussian (and radial)."""
    mass = first.mass * second.mass
    if isinstance(first, Radial) and isinstance(second, Radial) and first.mixing == second.mixing == "none":
        scale = np.hypot(first.scale, second.scale)
        return Radial(float(scale) if scale.ndim == 0 else tuple(scale.tolist()), mass)
    return Added(1.0, mass, first, second)
