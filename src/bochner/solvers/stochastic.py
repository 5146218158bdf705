"""One approximate pass of averaged stochastic gradients, for the impatient: no tolerance is reached or claimed."""

from __future__ import annotations

from bochner.solvers.base import Outcome, Solution
from bochner.solvers.losses import Loss
from bochner.stats import Sweep
from bochner.stats.averaged import Averaged


def fit(sweep: Sweep, loss: Loss, start: Solution, penalty: float, rows: float, square: float) -> Solution:
    """From ``start``, one pass towards the minimum of Σ w loss + ½ penalty ‖coef‖² over that many rows.

    ``square`` is the mean of ‖z‖²: with the curvature of the loss it sets the size of the first steps.
    """
    k = start.coef.shape[1]
    radius = float(loss.bound(k).max()) * (1.0 + square)
    way = sweep(Averaged(loss, start.coef, start.intercept, penalty / rows, radius))
    info = {"penalty": float(penalty), "sweeps": 1, "rows": way.rows}
    return Solution(way.coef, way.intercept, Outcome.APPROXIMATE, info)
