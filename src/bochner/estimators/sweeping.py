"""Least squares by sweeps, where the features are too many for moments: the penalty by one held-out fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bochner.errors import SolverError
from bochner.estimators.learning import Learnt
from bochner.estimators.selecting import Options
from bochner.features import Drawn
from bochner.solvers import Solution, blocks, cross_validated, pcg, penalties_for, ridge
from bochner.solvers.way import Way, choose
from bochner.sources import Chunk, Source
from bochner.stats import Folds, Moments, Sweep, Targets
from bochner.stats.products import FEW

#: penalties that are tried first, as shares of the trace of the scatter; and steps beyond the best of them
_PATH = 10.0 ** np.arange(-4, -9, -1)
_EXTENSIONS = 3
#: a model that is only compared with others may be this far from the minimum
_ROUGH = 1e-2


@dataclass(frozen=True)
class Problem:
    """What is to be learnt, of which sizes; ``fold`` is held out where a choice or calibration needs it."""

    sweep: Sweep
    width: int
    outputs: int
    rows: int
    dtype: str
    fold: int | None
    tol: float
    max_sweeps: int
    seed: int


def by_sweeps(problem: Problem, alpha: Any, way: Way) -> Learnt:
    """Ridge regression by conjugate gradients over sweeps (see ``solvers.pcg``)."""
    fold = problem.fold
    begun = pcg.begin(
        problem.sweep,
        problem.width,
        problem.outputs,
        problem.rows,
        way.sketch,
        held=fold,
        seed=problem.seed,
        dtype=problem.dtype,
    )
    tried: dict[float, Solution] = {}
    if not isinstance(alpha, str):
        given = ridge.require_penalties(alpha)
        if len(given) > 1:
            _try(problem, begun, given, tried)
    elif alpha == "cv":
        _search(problem, begun, tried)
    else:
        raise SolverError(f"alpha={alpha!r} needs moments; use alpha='cv' or a number, or solver='moments'")
    if tried:
        penalty = min(tried, key=lambda p: float(tried[p].info["held_error"]))
        how = f"the least held-out error of {len(tried)}, on fold {fold} of the rows"
        start = [pcg.warm(tried[penalty], begun.whole)]
    else:
        penalty, how, start = float(ridge.require_penalties(alpha)[0]), "as given", None
    if not penalty > 0.0:
        raise SolverError("sweeps need a penalty > 0; give one as alpha, or use solver='moments'")
    (solution,) = pcg.fit(
        problem.sweep, begun.whole, begun.precondition, [penalty], problem.tol, problem.max_sweeps, start=start
    )

    def without() -> Mapping[int, Solution]:
        if fold is None:
            return {}
        if penalty in tried:
            return {fold: tried[penalty]}
        few = pcg.fit(problem.sweep, begun.side, begun.precondition, [penalty], _ROUGH, problem.max_sweeps, held=fold)
        return {fold: few[0]}

    notes = [
        f"{solution.info['sweeps']} sweeps to within {solution.info['gap']:.1e} of the least objective, "
        f"preconditioned by a sketch of {begun.sketched:,} rows"
    ]
    if tried:
        best, base = tried[penalty].info, begun.side.target_scatter.sum() / begun.side.weight
        notes.append(f"held out: squared error {best['held_error'] / max(base, 1e-300):.4f} as a share of the variance")
    return Learnt(solution, penalty, how, "sweeps", way.why, problem.width, notes=tuple(notes), without=without)


def _try(problem: Problem, begun: pcg.Begun, penalties: Any, tried: dict[float, Solution]) -> None:
    """Solutions without the held-out fold, in the same sweeps."""
    if problem.fold is None:
        raise SolverError("choosing a penalty needs rows in at least 2 folds; give more rows, or a number as alpha")
    found = pcg.fit(
        problem.sweep, begun.side, begun.precondition, penalties, _ROUGH, problem.max_sweeps, held=problem.fold
    )
    tried |= dict(zip(map(float, penalties), found, strict=True))


def _search(problem: Problem, begun: pcg.Begun, tried: dict[float, Solution]) -> None:
    """Powers of ten, further ones while the best is at an end, then one on each side of the best."""
    if not begun.side.trace > 0.0:
        raise SolverError("the features do not vary over the rows, so that there is nothing to fit")
    _try(problem, begun, begun.side.trace * _PATH, tried)

    def best() -> float:
        return min(tried, key=lambda p: float(tried[p].info["held_error"]))

    for _ in range(_EXTENSIONS):
        if min(tried) < best() < max(tried):
            break
        _try(problem, begun, [best() / 10.0 if best() == min(tried) else best() * 10.0], tried)
    _try(problem, begun, best() * np.array([10.0**0.5, 10.0**-0.5]), tried)


def by_blocks(problem: Problem, alpha: Any, way: Way, sweeps: list[Sweep], widths: list[int], memory: int) -> Learnt:
    """Ridge regression one block of features at a time (see ``solvers.blocks``); the penalty from the first block."""
    if isinstance(alpha, str):
        if alpha != "cv":
            raise SolverError(f"alpha={alpha!r} needs moments; use alpha='cv' or a number, or solver='moments'")
        folds = sweeps[0](Moments(widths[0], problem.outputs, folds=2))
        surface = cross_validated(folds.labelled(), penalties_for(folds.total()))
        penalty = surface.best()[1]
        how = f"the best for the first {widths[0]:,} features by exact cross-validation"
    else:
        given = ridge.require_penalties(alpha)
        if len(given) > 1:
            raise SolverError("blocks take one penalty, or alpha='cv'")
        penalty, how = float(given[0]), "as given"
    keep = 8 * sum(width * width for width in widths) <= memory
    solution = blocks.fit(sweeps, widths, problem.rows, problem.outputs, penalty, problem.tol, problem.max_sweeps, keep)
    notes = (f"{solution.info['sweeps']} rounds over {len(widths)} blocks of {widths[0]:,} features",)
    return Learnt(solution, penalty, how, "blocks", way.why, problem.width, notes=notes)


class SweepingMixin:
    """What ``KernelPredictor`` does where the features are too many for moments."""

    n_features: Any
    alpha: Any
    solver: str
    sweep_tol: float
    max_sweeps: int
    memory: int
    targets_: Targets
    drawn_: Drawn
    dtype_: str
    moments_: Moments | None
    _folds: Folds
    # Of the other bases.
    _reduction: Any
    _flow: Any
    _sweep: Any
    _settle: Any
    _timed: Any

    def _way(self, source: Source) -> Way:
        """Moments, sweeps or blocks."""
        options = Options.of(self)
        comparing = isinstance(self.n_features, (list, tuple))
        criterion = isinstance(self.alpha, str) and self.alpha != "cv"
        given = not isinstance(self.alpha, str) and np.size(self.alpha) == 1
        asked = self.solver
        unpenalised = given and not np.all(np.asarray(self.alpha, dtype=float) > 0.0)
        needs = {
            "n_features": comparing,
            "alpha": criterion or unpenalised,
            "pca": self._reduction is not None,
            "penalty": not options.plain,
        }
        if any(needs.values()):
            if asked not in ("auto", "moments"):
                what = next(name for name in needs if needs[name])
                raise SolverError(
                    f"{what}={getattr(self, what)!r} needs moments; use solver='moments', or plain ridge regression "
                    "of one number of features with alpha='cv' or numbers > 0"
                )
            asked = "moments"
        return choose(
            source.n_rows,
            self.drawn_.width,
            self.targets_.outputs,
            self.memory,
            folds=self._folds.count,
            choosing=not given,
            asked=asked,
        )

    def _learn_by_sweeps(self, source: Source, sample: Chunk, way: Way, progress: bool) -> None:
        self.moments_ = None
        rows = source.n_rows or sum(len(y) for y in source.targets())
        outputs, width = self.targets_.outputs, self.drawn_.width
        judged = isinstance(self.alpha, str) or np.size(self.alpha) > 1 or self._calibrates
        flow = replace(self._flow(source, self.targets_, self._folds if judged else None), by_class=outputs > FEW)
        problem = Problem(
            self._sweep(flow, progress),
            width,
            outputs,
            rows,
            self.dtype_,
            0 if judged else None,
            self.sweep_tol,
            self.max_sweeps,
            self._folds.seed,
        )
        with self._timed("sweeping"):
            if way.solver == "sweeps":
                learnt = by_sweeps(problem, self.alpha, way)
            else:
                starts = range(0, width, way.block)
                parts = [self.drawn_.part(start, min(start + way.block, width)) for start in starts]
                sweeps = [self._sweep(flow.with_drawn(part), progress) for part in parts]
                learnt = by_blocks(problem, self.alpha, way, sweeps, [part.width for part in parts], self.memory)
        self.rows_seen_ = rows
        self._settle(learnt, sample)

    @property
    def _calibrates(self) -> bool:
        """Whether scores of rows that a model has not seen are wanted."""
        return bool(getattr(self, "calibrate", False))
