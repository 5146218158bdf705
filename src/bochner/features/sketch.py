"""TensorSketch of dot-product kernels (Pham & Pagh 2013) and Fastfood (Le, Sarlós & Smola 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bochner.arrays import Float, Matrix, Rows, dense, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register, who_lacks
from bochner.features.fourier import ADVICE as FOURIER_ADVICE
from bochner.features.frequencies import Frequencies, draw_norms
from bochner.features.maclaurin import apportion, reach_of, require_reach, series_of
from bochner.hot.columns import count_sketch
from bochner.hot.reference import circular_product, hadamard, power_of_two
from bochner.kernels import Exponential, Gaussian, Homogeneous, Matern, Polynomial
from bochner.kernels.spectrum import Radial
from bochner.seeds import Seed


@register
@dataclass(frozen=True, eq=False, repr=False)
class TensorSketch(FeatureMap):
    """ifft ∏ⱼ fft(count sketch j of x): an unbiased sketch of ⟨x, y⟩ⁿ in O(n (nnz + D log D)).

    (r + ⟨x, y⟩)ⁿ is one sketch of x with the entry √r added; any other series gets a sketch for each
    degree, with columns in proportion to aₙR^(2n), until the tail is below 1e-9 of the kernel at R.
    ``reach`` is R², the largest ‖x‖² of the sample (1 without one).
    """

    reach: float | None = None
    unbiased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_reach(self.reach)

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        return self if self.reach is not None else replace(self, reach=reach_of(sample))

    def _draw(self, d: int, seed: Seed) -> DrawnTensorSketch:
        return DrawnTensorSketch(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Homogeneous(2), 64)
        yield cls(Polynomial(3, offset=0.5), 64)
        yield cls(Exponential(), 64)


class DrawnTensorSketch(Drawn):
    """Parts (degree, added entry, weight, width) with a hash for each factor."""

    def __init__(self, recipe: TensorSketch, d: int, seed: Seed):
        kernel, reach = recipe.kernel, float(recipe.settled("reach"))
        if isinstance(kernel, Polynomial):
            parts = [(kernel.degree, kernel.offset, 1.0, recipe.n_features)]
        else:
            a = series_of(kernel).significant(reach, 1e-9, most=64)
            present = np.flatnonzero(a)
            if len(present) > recipe.n_features:
                raise MapError(f"{recipe.n_features} features are too few for {len(present)} degrees of {kernel}")
            mass = a * np.power(reach, np.arange(len(a)))
            mass[0] = 0.0  # one constant column is exact
            shares = (a > 0.0).astype(np.int64)
            if mass.any():
                shares += apportion(mass, recipe.n_features - len(present))
            parts = [(int(n), 0.0, float(a[n]), int(shares[n])) for n in present]
        self.parts = []
        for number, (degree, offset, weight, width) in enumerate(parts):
            streams = [seed.stream("sketch", number, j) for j in range(degree)]
            hashes = [(frozen(s.integers(width, d + 1)), frozen(s.signs(d + 1))) for s in streams]
            self.parts.append((offset, float(np.sqrt(weight)), width, hashes))
        super().__init__(recipe, d, seed, sum(width for _, _, width, _ in self.parts))
        self.tile = max(16, (1 << 16) // self.width)  # larger transforms would get fresh memory for each tile

    def _fill(self, X: Matrix, out: Float) -> None:
        rows, start = dense(X), 0
        for offset, weight, width, hashes in self.parts:
            target = out[:, start : start + width]
            if hashes:
                wide = np.column_stack([rows, np.full(len(rows), np.sqrt(offset), dtype=rows.dtype)])
                target[:] = circular_product([count_sketch(wide, h, s, width) for h, s in hashes])
                target *= out.dtype.type(weight)
            else:
                target[:] = 0
                target[:, 0] = weight
            start += width


@register
@dataclass(frozen=True, eq=False, repr=False)
class Fastfood(FeatureMap):
    """Frequencies S H G Π H B/√p in O(log d) each: for speed and storage, not for accuracy.

    ("hadamard" frequencies of RandomFourier are as fast and have less error.)
    """

    prefix_stable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_features < 2:
            raise MapError("Fastfood makes pairs: n_features must be at least 2")

    def _draw(self, d: int, seed: Seed) -> DrawnFastfood:
        return DrawnFastfood(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Gaussian(0.5 / d), 64)
        yield cls(Matern(1.5, d**0.5), 64)


class FastfoodFrequencies(Frequencies):
    """Blocks of p frequencies: signs B, permutation Π, normals G, norms S."""

    def __init__(self, spectrum: Radial, d: int, count: int, seed: Seed):
        super().__init__(spectrum, count)
        self.size = p = power_of_two(d)
        blocks = -(-count // p)
        self.signs = frozen(seed.stream("B").signs(blocks, p), np.int8)
        self.order = frozen(np.argsort(seed.stream("P").uniform(blocks, p), axis=1))
        self.G = frozen(seed.stream("G").normal(blocks, p))
        norms = draw_norms(spectrum, p * blocks, p, seed).reshape(blocks, p)
        self.S = frozen(norms / np.linalg.norm(self.G, axis=1, keepdims=True) / np.sqrt(p))
        self.scale = frozen(spectrum.columns(d)[:, 0])

    def _project(self, E: Matrix) -> Float:
        rows = dense(E) * self.scale.astype(E.dtype)
        padded = np.zeros((len(rows), 1, self.size), dtype=rows.dtype)
        padded[:, 0, : rows.shape[1]] = rows
        u = hadamard(padded * self.signs)
        u = np.take_along_axis(u, np.broadcast_to(self.order, u.shape), axis=2)
        u = hadamard(u * self.G.astype(u.dtype)) * self.S.astype(u.dtype)
        return np.asarray(u.reshape(len(rows), -1)[:, : self.count])


class DrawnFastfood(Drawn):
    """cos and sin of the phases, side by side."""

    def __init__(self, recipe: Fastfood, d: int, seed: Seed):
        spectrum = recipe.kernel.spectrum()
        if not isinstance(spectrum, Radial):
            raise who_lacks(recipe.kernel, "radial spectrum", FOURIER_ADVICE)
        count = recipe.n_features // 2
        super().__init__(recipe, d, seed, 2 * count)
        self.frequencies = FastfoodFrequencies(spectrum, d, count, seed)
        self.amplitude = float(np.sqrt(spectrum.mass / count))

    def _fill(self, X: Matrix, out: Float) -> None:
        phases = self.frequencies.project(X)
        np.cos(phases, out=out[:, 0::2])
        np.sin(phases, out=out[:, 1::2])
        out *= out.dtype.type(self.amplitude)
