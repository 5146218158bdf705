"""Cross-validation for any solver that goes down a path of penalties from moments alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers.base import Outcome, Solution
from bochner.solvers.ridge import Surface, held_out, require_penalties, splits
from bochner.stats.moments import UNLABELLED, Part

#: decades that a path may go on for, and the penalties of each
_FURTHER, _STEPS = 3, 8

#: the solutions of the rows of some moments at each penalty, in the order of the penalties
Path: TypeAlias = Callable[[Part, Float64], list[Solution]]


def geometric(largest: float, count: int = 25, ratio: float = 1e-3) -> Float64:
    """Penalties from the least one at which nothing is selected down to ``ratio`` times that."""
    if not largest > 0.0:
        raise SolverError("no feature varies together with a target, so that there is nothing to select")
    return np.asarray(largest * np.geomspace(1.0, ratio, count))


def crossed(folds: Sequence[Part], penalties: Sequence[float] | Float64, path: Path) -> Surface:
    """Exact K-fold cross-validation from the moments of the folds: train = total − fold, no further pass."""
    values = require_penalties(penalties)
    squared, baseline, weights = [], [], []
    for train, held in splits(folds):
        found = path(train, values)
        coef = np.hstack([solution.coef for solution in found])
        squared.append(held_out(held, train, coef).reshape(len(values), -1))
        baseline.append(held.target_scatter + held.weight * (held.target_mean - train.target_mean) ** 2)
        weights.append(held.weight)
    share, errors = np.array(weights), np.asarray(squared)[:, None]
    by_fold = errors.sum(axis=3) / share[:, None, None]
    total = share.sum()
    width = folds[0].width
    return Surface((width,), values, errors.sum(axis=0) / total, by_fold, np.sum(baseline, axis=0) / total)


def searched(folds: Sequence[Part], penalties: Float64, path: Path) -> Surface:
    """``crossed`` along a path that goes on to smaller penalties while its smallest is the best."""
    surface = crossed(folds, penalties, path)
    for _ in range(_FURTHER):
        values = surface.penalties
        if surface.best()[1] > values.min():
            break
        more = crossed(folds, values.min() * np.geomspace(1.0, 0.1, _STEPS + 1)[1:], path)
        surface = Surface(
            surface.sizes,
            np.concatenate([values, more.penalties]),
            np.concatenate([surface.errors, more.errors], axis=1),
            np.concatenate([surface.by_fold, more.by_fold], axis=2),
            surface.baseline,
        )
    return surface


def without_each(parts: Mapping[int, Part], penalty: float, path: Path) -> dict[int, Solution]:
    """For each fold the solution of the other folds, to score rows by a model that has not seen them."""
    keys = [key for key, part in parts.items() if key != UNLABELLED and part.weight > 0.0]
    pairs = zip(keys, splits([parts[key] for key in keys]), strict=True)
    return {key: path(train, np.array([penalty]))[0] for key, (train, _) in pairs}


def settled(part: Part, coef: Float64, penalty: float, converged: bool, cut: bool, **found: object) -> Solution:
    """A solution with its intercept, how it ended, and what was found on the way.

    One that has neither converged nor been ``cut`` short has come as far as rounding lets it.
    """
    outcome = Outcome.CONVERGED if converged else Outcome.STOPPED if cut else Outcome.BELOW_PRECISION
    return Solution(coef, part.target_mean - part.mean @ coef, outcome, {"penalty": float(penalty), **found})
