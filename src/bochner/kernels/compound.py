"""The spectrum of a series of a shift-invariant kernel: f(K) = Σ aₙ Kⁿ, and Kⁿ adds n frequencies.

A frequency of f(K) is the sum of n independent frequencies of K, with n drawn in proportion to
aₙ K(0)ⁿ: an exact mixture, which random Fourier features can use as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bochner.arrays import Float64, Matrix
from bochner.kernels.series import Series
from bochner.kernels.spectrum import Radial, Spectrum, chi_quantile

_TAIL = 1e-12
_MOST = 1024
_UNIT = Radial(1.0)


@dataclass(frozen=True)
class Compounded(Spectrum):
    """A random number of inner frequencies, added; ``law`` is the probability of 0, 1, 2 … of them."""

    inner: Spectrum = _UNIT
    law: tuple[float, ...] = (1.0,)

    def embed(self, X: Matrix) -> Matrix:
        return self.inner.embed(X)

    @property
    def view(self) -> tuple[Any, ...]:
        return self.inner.view

    @property
    def heavy(self) -> bool:
        return self.inner.heavy

    def width(self, d: int) -> int:
        return self.inner.width(d)

    @property
    def _most(self) -> int:
        return len(self.law) - 1

    def _counts(self, uniforms: Float64) -> Float64:
        return np.searchsorted(np.cumsum(self.law), uniforms * sum(self.law), side="right").clip(max=self._most)

    def dims(self, d: int) -> int:
        return 1 + self._most * self.inner.dims(d)

    def quantile(self, uniforms: Float64, d: int) -> Float64:
        counts, size = self._counts(uniforms[:, 0]), self.inner.dims(d)
        total = np.zeros((self.width(d), len(uniforms)))
        for i in range(self._most):
            part = uniforms[:, 1 + i * size : 1 + (i + 1) * size]
            total += np.where(counts > i, self.inner.quantile(part, d), 0.0)
        return total


@dataclass(frozen=True)
class CompoundedRadial(Compounded):
    """Sums of radial frequencies √sᵢ gᵢ are radial: √(Σ sᵢ) g."""

    def _mixings(self) -> int:
        assert isinstance(self.inner, Radial)
        return 0 if self.inner.mixing == "none" else self._most

    def dims(self, d: int) -> int:
        return 1 + self._mixings() + self.width(d)

    def columns(self, d: int) -> Float64:
        return self.inner.columns(d)

    def _root_mix(self, uniforms: Float64) -> Float64:
        assert isinstance(self.inner, Radial)
        counts = self._counts(uniforms[:, 0])
        if self.inner.mixing == "none":
            return np.asarray(np.sqrt(counts))
        squares = [np.where(counts > i, self.inner._root_mix(uniforms[:, 1 + i]) ** 2, 0.0) for i in range(self._most)]
        return np.asarray(np.sqrt(np.sum(squares, axis=0)))

    def quantile(self, uniforms: Float64, d: int) -> Float64:
        mixings = 1 + self._mixings()
        normals = Radial(self.inner.scale).quantile(uniforms[:, mixings:], d)
        return normals * self._root_mix(uniforms[:, :mixings])

    @property
    def radius_dims(self) -> int:
        return 2 + self._mixings()

    def radii(self, uniforms: Float64, degrees: int) -> Float64:
        return chi_quantile(uniforms[:, -1], degrees) * self._root_mix(uniforms[:, :-1])


def compounded(series: Series, inner: Spectrum) -> Spectrum | None:
    """The spectrum of f(K) for a kernel K with a spectrum; None next to the radius, where the series is too long."""
    coefficients = series.significant(inner.mass, _TAIL, most=_MOST)
    weights = coefficients * np.power(inner.mass, np.arange(len(coefficients)))
    if not weights.sum() >= (1.0 - 1e-6) * series.at(inner.mass):
        return None
    law = tuple((weights / weights.sum()).tolist())
    kind = CompoundedRadial if isinstance(inner, Radial) else Compounded
    return kind(1.0, float(weights.sum()), inner, law)
