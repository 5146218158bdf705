"""Columns that are products of random projections: what all Maclaurin maps are made of.

Complex columns are kept by descending degree, so that the factors of level j are the leading ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, dense, frozen, is_sparse
from bochner.hot.columns import products
from bochner.hot.reference import hadamard, power_of_two
from bochner.seeds import Seed

#: columns worked on at once (up to twice as many): their factors stay in the cache of a core
_COLUMNS = 1024


def by_degree(degrees: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[int]]:
    """The order of descending degrees, and how many columns have a factor at each level."""
    order = np.argsort(-degrees, kind="stable")
    levels = [int((degrees > level).sum()) for level in range(int(degrees.max(initial=0)))]
    return order, levels


def per_factor(weights: Float64, degrees: NDArray[np.int64]) -> Float64:
    """|weight|^(1/degree): spread over the factors, it cannot overflow before they do."""
    return np.asarray(np.power(weights, 1.0 / np.maximum(degrees, 1)))


class RademacherProducts:
    """Real columns weight · ∏ⱼ ωⱼᵀx with independent signs ω, given as rows (Σ degrees, d), column by column."""

    def __init__(self, degrees: NDArray[np.int64], weights: Float64, signs: NDArray[np.int8]):
        self.start = frozen(np.concatenate([[0], np.cumsum(degrees)]), np.int64)
        self.constant = frozen(np.where(degrees == 0, weights, 1.0))
        self.signs = frozen(signs, np.int8)
        self.roots = frozen(np.repeat(per_factor(weights, degrees), degrees))
        self.width = len(degrees)

    def fill(self, X: Matrix, out: Float) -> None:
        bounds = np.linspace(0, self.width, max(1, self.width // _COLUMNS) + 1).astype(int)
        # One room for all blocks: fresh memory costs as much as the product.
        room = np.empty((np.diff(self.start[bounds]).max(), X.shape[0]), dtype=out.dtype)
        for columns in map(slice, bounds[:-1], bounds[1:]):
            start = self.start[columns.start : columns.stop + 1]
            few = slice(start[0], start[-1])
            signs = self.signs[few].astype(out.dtype)
            signs *= self.roots[few, None].astype(out.dtype)
            factors = (X @ signs.T).T if is_sparse(X) else np.matmul(signs, X.T, out=room[: len(signs)])
            products(factors, start - start[0], self.constant[columns], out.T[columns])


class ComplexSketch:
    """Complex projections [H diag(δ) x]_π with δ ∈ {±1, ±i}: E u(x) conj(u(y)) = ⟨x, y⟩, E u(x) u(y) = 0.

    Each block of p = 2^⌈log₂ d⌉ columns has fresh signs and its own permutation of the rows of H.
    """

    def __init__(self, d: int, count: int, seed: Seed):
        self.size, self.count = power_of_two(d), count
        blocks = -(-count // self.size)
        codes = seed.stream("signs").signs(blocks, 2, self.size)
        # δ = s or is, with s the first sign and i where the second is −1.
        sign, turn = codes[:, 0], codes[:, 1] < 0
        self.parts = frozen(np.stack([np.where(turn, 0, sign), np.where(turn, sign, 0)], axis=1), np.int8)
        order = np.argsort(seed.stream("rows").uniform(blocks, self.size), axis=1)
        self.places = frozen((order + self.size * np.arange(blocks)[:, None]).ravel()[:count], np.int64)

    def __call__(self, rows: Float) -> Float:
        """Sketches (n, count), complex in the precision of the rows."""
        n = rows.shape[0]
        padded = np.zeros((n, 1, 1, self.size), dtype=rows.dtype)
        padded[:, 0, 0, : rows.shape[1]] = rows
        u = hadamard(padded * self.parts.astype(rows.dtype))
        out = np.empty((n, self.count), dtype=np.result_type(rows.dtype, np.complex64))
        out.real = u[:, :, 0].reshape(n, -1)[:, self.places]
        out.imag = u[:, :, 1].reshape(n, -1)[:, self.places]
        return out


class HadamardProducts:
    """Complex columns weight · ∏ⱼ sketchⱼ(x), as real and imaginary parts side by side.

    Complex-to-real structured sketches (Wacker et al. 2022): every factor has a sketch of its own.
    """

    def __init__(self, degrees: NDArray[np.int64], weights: Float64, d: int, seed: Seed):
        self.order, self.levels = by_degree(degrees)
        self.width = 2 * len(degrees)
        self.constant = frozen(np.where(degrees == 0, weights, 1.0)[self.order])
        self.roots = frozen(per_factor(weights, degrees)[self.order])
        factors = enumerate(self.levels)
        self.sketches = [ComplexSketch(d, count, seed.child("factor", level)) for level, count in factors]

    def fill(self, X: Matrix, out: Float) -> None:
        rows = dense(X)
        product = np.empty((rows.shape[0], self.width // 2), dtype=np.result_type(out.dtype, np.complex64))
        product[:] = self.constant
        for sketch in self.sketches:
            product[:, : sketch.count] *= sketch(rows) * self.roots[: sketch.count].astype(out.dtype)
        out[:, 2 * self.order] = product.real
        out[:, 2 * self.order + 1] = product.imag
