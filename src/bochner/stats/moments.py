"""Centred, weighted second moments of [features | targets], for each fold: all that least squares needs.

Sums are kept about a shift close to the mean, in float64, from products of tiles in the precision of the
features; parts merge and subtract by Chan's formula.  (Raw sums would lose the digits of a large mean.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64
from bochner.errors import DataError
from bochner.hot.gram import add_gram, mirror
from bochner.stats.base import Batch, Statistic

#: rows of a tile of many features
_TILE_ROWS = 2048
#: the key of rows without a target
UNLABELLED = -1


@dataclass(frozen=True)
class Part:
    """Moments of some rows: Σw, means, Σw (z−z̄)(z−z̄)ᵀ, Σw (z−z̄)(t−t̄)ᵀ and Σw (t−t̄)², column by column.

    Class targets stand as their indicators.  ``a + b`` merges, ``a - b`` takes away what a contains.
    """

    count: int
    weight: float
    mean: Float64
    target_mean: Float64
    scatter: Float64
    cross: Float64
    target_scatter: Float64
    #: Σw² for the effective number of rows, Σw log w for likelihoods
    weight_square: float = 0.0
    weight_log: float = 0.0

    @classmethod
    def empty(cls, width: int, outputs: int) -> Part:
        """The identity of ``+``."""
        return cls(
            0,
            0.0,
            np.zeros(width),
            np.zeros(outputs),
            np.zeros((width, width)),
            np.zeros((width, outputs)),
            np.zeros(outputs),
        )

    @property
    def width(self) -> int:
        return len(self.mean)

    def __add__(self, other: Part) -> Part:
        return self._combined(other, 1)

    def __sub__(self, other: Part) -> Part:
        if other.count > self.count or other.weight > self.weight * (1.0 + 1e-9):
            raise DataError(f"{other.count} rows cannot be taken from {self.count}; were they ever added?")
        if other.count == self.count:
            return Part.empty(self.width, len(self.target_mean))
        return self._combined(other, -1)

    def _combined(self, other: Part, sign: int) -> Part:
        if self.cross.shape != other.cross.shape:
            raise DataError(
                f"moments of {self.cross.shape[0]} features and {self.cross.shape[1]} targets do not combine with "
                f"those of {other.cross.shape[0]} and {other.cross.shape[1]}"
            )
        if other.weight == 0.0 or (self.weight == 0.0 and sign > 0):
            whole, extra = (self, other) if other.weight == 0.0 else (other, self)
            return replace(whole, count=self.count + sign * other.count) if extra.count else whole
        total = self.weight + sign * other.weight
        step = sign * other.weight / total
        dz, dt = other.mean - self.mean, other.target_mean - self.target_mean
        shared = step * self.weight
        scatter = np.multiply.outer(dz, dz * shared)
        scatter += self.scatter
        (np.add if sign > 0 else np.subtract)(scatter, other.scatter, out=scatter)
        cross = self.cross + sign * other.cross + np.multiply.outer(dz, dt * shared)
        target_scatter = self.target_scatter + sign * other.target_scatter + shared * dt**2
        return Part(
            self.count + sign * other.count,
            total,
            self.mean + step * dz,
            self.target_mean + step * dt,
            scatter,
            cross,
            np.maximum(target_scatter, 0.0),
            self.weight_square + sign * other.weight_square,
            self.weight_log + sign * other.weight_log,
        )

    def leading(self, width: int, scale: float = 1.0) -> Part:
        """The moments of the first ``width`` features, times ``scale``."""
        first = slice(width)
        return replace(
            self,
            mean=scale * self.mean[first],
            scatter=scale**2 * self.scatter[first, first],
            cross=scale * self.cross[first],
        )

    def scaled(self, factors: Float64) -> Part:
        """The moments of each feature times its factor."""
        return replace(
            self,
            mean=factors * self.mean,
            scatter=np.multiply.outer(factors, factors) * self.scatter,
            cross=factors[:, None] * self.cross,
        )

    def transformed(self, basis: Float64) -> Part:
        """The moments of the features times ``basis``, (width, new width)."""
        return replace(
            self, mean=basis.T @ self.mean, scatter=basis.T @ self.scatter @ basis, cross=basis.T @ self.cross
        )


class _Sums:
    """Sums over rows of one fold, about a shift that the first batch sets."""

    def __init__(self, width: int, outputs: int):
        self.count, self.weight, self.weight_square, self.weight_log = 0, 0.0, 0.0, 0.0
        self.shift: Float64 | None = None
        self.target_shift = np.zeros(outputs)
        self.sums, self.target_sums = np.zeros(width), np.zeros(outputs)
        self.scatter = np.zeros((width, width))
        # Transposed: each class or column of targets is a contiguous row.
        self.cross, self.squares = np.zeros((outputs, width)), np.zeros(outputs)

    def add(self, Z: Float, target: NDArray[Any] | None, weight: Float64 | None) -> None:
        if self.shift is None:
            # Rounded to the precision of Z, so that what is taken off is what is put back.
            self.shift = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype).astype(np.float64)
            if target is not None and target.ndim == 2:
                self.target_shift = target.mean(axis=0)
        Z -= self.shift.astype(Z.dtype)
        ones = np.ones(len(Z)) if weight is None else weight
        self.count += len(Z)
        self.weight += float(ones.sum())
        self.weight_square += float(np.square(ones).sum())
        self.weight_log += float((ones[ones > 0] * np.log(ones[ones > 0])).sum())
        root = np.sqrt(ones).astype(Z.dtype)
        if weight is not None:
            Z *= root[:, None]
        add_gram(Z, self.scatter)
        self.sums += root @ Z
        if target is None:
            return
        if target.ndim == 1:
            self._add_classes(Z, target, root, ones)
        else:
            moved = target - self.target_shift
            self.target_sums += ones @ moved
            self.squares += ones @ np.square(moved)
            self.cross += (moved * np.sqrt(ones)[:, None]).T.astype(Z.dtype) @ Z

    def _add_classes(self, Z: Float, codes: NDArray[np.int64], root: Float, ones: Float64) -> None:
        """Sums of each run of equal codes: the cost does not depend on the number of classes."""
        if (np.diff(codes) < 0).any():
            order = np.argsort(codes, kind="stable")
            Z, codes, root, ones = Z[order], codes[order], root[order], ones[order]
        starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
        weighted = Z if root.min() == root.max() == 1.0 else Z * root[:, None]
        self.cross[codes[starts]] += np.add.reduceat(weighted, starts, axis=0, dtype=np.float64)
        sums = np.add.reduceat(ones, starts)
        self.target_sums[codes[starts]] += sums
        self.squares[codes[starts]] += sums

    def part(self) -> Part:
        """The centred moments."""
        width, outputs = len(self.sums), len(self.target_sums)
        if self.shift is None or self.weight == 0.0:
            return replace(Part.empty(width, outputs), count=self.count)
        mean, target_mean = self.sums / self.weight, self.target_sums / self.weight
        mirror(self.scatter)
        scatter = np.multiply.outer(self.sums, mean)
        np.subtract(self.scatter, scatter, out=scatter)
        return Part(
            self.count,
            self.weight,
            self.shift + mean,
            self.target_shift + target_mean,
            scatter,
            np.ascontiguousarray(self.cross.T) - np.multiply.outer(self.sums, target_mean),
            np.maximum(self.squares - self.weight * target_mean**2, 0.0),
            self.weight_square,
            self.weight_log,
        )


class Moments(Statistic):
    """The ``Part`` of every fold, and of unlabelled rows, for ``outputs`` targets.

    ``folds`` says how many parts are expected, for the estimate of memory.

    >>> import numpy as np
    >>> Z, t = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 0.0]]), np.array([[1.0], [2.0], [4.0]])
    >>> moments = Moments(2, 1)
    >>> moments.update(Batch(Z[:2].copy(), t[:2])); moments.update(Batch(Z[2:].copy(), t[2:], fold=1))
    >>> moments.total().mean.round(3).tolist(), moments.total().cross.round(3).ravel().tolist()
    ([2.0, 2.333], [1.0, -4.333])
    """

    def __init__(self, width: int, outputs: int = 0, parts: Mapping[int, Part] | None = None, folds: int = 1):
        self.width, self.outputs, self.folds = width, outputs, folds
        # Every tile adds width² numbers to the sums: with fewer rows that would cost more than the products.
        self.tile_bytes = max(type(self).tile_bytes, 4 * width * min(width, _TILE_ROWS))
        self._done: dict[int, Part] = dict(parts or {})
        self._sums: dict[int, _Sums] = {}

    def fresh(self) -> Self:
        return type(self)(self.width, self.outputs, folds=self.folds)

    @property
    def nbytes(self) -> int:
        return 8 * self.folds * self.width * (self.width + 2 * self.outputs)

    def update(self, batch: Batch) -> None:
        if len(batch.Z) == 0:
            return
        key = UNLABELLED if batch.target is None and self.outputs else batch.fold
        if key not in self._sums:
            self._sums[key] = _Sums(self.width, self.outputs)
        self._sums[key].add(batch.Z, batch.target, batch.weight)

    @property
    def parts(self) -> dict[int, Part]:
        """By fold; rows without a target under ``UNLABELLED``."""
        for key in sorted(self._sums):
            part = self._sums.pop(key).part()  # one fold after another: the sums of a fold go before the next is made
            self._done[key] = self._done[key] + part if key in self._done else part
        return dict(sorted(self._done.items()))

    def __add__(self, other: Self) -> Self:
        self._require_alike(other)
        mine, theirs = self.parts, other.parts
        merged = {
            key: mine[key] + theirs[key] if key in mine and key in theirs else mine.get(key) or theirs[key]
            for key in sorted({*mine, *theirs})
        }
        return type(self)(self.width, self.outputs, merged, self.folds)

    def __sub__(self, other: Self) -> Self:
        """Without the rows of another, which this one contains."""
        self._require_alike(other)
        mine = self.parts
        for key, part in other.parts.items():
            if key not in mine:
                raise DataError(f"the moments have no rows of fold {key} that could be taken away")
            mine[key] = mine[key] - part
        return type(self)(self.width, self.outputs, {key: part for key, part in mine.items() if part.count}, self.folds)

    def _require_alike(self, other: Moments) -> None:
        if (self.width, self.outputs) != (other.width, other.outputs):
            raise DataError(
                f"moments of {self.width} features and {self.outputs} targets do not combine with those of "
                f"{other.width} features and {other.outputs} targets"
            )

    def labelled(self) -> list[Part]:
        """The folds, in order, without unlabelled rows."""
        return [part for key, part in self.parts.items() if key != UNLABELLED]

    def total(self, unlabelled: bool = False) -> Part:
        """All labelled rows together; with ``unlabelled`` the others too, for their features (not their targets)."""
        return merged(
            (part for key, part in self.parts.items() if unlabelled or key != UNLABELLED), self.width, self.outputs
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays that ``from_arrays`` reads back, for files."""
        arrays: dict[str, NDArray[Any]] = {"shape": np.array([self.width, self.outputs])}
        for key, part in self.parts.items():
            for f in fields(Part):
                arrays[f"{key}.{f.name}"] = np.asarray(getattr(part, f.name))
        return arrays

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        read = type(self).from_arrays(arrays)
        self._require_alike(read)
        return type(self)(self.width, self.outputs, read.parts, self.folds)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The moments that ``to_arrays`` wrote; arrays that cannot be moments are refused."""
        try:
            width, outputs = (int(n) for n in arrays["shape"])
            names = {f.name for f in fields(Part)}
            read: dict[int, dict[str, NDArray[Any]]] = {}
            for name in arrays:
                if name != "shape":
                    key, _, kind = name.partition(".")
                    read.setdefault(int(key), {})[kind] = np.asarray(arrays[name])
            if min(width, outputs) < 0 or any(part.keys() != names for part in read.values()):
                raise ValueError("the shape is negative, or a part lacks an array or has one too many")
            parts = {key: _checked(width, outputs, values) for key, values in sorted(read.items())}
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"these are not moments as written by to_arrays ({error})") from None
        return cls(width, outputs, parts)


def _checked(width: int, outputs: int, arrays: Mapping[str, NDArray[Any]]) -> Part:
    """A part of arrays that have the right shapes, and are what sums of squares can be."""
    shapes = {
        "mean": (width,),
        "target_mean": (outputs,),
        "scatter": (width, width),
        "cross": (width, outputs),
        "target_scatter": (outputs,),
    }
    values: dict[str, Any] = {}
    for name, array in arrays.items():
        wanted = shapes.get(name, ())
        if array.shape != wanted or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"{name} does not hold finite numbers of shape {wanted}")
        values[name] = array.astype(np.float64) if wanted else float(array)
    part = Part(**{**values, "count": int(values["count"])})
    slack = 1e-9 * float(np.diag(part.scatter).max(initial=0.0))
    if part.count != values["count"] or min(part.count, part.weight, part.weight_square) < 0:
        raise ValueError("a number of rows is not whole or is negative, or a sum of weights is negative")
    if np.abs(part.scatter - part.scatter.T).max(initial=0.0) > slack:
        raise ValueError("a scatter is not symmetric")
    if min(np.diag(part.scatter).min(initial=0.0), part.target_scatter.min(initial=0.0)) < -slack:
        raise ValueError("a sum of squares is negative")
    return part


def merged(parts: Iterable[Part], width: int, outputs: int) -> Part:
    """Parts one after another into one."""
    total = Part.empty(width, outputs)
    for part in parts:
        total = total + part
    return total
