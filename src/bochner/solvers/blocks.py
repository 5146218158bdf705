"""Ridge regression one block of features at a time, for more features than a preconditioner has memory for.

Block coordinate descent (Tu, Roelofs, Venkataraman & Recht 2016): the features of a block are made again from
their seed, its coefficients are fitted to what all others leave of the targets, and their share is taken off.
A visit is two sweeps over the block; moments of one block are the largest thing in memory, beside the
remainder of every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers.base import Outcome, Solution
from bochner.solvers.ridge import require_penalties
from bochner.stats import Moments, Sweep
from bochner.stats.products import RightSide
from bochner.stats.remainder import Against, Less, Remainder


def fit(
    sweeps: Sequence[Sweep],
    widths: Sequence[int],
    rows: int,
    outputs: int,
    penalty: float,
    tol: float = 1e-3,
    max_rounds: int = 100,
    keep: bool = True,
) -> Solution:
    """Minimise Σ w (t − z·v − b)² + penalty ‖v‖² over ``rows`` rows, with a sweep for each block of features.

    A round visits every block.  It is done when rounds that lower the objective as slowly as the last two
    would together lower it by ``tol`` of itself at most (``info["gap"]``: an estimate, not a bound).  ``keep``
    says whether the factors of all blocks stay in memory; without it they are made in every round.
    """
    penalty = float(require_penalties([penalty])[0])
    if not penalty > 0.0 or not tol > 0.0 or max_rounds < 1:
        raise SolverError(
            f"blocks need a penalty > 0, a tolerance > 0 and at least 1 round; got {penalty}, {tol}, {max_rounds}"
        )
    remainder = Remainder(rows, outputs)
    coef = [np.zeros((width, outputs)) for width in widths]
    means = [np.zeros(width) for width in widths]
    factors: dict[int, Any] = {}
    target_mean, count, falls = np.zeros(outputs), 0, list[float]()
    outcome, gap, objective = Outcome.STOPPED, np.inf, np.inf
    for _ in range(max_rounds):
        fall = 0.0
        for j, sweep in enumerate(sweeps):
            if j in factors:
                side: Any = sweep(Against(RightSide(widths[j], outputs), remainder)).of.value
                factor = factors[j]
            else:
                side = sweep(Against(Moments(widths[j], outputs), remainder)).of.total()
                factor = _factor(side.scatter, penalty)
                if keep:
                    factors[j] = factor
            if not remainder.filled:
                if not side.weight > 0.0:
                    raise SolverError("there are no labelled rows of positive weight to learn from")
                remainder.filled, target_mean, count = True, side.target_mean, side.count
            gradient = side.cross - penalty * coef[j]
            step = cho_solve(factor, gradient, check_finite=False)
            sweep(Less(step, side.mean, remainder))
            coef[j] += step
            means[j] = side.mean
            gained = np.einsum("ij,ij->j", step, gradient)
            fall += float(gained.sum())
            # The step lowers Σ w ρ² + penalty ‖v‖² by step · gradient.
            before = float(side.target_scatter.sum()) + penalty * _squares(coef, j, step)
            objective = before - float(gained.sum())
        falls.append(fall)
        # Later rounds are slower: the root of the ratio of falls, and not the ratio, is what they are likely to have.
        ratio = min(np.sqrt(falls[-1] / falls[-2]), 0.999) if len(falls) > 1 and falls[-2] > 0.0 else 0.999
        gap = fall * ratio / (1.0 - ratio) / max(objective, np.finfo(float).tiny)
        if len(falls) > 1 and gap <= tol:
            outcome = Outcome.CONVERGED
            break
    v, mean = np.vstack(coef), np.concatenate(means)
    info = {"penalty": penalty, "objective": objective, "gap": gap, "sweeps": len(falls), "rows": count}
    return Solution(v, target_mean - mean @ v, outcome, info)


def _squares(coef: list[Float64], j: int, step: Float64) -> float:
    """‖v‖² before the step of block j."""
    return sum(float(np.square(part - step if i == j else part).sum()) for i, part in enumerate(coef))


def _factor(scatter: Float64, penalty: float) -> Any:
    """A Cholesky factor of scatter + penalty; with more where rounding of the scatter leaves none."""
    more = penalty
    while True:
        shifted = np.array(scatter, order="F")
        shifted[np.diag_indices(len(shifted))] += more
        try:
            return cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            more = max(10.0 * more, 1e-12 * float(np.trace(scatter)) / len(scatter))
