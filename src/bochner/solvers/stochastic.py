"""One approximate pass of averaged stochastic gradients, for the impatient: no tolerance is reached or claimed.

Like Pegasos (Shalev-Shwartz et al. 2011) it takes a few rows a step and needs no step size.  Its steps go
by the curvature that a sample has, without which small eigenvalues of the features would need many passes.
"""

from __future__ import annotations

import numpy as np

from bochner.solvers.base import Outcome, Solution
from bochner.solvers.losses import Loss
from bochner.stats import Part, Sweep
from bochner.stats.averaged import STEP, Averaged
from bochner.stats.gradient import Gradient


def fit(
    sweep: Sweep, of_sample: Sweep, loss: Loss, start: Solution, part: Part, penalty: float, weight: float
) -> Solution:
    """From the solution of a sample, one pass towards the minimum of Σ w loss + ½ penalty ‖coef‖².

    ``part`` has the moments of the sample, ``weight`` is Σ w of all rows.
    """
    here = of_sample(Gradient(loss, start.coef[None], start.intercept[None]))
    most = float(np.linalg.eigvalsh(loss.bound(start.coef.shape[1])).max())
    curvature = min(most, max(2.0 * float(np.linalg.eigvalsh(here.curvature[0] / here.weight).max()), 1e-2 * most))
    decay = penalty / weight
    values, vectors = np.linalg.eigh(part.scatter / part.weight)
    values = curvature * np.maximum(values, 0.0)
    whole = values + max(decay, 1e-12 * float(values.max()))
    inverse = (vectors / whole) @ vectors.T
    # A step of a few rows is stable up to 1/(1 + degrees of freedom/rows) of a full one.
    size = 1.0 / (1.0 + float((values / whole).sum()) / STEP)
    begin = start.intercept + part.mean @ start.coef
    way = sweep(Averaged(loss, start.coef, begin, part.mean, inverse, decay, size))
    info = {"penalty": float(penalty), "sweeps": 1, "rows": way.rows}
    return Solution(way.coef, way.intercept - part.mean @ way.coef, Outcome.APPROXIMATE, info)
