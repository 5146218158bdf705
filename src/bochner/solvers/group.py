"""Group LASSO over blocks of features, from moments: which kernels of a sum matter.

The objective is ½ Σ w ‖t − V'z − b‖² + penalty Σ_j price_j ‖V_j‖ over the blocks V_j of rows of V, with
Frobenius norms: a block is in or out for all targets together (Yuan & Lin 2006; Bach 2008 for kernels, where
‖V_j‖ is the norm of the block's function in the space of its kernel).

The blocks are turned so that each has a diagonal scatter of its own.  Sweeps minimise over one block at a time,
exactly, and find which blocks are in; Newton steps over those that are in make the end quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.solvers import ridge
from bochner.solvers.base import Solution
from bochner.solvers.paths import crossed, geometric, settled
from bochner.solvers.ridge import Surface, require_penalties
from bochner.stats.moments import Part

#: the duality gap that is allowed, as a share of Σ w (t − t̄)², summed over the targets
TOL = 1e-10
#: rounds of a few sweeps and a Newton step, at most
MOST = 500
_SWEEPS = 5
_HALVINGS = 12


def blocks_of(widths: Sequence[int]) -> list[slice]:
    """Consecutive blocks of columns."""
    ends = np.cumsum(widths)
    return [slice(int(end) - width, int(end)) for end, width in zip(ends, widths, strict=True)]


def prices_for(part: Part, blocks: Sequence[slice]) -> Float64:
    """√(trace of the block's covariance): kernels count as if each were scaled to unit variance.

    So a factor of a kernel makes no difference to whether it is in.
    """
    diagonal = np.diag(part.scatter) / part.weight
    prices = np.sqrt(np.maximum([diagonal[block].sum() for block in blocks], 0.0))
    return np.where(prices > 0.0, prices, 1.0)


@dataclass(frozen=True)
class Grouped:
    """Everything for any penalty: the moments with each block turned to its eigenvectors."""

    part: Part
    blocks: Sequence[slice]
    prices: Float64

    def __post_init__(self) -> None:
        ends = [0, *(block.stop for block in self.blocks)]
        if [block.start for block in self.blocks] != ends[:-1] or ends[-1] != self.part.width:
            raise SolverError(f"the blocks are not consecutive parts of the {self.part.width} features: {self.blocks}")
        if len(self.prices) != len(self.blocks) or not (np.asarray(self.prices) > 0.0).all():
            raise SolverError(f"each of the {len(self.blocks)} blocks has a price > 0, got {self.prices}")

    @cached_property
    def _turned(self) -> tuple[Float64, Float64, list[Float64], list[Float64]]:
        """Scatter and products of the turned features; the eigenvalues of each block, and the turns."""
        scatter = np.array(self.part.scatter)
        cross, values, turns = np.empty_like(self.part.cross), [], []
        for block in self.blocks:
            found, turn = np.linalg.eigh(self.part.scatter[block, block])
            scatter[block] = turn.T @ scatter[block]
            scatter[:, block] = scatter[:, block] @ turn
            cross[block] = turn.T @ self.part.cross[block]
            values.append(np.maximum(found, 0.0))
            turns.append(turn)
        return scatter, cross, values, turns

    def largest(self) -> float:
        """The least penalty at which no block is in."""
        norms = [float(np.linalg.norm(self.part.cross[block])) for block in self.blocks]
        return float((np.array(norms) / self.prices).max(initial=0.0))

    def path(self, penalties: Sequence[float] | Float64, tol: float = TOL, most: int = MOST) -> list[Solution]:
        """The solution at every penalty, each from that of the next larger one; at 0 it is least squares.

        ``info`` has the norm of each block, the gap as a share of Σ w (t − t̄)², and the rounds it took.
        """
        values = require_penalties(penalties)
        found: dict[int, Solution] = {}
        coef = np.zeros_like(self.part.cross)
        for p in np.argsort(-values, kind="stable"):
            if values[p] == 0.0:
                found[p] = self._with_norms(ridge.solved(self.part, 0.0))
                continue
            coef, gap, rounds = self._minimised(coef, values[p] * self.prices, tol, most)
            turns = self._turned[3]
            whole = np.vstack([turn @ coef[block] for turn, block in zip(turns, self.blocks, strict=True)])
            found[p] = self._with_norms(settled(self.part, whole, values[p], gap <= tol, True, gap=gap, rounds=rounds))
        return [found[p] for p in range(len(values))]

    def _with_norms(self, solution: Solution) -> Solution:
        solution.info["norms"] = np.array([np.linalg.norm(solution.coef[block]) for block in self.blocks])
        return solution

    # ---- one penalty --------------------------------------------------------------------------------
    def _minimised(self, coef: Float64, bounds: Float64, tol: float, most: int) -> tuple[Float64, float, int]:
        scatter = self._turned[0]
        energy = float(self.part.target_scatter.sum())
        if not energy > 0.0:
            return np.zeros_like(coef), 0.0, 0
        coef = coef.copy()
        rounds, gap = 0, np.inf
        while gap > tol and rounds < most:
            if rounds:
                coef = self._newton(coef, scatter @ coef, bounds)
            fitted = scatter @ coef
            for _ in range(_SWEEPS):
                self._sweep(coef, fitted, bounds)
            gap = self._gap(coef, fitted, bounds, energy)
            rounds += 1
        return coef, gap, rounds

    def _sweep(self, coef: Float64, fitted: Float64, bounds: Float64) -> None:
        """The exact minimum over one block after another; ``fitted`` is kept at scatter @ coef."""
        scatter, cross, values, _ = self._turned
        for block, own, bound in zip(self.blocks, values, bounds, strict=True):
            pull = cross[block] - fitted[block] + own[:, None] * coef[block]
            after = shrunk(pull, own, bound)
            step = after - coef[block]
            if step.any():
                fitted += scatter[:, block] @ step
                coef[block] = after

    def _gap(self, coef: Float64, fitted: Float64, bounds: Float64, energy: float) -> float:
        """As for the LASSO: by the residuals, scaled until no block pulls by more than its bound."""
        _, cross, _, _ = self._turned
        product = float((coef * cross).sum())
        residual = energy - 2.0 * product + float((coef * fitted).sum())
        pulls = [float(np.linalg.norm(cross[block] - fitted[block])) for block in self.blocks]
        scale = min(1.0, *(b / pull for b, pull in zip(bounds, pulls, strict=True) if pull > 0.0), 1.0)
        primal = 0.5 * residual + self._penalty(coef, bounds)
        dual = scale * (energy - product) - 0.5 * scale**2 * residual
        return float(max(0.0, primal - dual) / energy)

    def _penalty(self, coef: Float64, bounds: Float64) -> float:
        return float(sum(b * np.linalg.norm(coef[block]) for b, block in zip(bounds, self.blocks, strict=True)))

    def _newton(self, coef: Float64, fitted: Float64, bounds: Float64) -> Float64:
        """A Newton step over the blocks that are in, halved until the objective falls; else no step.

        The Hessian is (S + diag μ) ⊗ 1 − Σ_j (μ_j/‖V_j‖²) vec V_j vec V_jᵀ with μ_j = bound_j/‖V_j‖: one Cholesky
        factor and a small system (Woodbury).
        """
        scatter, cross, _, _ = self._turned
        norms = np.array([np.linalg.norm(coef[block]) for block in self.blocks])
        inside = [j for j, norm in enumerate(norms) if norm > 0.0]
        if not inside:
            return coef
        rows = np.concatenate([np.arange(self.blocks[j].start, self.blocks[j].stop) for j in inside])
        places = blocks_of([self.blocks[j].stop - self.blocks[j].start for j in inside])
        here, k = coef[rows], coef.shape[1]
        ridge_of = np.concatenate(
            [np.full(place.stop - place.start, bounds[j] / norms[j]) for j, place in zip(inside, places, strict=True)]
        )
        system = scatter[np.ix_(rows, rows)]
        system[np.diag_indices(len(rows))] += ridge_of
        units = np.zeros((len(rows), len(inside), k))
        for i, (j, place) in enumerate(zip(inside, places, strict=True)):
            units[place, i] = here[place] / norms[j]
        slope = fitted[rows] - cross[rows] + ridge_of[:, None] * here
        try:
            factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
            plain = cho_solve(factor, -slope)
            sides = cho_solve(factor, units.reshape(len(rows), -1)).reshape(units.shape)
            small = np.diag(norms[inside] / bounds[inside]) - np.einsum("rik,rjk->ij", units, sides)
            step = plain + np.einsum("rik,i->rk", sides, np.linalg.solve(small, np.einsum("rik,rk->i", units, plain)))
        except LinAlgError:
            return coef
        move = np.zeros_like(coef)
        move[rows] = step
        moved = scatter[:, rows] @ step
        # Of the objective along the step: ½ a² curve + a slope, and the norms.
        linear, square = float((move * (fitted - cross)).sum()), float((move * moved).sum())
        before = self._penalty(coef, bounds)
        for halving in range(_HALVINGS):
            size = 0.5**halving
            change = size * linear + 0.5 * size**2 * square + self._penalty(coef + size * move, bounds) - before
            if change < 0.0:
                return coef + size * move
        return coef


def shrunk(pull: Float64, values: Float64, bound: float) -> Float64:
    """The minimum of ½ Σ values V² − ΣΣ pull V + bound ‖V‖ over a block V.

    Zero where ‖pull‖ ≤ bound; else V = pull/(values + bound/t) with ‖pull/(t values + bound)‖ = 1, whose inverse
    norm is concave in t: Newton's steps from 0 approach it from below.
    """
    squares = np.square(pull).sum(axis=1)
    if squares.sum() <= (1.0 + 1e-12) * bound**2:  # at the largest penalty of a path rounding decides
        return np.zeros_like(pull)
    t = 0.0
    for _ in range(100):
        whole = t * values + bound
        norm = float((squares / whole**2).sum())
        slope = float((squares * values / whole**3).sum())
        if norm <= 1.0 or slope <= 0.0:
            break
        # Newton on norm^(−½) − 1, whose slope is norm^(−3/2) · slope.
        step = (norm**1.5 - norm) / slope
        t += step
        if step <= 1e-15 * t:
            break
    return pull * (t / (t * values + bound))[:, None]


def penalties_for(part: Part, blocks: Sequence[slice], prices: Float64, count: int = 25) -> Float64:
    """A path of penalties from no block down to a thousandth of that."""
    return geometric(Grouped(part, blocks, prices).largest(), count)


def cross_validated(
    folds: Sequence[Part],
    penalties: Sequence[float] | Float64,
    blocks: Sequence[slice],
    prices: Float64,
    tol: float = TOL,
) -> Surface:
    """Exact K-fold cross-validation of the path, from the moments of the folds; prices are the same for all."""
    return crossed(folds, penalties, lambda part, values: Grouped(part, blocks, prices).path(values, tol))
