"""Frequencies of a spectrum, and how rows are projected on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property

import numpy as np

from bochner.arrays import Float, Float64, Matrix, dense, frozen, is_sparse
from bochner.errors import MapError
from bochner.features.points import BLOCK, POINTS, directions, sobol
from bochner.hot.fourier import cos_sin, structured
from bochner.hot.reference import hadamard, power_of_two
from bochner.kernels.spectrum import Spectrum
from bochner.seeds import Seed

#: in fewer dimensions three Hadamard factors are too regular: rms bias 3e-2 at 4, 2e-3 at 16, below 3e-4 from 32 on
_LEAST_BLOCK = 64

LAWS = ("iid", "orthogonal", "hadamard", "sobol", "latin", "extremes")


class Frequencies(ABC):
    """w₁ … w_s of a spectrum; ``project`` gives the phases e(x)ᵀw."""

    def __init__(self, spectrum: Spectrum, count: int):
        self.spectrum, self.count = spectrum, count

    def project(self, X: Matrix) -> Float:
        """Phases (n, count) in the precision of X.

        Heavy-tailed frequencies reach 1e8, where float32 has no digits left of a phase: those are
        formed in float64 and reduced to a turn first.
        """
        if not self.spectrum.heavy:
            return self._project(self.spectrum.embed(X))
        phases = self._project(self.spectrum.embed(X.astype(np.float64)))
        turns = phases / (2.0 * np.pi)
        return np.asarray(2.0 * np.pi * (turns - np.rint(turns)), dtype=X.dtype)

    @abstractmethod
    def _project(self, E: Matrix) -> Float: ...

    def matrix_of(self, d: int) -> Float64:
        """All frequencies as one matrix (width, count): phases are linear in the embedded coordinates."""
        return np.asarray(self._project(np.eye(self.spectrum.width(d))))

    def part(self, start: int, stop: int) -> Frequencies | None:
        """Frequencies ``start`` to ``stop`` alone, where they can be had without the others."""
        return None

    def pairs(self, X: Matrix, amplitude: float, out: Float) -> None:
        """cos and sin of every phase by turns, times ``amplitude``, into ``out`` (2 count, n): feature by row."""
        cos_sin(self.project(X).T, 1.0 / (2.0 * np.pi), amplitude, out)


class Dense(Frequencies):
    """A matrix of frequencies, (width, count)."""

    def __init__(self, spectrum: Spectrum, matrix: Float64):
        super().__init__(spectrum, matrix.shape[1])
        self.matrix = {np.dtype(np.float64): frozen(matrix, np.float64)}

    def part(self, start: int, stop: int) -> Dense:
        return Dense(self.spectrum, self.matrix[np.dtype(np.float64)][:, start:stop])

    def _project(self, E: Matrix) -> Float:
        if E.dtype not in self.matrix:
            self.matrix[E.dtype] = frozen(self.matrix[np.dtype(np.float64)], E.dtype)
        if is_sparse(E):
            return np.asarray(E @ self.matrix[E.dtype])
        return np.asarray((self.matrix[E.dtype].T @ E.T).T)  # phase by row in memory, as pairs are made


class Structured(Frequencies):
    """SORF: blocks H D₁ H D₂ H D₃ of orthonormal Hadamard factors, each row times a norm.

    Norms of constant length √p would be biased in few dimensions; they follow the chi law of p.
    """

    def __init__(self, spectrum: Spectrum, width: int, count: int, seed: Seed):
        super().__init__(spectrum, count)
        self.size = size = max(_LEAST_BLOCK, power_of_two(width))
        blocks = -(-count // size)
        self.signs = frozen(np.stack([seed.stream("signs", j).signs(3, size) for j in range(blocks)], axis=1), np.int8)
        self.norms = frozen(draw_norms(spectrum, count, size, seed) / size**1.5, np.float64)
        self.scale = frozen(spectrum.columns(width)[:, 0], np.float64)

    def _project(self, E: Matrix) -> Float:
        rows = dense(E) * self.scale.astype(E.dtype)
        padded = np.zeros((rows.shape[0], 1, self.size), dtype=rows.dtype)
        padded[:, 0, : rows.shape[1]] = rows
        for signs in self.signs:
            padded = hadamard(padded * signs)
        flat = padded.reshape(rows.shape[0], -1)[:, : self.count]
        return np.asarray(flat * self.norms.astype(rows.dtype))

    def part(self, start: int, stop: int) -> Structured | None:
        if start % self.size:
            return None
        part = copy(self)
        part.__dict__.pop("_single", None)
        part.count, part.norms = stop - start, self.norms[start:stop]
        part.signs = self.signs[:, start // self.size : -(-stop // self.size)]
        return part

    def pairs(self, X: Matrix, amplitude: float, out: Float) -> None:
        if self.spectrum.heavy or out.dtype != np.float32:
            super().pairs(X, amplitude, out)
            return
        E = dense(self.spectrum.embed(X))
        rows = np.zeros((self.size, E.shape[0]), dtype=np.float32)
        np.multiply(E.T, self.scale.astype(np.float32)[:, None], out=rows[: E.shape[1]])
        structured(rows, *self._single, amplitude, out)

    @cached_property
    def _single(self) -> tuple[Float, Float]:
        """Signs (3, all) and norms of turns in single precision."""
        return frozen(self.signs.reshape(3, -1), np.float32), frozen(self.norms / (2.0 * np.pi), np.float32)


def draw_norms(spectrum: Spectrum, count: int, degrees: int, seed: Seed) -> Float64:
    """Norms at scrambled Sobol' points through their quantiles.

    Each has its law and is independent of its direction, so that nothing is biased, and heavy-tailed
    norms are stratified: 0.6 to 0.8 of the error of independent norms for Matérn and Cauchy kernels.
    """
    if spectrum.radius_dims == 0:
        raise MapError(
            "hadamard frequencies need a radial spectrum (Gaussian, Matérn, Cauchy …); use 'orthogonal' or 'sobol'"
        )
    return spectrum.radii(sobol(seed.child("norms"), count, spectrum.radius_dims), degrees)


def draw_frequencies(spectrum: Spectrum, d: int, count: int, law: str, seed: Seed) -> Frequencies:
    """``count`` frequencies by one of the laws; all but "latin" are prefix-stable.

    Orthogonal directions take the norms of a radial law; independent coordinates are the quantiles of
    orthogonal normals (a Gaussian copula).
    """
    width = spectrum.width(d)
    if law == "hadamard":
        return Structured(spectrum, width, count, seed)
    if law == "orthogonal" and spectrum.radius_dims > 0:
        return Dense(
            spectrum, spectrum.columns(d) * directions(width, count, seed) * draw_norms(spectrum, count, width, seed)
        )
    return Dense(spectrum, spectrum.quantile(POINTS[law](seed, count, spectrum.dims(d)), d))


def draw_offsets(count: int, seed: Seed) -> Float64:
    """Random phases in (0, 2π)."""
    parts = [seed.stream("offset", j).uniform(min(BLOCK, count - s)) for j, s in enumerate(range(0, count, BLOCK))]
    return 2.0 * np.pi * np.concatenate(parts)
