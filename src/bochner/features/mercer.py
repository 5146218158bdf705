"""One-dimensional Mercer maps: the additive-kernel PCA of Perronnin, Sánchez & Liu (2010), tabulated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Rows, frozen
from bochner.errors import MapError
from bochner.features.base import FeatureMap, register
from bochner.features.sampled import DrawnScalar, columns_each, profile_of
from bochner.kernels import Chi2, Intersection, JensenShannon
from bochner.kernels.profile import Profile
from bochner.seeds import Seed

_BINS = 256
_PER_OCTAVE = 128
_PAD = 12  # octaves of the table beyond the sample; outside it the map is evaluated directly


@register
@dataclass(frozen=True, eq=False, repr=False)
class Mercer1D(FeatureMap):
    """z(x) = k(x, g) S U Λ^{−½} for each column, with S k(g, g) S = U Λ Uᵀ and S² the weights of g.

    The grid g is logarithmic over the positive entries of a sample, its weights are their counts: the
    best m functions in the mean square over the data, for any additive kernel, at a table look-up.
    """

    grid: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None
    unbiased: ClassVar[bool] = False
    deterministic: ClassVar[bool] = True
    needs_sample: ClassVar[bool] = True

    def is_fitted(self) -> bool:
        return self.grid is not None

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        profile_of(self.kernel)
        if self.grid is not None or sample is None:
            return self
        values = sample.values.data if hasattr(sample.values, "indptr") else sample.values
        positive = np.asarray(values[values > 0], dtype=np.float64)
        if positive.size == 0:
            raise MapError("the sample has no positive entry, so that there is nothing to fit Mercer1D on")
        grid, weights = log_grid(positive)
        return replace(self, grid=frozen(grid), weights=frozen(weights))

    def _draw(self, d: int, seed: Seed) -> DrawnMercer:
        return DrawnMercer(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        for kernel in (Chi2(), Intersection(), JensenShannon(), Chi2(degree=0.5), Chi2() + Intersection()):
            yield cls(kernel, 4 * d)


def log_grid(positive: Float64) -> tuple[Float64, Float64]:
    """Occupied cells of a logarithmic grid: the mean of the entries in each, and their share."""
    log = np.log(positive)
    low, high = float(log.min()), float(log.max())
    cell = np.minimum(((log - low) / max(high - low, 1e-12) * _BINS).astype(np.int64), _BINS - 1)
    counts = np.bincount(cell, minlength=_BINS)
    sums = np.bincount(cell, weights=positive, minlength=_BINS)
    occupied = counts > 0
    return sums[occupied] / counts[occupied], counts[occupied] / counts.sum()


def eigenfunctions(profile: Profile, grid: Float64, weights: Float64, m: int) -> Float64:
    """The matrix (grid, m) that takes k(x, g) to the features, largest eigenvalue first."""
    root = np.sqrt(weights)
    K = profile.pair(grid[:, None], grid[None, :])
    values, vectors = np.linalg.eigh(root[:, None] * K * root[None, :])
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int((values > len(grid) * np.finfo(np.float64).eps * values[0]).sum())
    keep = min(m, rank)
    # The sign of an eigenvector is arbitrary: fix it, so that equal data give equal bits.
    signs = np.sign(vectors[np.abs(vectors[:, :keep]).argmax(axis=0), np.arange(keep)])
    return np.asarray(root[:, None] * vectors[:, :keep] * signs / np.sqrt(values[:keep]))


class DrawnMercer(DrawnScalar):
    """The table of the eigenfunctions."""

    def __init__(self, recipe: Mercer1D, d: int, seed: Seed):
        profile = profile_of(recipe.kernel)
        grid, weights = (np.asarray(recipe.settled(name), dtype=np.float64) for name in ("grid", "weights"))
        wanted = columns_each(recipe.n_features, d)
        self.basis = frozen(eigenfunctions(profile, grid, weights, wanted))
        self.grid = frozen(grid)
        super().__init__(recipe, d, seed, self.basis.shape[1])
        self.smooth = profile.signature is not None and not profile.kinked
        self.linear = profile.signature is not None and profile.kinked
        self.degree = float(profile.degree or 1.0)
        if self.smooth:
            self._tabulate_smooth()
        elif self.linear:
            # x^{(degree−1)/2} Σ min(x, g) …: linear between grid points, constant beyond the last.
            nodes = np.concatenate([[0.0], grid])
            self.power = 0.5 * (self.degree - 1.0)
            positive = np.maximum(nodes, grid[0] * 1e-9)
            table = self._exact(positive) / positive[:, None] ** self.power
            table[0] = 0.0
            self.nodes, self.table = frozen(nodes), frozen(table)

    def _tabulate_smooth(self) -> None:
        first = np.floor(np.log2(self.grid[0])) - _PAD
        last = np.ceil(np.log2(self.grid[-1])) + _PAD
        count = int((last - first) * _PER_OCTAVE) + 1
        x = np.exp2(first + np.arange(-1, count + 2) / _PER_OCTAVE)
        self.first, self.last = float(first), float(last)
        self.half_degree = 0.5 * self.degree
        self.table = frozen(self._exact(x) / x[:, None] ** self.half_degree)

    def _exact(self, x: Float64) -> Float64:
        """The features of entries, by their definition."""
        profile, out = profile_of(self.kernel), np.empty((x.size, self.m))
        for start in range(0, x.size, 4096):
            part = x[start : start + 4096].astype(np.float64)
            out[start : start + 4096] = profile.pair(part[:, None], self.grid[None, :]) @ self.basis
        return out

    def _scalar(self, x: Float, out: Float) -> None:
        if self.linear:
            amplitude = np.power(x, self.power, where=x > 0, out=np.zeros_like(x))
            for k in range(self.m):
                out[..., k] = np.interp(x, self.nodes, self.table[:, k]) * amplitude
        elif self.smooth:
            self._look_up(x, out)
        else:
            out[:] = self._exact(x.ravel()).reshape(out.shape)

    def _look_up(self, x: Float, out: Float) -> None:
        inside = x > 0
        log = np.log2(np.where(inside, x, 1.0).astype(np.float64))
        inside &= (log >= self.first) & (log < self.last)
        place = np.where(inside, (log - self.first) * _PER_OCTAVE, 0.0)
        cell = place.astype(np.int64)
        s = place - cell
        amplitude = np.where(inside, x, 0.0) ** self.half_degree
        # Cubic through four neighbours: error (step⁴) · 3/128 of the fourth derivative, below 1e-8.
        a, b, c = (s + 1.0) * s, (s - 1.0) * (s - 2.0), s - 2.0
        near = (-s * b / 6.0, (s + 1.0) * b / 2.0, -a * c / 2.0, a * (s - 1.0) / 6.0)
        for k in range(self.m):
            table = self.table[:, k]
            value = sum(weight * table[cell + i] for i, weight in enumerate(near))
            out[..., k] = value * amplitude
        outside = ~inside & (x > 0)
        if outside.any():
            out[outside] = self._exact(x[outside])
