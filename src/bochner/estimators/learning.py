"""The ways from rows to coefficients: from moments alone, or by sweeping again for other losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers import Solution, Surface, cross_validated, lbfgs, penalties_for, refine, ridge, stochastic
from bochner.solvers.losses import Loss
from bochner.stats import Moments, Part, Sweep
from bochner.stats.moments import UNLABELLED

if TYPE_CHECKING:
    from bochner.estimators.reduced import Reduced

#: shares of the features at which the held-out error is reported: whether more of them would help
SHARES = (0.125, 0.25, 0.5, 1.0)
#: ways to choose a penalty
CHOICES = ("cv", "gcv", "evidence")
#: the penalties of a loss that are tried first, in units of that of least squares, and how far others may lie
_PATH = 4.0 ** np.arange(0, -6, -1)
_EXTENSIONS = 4
#: a model that is only compared with others may be this far from the minimum
_ROUGH = 1e-2


@dataclass(frozen=True)
class Learnt:
    """Coefficients, and how they were chosen."""

    solution: Solution
    penalty: float
    penalty_why: str
    solver: str
    solver_why: str
    #: how many of the features were kept
    width: int
    surface: Surface | None = None
    notes: tuple[str, ...] = ()
    #: whether rounding of the moments hides what smaller penalties than the best one give
    hidden: bool = False
    #: for folds, the solution of all other rows: scores of rows that it has not seen
    without: Callable[[], Mapping[int, Solution]] | None = None
    #: the principal components that were learnt on, where there are any
    reduced: Reduced | None = None
    #: what became of the kernels of a sum, where that was asked for
    selection: Any = None
    #: what weights of kernels multiply each feature by
    factors: Float64 | None = None


def penalties_of(alpha: Any, part: Part) -> Float64:
    """The penalties that ``alpha`` stands for: a path, a number, or a list of numbers."""
    if isinstance(alpha, str):
        if alpha not in CHOICES:
            raise SolverError(f"alpha is one of {', '.join(CHOICES)}, a number ≥ 0 or a list of numbers; got {alpha!r}")
        return penalties_for(part)
    return ridge.require_penalties(alpha)


def from_moments(moments: Moments, alpha: Any, noise: float, widths: Sequence[int], choose: bool = False) -> Learnt:
    """Ridge regression: penalty, and with ``choose`` the number of features, from moments; then one factor.

    The held-out error is known for every leading block of ``widths`` features, of which the last is all.
    """
    total, folds = moments.total(), moments.labelled()
    penalties = penalties_of(alpha, total)
    surface, size, hidden = None, widths[-1], False
    notes: tuple[str, ...] = ()
    if len(penalties) == 1 and not choose:
        penalty, why = float(penalties[0]), "as given"
    elif isinstance(alpha, str) and alpha != "cv":
        penalty, why = by_criterion(ridge.Prepared(total, noise), penalties, alpha)
    else:
        surface = cross_validated(folds, penalties, widths, noise)
        if choose:
            size = surface.best()[0]
        penalty = surface.best_for(size)
        why = f"the best of {len(penalties)} by exact cross-validation over {len(folds)} folds"
        hidden = surface.hidden(size)
        if hidden:
            notes = ("smaller penalties may be better, but rounding of the moments hides their held-out error",)
    part = total
    if size < total.width:
        part, factor = ridge.narrowed(total, size)
        penalty *= factor

    def without() -> dict[int, Solution]:
        if len(folds) < 2:
            return {}
        parts = {key: ridge.narrowed(item, size)[0] for key, item in moments.parts.items()}
        return ridge.without_each(parts, penalty, noise=noise)

    solution = ridge.solved(part, penalty, noise)
    why_solver = "one pass and one factorisation"
    return Learnt(solution, penalty, why, "moments", why_solver, size, surface, notes, hidden, without)


def refined(learnt: Learnt, sweep: Sweep, part: Part) -> Learnt:
    """The same choices with coefficients from float64 residuals over the rows (see ``solvers.refine``)."""
    solution = refine.fit(sweep, part, learnt.penalty)
    note = f"the penalty is below the precision of float32 moments: {solution.info['sweeps']} sweeps in float64"
    return replace(learnt, solution=solution, notes=(*learnt.notes, note))


def by_criterion(prepared: ridge.Prepared, penalties: Float64, which: str) -> tuple[float, str]:
    """The penalty of the least generalised cross-validation or the largest evidence, and why."""
    if which == "gcv":
        scores = [float(prepared.gcv(p).sum()) for p in penalties]
        return float(penalties[int(np.argmin(scores))]), f"the least of {len(penalties)} generalised cross-validations"
    scores = [float(prepared.log_evidence(p).sum()) for p in penalties]
    return float(penalties[int(np.argmax(scores))]), f"the largest of {len(penalties)} marginal likelihoods"


def shares_of(width: int) -> list[int]:
    """Leading blocks at which the error is reported."""
    return sorted({max(1, int(width * part)) for part in SHARES})


def by_loss(sweep: Sweep, moments: Moments, loss: Loss, alpha: Any, tol: float, max_sweeps: int) -> Learnt:
    """Any convex loss by sweeps, preconditioned by the moments; the penalty by one held-out fold."""
    total = moments.total()
    why = f"the {loss.name} loss has no moments: sweeps with L-BFGS, preconditioned by the moments"
    penalties = penalties_of(alpha, total)
    folds = [key for key, part in moments.parts.items() if key != UNLABELLED and part.weight > 0.0]
    fold = folds[0] if len(folds) > 1 else None
    best: Solution | None = None
    notes: tuple[str, ...] = ()
    if len(penalties) == 1:
        penalty, how = float(penalties[0]), "as given"
    elif fold is None:
        raise SolverError("choosing a penalty needs rows in at least 2 folds; give more rows, or a number as alpha")
    else:
        found, swept = _path(sweep, moments, fold, loss, alpha, max_sweeps)
        penalty = min(found, key=lambda p: float(found[p].info["held_loss"]))
        best = found[penalty]
        how = f"the least held-out loss of {len(found)}, on fold {fold} of the rows"
        notes = (
            f"held out: loss {best.info['held_loss']:.4f}, errors {best.info['held_errors']:.4f}; "
            f"{swept} sweeps to choose the penalty",
        )
    (solution,) = lbfgs.fit(sweep, total, loss, [penalty], tol, max_sweeps, start=best)

    def without() -> dict[int, Solution]:
        if fold is None:
            return {}
        if best is not None:
            return {fold: best}
        part = total - moments.parts[fold]
        return {fold: lbfgs.fit(sweep, part, loss, [penalty], _ROUGH, max_sweeps, held=fold, start=solution)[0]}

    return Learnt(solution, penalty, how, "sweeps", why, total.width, notes=notes, without=without)


def _path(
    sweep: Sweep, moments: Moments, fold: int, loss: Loss, alpha: Any, max_sweeps: int
) -> tuple[dict[float, Solution], int]:
    """Solutions without a fold along a path of penalties, which goes on while its end is the best."""
    train = moments.total() - moments.parts[fold]
    given = not isinstance(alpha, str)
    if given:
        path: Any = penalties_of(alpha, train)
    else:
        path = cross_validated(moments.labelled(), penalties_for(train)).best_for(train.width) * _PATH
    found: dict[float, Solution] = {}
    swept = 0
    for _ in range(1 + _EXTENSIONS):
        solutions = lbfgs.fit(sweep, train, loss, path, _ROUGH, max_sweeps, held=fold)
        found |= dict(zip(map(float, path), solutions, strict=True))
        swept += max(int(solution.info["sweeps"]) for solution in solutions)
        best = min(found, key=lambda p: float(found[p].info["held_loss"]))
        if given or min(found) < best < max(found):
            break
        path = best * (_PATH[1:3] if best == min(found) else 1.0 / _PATH[1:3])
    return found, swept


def by_one_pass(sweep: Sweep, of_sample: Sweep, sample: Moments, loss: Loss, start: Learnt, weight: float) -> Learnt:
    """One approximate pass of averaged stochastic gradients, from what a sample taught."""
    solution = stochastic.fit(sweep, of_sample, loss, start.solution, sample.total(), start.penalty, weight)
    why = "one approximate pass of averaged stochastic gradients from the solution of a sample"
    return replace(start, solution=solution, solver="stochastic", solver_why=why)


def rows_of(moments: Moments) -> int:
    """How many rows went into moments, unlabelled ones too."""
    return sum(part.count for part in moments.parts.values())
