"""Ridge regression at a penalty below the precision of the moments: a few sweeps of float64 products put it right.

Conjugate gradients (Hestenes & Stiefel 1952) on (S + penalty) v = c, with S and c from sweeps in float64 and
the factor of the float32 moments as preconditioner: it is wrong by their rounding alone, so that few steps do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bochner.arrays import Float64
from bochner.solvers.base import Outcome, Solution
from bochner.solvers.ridge import FLOAT32_NOISE, Prepared
from bochner.stats import Part, Sweep
from bochner.stats.products import Products, RightSide


def fit(
    sweep: Sweep,
    part: Part,
    penalty: float,
    noise: float = FLOAT32_NOISE,
    tol: float = 1e-8,
    max_sweeps: int = 10,
) -> Solution:
    """The minimum of Σ w (t − z·v − b)² + penalty ‖v‖² over the rows of ``sweep``, which gives float64 tiles.

    ``part`` has the moments of the same rows with rounding ``noise``.  It is done when the residual of each
    target, in the norm of the preconditioner, is ``tol`` times that of v = 0.
    """
    side = sweep(RightSide(part.width, len(part.target_mean))).value
    prepared = Prepared(replace(part, cross=side.cross), noise)
    factor = prepared.spread(penalty + 1e-3 * prepared.floor)
    v = np.zeros_like(side.cross)
    residual = side.cross.copy()
    ascent = factor @ (factor.T @ residual)
    direction, size = ascent, _dots(residual, ascent)
    goal = tol**2 * size
    sweeps = 1
    while (size > goal).any() and sweeps < max_sweeps:
        curved = sweep(Products(direction, side.mean)).value + penalty * direction
        sweeps += 1
        step = _ratio(size, _dots(direction, curved))
        v += step * direction
        residual -= step * curved
        ascent = factor @ (factor.T @ residual)
        last, size = size, _dots(residual, ascent)
        direction = ascent + _ratio(size, last) * direction
    outcome = Outcome.BELOW_PRECISION if (size > goal).any() else Outcome.CONVERGED
    return Solution(v, side.target_mean - side.mean @ v, outcome, {"penalty": float(penalty), "sweeps": sweeps})


def _dots(a: Float64, b: Float64) -> Float64:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _ratio(a: Float64, b: Float64) -> Float64:
    """a/b, and 0 where b is: that target is done."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
