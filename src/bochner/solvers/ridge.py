"""Ridge regression from moments: paths, exact cross-validation, and what else one factorisation knows.

The objective is Σ w (t − z·v − b)² + penalty ‖v‖², with a free intercept b.  Whatever says something about
noise (variance, evidence, GCV, predictive spread) takes Σw as the number of rows: weights count as repeated
rows, and weights that are not counts should be divided by their mean first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bochner.arrays import Float64, tiles
from bochner.errors import DataError, SolverError
from bochner.solvers.band import reduced
from bochner.solvers.base import Outcome, Solution
from bochner.stats.moments import UNLABELLED, Part, merged

#: rounding of an entry of the scatter, as a share of its mean diagonal: float32 tiles (measured: 1.6e-8 to 1.9e-8
#: in the mean square at D = 512 and 2048), and float64
FLOAT32_NOISE = 2e-8
FLOAT64_NOISE = 2e-16
#: ten deviations of vᵀEv in units of σ‖v‖², and the share of a held-out error that may be rounding
DEVIATIONS = 15.0
DOUBT = 0.1
#: numbers of a block of coefficients for many penalties and targets
_BLOCK = 1 << 22


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


def precision_floor(part: Part, noise: float) -> float:
    """Below this, rounding of the statistics moves what a direction of the features adds by a tenth or more.

    A symmetric matrix of independent errors σ has norm 2σ√D (Wigner 1958); the floor is ten times that.
    """
    return 20.0 * noise * math.sqrt(part.width) * float(np.trace(part.scatter)) / max(1, part.width)


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
        """See ``precision_floor``."""
        return precision_floor(self.part, self.noise)

    def solve(self, penalty: float) -> Solution:
        """The coefficients at one penalty."""
        values, vectors = self._eigen
        whole = values + penalty
        usable = _usable(whole)
        outcome = Outcome.CONVERGED
        if not usable.all():
            outcome = Outcome.SINGULAR
        elif whole.min(initial=np.inf) < self.floor:
            outcome = Outcome.BELOW_PRECISION
        coef = vectors @ (self._rotated * inverses(whole)[:, None])
        intercept = self.part.target_mean - self.part.mean @ coef
        return Solution(coef, intercept, outcome, {"penalty": float(penalty)})

    def path(self, penalties: Sequence[float] | Float64) -> list[Solution]:
        """The coefficients at every penalty."""
        return [self.solve(float(p)) for p in require_penalties(penalties)]

    def residual(self, penalty: float) -> Float64:
        """Σ w (t − f)² on the rows of the moments, for each target."""
        values = self._eigen[0]
        inverse = inverses(values + penalty)
        fitted = np.square(self._rotated) * (inverse * (2.0 - values * inverse))[:, None]
        return np.asarray(np.maximum(self.part.target_scatter - fitted.sum(axis=0), 0.0))

    def degrees_of_freedom(self, penalty: float) -> float:
        """tr S(S + penalty)⁻¹, and one for the intercept."""
        values = self._eigen[0]
        return 1.0 + float((values * inverses(values + penalty)).sum())

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
        return np.asarray(vectors * np.sqrt(inverses(values + penalty)))


def _usable(values: Float64) -> NDArray[np.bool_]:
    """Which eigenvalues are more than the rounding of the largest."""
    return np.asarray(values > len(values) * np.finfo(np.float64).eps * max(float(values.max(initial=0.0)), 1e-300))


def inverses(values: Float64) -> Float64:
    """1/values, and 0 where they are rounding."""
    usable = _usable(values)
    return np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0)


def narrowed(part: Part, size: int) -> tuple[Part, float]:
    """The moments of the draw of ``size`` features, and by how much its penalties are larger.

    The first columns of a prefix-stable map of D features are the narrower draw times √(size/D), so that a
    penalty p on them as they stand is p · D/size on the narrower draw; the function that is learnt is the same.
    """
    factor = part.width / size
    return part.leading(size, math.sqrt(factor)), factor


@dataclass(frozen=True)
class Surface:
    """Held-out squared error over numbers of features and penalties, from exact K-fold cross-validation.

    ``errors`` is (sizes, penalties, targets): the weighted mean over all rows, each predicted by the model
    that was fitted without its fold.  Penalties are in units of the features as they were drawn, for every
    size: see ``narrowed`` for a model of fewer features.
    """

    sizes: tuple[int, ...]
    penalties: Float64
    errors: Float64
    #: (folds, sizes, penalties): summed over the targets, weighted mean over the rows of the fold
    by_fold: Float64
    baseline: Float64

    @classmethod
    def gathered(
        cls,
        sizes: Sequence[int],
        penalties: Float64,
        squared: Sequence[Float64],
        baseline: Sequence[Float64],
        weights: Sequence[float],
    ) -> Surface:
        """From each fold's sums of squared errors (sizes, penalties, targets), those of the mean, and Σw."""
        share = np.array(weights)
        errors = np.asarray(squared)
        by_fold = errors.sum(axis=3) / share[:, None, None]
        total = share.sum()
        return cls(tuple(sizes), penalties, errors.sum(axis=0) / total, by_fold, np.sum(baseline, axis=0) / total)

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

    def hidden(self, size: int) -> bool:
        """Whether rounding may hide a better penalty than the best one: smaller ones, whose error cannot be told.

        It does not where the error has risen by more than the rounding that is let pass (``path_errors``).
        """
        mean = self.mean[self.sizes.index(size)][np.argsort(self.penalties)]
        told = mean[np.isfinite(mean)]
        return len(told) < len(mean) and not (len(told) and told[0] > (1.0 + DOUBT) * told.min())


def cross_validated(
    folds: Sequence[Part],
    penalties: Sequence[float] | Float64,
    sizes: Sequence[int] | None = None,
    noise: float = FLOAT64_NOISE,
) -> Surface:
    """Exact K-fold cross-validation from the moments of the folds: train = total − fold, no further pass.

    One band form for each fold and size serves every penalty and target.  An error that rounding of the
    moments (``noise``) hides counts as infinite.
    """
    return surface(folds, penalties, sizes or (folds[0].width if folds else 1,), noise=noise)


def surface(
    folds: Sequence[Part],
    penalties: Sequence[float] | Float64,
    sizes: Sequence[int],
    change: Callable[[Part, Part], tuple[Part, Part]] | None = None,
    noise: float = FLOAT64_NOISE,
) -> Surface:
    """``cross_validated`` where ``change`` makes other features of each pair of training and held-out moments."""
    values = require_penalties(penalties)
    widths = tuple(sorted(set(sizes)))
    squared, baseline, weights = [], [], []
    for train, held in splits(folds):
        if widths[0] < 1 or widths[-1] > train.width:
            raise SolverError(f"numbers of features lie between 1 and {train.width}, got {widths}")
        baseline.append(held.target_scatter + held.weight * (held.target_mean - train.target_mean) ** 2)
        weights.append(held.weight)
        if change is not None:
            train, held = change(train, held)
        squared.append(
            np.stack([path_errors(train.leading(width), held.leading(width), values, noise) for width in widths])
        )
    return Surface.gathered(widths, values, squared, baseline, weights)


def splits(folds: Sequence[Part]) -> Iterator[tuple[Part, Part]]:
    """Training and held-out moments, for each fold that has rows."""
    folds = [part for part in folds if part.weight > 0.0]
    if len(folds) < 2:
        raise DataError("cross-validation needs rows in at least 2 folds; use fewer folds or more rows")
    total = merged(folds, folds[0].width, len(folds[0].target_mean))
    for held in folds:
        yield total - held, held


def path_errors(train: Part, held: Part, penalties: Float64, noise: float = FLOAT64_NOISE) -> Float64:
    """(penalties, targets): Σ w (t − f)² on held-out moments; infinite where it cannot be told.

    That is where the penalty is too small to solve, or where rounding of the held-out scatter may be
    ``DOUBT`` of the error: vᵀEv has variance ≤ 2σ²‖v‖⁴ for independent errors σ, and ten deviations are allowed for.
    """
    width, k = train.cross.shape
    banded = reduced(train.scatter)
    rotated = banded.rotated(train.cross)
    least = 1e-15 * float(np.trace(train.scatter)) / width
    sigma = noise * float(np.trace(held.scatter)) / width
    errors = np.full((len(penalties), k), np.inf)
    for block in tiles(len(penalties), _BLOCK // max(1, width * k)):
        solved, where = [], []
        for p in range(block.start, block.stop):
            try:
                solved.append(banded.solve(rotated, max(float(penalties[p]), least)))
                where.append(p)
            except LinAlgError:
                continue
        if where:
            coef = banded.back(np.hstack(solved))
            found = held_out(held, train, coef).reshape(-1, k)
            doubt = DEVIATIONS * sigma * np.square(coef).sum(axis=0).reshape(-1, k).sum(axis=1)
            errors[where] = np.where((doubt > DOUBT * found.sum(axis=1))[:, None], np.inf, found)
    return errors


def held_out(held: Part, train: Part, coef: Float64) -> Float64:
    """Σ w (t − f)² over the rows of one part, of coefficients learnt on another.

    ``coef`` has one column for each target, or several sets of such columns side by side.
    """
    width, columns = coef.shape
    k = len(held.target_mean)
    sets = columns // k
    offset = np.tile(held.target_mean - train.target_mean, sets) - (held.mean - train.mean)[:width] @ coef
    inside = np.einsum("ij,ij->j", held.scatter[:width, :width] @ coef, coef)
    both = np.einsum("ik,isk->sk", held.cross[:width], coef.reshape(width, sets, k)).ravel()
    error = np.tile(held.target_scatter, sets) + inside - 2.0 * both + held.weight * offset**2
    return np.asarray(np.maximum(error, 0.0))


def without_each(
    parts: Mapping[int, Part], penalty: float, size: int | None = None, noise: float = FLOAT64_NOISE
) -> dict[int, Solution]:
    """For each fold the solution of the other folds, to score rows by a model that has not seen them."""
    keys = [key for key, part in parts.items() if key != UNLABELLED and part.weight > 0.0]
    found = {}
    for key, (train, _) in zip(keys, splits([parts[key] for key in keys]), strict=True):
        part = train if size is None else train.leading(size)
        found[key] = solved(part, penalty, noise)
    return found


def solved(part: Part, penalty: float, noise: float = FLOAT64_NOISE) -> Solution:
    """The coefficients at one penalty: by one Cholesky factor, or by ``Prepared`` where that is not enough.

    A penalty above ``precision_floor`` needs no look at the eigenvalues.
    """
    if not penalty > precision_floor(part, noise):
        return Prepared(part, noise).solve(penalty)
    shifted = np.array(part.scatter, order="F")
    shifted[np.diag_indices(part.width)] += penalty
    try:
        coef = cho_solve(cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False), part.cross)
    except LinAlgError:
        return Prepared(part, noise).solve(penalty)
    return Solution(coef, part.target_mean - part.mean @ coef, info={"penalty": float(penalty)})
