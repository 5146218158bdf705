"""Weights of summed kernels by exact cross-validation, from moments: no pass over the rows for any of them.

Ridge regression with the kernel Σ_j w_j k_j and one penalty p is ridge regression on the stacked features of the
kernels with a penalty p/w_j for each block.  The held-out error of all folds is a smooth function of the J
penalties; along any one of them it has a closed form, and its gradient costs one more solve for each fold.  So a
descent serves any number of kernels, where a grid on the simplex would serve two or three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from bochner.arrays import Float64, tiles
from bochner.errors import SolverError
from bochner.solvers.ridge import FLOAT64_NOISE, cross_validated, held_out, penalties_for, precision_floor, splits
from bochner.stats.moments import Part, merged

#: a kernel is left out where the held-out error grows by no more than this share
NEGLIGIBLE = 1e-4
#: rounds over the kernels, evaluations of the last descent, and the relative change of the error that ends either
_CYCLES, _MOST, _TOL = 5, 20, 1e-5
#: numbers of a block of coefficients for many penalties and targets
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Weighed:
    """Weights of mean 1 with their penalty; ``error`` is the held-out squared error, a share of the variance.

    ``equal`` is the error of equal weights, ``alone`` those of each kernel by itself, each at its own best
    penalty, and ``without`` those of leaving each out with the other weights as they are.  ``steps`` counts the
    looks along one penalty or down the gradient.
    """

    weights: Float64
    penalty: float
    error: float
    equal: float
    alone: Float64
    without: Float64
    steps: int


def require_weights(weights: Sequence[float] | Float64, count: int) -> Float64:
    """One weight ≥ 0 for each of ``count`` kernels, not all of them 0."""
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (count,) or not np.isfinite(values).all() or (values < 0.0).any() or not values.any():
        raise SolverError(f"weights are {count} finite numbers ≥ 0, one for each kernel of the sum, got {weights!r}")
    return values


def roots(weights: Float64, blocks: Sequence[slice]) -> Float64:
    """√weight of the block of each feature: what the features of the weighted sum are multiplied by."""
    return np.concatenate(
        [np.full(block.stop - block.start, np.sqrt(w)) for w, block in zip(weights, blocks, strict=True)]
    )


def error_and_slope(folds: Sequence[Part], blocks: Sequence[slice], penalties: Float64) -> tuple[float, Float64]:
    """Held-out squared error of all folds, and its derivatives by the logarithm of the penalty of each block.

    Blocks of infinite penalty are left out.
    """
    inside = [block for block, penalty in zip(blocks, penalties, strict=True) if np.isfinite(penalty)]
    rows = np.concatenate([np.arange(block.start, block.stop) for block in inside])
    each = np.concatenate(
        [np.full(b.stop - b.start, p) for b, p in zip(blocks, penalties, strict=True) if np.isfinite(p)]
    )
    error, by_feature = 0.0, np.zeros(len(rows))
    for train, held in splits(folds):
        system = train.scatter[np.ix_(rows, rows)]
        system[np.diag_indices(len(rows))] += each
        factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
        coef = np.zeros_like(train.cross)
        coef[rows] = cho_solve(factor, train.cross[rows], check_finite=False)
        error += float(held_out(held, train, coef).sum())
        apart = held.mean - train.mean
        offset = held.target_mean - train.target_mean - apart @ coef
        slope = 2.0 * (held.scatter @ coef - held.cross - held.weight * np.multiply.outer(apart, offset))
        by_feature -= (cho_solve(factor, slope[rows], check_finite=False) * coef[rows]).sum(axis=1)
    slopes = np.zeros(len(blocks))
    for j, block in enumerate(blocks):
        here = (rows >= block.start) & (rows < block.stop)
        if here.any():
            slopes[j] = penalties[j] * by_feature[here].sum()
    return error, slopes


def errors_along(
    folds: Sequence[Part], blocks: Sequence[slice], penalties: Float64, which: int, values: Float64
) -> Float64:
    """Held-out squared errors of all folds where the penalty of one block takes each of some values.

    The other blocks are solved for first: of the Schur complement of the block one eigendecomposition is left.
    """
    width = folds[0].width
    rows = np.arange(blocks[which].start, blocks[which].stop)
    others = np.ones(width, dtype=bool)
    each = np.zeros(width)
    for j, (block, penalty) in enumerate(zip(blocks, penalties, strict=True)):
        others[block] = j != which and np.isfinite(penalty)
        each[block] = penalty
    rest = np.flatnonzero(others)
    errors = np.zeros(len(values))
    for train, held in splits(folds):
        system = train.scatter[np.ix_(rest, rest)]
        system[np.diag_indices(len(rest))] += each[rest]
        factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False) if len(rest) else None
        shared, k = train.scatter[np.ix_(rest, rows)], train.cross.shape[1]
        sides = np.hstack([shared, train.cross[rest]])
        if factor is not None:
            sides = cho_solve(factor, sides, overwrite_b=True, check_finite=False)
        crossed, plain = sides[:, : len(rows)], sides[:, len(rows) :]
        own, turn = np.linalg.eigh(train.scatter[np.ix_(rows, rows)] - shared.T @ crossed)
        pull = turn.T @ (train.cross[rows] - shared.T @ plain)
        crossed = crossed @ turn
        for part in tiles(len(values), _BLOCK // max(1, width * k)):
            coef = np.zeros((part.stop - part.start, width, k))
            for p, value in enumerate(values[part]):
                inner = pull / (np.maximum(own, 0.0) + value)[:, None]
                coef[p, rows] = turn @ inner
                coef[p, rest] = plain - crossed @ inner
            found = held_out(held, train, np.hstack(list(coef)))
            errors[part] += found.reshape(len(coef), -1).sum(axis=1)
    return errors


def weighed(folds: Sequence[Part], blocks: Sequence[slice], noise: float = FLOAT64_NOISE) -> Weighed:
    """The weights and the penalty of the least held-out error that a descent from equal weights finds.

    The error has plateaus, where a kernel has all or no say.  So each penalty in turn first takes the best of
    the whole path, infinity included, until that changes nothing; then gradients make the end exact.  Kernels
    that add less than ``NEGLIGIBLE`` get weight 0.
    """
    width, outputs = folds[0].width, len(folds[0].target_mean)
    total = merged(folds, width, outputs)
    path = penalties_for(total)
    path = path[path >= min(precision_floor(total, noise), path[-1])]
    whole = cross_validated(folds, path)
    baseline = float(whole.baseline.sum())
    scale = baseline * sum(part.weight for part in folds)
    if not scale > 0.0:
        raise SolverError("the targets do not vary, so that there is nothing to weigh kernels by")
    own = [cross_validated([_only(part, block) for part in folds], path) for block in blocks]
    alone = np.array([surface.mean.min() / baseline for surface in own])

    penalties, error = np.full(len(blocks), whole.best()[1]), float(whole.mean.min()) / baseline
    equal, steps = error, 0
    choices = np.append(path, np.inf)
    for _ in range(_CYCLES):
        before = error
        for j in range(len(blocks)):
            errors = errors_along(folds, blocks, penalties, j, choices) / scale
            best = int(np.argmin(errors))
            steps += 1
            others = np.delete(penalties, j)
            if errors[best] < error and np.isfinite([choices[best], *others]).any():
                penalties[j], error = choices[best], float(errors[best])
        if error > before * (1.0 - _TOL):
            break
    penalties, error, more = _polished(folds, blocks, penalties, error, scale, path)
    penalties, error, without = _pruned(folds, blocks, penalties, error, scale)
    mean = len(blocks) / (1.0 / penalties).sum()
    return Weighed(mean / penalties, float(mean), error, equal, alone, without, steps + more)


def _polished(
    folds: Sequence[Part], blocks: Sequence[slice], penalties: Float64, error: float, scale: float, path: Float64
) -> tuple[Float64, float, int]:
    """Gradient steps over the finite penalties, within a step of the path on either side."""
    inside = np.isfinite(penalties)

    def error_at(logs: Float64) -> tuple[float, Float64]:
        trial = penalties.copy()
        trial[inside] = np.exp(logs)
        found, slopes = error_and_slope(folds, blocks, trial)
        found = max(found, 1e-300 * scale)
        return float(np.log(found / scale)), slopes[inside] / found

    start, step = np.log(penalties[inside]), 2.0 * np.log(path[1] / path[0])
    low = np.maximum(start - step, np.log(path[0]))
    options = {"maxfun": _MOST, "ftol": _TOL, "gtol": 0.0}
    try:
        end: Any = minimize(
            error_at,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, start + step, strict=True)),
            options=options,
        )
    except LinAlgError:
        return penalties, error, 0
    if np.exp(end.fun) < error:
        penalties, error = penalties.copy(), float(np.exp(end.fun))
        penalties[inside] = np.exp(end.x)
    return penalties, error, int(end.nfev)


def _pruned(
    folds: Sequence[Part], blocks: Sequence[slice], penalties: Float64, error: float, scale: float
) -> tuple[Float64, float, Float64]:
    """Without the kernels that add next to nothing, the least of them first; and the errors without each other one."""
    limit = (1.0 + NEGLIGIBLE) * error
    while True:
        without = np.full(len(blocks), error)
        inside = np.flatnonzero(np.isfinite(penalties))
        for j in inside:
            others = np.where(np.arange(len(blocks)) == j, np.inf, penalties)
            without[j] = 1.0 if len(inside) == 1 else error_and_slope(folds, blocks, others)[0] / scale
        least = int(inside[np.argmin(without[inside])])
        if len(inside) == 1 or without[least] > limit:
            return penalties, error, without
        penalties, error = np.where(np.arange(len(blocks)) == least, np.inf, penalties), float(without[least])


def _only(part: Part, block: slice) -> Part:
    """The moments of one block of features."""
    basis = np.arange(block.start, block.stop)
    return Part(
        part.count,
        part.weight,
        part.mean[block],
        part.target_mean,
        part.scatter[np.ix_(basis, basis)],
        part.cross[block],
        part.target_scatter,
        part.weight_square,
        part.weight_log,
    )
