"""Ridge regression by sweeps: preconditioned conjugate gradients on (S + penalty) v = c, without ever having S.

Every output and every penalty has conjugate gradients of its own (Hestenes & Stiefel 1952), which share the
sweeps: making features is most of the price of a sweep.  The preconditioner is made of a sketch of the rows
(``solvers.sketched``), taken on the sweep that finds the right-hand side c.  A sweep costs n·D operations
where moments cost n·D².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.seeds import Seed
from bochner.solvers.base import Outcome, Solution
from bochner.solvers.ridge import require_penalties
from bochner.solvers.sketched import Preconditioner
from bochner.stats import Sweep
from bochner.stats.products import Cross, Guess, Products, RightSide
from bochner.stats.sketched import BUCKETS, Sketch
from bochner.stats.together import Together

#: sweeps after which residuals are computed anew, so that rounding does not add up
RENEWED = 10
#: steps in which the least eigenvalue that is known must no longer fall
_SETTLING = 5
#: the share by which the held-out error must fall in a sweep, where that ends the search
FALLING = 1e-3


#: seconds of a core for a number of the features in a sweep, and for a product of two numbers in a Gram
SWEPT, MULTIPLIED = 4.5e-10, 8.5e-12
#: sweeps that a sketch of D rows needs for a gap of 1e-4; one of m rows needs (m/D)^−0.75 times as many
_SWEEPS = 14.0


def sketch_rows(rows: int, width: int, memory: int = 8 << 30) -> int:
    """How many rows the sketch for ``width`` features should have: the least time of its factor and the sweeps.

    It goes by what both were measured to cost, and keeps sketch and factor within ``memory`` bytes.

    >>> sketch_rows(350_000, 16_384), sketch_rows(10_000_000, 16_384)
    (8192, 32768)
    """

    def seconds(m: int) -> float:
        less, more = sorted((m, width))
        factor = MULTIPLIED * (less * less * more + less**3 / 2)
        return factor + SWEPT * rows * width * _SWEEPS * math.pow(m / width, -0.75)

    shares = [width * share // 16 for share in (1, 2, 4, 8, 16, 32)]
    sizes = [max(m, BUCKETS) for m in shares if m <= rows // 2 and sketch_bytes(m, width) <= memory]
    return min(sizes, key=seconds) if sizes else min(max(BUCKETS, memory // (16 * width)), max(1, rows // 2))


def sketch_bytes(m: int, width: int, itemsize: int = 4) -> int:
    """Bytes of a sketch of m rows and what is made of it: twice while it is put together, its Gram and the factor."""
    return itemsize * (2 * m * width + 2 * min(m, width) ** 2)


@dataclass(frozen=True)
class Begun:
    """What one sweep finds: the right-hand side, with and without the held-out fold, and the preconditioner."""

    side: Cross
    whole: Cross
    precondition: Preconditioner
    #: rows of the sketch
    sketched: int


def begin(
    sweep: Sweep,
    width: int,
    outputs: int,
    rows: int,
    sketched: int,
    held: int | None = None,
    seed: int | Seed = 0,
    dtype: Any = np.float32,
) -> Begun:
    """The first sweep over ``rows`` rows: right-hand sides and a sketch of about ``sketched`` rows.

    Of the rows of the fold ``held`` the preconditioner knows nothing.
    """
    together = max(1, round(rows / max(sketched, BUCKETS)))
    sketch = Sketch(width, together, seed, held, dtype)
    right, other = RightSide(width, outputs, held), RightSide(width, outputs, only=-1 if held is None else held)
    sketch, right, other = sweep(Together(sketch, right, other)).parts
    side = right.value
    if not side.weight > 0.0:
        raise SolverError("there are no labelled rows of positive weight to learn from")
    taken = sketch.take(side.mean)
    precondition = Preconditioner(taken, sketch.seed)
    return Begun(side, side + other.value, precondition, len(taken))


def fit(
    sweep: Sweep,
    side: Cross,
    precondition: Callable[[Float64, Float64], Float64],
    penalties: Sequence[float] | Float64,
    tol: float = 1e-3,
    max_sweeps: int = 100,
    held: int | None = None,
    start: Sequence[Solution] | None = None,
    early: bool = False,
    watch: Callable[[list[Solution]], None] | None = None,
) -> list[Solution]:
    """Minimise Σ w (t − z·v − b)² + penalty ‖v‖² for every penalty, over the rows of ``side``.

    It is done when a bound of the objective's excess over its minimum, summed over the outputs, is ``tol``
    times the objective (``info["gap"]``).  With ``held``, ``info`` has the mean squared error and the share of
    wrong classes on that fold after every sweep, and with ``early`` a penalty ends where they no longer
    fall.  ``start`` has solutions to begin with, one for each penalty, which costs a sweep.  ``watch`` is
    shown the solutions so far after every step.
    """
    values = require_penalties(penalties)
    if not tol > 0.0 or max_sweeps < 1:
        raise SolverError(f"a tolerance > 0 and at least 1 sweep are needed, got tol={tol} and max_sweeps={max_sweeps}")
    if early and held is None:
        raise SolverError("stopping early needs a held-out fold")
    search = _Search(sweep, side, precondition, values, tol, max_sweeps, held, early)
    return search.run(start, watch or (lambda solutions: None))


class _Search:
    """Columns: every output at the first penalty, every output at the second …"""

    def __init__(
        self,
        sweep: Sweep,
        side: Cross,
        precondition: Callable[[Float64, Float64], Float64],
        penalties: Float64,
        tol: float,
        max_sweeps: int,
        held: int | None,
        early: bool,
    ):
        self.sweep, self.side, self.precondition, self.penalties = sweep, side, precondition, penalties
        self.tol, self.max_sweeps, self.held, self.early = tol, max_sweeps, held, early
        outputs = side.cross.shape[1]
        # The indicators of two classes add up to 1: one output is minus the other.
        summed = np.abs(side.cross.sum(axis=1)).max(initial=0.0)
        self.mirrored = outputs == 2 and bool(summed <= 1e-6 * np.abs(side.cross).max(initial=0.0))
        self.kept = slice(1, 2) if self.mirrored else slice(0, outputs)
        self.outputs = 1 if self.mirrored else outputs
        self.penalty = np.repeat(penalties, self.outputs)
        self.c = np.tile(side.cross[:, self.kept], len(penalties))
        self.scatter = np.tile(side.target_scatter[self.kept], len(penalties))
        self.v = np.zeros_like(self.c)
        self.residual = self.c.copy()
        # Products of rows with directions would lose the digits of a mean that is longer than the deviations.
        self.far = side.weight * float(side.mean @ side.mean) > 4.0 * side.trace
        self.sweeps = 0
        self.judged: list[tuple[Float64, Float64]] = []
        self.ritz = [_Ritz() for _ in range(self.c.shape[1])]

    def run(self, start: Sequence[Solution] | None, watch: Callable[[list[Solution]], None]) -> list[Solution]:
        if start is not None:
            self.v = np.hstack([solution.coef[:, self.kept] for solution in start])
            self._renew()
        ascent = self.precondition(self.residual, self.penalty)
        direction, size = ascent.copy(), _dots(self.residual, ascent)
        reason = np.full(len(self.penalties), None, dtype=object)
        self._settle(reason, size)
        while (active := self._active(reason)).any() and self.sweeps < self.max_sweeps:
            d = direction[:, active]
            curved = self._swept(d) + self.penalty[active] * d
            along = _dots(d, curved)
            step = _ratio(size[active], along)
            self.v[:, active] += step * d
            self.residual[:, active] -= step * curved
            if self.sweeps % RENEWED == 0 and self.sweeps < self.max_sweeps:
                self._renew(active)
            ascent = self.precondition(self.residual[:, active], self.penalty[active])
            fresh = _dots(self.residual[:, active], ascent)
            # (Polak & Ribière) keeps directions conjugate where the preconditioner rounds.
            turn = np.maximum(_ratio(-step * _dots(ascent, curved), size[active]), 0.0)
            for place, a, b in zip(np.flatnonzero(active), step, _ratio(fresh, size[active]), strict=True):
                self.ritz[place].add(a, b)
            direction[:, active] = ascent + turn * d
            stuck = np.zeros(len(active), dtype=bool)
            stuck[active] = ~(along > 0.0) & (size[active] > 0.0)
            size[active] = fresh
            self._settle(reason, size, stuck)
            watch(self._solutions(reason, size))
        if self.held is not None:  # the last step has not been judged
            self._swept(np.zeros((len(self.c), 1)))
        return self._solutions(reason, size)

    def _active(self, reason: Any) -> Any:
        return np.repeat([item is None for item in reason], self.outputs)

    def _swept(self, directions: Float64) -> Float64:
        """S times directions; the fit so far is judged on the held-out rows on the way."""
        found = self.sweep(Products(directions, self.side.mean, self.held, self._guess(), self.far))
        self.sweeps += 1
        self._judge(found)
        return found.value

    def _renew(self, which: Any = slice(None)) -> None:
        """The residual from the coefficients, by a sweep."""
        v = self.v[:, which]
        self.residual[:, which] = self.c[:, which] - self._swept(v) - self.penalty[which] * v

    def _guess(self) -> Guess | None:
        if self.held is None:
            return None
        coef = self._whole(self.v)
        intercept = np.tile(self.side.target_mean, len(self.penalties)) - self.side.mean @ coef
        return Guess(coef, intercept, self.side.cross.shape[1])

    def _judge(self, found: Products) -> None:
        if self.held is None or not found.held_weight > 0.0:
            return
        error = found.held_error.reshape(len(self.penalties), -1).sum(axis=1)
        self.judged.append((error / found.held_weight, found.held_wrong / found.held_weight))

    def _whole(self, columns: Float64) -> Float64:
        """Columns for all outputs."""
        if not self.mirrored:
            return columns
        both = np.empty((len(columns), 2 * columns.shape[1]))
        both[:, 0::2], both[:, 1::2] = -columns, columns
        return both

    def _objective(self) -> Float64:
        """Of each penalty; Σ w t² − c·v − r·v, since (S + penalty) v = c − r."""
        each = self.scatter - _dots(self.c, self.v) - _dots(self.residual, self.v)
        return np.asarray(np.maximum(each, 0.0).reshape(-1, self.outputs).sum(axis=1))

    def _gap(self, size: Float64) -> Float64:
        """Of each penalty, a bound of objective − minimum = rᵀ(S + penalty)⁻¹r.

        It is rᵀP⁻¹r over the least eigenvalue of P⁻¹(S + penalty), which conjugate gradients know more and more
        closely, from above; and never more than the duality gap, ‖r‖²/penalty.
        """
        least = np.array([ritz.least() for ritz in self.ritz])
        bound = np.where(least > 0.0, size / np.where(least > 0.0, least, 1.0), np.inf)
        dual = _ratio(_dots(self.residual, self.residual), self.penalty, np.inf)
        both = np.where(size > 0.0, np.minimum(bound, dual), 0.0)
        return np.asarray(both.reshape(-1, self.outputs).sum(axis=1))

    def _settle(self, reason: Any, size: Float64, stuck: Any = None) -> None:
        """Note which penalties are done, and why."""
        gap, objective = self._gap(size), self._objective()
        scale = objective + 1e-12 * self.scatter.reshape(-1, self.outputs).sum(axis=1)
        for i in range(len(self.penalties)):
            if reason[i] is not None:
                continue
            if gap[i] <= self.tol * scale[i]:
                reason[i] = Outcome.CONVERGED
            elif stuck is not None and stuck.reshape(-1, self.outputs)[i].any():
                reason[i] = Outcome.BELOW_PRECISION
            elif self.early and len(self.judged) > 2:
                error, before = self.judged[-1][0][i], self.judged[-2][0][i]
                if error > (1.0 - FALLING) * before:
                    reason[i] = Outcome.EARLY

    def _solutions(self, reason: Any, size: Float64) -> list[Solution]:
        gap, objective = self._gap(size), self._objective()
        found = []
        for i, penalty in enumerate(self.penalties):
            coef = self._whole(self.v[:, i * self.outputs : (i + 1) * self.outputs])
            info: dict[str, Any] = {
                "penalty": float(penalty),
                "objective": float(objective[i]),
                "gap": float(gap[i] / max(objective[i], np.finfo(float).tiny)),
                "sweeps": self.sweeps,
                "rows": self.side.count,
            }
            if self.judged:
                info["held_error"], info["held_wrong"] = (float(kind[i]) for kind in self.judged[-1])
                info["held"] = [(float(error[i]), float(wrong[i])) for error, wrong in self.judged]
            outcome = Outcome.STOPPED if reason[i] is None else reason[i]
            found.append(Solution(coef, self.side.target_mean - self.side.mean @ coef, outcome, info))
        return found


class _Ritz:
    """The least eigenvalue of the preconditioned matrix that conjugate gradients have seen.

    Their steps and turns are the tridiagonal matrix of Lanczos' method.
    """

    def __init__(self) -> None:
        self.diagonal: list[float] = []
        self.beside: list[float] = []
        self._carried = 0.0
        self._found: list[float] = []

    def add(self, step: float, turn: float) -> None:
        if not step > 0.0:
            return
        self.diagonal.append(1.0 / step + self._carried)
        self.beside.append(np.sqrt(max(turn, 0.0)) / step)
        self._carried = turn / step
        found = eigvalsh_tridiagonal(
            np.array(self.diagonal), np.array(self.beside[:-1]), select="i", select_range=(0, 0)
        )
        self._found.append(max(float(found[0]), 0.0))

    def least(self) -> float:
        """What it will be if it goes on to fall as it did in the last steps; 0 where nothing is known."""
        if not self._found or self._found[-1] == 0.0:
            return 0.0
        return self._found[-1] ** 2 / self._found[max(len(self._found) - 1 - _SETTLING, 0)]


def warm(solution: Solution, side: Cross) -> Solution:
    """A solution of some rows as the start for all."""
    return replace(solution, intercept=side.target_mean - side.mean @ solution.coef)


def _dots(a: Float64, b: Float64) -> Float64:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _ratio(a: Float64, b: Float64, otherwise: float = 0.0) -> Float64:
    return np.divide(a, b, out=np.full_like(a, otherwise), where=b > 0.0)
