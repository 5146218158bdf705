"""A preconditioner from a sketch of the rows: the inverse of SᵀS + shift, with SᵀS near the scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh_tridiagonal
from scipy.optimize import brentq

from bochner.arrays import Float, Float64
from bochner.seeds import Seed

#: the share of the rows of a sketch that its effective dimension may take up: below the shift that does this, its
#: eigenvalues are those of chance (measured: 0.4 to 0.6 need the fewest sweeps, for sketches of D/4 to 2D rows)
FILLED = 0.5
#: steps of Lanczos' method for the spectrum
_STEPS = 48


class Preconditioner:
    """r ↦ (SᵀS + shift)⁻¹ r for a sketch S (m, D), by a Cholesky factor of the smaller side for each shift.

    The shift is the penalty at least, and such that tr SSᵀ(SSᵀ + shift)⁻¹ is m/2: a sketch knows no more
    directions than that.  So small penalties share a factor.  For m < D, (SᵀS + μ)⁻¹ = (1 − Sᵀ(SSᵀ + μ)⁻¹S)/μ.
    """

    def __init__(self, sketch: Float, seed: Seed | None = None):
        rows, width = sketch.shape
        wide = rows < width
        self._gram = sketch @ sketch.T if wide else sketch.T @ sketch
        self._sketch: Float | None = sketch if wide else None
        nodes, shares = spectrum(self._gram, seed or Seed(0))
        # Rounding of the products moves eigenvalues by so much.
        floor = 50.0 * float(np.finfo(sketch.dtype).eps) * float(nodes.max(initial=0.0))
        self.least = max(_filling(nodes, len(self._gram) * shares, FILLED * rows), floor)
        self._factors: dict[float, Any] = {}

    def __call__(self, residual: Float64, penalty: Float64) -> Float64:
        """(SᵀS + shift)⁻¹ times the columns of a residual, with a penalty for each."""
        out = np.empty_like(residual)
        shifts = np.maximum(penalty, self.least)
        for shift in np.unique(shifts):
            out[:, shifts == shift] = self._solve(residual[:, shifts == shift], float(shift))
        return out

    def _solve(self, residual: Float64, shift: float) -> Float64:
        factor, shift = self._factor(shift)
        # Lengths can be beyond single precision; directions are not.
        length = np.maximum(np.abs(residual).max(axis=0, initial=0.0), np.finfo(float).tiny)
        r = (residual / length).astype(factor[0].dtype)
        if self._sketch is None:
            found = cho_solve(factor, r, check_finite=False).astype(np.float64)
            return np.asarray(found * length)
        inner = cho_solve(factor, self._sketch @ r, check_finite=False)
        return np.asarray((r.astype(np.float64) - self._sketch.T @ inner) * (length / shift))

    def _factor(self, asked: float) -> tuple[Any, float]:
        """The factor for a shift, and the shift that it has: a larger one where rounding leaves none for this."""
        if asked not in self._factors:
            shift = max(asked, float(np.finfo(self._gram.dtype).tiny))
            while True:
                shifted = np.array(self._gram, order="F")
                shifted[np.diag_indices(len(shifted))] += shift
                try:
                    found = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
                    break
                except LinAlgError:
                    shift *= 10.0
            self._factors[asked] = found, shift
        return self._factors[asked]  # type: ignore[no-any-return]


def spectrum(gram: Float, seed: Seed) -> tuple[Float64, Float64]:
    """Nodes and shares of a quadrature over the eigenvalues of a symmetric matrix (Golub & Meurant 1994).

    One random vector will do for a large matrix: the shares are right to 1/√(its size).
    """
    size = len(gram)
    steps = min(_STEPS, size)
    basis = np.zeros((steps, size), dtype=gram.dtype)
    vector = seed.stream("probe").signs(size).astype(gram.dtype) / np.sqrt(size)
    diagonal, beside = [], list[float]()
    for step in range(steps):
        basis[step] = vector
        product = gram @ vector
        diagonal.append(float(vector @ product))
        for _ in range(2):  # orthogonal to all before, to rounding
            product = product - basis[: step + 1].T @ (basis[: step + 1] @ product)
        length = float(np.linalg.norm(product))
        if step + 1 == steps or length <= 1e-6 * max(diagonal):
            break
        beside.append(length)
        vector = product / length
    nodes, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside))
    return np.maximum(nodes, 0.0), np.square(vectors[0])


def _filling(nodes: Float64, counts: Float64, dimension: float) -> float:
    """The shift at which Σ counts · node/(node + shift) is ``dimension``; 0 where it is never that much."""
    live = nodes > 1e-9 * nodes.max(initial=0.0)
    nodes, counts = nodes[live], counts[live]
    if counts.sum() <= dimension:
        return 0.0

    def excess(log: float) -> float:
        return float((counts * nodes / (nodes + np.exp(log))).sum()) - dimension

    low, high = np.log(1e-9 * nodes.min()), np.log(1e9 * nodes.max())
    return float(np.exp(brentq(excess, low, high))) if excess(low) > 0.0 > excess(high) else 0.0
