"""LASSO and elastic net from moments: coordinate descent on the Gram, each target by itself.

The objective is ½ Σ w (t − z·v − b)² + penalty (share ‖v‖₁ + ½ (1 − share) ‖v‖²), with a free intercept b.
So a share of 0 is ridge regression of the same penalty; scikit-learn's ``alpha`` is penalty / Σw, and its
``l1_ratio`` is the share.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers import ridge
from bochner.solvers.base import Solution
from bochner.solvers.paths import crossed, geometric, settled
from bochner.solvers.ridge import Surface, require_penalties
from bochner.stats.moments import Part

#: the duality gap that is allowed, as a share of Σ w (t − t̄)²: of a solution, and of one that is only compared
TOL, ROUGH = 1e-9, 1e-5
#: the tolerance at which the support is looked at again, as a share of the rough one
_SECOND = 1e-2
#: sweeps over the coordinates, at most
MOST = 20_000


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
    share, and the sweeps over the coordinates, of which there are at most ``most`` in each stage.
    """
    share, values = require_share(share), require_penalties(penalties)
    order = np.argsort(-values, kind="stable")
    positive = order[values[order] > 0.0]
    shape = (len(values), part.width, len(part.target_mean))
    coef, gaps, sweeps = np.zeros(shape), np.zeros(shape[::2]), np.zeros(len(values), dtype=np.int64)
    for target in np.flatnonzero(part.target_scatter > 0.0):
        problem = _Problem(np.ascontiguousarray(part.scatter), part.cross[:, target], part.target_scatter[target])
        found, count = problem.descended(values[positive], share, max(tol, ROUGH), most)
        for p, start, swept in zip(positive, found, count, strict=True):
            exact = start if tol >= ROUGH else problem.exact(start, values[p], share, tol, most)
            coef[p, :, target], gaps[p, target] = exact, problem.gap(exact, values[p], share)
            sweeps[p] = max(sweeps[p], swept)
    return [
        ridge.solved(part, 0.0)
        if penalty == 0.0
        else settled(part, coef[p], bool((gaps[p] <= tol).all()), penalty, gaps=gaps[p], sweeps=int(sweeps[p]))
        for p, penalty in enumerate(values)
    ]


@dataclass(frozen=True)
class _Problem:
    """½ (energy − 2 v·cross + v·gram v) + penalty (share ‖v‖₁ + ½ (1 − share) ‖v‖²) of one target."""

    gram: Float64
    cross: Float64
    energy: float

    def descended(
        self, penalties: Float64, share: float, tol: float, most: int, start: Float64 | None = None
    ) -> tuple[Float64, list[int]]:
        """Coefficients (penalties, features) and sweeps, down descending penalties.

        scikit-learn's path needs of the rows their Gram and products only, which are given, and their number,
        which is one here: so its penalties are ours.
        """
        if not len(penalties):
            return np.empty((0, len(self.cross))), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is told by the gap
            _, found, _, sweeps = enet_path(
                np.zeros((1, len(self.cross)), order="F"),
                np.array([np.sqrt(self.energy)]),
                l1_ratio=share,
                alphas=penalties,
                precompute=self.gram,
                Xy=np.ascontiguousarray(self.cross),
                coef_init=start,
                # Its last gap is sometimes larger by a hair than what it stops at.
                tol=0.9 * tol,
                max_iter=most,
                return_n_iter=True,
                check_input=False,
            )
        return np.asarray(found.T), sweeps

    def exact(self, start: Float64, penalty: float, share: float, tol: float, most: int) -> Float64:
        """From a rough solution to one within the tolerance.

        Where the rough one has the right support and signs, one linear system has the exact coefficients
        (Efron, Hastie, Johnstone & Tibshirani 2004); else the descent goes on.
        """
        for coef in (start, None):
            if coef is None:
                coef = self.descended(np.array([penalty]), share, max(tol, _SECOND * ROUGH), most, start)[0][0]
            polished = self._polished(coef, penalty, share)
            if polished is not None and self.gap(polished, penalty, share) <= tol:
                return polished
        return np.asarray(self.descended(np.array([penalty]), share, tol, most, coef)[0][0])

    def _polished(self, coef: Float64, penalty: float, share: float) -> Float64 | None:
        support = np.flatnonzero(coef)
        if not len(support):
            return coef
        inside = self.gram[np.ix_(support, support)]
        inside[np.diag_indices(len(support))] += penalty * (1.0 - share)
        signs = np.sign(coef[support])
        try:
            found = cho_solve(cho_factor(inside), self.cross[support] - penalty * share * signs)
        except LinAlgError:
            return None
        polished = np.zeros_like(coef)
        polished[support] = np.where(np.sign(found) == signs, found, 0.0)
        return polished

    def gap(self, coef: Float64, penalty: float, share: float) -> float:
        """How far the objective is above its minimum at most, as a share of the energy.

        By the dual point of the residuals, scaled until it is feasible (Fercoq, Gramfort & Salmon 2015), of
        the LASSO to which an elastic net is equal on features that are longer by √(penalty (1 − share)) e_j.
        """
        absolute, square = penalty * share, penalty * (1.0 - share)
        fitted = self.gram @ coef
        product = float(coef @ self.cross)
        residual = self.energy - 2.0 * product + float(coef @ fitted) + square * float(coef @ coef)
        steepest = float(np.abs(self.cross - fitted - square * coef).max())
        scale = min(1.0, absolute / steepest) if steepest > 0.0 else 1.0
        primal = 0.5 * residual + absolute * float(np.abs(coef).sum())
        dual = scale * (self.energy - product) - 0.5 * scale**2 * residual
        return max(0.0, primal - dual) / self.energy


def cross_validated(
    folds: Sequence[Part], penalties: Sequence[float] | Float64, share: float = 1.0, tol: float = ROUGH
) -> Surface:
    """Exact K-fold cross-validation of the path, from the moments of the folds."""
    return crossed(folds, penalties, lambda part, values: path(part, values, share, tol))


def selected(solution: Solution) -> int:
    """How many features have a coefficient other than zero."""
    return int(solution.coef.any(axis=1).sum())
