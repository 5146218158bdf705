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
    """r ↦ (SᵀS + shift)⁻¹ r for a sketch S (m, D), by one Cholesky factor of the smaller side.

    The shift is the penalty at least, and such that tr SSᵀ(SSᵀ + shift)⁻¹ is m/2: a sketch knows no more
    directions than that.  For m < D, (SᵀS + μ)⁻¹ = (1 − Sᵀ(SSᵀ + μ)⁻¹S)/μ.
    """

    def __init__(self, sketch: Float, penalty: float, seed: Seed | None = None):
        rows, width = sketch.shape
        self.wide = rows < width
        gram = sketch @ sketch.T if self.wide else sketch.T @ sketch
        self._sketch: Float | None = sketch if self.wide else None
        nodes, shares = spectrum(gram, seed or Seed(0))
        largest = float(nodes.max(initial=0.0))
        self.shift = max(penalty, _filling(nodes, len(gram) * shares, FILLED * rows))
        while True:
            # Rounding of the products moves eigenvalues by this much.
            self.shift = max(self.shift, 50.0 * float(np.finfo(gram.dtype).eps) * largest, np.finfo(float).tiny)
            shifted = np.array(gram, order="F")
            shifted[np.diag_indices(len(gram))] += self.shift
            try:
                self._factor: Any = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
                return
            except LinAlgError:
                self.shift, largest = 10.0 * self.shift, 10.0 * largest

    def __call__(self, residual: Float64) -> Float64:
        """(SᵀS + shift)⁻¹ times the columns of a residual."""
        # Lengths can be beyond single precision; directions are not.
        length = np.maximum(np.abs(residual).max(axis=0, initial=0.0), np.finfo(float).tiny)
        r = (residual / length).astype(self._factor[0].dtype)
        if self._sketch is None:
            found = cho_solve(self._factor, r, check_finite=False).astype(np.float64)
            return np.asarray(found * length)
        inner = cho_solve(self._factor, self._sketch @ r, check_finite=False)
        return np.asarray((r.astype(np.float64) - self._sketch.T @ inner) * (length / self.shift))


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
