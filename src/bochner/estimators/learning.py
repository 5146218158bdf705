"""The ways from rows to coefficients, and which one is taken when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers import Solution, Surface, cross_validated, penalties_for, ridge
from bochner.stats import Moments

#: shares of the features at which the held-out error is reported: whether more of them would help
SHARES = (0.125, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Learnt:
    """Coefficients, and how they were chosen."""

    solution: Solution
    penalty: float
    penalty_why: str
    solver: str
    solver_why: str
    surface: Surface | None = None
    notes: tuple[str, ...] = ()


def penalties_of(alpha: Any, moments: Moments) -> Float64:
    """The penalties that ``alpha`` stands for: "cv", a number, or a list of numbers."""
    if isinstance(alpha, str):
        if alpha != "cv":
            raise SolverError(f'alpha is "cv", a number ≥ 0 or a list of such numbers, got {alpha!r}')
        return penalties_for(moments.total())
    return ridge.require_penalties(alpha)


def from_moments(moments: Moments, alpha: Any, noise: float, *, sizes: bool = False) -> Learnt:
    """Ridge regression: the penalty by exact cross-validation where there are several, then one factorisation.

    ``sizes``: leading blocks of the features are smaller draws of the same map.
    """
    total = moments.total()
    penalties = penalties_of(alpha, moments)
    surface = None
    if len(penalties) > 1:
        widths = _widths(moments.width) if sizes else [moments.width]
        surface = cross_validated(moments.labelled(), penalties, widths)
        penalty = surface.best_for(moments.width)
        why = f"the best of {len(penalties)} by exact cross-validation over {len(moments.labelled())} folds"
    else:
        penalty, why = float(penalties[0]), "as given"
    solution = ridge.Prepared(total, noise).solve(penalty)
    return Learnt(solution, penalty, why, "moments", "one pass and one factorisation", surface)


def _widths(width: int) -> Sequence[int]:
    return sorted({max(1, int(width * part)) for part in SHARES})


def rows_of(moments: Moments) -> int:
    """How many rows went into moments, unlabelled ones too."""
    return sum(part.count for part in moments.parts.values())
