"""Loss and gradient of several candidate models in one sweep: what iterative solvers ask for.

Making features is most of the price of a sweep.  So one sweep takes as many points (steps along a
direction, penalties of a path) as a few columns of products allow.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64
from bochner.errors import DataError
from bochner.stats.base import Batch, Statistic


class LossFunction(Protocol):
    """What a gradient needs to know of a loss."""

    def value_and_slope(self, outputs: Float64, codes: NDArray[np.int64]) -> tuple[Float64, Float64]: ...

    def curvature(self, outputs: Float64, slopes: Float64, weight: Float64) -> Float64: ...

    def codes(self, outputs: Float64) -> NDArray[np.int64]: ...


class Gradient(Statistic):
    """Sums over labelled rows at points p with outputs f = (z − centre) @ coef[p] + intercept[p].

    ``loss`` Σ w ℓ, ``slopes`` Σ w ∂ℓ/∂f, ``gradient`` Σ w (z − centre) ∂ℓ/∂fᵀ, ``curvature`` Σ w ∂²ℓ/∂f²,
    without the rows of the fold ``held``, which count in ``held_loss`` and ``held_errors`` (Σ w of wrong
    classes) alone.  ``coef`` is (points, features, k) and ``intercept`` is (points, k).  With ``against``,
    point p tells class against[p] from all others, by one output.

    >>> from bochner.solvers.losses import Squared
    >>> sums = Gradient(Squared(), np.zeros((1, 1, 2)), np.zeros((1, 2)))
    >>> sums.update(Batch(np.array([[1.0], [3.0]]), np.array([0, 1])))
    >>> sums.loss.tolist(), sums.gradient.ravel().tolist(), sums.weight
    ([1.0], [-1.0, -3.0], 2.0)
    """

    summed = (
        "count",
        "weight",
        "held_weight",
        "loss",
        "held_loss",
        "held_errors",
        "slopes",
        "curvature",
        "precision",
        "_gradient",
    )
    # A tile is gone over twice, with a product each way.
    tile_bytes = 1 << 20

    def __init__(
        self,
        loss: LossFunction,
        coef: Float64,
        intercept: Float64,
        centre: Float64 | None = None,
        held: int | None = None,
        against: NDArray[np.int64] | None = None,
    ):
        self.of, self.coef, self.intercept, self.centre, self.held = loss, coef, intercept, centre, held
        self.against = against
        points, width, k = coef.shape
        self.count, self.weight, self.held_weight = 0, 0.0, 0.0
        self.loss, self.held_loss, self.held_errors = np.zeros(points), np.zeros(points), np.zeros(points)
        self.slopes, self.curvature = np.zeros((points, k)), np.zeros((points, k, k))
        #: machine precision of the features
        self.precision = 0.0
        self._gradient = np.zeros((width, points * k))
        self._cast: tuple[Float, Float] | None = None

    def fresh(self) -> Self:
        return type(self)(self.of, self.coef, self.intercept, self.centre, self.held, self.against)

    @property
    def nbytes(self) -> int:
        return 2 * self.coef.nbytes + self.curvature.nbytes

    @property
    def gradient(self) -> Float64:
        """(points, features, k)."""
        points, width, k = self.coef.shape
        return np.ascontiguousarray(self._gradient.reshape(width, points, k).swapaxes(0, 1))

    def update(self, batch: Batch) -> None:
        if batch.target is None or not len(batch.Z):
            return
        if batch.target.ndim != 1:
            raise DataError("losses of classification need class codes as targets; give Classes(labels)")
        codes, Z = batch.target, batch.Z
        flat, centre = self._in(Z.dtype)
        Z -= centre
        points, _, k = self.coef.shape
        outputs = (Z @ flat).reshape(len(Z), points, k) + self.intercept
        weight = np.ones(len(Z)) if batch.weight is None else batch.weight
        if batch.fold == self.held:
            self._hold(outputs, codes, weight)
            return
        self.count += len(Z)
        self.weight += float(weight.sum())
        self.precision = max(self.precision, float(np.finfo(Z.dtype).eps))
        slopes = np.empty_like(outputs)
        for p in range(points):
            value, slope = self.of.value_and_slope(outputs[:, p], self._codes(codes, p))
            self.loss[p] += weight @ value
            self.slopes[p] += weight @ slope
            self.curvature[p] += self.of.curvature(outputs[:, p], slope, weight)
            slopes[:, p] = slope * weight[:, None]
        self._gradient += Z.T @ slopes.reshape(len(Z), points * k).astype(Z.dtype, copy=False)

    def _in(self, dtype: np.dtype[Any]) -> tuple[Float, Float]:
        """The coefficients as one matrix, and the centre, in the precision of the features."""
        if self._cast is None or self._cast[0].dtype != dtype:
            width = self.coef.shape[1]
            flat = self.coef.swapaxes(0, 1).reshape(width, -1)
            centre = np.zeros(width) if self.centre is None else self.centre
            self._cast = flat.astype(dtype), centre.astype(dtype)
        return self._cast

    def _hold(self, outputs: Float64, codes: NDArray[np.int64], weight: Float64) -> None:
        self.held_weight += float(weight.sum())
        for p in range(outputs.shape[1]):
            right = self._codes(codes, p)
            self.held_loss[p] += weight @ self.of.value_and_slope(outputs[:, p], right)[0]
            self.held_errors[p] += weight @ (self.of.codes(outputs[:, p]) != right)

    def _codes(self, codes: NDArray[np.int64], p: int) -> NDArray[np.int64]:
        return codes if self.against is None else (codes == self.against[p]).astype(np.int64)

    def __add__(self, other: Self) -> Self:
        if self.coef is not other.coef and not (
            np.array_equal(self.coef, other.coef) and np.array_equal(self.intercept, other.intercept)
        ):
            raise DataError("gradients at different points do not add up; sweep each point over all rows")
        both = self.fresh()
        both.precision = max(self.precision, other.precision)
        for name in self.summed:
            if name != "precision":
                setattr(both, name, getattr(self, name) + getattr(other, name))
        return both
