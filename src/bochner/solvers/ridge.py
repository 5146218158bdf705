"""Ridge regression from moments: paths, exact cross-validation, and what else one factorisation knows.

The objective is Σ w (t − z·v − b)² + penalty ‖v‖², with a free intercept b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from bochner.arrays import Float64
from bochner.errors import DataError, SolverError
from bochner.solvers.base import Outcome, Solution
from bochner.stats import Part

#: rounding of moments of float32 tiles, as a share of the mean diagonal of the scatter (measured: 2e-8 to 1e-7)
FLOAT32_NOISE = 1e-7
FLOAT64_NOISE = 1e-14


def penalties_for(part: Part, count: int = 25) -> Float64:
    """A path of penalties from far too little to far too much, in units of the trace of the scatter."""
    trace = float(np.trace(part.scatter))
    if not trace > 0.0:
        raise SolverError("the features do not vary over the rows, so that there is nothing to fit")
    return np.asarray(trace * np.geomspace(1e-11, 1e-1, count))


def require_penalties(penalties: Sequence[float] | Float64) -> Float64:
    """Penalties as a checked array."""
    values = np.atleast_1d(np.asarray(penalties, dtype=np.float64))
    if values.ndim != 1 or not values.size or not np.isfinite(values).all() or (values < 0.0).any():
        raise SolverError(f"penalties are finite numbers ≥ 0, got {penalties!r}")
    return values


@dataclass(frozen=True)
class Prepared:
    """The eigendecomposition of a scatter: everything for any penalty at the price of products."""

    part: Part
    noise: float = FLOAT64_NOISE

    @cached_property
    def _eigen(self) -> tuple[Float64, Float64]:
        values, vectors = np.linalg.eigh(self.part.scatter)
        return np.maximum(values, 0.0), vectors

    @property
    def eigenvalues(self) -> Float64:
        """Of the scatter, ascending."""
        return self._eigen[0]

    @cached_property
    def _rotated(self) -> Float64:
        return np.asarray(self._eigen[1].T @ self.part.cross)

    @property
    def floor(self) -> float:
        """Penalties below this are drowned by the rounding of the statistics."""
        return self.noise * float(np.trace(self.part.scatter)) / max(1, self.part.width)

    def solve(self, penalty: float) -> Solution:
        """The coefficients at one penalty."""
        values, vectors = self._eigen
        whole = values + penalty
        usable = whole > len(values) * np.finfo(np.float64).eps * max(float(whole.max(initial=0.0)), 1e-300)
        outcome = Outcome.CONVERGED
        if not usable.all():
            outcome = Outcome.SINGULAR
        elif penalty < self.floor and values.min(initial=np.inf) < self.floor:
            outcome = Outcome.BELOW_PRECISION
        inverse = np.where(usable, 1.0 / np.where(usable, whole, 1.0), 0.0)
        coef = vectors @ (self._rotated * inverse[:, None])
        intercept = self.part.target_mean - self.part.mean @ coef
        return Solution(coef, intercept, outcome, {"penalty": float(penalty)})

    def path(self, penalties: Sequence[float] | Float64) -> list[Solution]:
        """The coefficients at every penalty."""
        return [self.solve(float(p)) for p in require_penalties(penalties)]

    def residual(self, penalty: float) -> Float64:
        """Σ w (t − f)² on the rows of the moments, for each target."""
        values = self._eigen[0]
        inverse = _inverse(values + penalty)
        fitted = np.square(self._rotated) * (inverse * (2.0 - values * inverse))[:, None]
        return np.asarray(np.maximum(self.part.target_scatter - fitted.sum(axis=0), 0.0))

    def degrees_of_freedom(self, penalty: float) -> float:
        """tr S(S + penalty)⁻¹, and one for the intercept."""
        values = self._eigen[0]
        return 1.0 + float((values * _inverse(values + penalty)).sum())

    def gcv(self, penalty: float) -> Float64:
        """n · residual / (n − degrees of freedom)² for each target (Golub, Heath & Wahba 1979)."""
        n = self.part.weight
        return n * self.residual(penalty) / max(n - self.degrees_of_freedom(penalty), 1e-300) ** 2

    def noise_variance(self, penalty: float) -> Float64:
        """residual / (n − degrees of freedom) for each target."""
        return self.residual(penalty) / max(self.part.weight - self.degrees_of_freedom(penalty), 1e-300)

    def log_evidence(self, penalty: float) -> Float64:
        """log p(t | penalty) of v ~ N(0, σ²/penalty), with σ² at its best and the intercept free, for each target.

        −½ [(n−1)(1 + log 2πσ²) + Σ log(1 + λᵢ/penalty)] with σ² = (residual + penalty ‖v‖²)/(n−1).
        """
        if penalty <= 0.0:
            raise SolverError("a marginal likelihood needs a penalty > 0: that is the prior")
        values = self._eigen[0]
        m = max(self.part.weight - 1.0, 1e-300)
        explained = np.square(self._rotated) / (values + penalty)[:, None]
        energy = np.maximum(self.part.target_scatter - explained.sum(axis=0), 1e-300)
        determinant = float(np.log1p(values / penalty).sum())
        return np.asarray(-0.5 * (m * (1.0 + np.log(2.0 * np.pi * energy / m)) + determinant))

    def spread(self, penalty: float) -> Float64:
        """F with Var f(x) = σ² (‖(z(x) − mean) F‖² + 1/n) at a row x."""
        values, vectors = self._eigen
        return np.asarray(vectors * np.sqrt(_inverse(values + penalty)))


def _inverse(values: Float64) -> Float64:
    usable = values > len(values) * np.finfo(np.float64).eps * max(float(values.max(initial=0.0)), 1e-300)
    return np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0)


@dataclass(frozen=True)
class Surface:
    """Held-out squared error over numbers of features and penalties, from exact K-fold cross-validation.

    ``errors`` is (sizes, penalties, targets): the weighted mean over all rows, each predicted by the model
    that was fitted without its fold.  Penalties are in units of the features as they were drawn.
    """

    sizes: tuple[int, ...]
    penalties: Float64
    errors: Float64
    #: (folds, sizes, penalties): summed over the targets, weighted mean over the rows of the fold
    by_fold: Float64
    baseline: Float64

    @property
    def mean(self) -> Float64:
        """(sizes, penalties): summed over the targets."""
        return np.asarray(self.errors.sum(axis=2))

    def best(self) -> tuple[int, float]:
        """The number of features and the penalty of the least error."""
        i, j = np.unravel_index(int(np.argmin(self.mean)), self.mean.shape)
        return self.sizes[i], float(self.penalties[j])

    def best_for(self, size: int) -> float:
        """The penalty of the least error at one number of features."""
        return float(self.penalties[int(np.argmin(self.mean[self.sizes.index(size)]))])


def cross_validated(
    folds: Sequence[Part], penalties: Sequence[float] | Float64, sizes: Sequence[int] | None = None
) -> Surface:
    """Exact K-fold cross-validation from the moments of the folds: train = total − fold, no further pass.

    One Cholesky factor for each fold and penalty serves every number of leading features, since a leading
    block of a factor is the factor of the leading block.
    """
    folds = [part for part in folds if part.weight > 0.0]
    if len(folds) < 2:
        raise DataError("cross-validation needs rows in at least 2 folds; use fewer folds or more rows")
    values = require_penalties(penalties)
    total = folds[0]
    for part in folds[1:]:
        total = total + part
    D, k = total.cross.shape
    widths = tuple(sorted(set(sizes or (D,))))
    if widths[0] < 1 or widths[-1] > D:
        raise SolverError(f"numbers of features lie between 1 and {D}, got {widths}")
    squared = np.zeros((len(folds), len(widths), len(values), k))
    baseline = np.zeros(k)
    for f, held in enumerate(folds):
        train = total - held
        baseline += held.target_scatter + held.weight * (held.target_mean - train.target_mean) ** 2
        diagonal = np.diag(train.scatter).copy()
        scale = float(diagonal.mean())
        for p, penalty in enumerate(values):
            try:
                np.fill_diagonal(train.scatter, diagonal + max(penalty, 1e-15 * scale))
                L = cholesky(train.scatter, lower=True, check_finite=False)
            except LinAlgError:
                squared[f, :, p] = np.inf
                continue
            forward = solve_triangular(L, train.cross, lower=True, check_finite=False)
            for s, width in enumerate(widths):
                coef = solve_triangular(L[:width, :width], forward[:width], lower=True, trans="T", check_finite=False)
                squared[f, s, p] = held_out(held, train, coef)
        np.fill_diagonal(train.scatter, diagonal)
    weights = np.array([part.weight for part in folds])
    errors = squared.sum(axis=0) / weights.sum()
    by_fold = squared.sum(axis=3) / weights[:, None, None]
    return Surface(widths, values, errors, by_fold, baseline / weights.sum())


def held_out(held: Part, train: Part, coef: Float64) -> Float64:
    """Σ w (t − f)² over the rows of one part, for each target, of coefficients learnt on another."""
    width = len(coef)
    offset = held.target_mean - train.target_mean - (held.mean - train.mean)[:width] @ coef
    inside = np.einsum("ij,ij->j", held.scatter[:width, :width] @ coef - 2.0 * held.cross[:width], coef)
    return np.asarray(np.maximum(held.target_scatter + inside + held.weight * offset**2, 0.0))
