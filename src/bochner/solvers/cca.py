"""Canonical correlations of two views from the joint moments of their features.

The weights a, b maximise aᵀ S₁₂ b under aᵀ (S₁₁ + penalty₁) a = bᵀ (S₂₂ + penalty₂) b = Σw, and so on in turn
(Hotelling 1936; Hardoon, Szedmak & Shawe-Taylor 2004): the singular vectors of S₁₂ between whitened views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers.ridge import inverses, splits
from bochner.stats.moments import Part

#: squares of singular values, in units of the largest, that are too small for a Gram matrix
_SMALL = 1e-6


@dataclass(frozen=True)
class Canonical:
    """Scores (z₁ − mean₁) @ left and (z₂ − mean₂) @ right.

    ``values`` are the singular values: without a penalty these are the correlations, and scores have mean square 1.
    """

    left: Float64
    right: Float64
    values: Float64


@dataclass(frozen=True)
class Views:
    """The eigendecompositions of two views' scatters, after which any penalties cost one singular decomposition."""

    part: Part
    split: int
    eigen: tuple[tuple[Float64, Float64], tuple[Float64, Float64]]
    between: Float64

    @classmethod
    def of(cls, part: Part, split: int) -> Views:
        """The first ``split`` features are one view, the others the other."""
        if not 0 < split < part.width:
            raise SolverError(f"{part.width} features cannot be split after {split} into two views")
        S = part.scatter
        (a, U), (b, V) = (_varying(block) for block in (S[:split, :split], S[split:, split:]))
        return cls(part, split, ((a, U), (b, V)), U.T @ S[:split, split:] @ V)

    def solve(self, penalties: tuple[float, float], rank: int) -> Canonical:
        """The first pairs of weights; signs are such that the left score's largest weight is positive."""
        (a, U), (b, V) = self.eigen
        roots = [np.sqrt(inverses(values + p)) for values, p in zip((a, b), penalties, strict=True)]
        P, values, Q = _singular(roots[0][:, None] * self.between * roots[1], rank)
        size = np.sqrt(self.part.weight)
        left, right = U @ (roots[0][:, None] * P), V @ (roots[1][:, None] * Q)
        signs = np.where(left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])] < 0.0, -size, size)
        return Canonical(left * signs, right * signs, values)


def _varying(scatter: Float64) -> tuple[Float64, Float64]:
    """Eigenvalues and eigenvectors without the directions in which nothing varies: nothing correlates with them."""
    values, vectors = np.linalg.eigh(scatter)
    kept = inverses(values) > 0.0
    if not kept.any():
        raise SolverError("a view does not vary over the rows, so that nothing correlates with it")
    return values[kept], vectors[:, kept]


def _singular(M: Float64, rank: int) -> tuple[Float64, Float64, Float64]:
    """The first singular vectors (left, values, right), by zeros where M has not as many.

    Few of many come from the smaller Gram matrix, at a fifth of the price; it keeps half of the digits of small
    values, so that small ones are computed from M itself.
    """
    if 8 * rank <= min(M.shape):
        if M.shape[0] > M.shape[1]:
            P, values, Q = _singular(M.T, rank)
            return Q, values, P
        last = len(M) - 1
        squares, P = eigh(M @ M.T, subset_by_index=[last + 1 - rank, last])
        if squares[0] > _SMALL * squares[-1]:
            values, P = np.sqrt(squares[::-1]), P[:, ::-1]
            return P, values, M.T @ P / values
    P, values, Qt = np.linalg.svd(M, full_matrices=False)
    out = np.zeros((M.shape[0], rank)), np.zeros(rank), np.zeros((M.shape[1], rank))
    for to, of in zip(out, (P, values, Qt.T), strict=True):
        to[..., : len(values)] = of[..., :rank]
    return out


def correlations(part: Part, split: int, found: Canonical) -> Float64:
    """Of each pair of scores, over the rows of a part; 0 where a score does not vary."""
    S = part.scatter
    both = np.einsum("ir,ir->r", found.left, S[:split, split:] @ found.right)
    first = np.einsum("ir,ir->r", found.left, S[:split, :split] @ found.left)
    second = np.einsum("ir,ir->r", found.right, S[split:, split:] @ found.right)
    spread = np.sqrt(np.maximum(first * second, 0.0))
    return np.asarray(np.where(spread > 0.0, both / np.where(spread > 0.0, spread, 1.0), 0.0))


def penalties_for(part: Part, split: int, share: float) -> tuple[float, float]:
    """A share of the trace of each view's scatter."""
    diagonal = np.diag(part.scatter)
    return share * float(diagonal[:split].sum()), share * float(diagonal[split:].sum())


def cross_validated(folds: Sequence[Part], split: int, penalties: Sequence[tuple[float, float]], rank: int) -> Float64:
    """(penalties, rank): the correlations of held-out scores, each of weights learnt without their fold.

    The mean over folds, by weight: train = total − fold, no further pass.
    """
    found, weights = [], []
    for train, held in splits(folds):
        views = Views.of(train, split)
        found.append([correlations(held, split, views.solve(pair, rank)) for pair in penalties])
        weights.append(held.weight)
    return np.asarray(np.average(found, axis=0, weights=weights))
