"""LASSO and elastic net from moments: an active set on the Gram, each target by itself.

The objective is ½ Σ w (t − z·v − b)² + penalty (share ‖v‖₁ + ½ (1 − share) ‖v‖²), with a free intercept b.
So a share of 0 is ridge regression of the same penalty; scikit-learn's ``alpha`` is penalty / Σw, and its
``l1_ratio`` is the share.

Features of smooth kernels are nearly dependent, and coordinate descent takes tens of thousands of sweeps over
them.  Here features enter by the strength of their pull, and one linear system has the minimum over those that
are in, as long as they keep their signs (Osborne, Presnell & Turlach 2000).  The ends are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers import ridge
from bochner.solvers.base import Solution
from bochner.solvers.paths import crossed, geometric, settled
from bochner.solvers.ridge import Surface, require_penalties
from bochner.stats.moments import Part

#: the duality gap that is allowed, as a share of Σ w (t − t̄)²: of a solution, and of one that is only compared
TOL, ROUGH = 1e-9, 1e-6
#: how often features may enter, at most, and how often without a smaller gap: then rounding decides
MOST, _STALLED = 10_000, 30
#: of the features that are in, the share that may enter together: one in so many, and one more
_ENTER = 10
#: what is added to the diagonal of a system, as a share of its mean, until it has a factor; and solves of one system
_JITTERS, _REFINED = (1e-13, 1e-10, 1e-7), 2

#: a squared error below zero by this share is not rounding of its own sum
_NEGATIVE = 1e-9
_EPS = float(np.finfo(np.float64).eps)


def largest(part: Part, share: float = 1.0) -> float:
    """The least penalty at which no feature is selected."""
    return float(np.abs(part.cross).max(initial=0.0)) / require_share(share)


def penalties_for(part: Part, share: float = 1.0, count: int = 25) -> Float64:
    """A path of penalties from nothing selected down to a thousandth of that, scikit-learn's range."""
    return geometric(largest(part, share), count)


def require_share(share: float) -> float:
    """A checked share of the absolute values in the penalty."""
    if not 0.0 < share <= 1.0:
        raise SolverError(f"the share of absolute values is in (0, 1] (penalty='ridge' is the one of 0), got {share!r}")
    return float(share)


def path(
    part: Part,
    penalties: Sequence[float] | Float64,
    share: float = 1.0,
    tol: float = TOL,
    most: int = MOST,
) -> list[Solution]:
    """The solution at every penalty, each from that of the next larger one; at a penalty of 0 it is least squares.

    Done where the duality gap is below ``tol`` Σ w (t − t̄)²; ``info`` has the gap of each target as such a
    share, and the steps, of which there are at most ``most``.
    """
    share, values = require_share(share), require_penalties(penalties)
    order = np.argsort(-values, kind="stable")
    shape = (len(values), part.width, len(part.target_mean))
    coef, gaps, steps = np.zeros(shape), np.zeros(shape[::2]), np.zeros(len(values), dtype=np.int64)
    for target in np.flatnonzero(part.target_scatter > 0.0):
        problem = _Problem(part.scatter, part.cross[:, target], float(part.target_scatter[target]))
        found = np.zeros(part.width)
        for p in order[values[order] > 0.0]:
            found, gaps[p, target], taken = problem.minimised(found, values[p], share, tol, most)
            coef[p, :, target], steps[p] = found, max(steps[p], taken)
    return [
        ridge.solved(part, 0.0)
        if penalty == 0.0
        else settled(
            part, coef[p], penalty, float(gaps[p].max()) <= tol, steps[p] >= most, gaps=gaps[p], steps=steps[p]
        )
        for p, penalty in enumerate(values)
    ]


@dataclass(frozen=True)
class _Problem:
    """½ (energy − 2 v·cross + v·gram v) + penalty (share ‖v‖₁ + ½ (1 − share) ‖v‖²) of one target."""

    gram: Float64
    cross: Float64
    energy: float

    def minimised(
        self, coef: Float64, penalty: float, share: float, tol: float, most: int
    ) -> tuple[Float64, float, int]:
        """Coefficients, gap and steps, from some coefficients on."""
        kept, least = coef, self.gap(coef, penalty, share)
        coef = self._stepped(coef, np.sign(coef), penalty, share)
        gap, steps, since = self.gap(coef, penalty, share), 0, 0
        if gap < least:
            kept, least = coef, gap
        while least > tol and steps < most and since < _STALLED and np.isfinite(gap):
            pull = self.cross - self.gram @ coef - penalty * (1.0 - share) * coef
            outside = np.where(coef == 0.0, np.abs(pull) - penalty * share, 0.0)
            # One feature is sure to lower the objective; where more of them stall, one is what enters.
            count = 1 if since > _STALLED // 2 else 1 + np.count_nonzero(coef) // _ENTER
            few = np.argsort(-outside)[:count]
            signs = np.sign(coef)
            signs[few] = np.where(outside[few] > 0.0, np.sign(pull[few]), signs[few])
            coef = self._stepped(coef, signs, penalty, share)
            gap = self.gap(coef, penalty, share)
            steps, since = steps + 1, since + 1
            if gap < least:
                kept, least, since = coef, gap, 0
        return kept, least, steps

    def _stepped(self, coef: Float64, signs: Float64, penalty: float, share: float) -> Float64:
        """The minimum over coefficients of some signs, or 0: steps to where the first becomes zero and leaves."""
        coef, support, done = coef.copy(), np.flatnonzero(signs), 0
        while len(support) and done < _REFINED:
            here, own = coef[support], signs[support]
            system = self.gram[np.ix_(support, support)]
            system[np.diag_indices(len(support))] += penalty * (1.0 - share)
            slope = system @ here - self.cross[support] + penalty * share * own
            step = _solved(system, -slope)
            if step is None:
                break
            crossing = own * (here + step) < 0.0
            if not crossing.any():
                coef[support] = here + step
                done += 1
                continue
            room = np.full(len(support), np.inf)
            room[crossing] = here[crossing] / -step[crossing]
            stays = room > room.min()
            coef[support] = np.where(stays, here + room.min() * step, 0.0)
            support = support[stays]
        return coef

    def gap(self, coef: Float64, penalty: float, share: float) -> float:
        """How far the objective is above its minimum at most, as a share of the energy.

        By the dual point of the residuals, scaled until it is feasible (Fercoq, Gramfort & Salmon 2015), of
        the LASSO to which an elastic net is equal on features that are longer by √(penalty (1 − share)) e_j.
        What rounding of the products may hide is added; infinite where the Gram, by rounding of its own, has
        directions in which the squared error falls below zero.
        """
        absolute, square = penalty * share, penalty * (1.0 - share)
        fitted = self.gram @ coef
        product = float(coef @ self.cross)
        residual = self.energy - 2.0 * product + float(coef @ fitted) + square * float(coef @ coef)
        if not residual > -_NEGATIVE * self.energy:
            return np.inf
        steepest = float(np.abs(self.cross - fitted - square * coef).max())
        scale = min(1.0, absolute / steepest) if steepest > 0.0 else 1.0
        primal = 0.5 * residual + absolute * float(np.abs(coef).sum())
        dual = scale * (self.energy - product) - 0.5 * scale**2 * residual
        hidden = _EPS * np.sqrt(len(coef)) * float(np.square(coef) @ np.diag(self.gram))
        return float((max(0.0, primal - dual) + hidden) / self.energy)


def _solved(system: Float64, target: Float64) -> Float64 | None:
    """system⁻¹ target, with as little added to the diagonal as makes it positive definite; None where no such is.

    What is added makes a step shorter, and not another minimum.
    """
    mean = float(np.trace(system)) / len(system)
    for jitter in _JITTERS:
        shifted = np.array(system, order="F")
        shifted[np.diag_indices(len(system))] += jitter * mean
        try:
            factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        return np.asarray(cho_solve(factor, target, check_finite=False))
    return None


def cross_validated(
    folds: Sequence[Part], penalties: Sequence[float] | Float64, share: float = 1.0, tol: float = ROUGH
) -> Surface:
    """Exact K-fold cross-validation of the path, from the moments of the folds."""
    return crossed(folds, penalties, lambda part, values: path(part, values, share, tol))


def selected(solution: Solution) -> int:
    """How many features have a coefficient other than zero."""
    return int(solution.coef.any(axis=1).sum())
