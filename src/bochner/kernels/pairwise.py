"""Sums over columns of a function of two entries, without an n × m × d temporary."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from bochner.arrays import Float64, Matrix, dense, is_sparse, tiles

_ENTRIES = 1 << 18  # of a temporary: small enough for the cache, large enough for NumPy


def sum_over_columns(pair: Callable[[Float64, Float64], Float64], X: Matrix, Y: Matrix) -> Float64:
    """Σⱼ pair(xᵢⱼ, yₖⱼ) for all rows i of X and k of Y."""
    n, m, d = X.shape[0], Y.shape[0], X.shape[1]
    out = np.zeros((n, m))
    columns = tiles(d, max(1, min(d, 4096)))
    for rows in tiles(n, max(1, _ENTRIES // max(1, min(m, 256) * min(d, 4096)))):
        left = dense(X[rows])
        for others in tiles(m, 256):
            right = dense(Y[others])
            for part in columns:
                out[rows, others] += pair(left[:, None, part], right[None, :, part]).sum(axis=-1)
    return out


def squared_norms(X: Matrix) -> Float64:
    """‖xᵢ‖²."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def products(X: Matrix, Y: Matrix) -> Float64:
    """⟨xᵢ, yₖ⟩ as a dense array."""
    return np.asarray(dense(X @ Y.T), dtype=np.float64)


def squared_distances(X: Matrix, Y: Matrix) -> Float64:
    """‖xᵢ − yₖ‖² to nearly full relative precision; zero on the diagonal of a matrix with itself.

    ‖x‖² + ‖y‖² − 2⟨x, y⟩ is fast but cancels for close rows, which kernels with a cusp (Matérn of
    small ν) would show; rows are centred, and what is still close is computed from differences.
    """
    same, A, B = X is Y, X, Y
    if not (is_sparse(X) or is_sparse(Y)):
        centre = Y.mean(axis=0) if len(Y) else 0.0
        A, B = X - centre, Y - centre
    left, right = squared_norms(A), squared_norms(B)
    out = np.empty((len(left), len(right)))
    for rows in tiles(len(left), _ENTRIES // max(1, len(right))):
        squared = out[rows]
        with np.errstate(over="ignore", invalid="ignore"):  # huge rows: ∞ − ∞, computed again below
            np.multiply(products(A[rows], B), -2.0, out=squared)
            norms = left[rows, None] + right
            squared += norms
            norms *= 1e-6
            close = ~(squared > norms)
        if same:
            diagonal = np.arange(len(squared)), np.arange(rows.start, rows.stop)
            close[diagonal], squared[diagonal] = False, 0.0
        for i, j in _pairs(close, X.shape[1]):
            squared[i, j] = squared_norms(X[i + rows.start] - Y[j])
    return out


def _pairs(chosen: NDArray[np.bool_], d: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Row and column numbers of what is chosen, a tile at a time."""
    i, j = np.nonzero(chosen)
    for part in tiles(len(i), _ENTRIES // max(1, d)):
        yield i[part], j[part]


def absolute_distances(X: Matrix, Y: Matrix) -> Float64:
    """‖xᵢ − yₖ‖₁."""
    out = np.zeros((X.shape[0], Y.shape[0]))
    if X.shape[1]:
        right = dense(Y)
        for rows in tiles(X.shape[0], 256):
            out[rows] = cdist(dense(X[rows]), right, "cityblock")
    return out


def upper(G: Float64) -> Float64:
    """The entries above the diagonal of a square matrix: one for each pair of different rows."""
    return G[np.triu_indices(len(G), 1)]
