"""Second moments times vectors, without the moments: what solvers that sweep again need at large D.

A sweep costs 4nDk operations for k directions besides the features, where moments cost nD².  Rows of the fold
``held`` count only for the error of a model; rows without a target do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64
from bochner.errors import DataError
from bochner.stats.base import Batch, Statistic

#: a tile that is gone over twice stays in the cache, with the phases that it is made of
TILE = 1 << 21
#: classes up to which a product with their indicators costs less than rows in the order of their classes
FEW = 32


@dataclass(frozen=True)
class Cross:
    """Moments of features and targets but for the scatter of the features, of which the trace is here."""

    count: int
    weight: float
    mean: Float64
    target_mean: Float64
    cross: Float64
    target_scatter: Float64
    trace: float

    @classmethod
    def empty(cls, width: int, outputs: int) -> Cross:
        """The identity of ``+``."""
        zeros = np.zeros(outputs)
        return cls(0, 0.0, np.zeros(width), zeros, np.zeros((width, outputs)), zeros, 0.0)

    def __add__(self, other: Cross) -> Cross:
        if other.weight == 0.0 or self.weight == 0.0:
            whole, extra = (self, other) if other.weight == 0.0 else (other, self)
            return replace(whole, count=whole.count + extra.count)
        total = self.weight + other.weight
        step = other.weight / total
        dz, dt = other.mean - self.mean, other.target_mean - self.target_mean
        shared = step * self.weight
        return Cross(
            self.count + other.count,
            total,
            self.mean + step * dz,
            self.target_mean + step * dt,
            self.cross + other.cross + np.multiply.outer(dz, dt * shared),
            self.target_scatter + other.target_scatter + shared * dt**2,
            self.trace + other.trace + shared * float(dz @ dz),
        )


class RightSide(Statistic):
    """Σ w (z−z̄)(t−t̄)ᵀ with its means and sums of squares (``Cross``), for ``outputs`` targets.

    Of all labelled rows but those of the fold ``held``, or of the rows of the fold ``only``.

    >>> side = RightSide(2, 1)
    >>> side.update(Batch(np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 0.0]]), np.array([[1.0], [2.0], [4.0]])))
    >>> side.value.mean.round(3).tolist(), side.value.cross.round(3).ravel().tolist()
    ([2.0, 2.333], [1.0, -4.333])
    """

    tile_bytes = TILE

    def __init__(self, width: int, outputs: int, held: int | None = None, only: int | None = None):
        self.width, self.outputs, self.held, self.only = width, outputs, held, only
        self._done = Cross.empty(width, outputs)
        self._sums: _Sums | None = None

    def fresh(self) -> Self:
        return type(self)(self.width, self.outputs, self.held, self.only)

    @property
    def nbytes(self) -> int:
        return 16 * self.width * (self.outputs + 2)

    def update(self, batch: Batch) -> None:
        if batch.target is None or batch.fold == self.held or not len(batch.Z):
            return
        if self.only is not None and batch.fold != self.only:
            return
        if self._sums is None:
            self._sums = _Sums(self.width, self.outputs)
        self._sums.add(batch.Z, batch.target, batch.weight)

    @property
    def value(self) -> Cross:
        """The moments of the rows so far."""
        if self._sums is not None:
            self._done = self._done + self._sums.value()
            self._sums = None
        return self._done

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {f.name: np.asarray(getattr(self.value, f.name)) for f in fields(Cross)}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        other = self.fresh()
        kept: dict[str, Any] = {
            name: array.item() if array.ndim == 0 else array.copy() for name, array in arrays.items()
        }
        other._done = Cross(**kept)
        return other

    def __add__(self, other: Self) -> Self:
        mine, theirs = ((s.width, s.outputs, s.held, s.only) for s in (self, other))
        if mine != theirs:
            raise DataError("right-hand sides of different features, targets or held-out folds do not add")
        total = self.fresh()
        total._done = self.value + other.value
        return total


class _Sums:
    """Sums about shifts that the first batch sets."""

    def __init__(self, width: int, outputs: int):
        self.count, self.weight, self.squares = 0, 0.0, 0.0
        self.shift: Float64 | None = None
        self.target_shift = np.zeros(outputs)
        self.sums, self.target_sums = np.zeros(width), np.zeros(outputs)
        self.cross, self.target_squares = np.zeros((outputs, width)), np.zeros(outputs)

    def add(self, Z: Float, target: NDArray[Any], weight: Float64 | None) -> None:
        if self.shift is None:
            # Rounded to the precision of Z, so that what is taken off is what is put back.
            self.shift = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype).astype(np.float64)
            if target.ndim == 2:
                self.target_shift = target.mean(axis=0)
        Z -= self.shift.astype(Z.dtype)
        ones = np.ones(len(Z)) if weight is None else weight
        cast = ones.astype(Z.dtype)
        self.count += len(Z)
        self.weight += float(ones.sum())
        self.sums += cast @ Z
        flat = (Z if weight is None else Z * np.sqrt(cast)[:, None]).ravel(order="K")
        self.squares += float(flat @ flat)
        if target.ndim == 1:
            self._add_classes(Z, target, cast)
            sums = np.bincount(target, ones, len(self.target_sums))
            self.target_sums += sums
            self.target_squares += sums
        else:
            moved = target - self.target_shift
            self.cross += (moved * ones[:, None]).T.astype(Z.dtype) @ Z
            self.target_sums += ones @ moved
            self.target_squares += ones @ np.square(moved)

    def _add_classes(self, Z: Float, codes: NDArray[np.int64], cast: Float) -> None:
        if len(self.cross) <= FEW:
            self.cross += (codes == np.arange(len(self.cross))[:, None]) * cast @ Z
            return
        if (np.diff(codes) < 0).any():
            order = np.argsort(codes, kind="stable")
            Z, codes, cast = Z[order], codes[order], cast[order]
        # One run for each class that is there: the cost does not depend on how many there are.
        starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
        for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True):
            self.cross[codes[start]] += cast[start:stop] @ Z[start:stop]

    def value(self) -> Cross:
        """The centred moments."""
        if self.shift is None or self.weight == 0.0:
            return replace(Cross.empty(len(self.sums), len(self.target_sums)), count=self.count)
        mean, target_mean = self.sums / self.weight, self.target_sums / self.weight
        return Cross(
            self.count,
            self.weight,
            self.shift + mean,
            self.target_shift + target_mean,
            self.cross.T - np.multiply.outer(mean, self.target_sums),
            np.maximum(self.target_squares - self.weight * target_mean**2, 0.0),
            max(self.squares - self.weight * float(mean @ mean), 0.0),
        )


@dataclass(frozen=True)
class Guess:
    """Coefficients and intercepts whose error on the held-out rows a sweep measures on its way.

    Columns are sets of ``outputs`` each, side by side: one set for each penalty that is tried.
    """

    coef: Float64
    intercept: Float64
    outputs: int

    @property
    def sets(self) -> int:
        return int(self.coef.shape[1]) // self.outputs


class Products(Statistic):
    """Σ w (z−m)(z−m)ᵀ V for directions V (D, k) and the mean m of the rows.

    With (z−m)·v as z·v − m·v no tile is centred.  Only where the mean is longer than the deviations
    (``far``) would that lose digits; there it is taken off first.

    >>> Z = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 0.0]])
    >>> products = Products(np.eye(2), Z.mean(axis=0))
    >>> products.update(Batch(Z, np.zeros((3, 1))))
    >>> products.value.round(3).tolist()
    [[2.0, 3.0], [3.0, 12.667]]
    """

    tile_bytes = TILE
    summed = ("_sums", "_totals", "held_error", "held_wrong", "held_weight")

    def __init__(
        self,
        directions: Float64,
        mean: Float64,
        held: int | None = None,
        guess: Guess | None = None,
        far: bool = False,
    ):
        self.directions, self.mean, self.held, self.guess, self.far = directions, mean, held, guess, far
        width, count = directions.shape
        self._sums, self._totals = np.zeros((count, width)), np.zeros(count)
        self._level = mean @ directions
        self._casts: dict[str, tuple[Float, Float]] = {}
        #: Σ w (t − f)² on the held-out rows, for each column of the guess
        self.held_error = np.zeros(0 if guess is None else guess.coef.shape[1])
        #: Σ w of held-out rows whose largest output is not that of their class, for each set
        self.held_wrong = np.zeros(0 if guess is None else guess.sets)
        self.held_weight = 0.0

    def fresh(self) -> Self:
        return type(self)(self.directions, self.mean, self.held, self.guess, self.far)

    @property
    def nbytes(self) -> int:
        return 16 * self.directions.size

    def update(self, batch: Batch) -> None:
        if batch.target is None:
            return
        Z = batch.Z
        ones = np.ones(len(Z)) if batch.weight is None else batch.weight
        if batch.fold == self.held:
            if self.guess is not None:
                self._hold(Z, batch.target, ones, self.guess)
            return
        directions, level = self._cast(Z.dtype)
        if self.far:
            Z -= self.mean.astype(Z.dtype)
            along = Z @ directions
        else:
            along = Z @ directions
            along -= level
        if batch.weight is not None:
            along *= ones.astype(Z.dtype)[:, None]
        self._sums += along.T @ Z
        self._totals += along.sum(axis=0, dtype=np.float64)

    def _cast(self, dtype: Any) -> tuple[Float, Float]:
        """Directions and their products with the mean in the precision of the features."""
        if dtype.name not in self._casts:
            self._casts[dtype.name] = self.directions.astype(dtype), self._level.astype(dtype)
        return self._casts[dtype.name]

    def _hold(self, Z: Float, target: NDArray[Any], ones: Float64, guess: Guess) -> None:
        error = np.asarray(Z @ guess.coef.astype(Z.dtype) + guess.intercept, dtype=np.float64)
        each = error.reshape(len(Z), guess.sets, guess.outputs)
        if target.ndim == 1:
            self.held_wrong += ones @ (each.argmax(axis=2) != target[:, None])
            each[np.arange(len(Z)), :, target] -= 1.0
        else:
            each -= target[:, None]
        self.held_error += ones @ np.square(error)
        self.held_weight += float(ones.sum())

    @property
    def value(self) -> Float64:
        """The products, (D, k)."""
        offset = 0.0 if self.far else np.multiply.outer(self.mean, self._totals)
        return np.asarray(self._sums.T - offset)

    def __add__(self, other: Self) -> Self:
        if self.directions is not other.directions and not np.array_equal(self.directions, other.directions):
            raise DataError("products of different directions do not add")
        total = self.fresh()
        for name in self.summed:
            setattr(total, name, getattr(self, name) + getattr(other, name))
        return total
