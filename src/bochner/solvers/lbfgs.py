"""Losses of classification by L-BFGS (Nocedal 1980) over sweeps, with the moments as preconditioner.

The Hessian is Σ w C(f) ⊗ z zᵀ + penalty, with C the curvature of the loss at a row's outputs.  The first
inverse Hessian is that of the mean curvature, C̄ ⊗ S + penalty (as in K-FAC, Martens & Grosse 2015), with S
the scatter of the features and C̄ (k × k) measured anew in every sweep: one eigendecomposition of S serves
all points and penalties.  Features are centred, so that the intercept decouples.

A sweep tries several steps along the direction of each of several penalties, and of each class against all
others: there is no step size to tune, and a line search costs no sweep.  Where no step descends, the pairs
are forgotten and the bound of the curvature takes the place of C̄: then a step of 1 descends always
(Böhning & Lindsay 1988).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers.base import Outcome, Solution
from bochner.solvers.losses import Loss
from bochner.solvers.ridge import require_penalties
from bochner.stats import Part, Sweep
from bochner.stats.gradient import Gradient

#: outputs of all points of a sweep: with more, products would cost more than features
COLUMNS = 64
#: tried along every direction, the first ones where there are few columns
STEPS = (1.0, 0.5, 2.0, 0.25)
#: pairs of steps and changes of the gradient that are kept
MEMORY = 20
#: sweeps without progress beyond rounding after which a descent ends
PATIENCE = 10
#: the share of a bound that a mean curvature is not below
LEAST_CURVATURE = 1e-3


def fit(
    sweep: Sweep,
    part: Part,
    loss: Loss,
    penalties: Sequence[float] | Float64,
    tol: float = 1e-3,
    max_sweeps: int = 100,
    held: int | None = None,
    start: Solution | None = None,
) -> list[Solution]:
    """Minimise Σ w loss + ½ penalty ‖coef‖² for every penalty, in as few sweeps as possible.

    ``part`` has the moments of the rows with indicators of their classes, without those of the fold
    ``held``, whose mean loss and share of errors are in ``info`` (``held_loss``, ``held_errors``).  A
    penalty is done when the norm of its gradient is ``tol`` times that at coef = 0 with the best intercept.
    Descent begins there, or at ``start``, which costs a sweep.
    """
    values = require_penalties(penalties)
    if not tol > 0.0 or max_sweeps < 1:
        raise SolverError(f"a tolerance > 0 and at least 1 sweep are needed, got tol={tol} and max_sweeps={max_sweeps}")
    problem = _Problem(sweep, part, loss, tol, max_sweeps, held)
    starts = [_Descent(task, np.inf, point) for task, point in problem.starts(start)]
    solutions: dict[int, Solution] = {}
    order = np.argsort(-values, kind="stable")
    for first in range(0, len(order), problem.together):
        here = order[first : first + problem.together]
        ways = [[start.restarted(float(values[i])) for start in starts] for i in here]
        problem.descend([descent for way in ways for descent in way])
        solutions |= dict(zip(map(int, here), problem.solutions(ways), strict=True))
        starts = ways[-1]
    return [solutions[i] for i in range(len(values))]


@dataclass(frozen=True)
class _Point:
    """Coefficients of centred features with the intercept as last row, and the sums without the penalty."""

    x: Float64
    loss: float
    gradient: Float64
    curvature: Float64
    #: mean loss and share of errors of the held-out rows
    held: tuple[float, float] | None = None

    def objective(self, penalty: float) -> float:
        return self.loss + 0.5 * penalty * float(np.square(self.x[:-1]).sum())

    def slope(self, penalty: float) -> Float64:
        return self.gradient + penalty * _without_intercept(self.x)


def _without_intercept(x: Float64) -> Float64:
    return np.vstack([x[:-1], np.zeros((1, x.shape[1]))])


class _Problem:
    """What all penalties share: the sweep, and the eigendecomposition of the scatter."""

    def __init__(self, sweep: Sweep, part: Part, loss: Loss, tol: float, max_sweeps: int, held: int | None):
        self.classes = len(part.target_mean)
        if self.classes < 2 or not part.weight > 0.0:
            raise SolverError("the moments need rows with a weight and indicators of 2 classes or more as targets")
        self.sweep, self.part, self.loss, self.held = sweep, part, loss, held
        self.tol, self.max_sweeps = tol, max_sweeps
        k = loss.outputs(self.classes)
        self.alone = loss.one_against_all and self.classes > 2
        self.steps = STEPS[: max(1, COLUMNS // k)]
        self.together = max(1, COLUMNS // (k * len(self.steps)))
        # Rounded to single precision, so that what a sweep takes off is what the intercept puts back.
        self.centre = part.mean.astype(np.float32).astype(np.float64)
        self.bound = loss.bound(1 if self.alone else k)
        values, self._vectors = np.linalg.eigh(part.scatter)
        self._values = np.maximum(values, 0.0)

    def tasks(self) -> list[_Task]:
        """One for all classes, or one for each against all others."""
        share, cross = np.clip(self.part.target_mean, 0.0, 1.0), self.part.cross
        if not self.alone:
            return [_Task(self, None, share, cross)]
        return [
            _Task(self, j, np.array([1.0 - share[j], share[j]]), np.column_stack([-cross[:, j], cross[:, j]]))
            for j in range(self.classes)
        ]

    def starts(self, start: Solution | None) -> list[tuple[_Task, _Point]]:
        """Where the descent of each task begins."""
        tasks = self.tasks()
        if start is None:
            return [(task, task.start()) for task in tasks]
        x = np.vstack([start.coef, start.intercept + self.centre @ start.coef])
        xs = x.T[:, :, None] if self.alone else x[None]
        return list(zip(tasks, self._swept(xs, np.array([task.against for task in tasks]))[0], strict=True))

    def conditioned(self, g: Float64, curvature: Float64, penalty: float) -> Float64:
        """(C̄ ⊗ S + penalty)⁻¹ g, with the intercept in a block of its own."""
        c, Q = np.linalg.eigh(curvature)
        c = np.maximum(c, LEAST_CURVATURE * float(np.linalg.eigvalsh(self.bound)[-1]))
        whole = np.multiply.outer(self._values, c) + penalty
        whole = np.maximum(whole, 1e-14 * float(whole.max()) + np.finfo(float).tiny)
        rotated = (self._vectors.T @ g[:-1]) @ Q
        coef = self._vectors @ (rotated / whole) @ Q.T
        return np.vstack([coef, Q @ ((Q.T @ g[-1]) / (self.part.weight * c))])

    def descend(self, descents: list[_Descent]) -> None:
        """Sweep until every descent is done."""
        while active := [descent for descent in descents if not descent.done]:
            xs = np.stack([x for descent in active for x in descent.candidates()])
            size = len(self.steps)
            points, precision = self._swept(xs, np.repeat([descent.task.against for descent in active], size))
            for i, descent in enumerate(active):
                descent.advance(points[i * size : (i + 1) * size], precision)

    def _swept(self, xs: Float64, against: NDArray[Any]) -> tuple[list[_Point], float]:
        """What one sweep knows of the points, and its rounding."""
        one = against.astype(np.int64) if self.alone and xs.shape[2] == 1 else None
        sums = self.sweep(Gradient(self.loss, xs[:, :-1], xs[:, -1], self.centre, self.held, one))
        gradient = np.concatenate([sums.gradient, sums.slopes[:, None]], axis=1)
        points = []
        for p, x in enumerate(xs):
            held = None
            if sums.held_weight > 0.0:
                held = float(sums.held_loss[p] / sums.held_weight), float(sums.held_errors[p] / sums.held_weight)
            points.append(_Point(x, float(sums.loss[p]), gradient[p], sums.curvature[p], held))
        return points, sums.precision

    def solutions(self, ways: list[list[_Descent]]) -> list[Solution]:
        """One for each penalty, from its descents."""
        xs = [np.hstack([descent.point.x for descent in way]) for way in ways]
        held = [way[0].point.held for way in ways]
        if self.alone and self.held is not None:  # the errors of all classes together need one more sweep
            held = [point.held for point in self._swept(np.stack(xs), np.zeros(0))[0]]
        found = []
        for way, x, judged in zip(ways, xs, held, strict=True):
            penalty = way[0].penalty
            info: dict[str, Any] = {
                "penalty": penalty,
                "objective": sum(descent.point.objective(penalty) for descent in way),
                "gradient": float(
                    np.hypot.reduce([d.norm for d in way]) / np.hypot.reduce([d.task.scale for d in way])
                ),
                "sweeps": max(descent.sweeps for descent in way),
            }
            if judged is not None:
                info["held_loss"], info["held_errors"] = judged
            unfinished = [descent for descent in way if not descent.converged]
            if unfinished:
                few = any(descent.sweeps >= self.max_sweeps for descent in unfinished)
                info["reason"] = "too few sweeps" if few else "no step descends: rounding hides the gradient"
            outcome = Outcome.STOPPED if unfinished else Outcome.CONVERGED
            found.append(Solution(x[:-1], x[-1] - self.centre @ x[:-1], outcome, info))
        return found


@dataclass(frozen=True)
class _Task:
    """The classes that are told apart: their shares of the weight, and the features' moments with them."""

    problem: _Problem
    against: int | None
    share: Float64
    cross: Float64

    def start(self) -> _Point:
        """coef = 0 and the best intercept: all that is known of it is in the moments."""
        loss, mass = self.problem.loss, self.problem.part.weight * self.share
        b = loss.constant(self.share)
        each = np.tile(b, (len(mass), 1))
        value, slope = loss.value_and_slope(each, np.arange(len(mass)))
        gradient = np.vstack([self.cross @ slope, mass @ slope])
        x = np.vstack([np.zeros((len(self.cross), len(b))), b])
        return _Point(x, float(mass @ value), gradient, loss.curvature(each, slope, mass))

    @cached_property
    def scale(self) -> float:
        """The norm of the gradient at coef = 0."""
        return max(float(np.linalg.norm(self.start().gradient)), np.finfo(float).tiny)


class _Descent:
    """The way of one task and penalty."""

    def __init__(self, task: _Task, penalty: float, point: _Point, pairs: Sequence[tuple[Float64, Float64]] = ()):
        self.task, self.problem, self.penalty, self.point = task, task.problem, penalty, point
        self.pairs = list(pairs)
        self.sweeps = self.failures = 0
        #: the last point that was better beyond rounding, and how many sweeps there were since
        self.mark, self.still = point, 0

    def restarted(self, penalty: float) -> _Descent:
        """From where this one is, with what it has learnt of the curvature."""
        return _Descent(self.task, penalty, self.point, self.pairs)

    @property
    def norm(self) -> float:
        """Of the gradient."""
        return _norm(self.point, self.penalty)

    @property
    def converged(self) -> bool:
        return self.norm <= self.problem.tol * self.task.scale

    @property
    def done(self) -> bool:
        stuck = self.failures > 3 or self.still > PATIENCE
        return self.converged or stuck or self.sweeps >= self.problem.max_sweeps

    def candidates(self) -> list[Float64]:
        # After the second failure rounding, or moments of other rows, are to blame: steps get shorter.
        shorter = 0.1 ** max(0, self.failures - 1)
        direction = self._direction()
        return [self.point.x + shorter * step * direction for step in self.problem.steps]

    def advance(self, points: list[_Point], precision: float) -> None:
        """Go to the best of the candidates, or stay and try others."""
        self.sweeps += 1
        here, penalty = self.point, self.penalty
        objective, g = here.objective(penalty), here.slope(penalty)
        slack = 2.0 * precision * abs(objective)
        good = []
        for point in points:
            change = point.objective(penalty) - objective
            descends = change <= 1e-4 * float(((point.x - here.x) * g).sum())
            # Close to the minimum the objective is lost in rounding, and the gradient alone tells.
            if descends or (change <= slack and _norm(point, penalty) < _norm(here, penalty)):
                good.append(point)
        if not good:
            self.failures += 1
            self.pairs.clear()
            return
        lowest = min(point.objective(penalty) for point in good) + slack
        best = min((p for p in good if p.objective(penalty) <= lowest), key=lambda p: _norm(p, penalty))
        lower = best.objective(penalty) < self.mark.objective(penalty) - slack
        self.still += 1
        if lower or _norm(best, penalty) < 0.5 * _norm(self.mark, penalty):
            self.mark, self.still = best, 0
        self.failures = 0
        self.pairs = [*self.pairs, (best.x - here.x, best.gradient - here.gradient)][-MEMORY:]
        self.point = best

    def _direction(self) -> Float64:
        """−H g by the two loops of L-BFGS; the penalty's share in a change of the gradient is added here."""
        penalty = self.penalty
        g = self.point.slope(penalty)
        used = []
        for step, change in reversed(self.pairs):
            change = change + penalty * _without_intercept(step)
            curved = float((step * change).sum())
            if curved <= 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
                continue  # rounding only: the objective is convex
            share = float((step * g).sum()) / curved
            g = g - share * change
            used.append((step, change, curved, share))
        mean = self.problem.bound if self.failures else self.point.curvature / self.problem.part.weight
        ascent = self.problem.conditioned(g, mean, penalty)
        for step, change, curved, share in reversed(used):
            ascent = ascent + step * (share - float((change * ascent).sum()) / curved)
        return -ascent


def _norm(point: _Point, penalty: float) -> float:
    return float(np.linalg.norm(point.slope(penalty)))
