"""Sums over columns of a function of two entries, without an n × m × d temporary."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from bochner.arrays import Float64, Matrix, dense, tiles

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
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def products(X: Matrix, Y: Matrix) -> Float64:
    """⟨xᵢ, yₖ⟩ as a dense array."""
    result = X @ Y.T
    return np.asarray(result.toarray() if sp.issparse(result) else result, dtype=np.float64)


def squared_distances(X: Matrix, Y: Matrix) -> Float64:
    """‖xᵢ − yₖ‖², after centring so that a common offset does not cancel digits; zero on a diagonal."""
    same = X is Y
    if not (sp.issparse(X) or sp.issparse(Y)):
        centre = Y.mean(axis=0) if len(Y) else 0.0
        X, Y = X - centre, Y - centre
    squared = squared_norms(X)[:, None] + squared_norms(Y)[None, :] - 2.0 * products(X, Y)
    np.maximum(squared, 0.0, out=squared)
    if same:
        np.fill_diagonal(squared, 0.0)
    return squared


def absolute_distances(X: Matrix, Y: Matrix) -> Float64:
    """‖xᵢ − yₖ‖₁."""
    if not sp.issparse(X):
        return np.asarray(cdist(X, dense(Y), "cityblock"))
    right = dense(Y)
    return np.concatenate([cdist(dense(X[rows]), right, "cityblock") for rows in tiles(X.shape[0], 256)])


def upper(G: Float64) -> Float64:
    """The entries above the diagonal of a square matrix: one for each pair of different rows."""
    return G[np.triu_indices(len(G), 1)]
