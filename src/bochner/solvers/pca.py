"""Principal components from moments, and ridge regression on them for every rank at once.

A basis U of leading eigenvectors makes the features (z − z̄) U.  A coefficient v of these is the coefficient U v
of z, so that a model learnt after PCA predicts without projecting (Li, Lebanon & Sminchisescu 2012, Algorithm 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers import ridge
from bochner.solvers.ridge import FLOAT64_NOISE, Surface
from bochner.stats.moments import Part

#: of neighbouring ranks that are compared
_RATIO = math.sqrt(2.0)


@dataclass(frozen=True)
class Components:
    """(z − mean) @ basis, by falling variance: ``values`` are the eigenvalues of the scatter.

    ``trace`` is that of the whole scatter; ``weight`` is Σw and ``weight_square`` Σw² of the rows.
    """

    mean: Float64
    basis: Float64
    values: Float64
    trace: float
    weight: float
    weight_square: float

    @property
    def rank(self) -> int:
        return len(self.values)

    @property
    def variance(self) -> Float64:
        """Of each component: values / (Σw − Σw²/Σw), which is n − 1 for rows of one weight each."""
        return self.values / max(self.weight - self.weight_square / max(self.weight, 1e-300), 1e-300)

    @property
    def ratio(self) -> Float64:
        """The share of the whole variance that each component explains."""
        return self.values / max(self.trace, 1e-300)

    def leading(self, rank: int) -> Components:
        """The first components."""
        return replace(self, basis=self.basis[:, :rank], values=self.values[:rank])

    def projection(self, whiten: bool = False) -> Float64:
        """The basis; with ``whiten`` such that each component has variance 1."""
        if not whiten:
            return self.basis
        deviation = np.sqrt(self.variance)
        return self.basis * np.where(deviation > 0.0, 1.0 / np.where(deviation > 0.0, deviation, 1.0), 0.0)


def principal(
    part: Part, blocks: Sequence[int] | None = None, each: Sequence[int] | None = None, keep: int | None = None
) -> Components:
    """All principal components of the rows of a part, or the first ``keep`` of them.

    With ``blocks``, the widths of consecutive blocks of features, only the first ``each`` components of every
    block are kept, and the components are those of what remains (Algorithm 4 of the paper above).

    >>> part = Part(4, 4.0, np.zeros(2), np.zeros(0), np.diag([1.0, 9.0]), np.zeros((2, 0)), np.zeros(0), 4.0)
    >>> found = principal(part)
    >>> found.variance.tolist(), found.ratio.tolist(), found.basis[:, 0].tolist()
    ([3.0, 0.3333333333333333], [0.9, 0.1], [0.0, 1.0])
    """
    if blocks is not None:
        first = block_basis(part, blocks, each or blocks)
        found = principal(part.transformed(first), keep=keep)
        return replace(found, mean=part.mean, basis=signed(first @ found.basis), trace=float(np.trace(part.scatter)))
    values, vectors = np.linalg.eigh(part.scatter)
    kept = slice(None, None, -1) if keep is None or keep >= len(values) else slice(None, -keep - 1, -1)
    return Components(
        part.mean,
        signed(vectors[:, kept]),
        np.maximum(values[kept], 0.0),
        float(np.trace(part.scatter)),
        part.weight,
        part.weight_square,
    )


def block_basis(part: Part, blocks: Sequence[int], each: Sequence[int]) -> Float64:
    """The leading components of each block of features, as one block-diagonal basis."""
    basis = np.zeros((sum(blocks), sum(each)))
    row = column = 0
    for width, count in zip(blocks, each, strict=True):
        here = slice(row, row + width)
        vectors = np.linalg.eigh(part.scatter[here, here])[1][:, ::-1][:, :count]
        basis[here, column : column + count] = signed(vectors)
        row, column = row + width, column + count
    return basis


def signed(basis: Float64) -> Float64:
    """Columns whose entry of largest magnitude is positive: eigenvectors know no sign."""
    top = basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])]
    return np.ascontiguousarray(basis * np.where(top < 0.0, -1.0, 1.0))


def numerical_rank(values: Float64, trace: float, width: int, noise: float = FLOAT64_NOISE) -> int:
    """How many eigenvalues are above the rounding of the statistics: 2σ√D for errors σ = noise · trace/D."""
    rounding = 2.0 * noise * math.sqrt(width) * trace / width
    return max(1, int((values > max(rounding, width * np.finfo(np.float64).eps * values.max(initial=0.0))).sum()))


def rank_for(found: Components, asked: Any, noise: float = FLOAT64_NOISE, what: str = "n_components") -> int:
    """How many components to keep: a number, a share of the variance below 1, or None for all that are not rounding."""
    most = numerical_rank(found.values, found.trace, len(found.basis), noise)
    if asked is None:
        return most
    if isinstance(asked, (float, np.floating)) and 0.0 < asked < 1.0:
        whole = np.cumsum(found.values)
        return min(most, int(np.searchsorted(whole, asked * found.trace) + 1))
    if isinstance(asked, bool) or not isinstance(asked, (int, np.integer)) or asked < 1:
        raise SolverError(
            f"{what} is a whole number ≥ 1, a share of the variance between 0 and 1 or None; got {asked!r}"
        )
    if asked > found.rank:
        raise SolverError(f"{what}={int(asked)} is more than there are: {found.rank}")
    return int(asked)


def ranks_up_to(most: int) -> list[int]:
    """Ranks to compare: 1, 2, … by steps of √2 in proportion."""
    return sorted({min(most, round(_RATIO**i)) for i in range(2 * most.bit_length() + 1)})


def cross_validated(
    folds: Sequence[Part],
    penalties: Sequence[float] | Float64,
    ranks: Sequence[int],
    unlabelled: Part | None = None,
    blocks: Sequence[int] | None = None,
    each: Sequence[int] | None = None,
    noise: float = FLOAT64_NOISE,
) -> Surface:
    """Exact K-fold cross-validation of ridge regression after PCA, over ranks and penalties.

    The basis of a fold comes from the other folds, and from rows without targets where they are given.  Without
    those the scatter of the components is diagonal, and one eigendecomposition for each fold gives every rank and
    penalty in closed form.  The ``sizes`` of the result are the ranks.  An error that rounding of the moments
    (``noise``) hides counts as infinite.
    """
    widths, values = sorted(set(ranks)), ridge.require_penalties(penalties)
    squared, baseline, weights = [], [], []
    for train, held in ridge.splits(folds):
        baseline.append(held.target_scatter + held.weight * (held.target_mean - train.target_mean) ** 2)
        weights.append(held.weight)
        found = principal(train if unlabelled is None else train + unlabelled, blocks, each, widths[-1])
        if unlabelled is None:
            squared.append(errors_by_rank(found, train, held, values, widths, noise))
            continue
        t, h = train.transformed(found.basis), held.transformed(found.basis)
        squared.append(np.stack([_path(t.leading(r), h.leading(r), held, values, noise) for r in widths]))
    return Surface.gathered(widths, values, squared, baseline, weights)


def _path(train: Part, held: Part, whole: Part, penalties: Float64, noise: float) -> Float64:
    """Held-out errors on components, of features with the rounding ``noise``."""
    return ridge.path_errors(train, held, penalties, noise_within(held, whole, noise))


def noise_within(components: Part, whole: Part, noise: float) -> float:
    """Rounding of the features, as a share of the mean diagonal of some of their components."""
    share = float(np.trace(components.scatter)) / components.width
    return noise * float(np.trace(whole.scatter)) / whole.width / max(share, 1e-300)


def errors_by_rank(
    found: Components,
    train: Part,
    held: Part,
    penalties: Float64,
    ranks: Sequence[int],
    noise: float = FLOAT64_NOISE,
) -> Float64:
    """(ranks, penalties, targets): Σ w (t − f)² on held-out moments, after PCA of the training rows themselves.

    The coefficients cᵢ = vᵢ/(λᵢ + penalty) do not depend on the rank, so that each term of the error is a
    cumulative sum: of the quadratic form cᵀMc, Σᵢ cᵢ (Mᵢᵢcᵢ + 2 Σ_{j<i} Mᵢⱼcⱼ).  Infinite where rounding may
    be too large a share of it, as in ``ridge.path_errors``.
    """
    U, last = found.basis, np.asarray(ranks) - 1
    learnt, both = U.T @ train.cross, U.T @ held.cross
    inner = U.T @ held.scatter @ U
    lower = 2.0 * np.tril(inner, -1) + np.diag(np.diag(inner))
    away = U.T @ (held.mean - train.mean)
    moved = held.target_mean - train.target_mean
    sigma = noise * float(np.trace(held.scatter)) / held.width
    errors = np.empty((len(ranks), len(penalties), learnt.shape[1]))
    for p, penalty in enumerate(penalties):
        coef = learnt * ridge.inverses(found.values + penalty)[:, None]
        terms = np.cumsum(coef * (lower @ coef - 2.0 * both), axis=0)[last]
        offset = moved - np.cumsum(away[:, None] * coef, axis=0)[last]
        error = np.maximum(held.target_scatter + terms + held.weight * offset**2, 0.0)
        doubt = ridge.DEVIATIONS * sigma * np.cumsum(np.square(coef).sum(axis=1))[last]
        errors[:, p] = np.where((doubt > ridge.DOUBT * error.sum(axis=1))[:, None], np.inf, error)
    return errors
