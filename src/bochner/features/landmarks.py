"""Which rows represent a sample best: uniform, k-means, leverage scores, randomly pivoted Cholesky."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from bochner.arrays import Float64, Matrix, dense, tiles
from bochner.errors import MapError
from bochner.kernels.base import Kernel
from bochner.kernels.pairwise import squared_distances
from bochner.seeds import Seed

LANDMARKS = ("uniform", "rpcholesky", "leverage", "kmeans")
#: a residual below this share of K(x, x) is rounding, not a direction
_ROUNDING = 1e-12


def choose_landmarks(how: str, kernel: Kernel, X: Matrix, count: int, seed: Seed) -> Float64:
    """At most ``count`` landmark rows, dense and in float64."""
    X = X.astype(np.float64)
    if X.shape[0] < count:
        raise MapError(f"{count} landmarks are asked for, the sample has {X.shape[0]} rows")
    if how == "kmeans":
        return centres(dense(X), count, seed)
    if how == "uniform":
        picks = seed.stream("landmarks").permutation(X.shape[0])[:count]
    elif how == "leverage":
        picks = leverage_rows(kernel, X, count, seed)
    else:
        picks = pivoted_rows(kernel, X, count, seed)[0]
    return dense(X[picks])


def pivoted_rows(kernel: Kernel, X: Matrix, count: int, seed: Seed) -> tuple[NDArray[np.int64], Float64]:
    """Rows by randomly pivoted Cholesky, and the diagonal of K that they leave.

    Accelerated form (Epperly, Tropp & Webber 2024): a block is proposed from the current residual
    diagonal and thinned by rejection on its exact residual block, so that the law of the pivots is
    the sequential one.  The sum of what is left is the trace of the error: a certificate.  Fewer rows
    come back when those leave nothing but rounding.
    """
    stream = seed.stream("pivots")
    n = X.shape[0]
    whole = kernel._diag(X).astype(np.float64)
    left = whole.copy()
    F = np.zeros((count, n))
    picks: list[int] = []
    while len(picks) < count and left.sum() > _ROUNDING * whole.sum():
        size = min(max(8, count // 10), count)
        proposed = stream.choice(left, size)
        rows = X[proposed]
        done = len(picks)
        block = kernel._gram(rows, rows) - F[:done, proposed].T @ F[:done, proposed]
        least = _ROUNDING * whole[proposed]
        left[proposed[np.diag(block) <= least]] = 0.0
        accepted = _thin(block, left[proposed], least, stream.uniform(size))[: count - done]
        if not accepted:
            continue
        chosen = proposed[accepted]
        G = kernel._gram(X[chosen], X) - F[:done, chosen].T @ F[:done]
        corner = G[:, chosen]
        root = cholesky(corner + 1e-14 * np.trace(corner) * np.eye(len(chosen)), lower=True)
        F[done : done + len(chosen)] = solve_triangular(root, G, lower=True)
        left = np.maximum(left - np.square(F[done : done + len(chosen)]).sum(axis=0), 0.0)
        left[chosen] = 0.0
        picks.extend(int(i) for i in chosen)
    return np.asarray(picks, dtype=np.int64), left


def _thin(block: Float64, bound: Float64, least: Float64, uniforms: Float64) -> list[int]:
    """Accept proposal i with probability residual / proposed residual, eliminating as we go."""
    H, accepted = block.copy(), []
    for i in range(len(H)):
        pivot = H[i, i]
        if pivot > least[i] and uniforms[i] * bound[i] < pivot:
            accepted.append(i)
            H[i + 1 :, i + 1 :] -= np.outer(H[i + 1 :, i], H[i, i + 1 :]) / pivot
    return accepted


def leverage_rows(kernel: Kernel, X: Matrix, count: int, seed: Seed) -> NDArray[np.int64]:
    """Rows drawn by approximate ridge leverage scores (the penalty that makes them sum to half of count).

    Scores (K(x,x) − k(x,S)(K_SS + λ)⁻¹k(S,x))/λ against a uniform subset S, after Rudi et al. (2018).
    """
    n = X.shape[0]
    stream = seed.stream("leverage")
    subset = stream.permutation(n)[: min(n, max(2 * count, 50))]
    K = kernel._gram(X[subset], X[subset])
    eigenvalues = np.maximum(np.linalg.eigvalsh(K), 0.0) * (n / len(subset))
    low, high = 1e-14, float(eigenvalues.sum()) + 1e-14
    for _ in range(100):  # the effective dimension falls as the penalty grows
        penalty = np.sqrt(low * high)
        wide = (eigenvalues / (eigenvalues + penalty)).sum() > 0.5 * count
        low, high = (penalty, high) if wide else (low, penalty)
    shrunk = penalty * len(subset) / n
    root = cholesky(K + (shrunk + 1e-12 * np.trace(K)) * np.eye(len(subset)), lower=True)
    scores = np.empty(n)
    for rows in tiles(n, 1024):
        projected = solve_triangular(root, kernel._gram(X[subset], X[rows]), lower=True)
        scores[rows] = kernel._diag(X[rows]) - np.square(projected).sum(axis=0)
    # Weighted sampling without replacement: the largest u^(1/w) (Efraimidis & Spirakis).
    keys = np.log(stream.uniform(n)) / np.maximum(scores, 1e-300)
    return np.argsort(-keys, kind="stable")[:count].astype(np.int64)


def centres(X: Float64, count: int, seed: Seed, sweeps: int = 15) -> Float64:
    """k-means centres (k-means++ start, Lloyd's sweeps); an empty cluster keeps its centre."""
    stream = seed.stream("kmeans")
    C = np.empty((count, X.shape[1]))
    C[0] = X[stream.integers(X.shape[0], 1)[0]]
    nearest = np.square(X - C[0]).sum(axis=1)
    for j in range(1, count):
        C[j] = X[stream.choice(nearest + 1e-300, 1)[0]]
        np.minimum(nearest, np.square(X - C[j]).sum(axis=1), out=nearest)
    for _ in range(sweeps):
        label = np.concatenate([squared_distances(X[rows], C).argmin(axis=1) for rows in tiles(len(X), 2048)])
        counts = np.bincount(label, minlength=count)
        order = np.argsort(label, kind="stable")
        filled = np.flatnonzero(counts)
        starts = (np.cumsum(counts) - counts)[filled]
        moved = C.copy()
        moved[filled] = np.add.reduceat(X[order], starts, axis=0) / counts[filled, None]
        if np.allclose(moved, C, rtol=1e-6, atol=0.0):
            break
        C = moved
    return C
