"""Sums of the rows next to each of some centres: what a step of k-means needs of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, tiles
from bochner.errors import DataError
from bochner.stats.base import Batch, Statistic
from bochner.stats.folds import mixed

#: how many of the rows that lie farthest from their centre are kept: they take the place of empty clusters
SPARES = 16
#: numbers and labels of no rows
_NONE = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32))


@dataclass
class Spares:
    """The rows that lie farthest from their centres: number, squared distance, label, weight, features."""

    rows: NDArray[np.int64]
    distances: Float64
    labels: NDArray[np.int64]
    weights: Float64
    features: Float64

    @classmethod
    def none(cls, width: int) -> Spares:
        empty = np.empty(0, dtype=np.int64)
        return cls(empty, np.empty(0), empty, np.empty(0), np.empty((0, width)))

    def __add__(self, other: Spares) -> Spares:
        names = ("rows", "distances", "labels", "weights", "features")
        both = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in names]
        # Of equal distances the row that comes first, whatever is added to what.
        best = np.lexsort((both[0], -both[1]))[:SPARES]
        return Spares(*(values[best] for values in both))


class Clusters(Statistic):
    """Σw, Σ w (z − shift) and Σ w ‖z − c‖² of the rows that are nearest to each centre c.

    Distances are taken about ``shift``, near the mean of the rows, so that they keep their digits.  With
    ``label`` the cluster of every row is kept.

    >>> sums = Clusters(np.array([[0.0], [10.0]]))
    >>> sums.update(Batch(np.array([[1.0], [2.0], [9.0]])))
    >>> sums.weight.tolist(), sums.means().ravel().tolist(), sums.inertia
    ([2.0, 1.0], [1.5, 9.0], 6.0)
    """

    summed = ("count", "weight", "sums", "inertia", "energy")
    # A tile is gone over three times.
    tile_bytes = 1 << 21

    def __init__(self, centres: Float64, shift: Float64 | None = None, label: bool = False):
        self.centres, self.label = centres, label
        self.shift = np.zeros(centres.shape[1]) if shift is None else shift
        self.weight, self.sums = np.zeros(len(centres)), np.zeros(centres.shape)
        self.inertia, self.count = 0.0, 0
        #: Σ w ‖z − shift‖²
        self.energy = 0.0
        self.spares = Spares.none(centres.shape[1])
        self._labels: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self._casts: dict[str, tuple[Float, Float, Float]] = {}

    def fresh(self) -> Self:
        return type(self)(self.centres, self.shift, self.label)

    @property
    def nbytes(self) -> int:
        return 3 * self.centres.nbytes

    def update(self, batch: Batch) -> None:
        if not len(batch.Z):
            return
        Z = batch.Z
        shift, moved, lengths = self._cast(Z.dtype)
        Z -= shift
        labels, nearest = assigned(Z, moved, lengths)
        own = np.einsum("ij,ij->i", Z, Z).astype(np.float64)
        distances = np.maximum(own + nearest, 0.0)
        weight = np.ones(len(Z)) if batch.weight is None else batch.weight
        self.count += len(Z)
        self.weight += np.bincount(labels, weight, len(self.centres))
        self.sums += members(labels, weight, len(self.centres), Z.dtype) @ Z
        self.inertia += float(weight @ distances)
        self.energy += float(weight @ own)
        if self.label:
            if batch.rows is None:
                raise DataError("rows are labelled by their numbers, which this batch lacks")
            self._labels.append((batch.rows, labels.astype(np.int32)))
        least = self.spares.distances[-1] if len(self.spares.distances) == SPARES else 0.0
        far = np.flatnonzero((distances >= least) & (distances > 0.0) & (weight > 0.0))
        if len(far):
            far = far[np.argsort(-distances[far], kind="stable")[:SPARES]]
            rows = far if batch.rows is None else batch.rows[far]
            self.spares = self.spares + Spares(rows, distances[far], labels[far], weight[far], Z[far].astype(float))

    def _cast(self, dtype: np.dtype[Any]) -> tuple[Float, Float, Float]:
        """Shift, shifted centres and their squared lengths in the precision of the features."""
        if dtype.name not in self._casts:
            shift = self.shift.astype(dtype)
            moved = self.centres - shift.astype(np.float64)
            self._casts[dtype.name] = shift, moved.astype(dtype), np.square(moved).sum(axis=1).astype(dtype)
        return self._casts[dtype.name]

    @property
    def spread(self) -> float:
        """Σ w ‖z − mean‖²: the inertia of a single cluster."""
        total = max(float(self.weight.sum()), 1e-300)
        return max(0.0, self.energy - float(np.square(self.sums.sum(axis=0)).sum()) / total)

    def labels(self) -> NDArray[np.int32]:
        """The cluster of every row, by the numbers of the rows from 0 on."""
        found = np.empty(self.count, dtype=np.int32)
        for rows, labels in self._labels:
            found[rows] = labels
        return found

    def means(self) -> Float64:
        """The mean of the rows of each cluster.

        An empty one takes the place of one of the rows that lie farthest from their centres, which its cluster loses.
        """
        weight, sums = self.weight.copy(), self.sums.copy()
        # As scikit-learn does, the farthest row for the first empty cluster.
        for empty, spare in zip(np.flatnonzero(weight <= 0.0), range(len(self.spares.rows)), strict=False):
            row, own, old = self.spares.features[spare], self.spares.weights[spare], self.spares.labels[spare]
            sums[old] -= own * row
            weight[old] -= own
            sums[empty], weight[empty] = own * row, own
        there = weight > 0.0
        means = self.centres - self.shift
        means[there] = sums[there] / weight[there, None]
        return np.asarray(means + self.shift)

    def __add__(self, other: Self) -> Self:
        if self.centres is not other.centres and not np.array_equal(self.centres, other.centres):
            raise DataError("sums next to different centres do not add up; sweep all rows with the same ones")
        both = self.fresh()
        for name in (*self.summed, "spares", "_labels"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        rows, labels = (np.concatenate(found) for found in zip(_NONE, *self._labels, strict=True))
        spares = {f"spares.{name}": values for name, values in vars(self.spares).items()}
        return {**super().to_arrays(), **spares, "rows": rows, "labels": labels}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        other = super().restored(arrays)
        other.spares = Spares(*(arrays[f"spares.{name}"] for name in vars(self.spares)))
        other._labels = [(arrays["rows"], arrays["labels"])]
        return other


class MiniBatches(Statistic):
    """Centres that move with every few rows: one approximate pass (Sculley 2010).

    Each centre is the running mean of the rows that were nearest to it when they came.  Every group of rows
    begins at the same centres, and those of the groups are averaged by their counts, so that groups can go
    in parallel.
    """

    summed = ("centres", "weight")
    tile_bytes = 1 << 22

    def __init__(self, centres: Float64, counts: Float64, rows: int, shift: Float64 | None = None):
        self.start, self.before, self.rows = centres, counts, rows
        self.shift = np.zeros(centres.shape[1]) if shift is None else shift
        self.centres, self.weight = centres, np.zeros(len(centres))

    def fresh(self) -> Self:
        return type(self)(self.start, self.before, self.rows, self.shift)

    @property
    def nbytes(self) -> int:
        return 3 * self.start.nbytes

    def update(self, batch: Batch) -> None:
        if batch.rows is None:
            raise DataError("rows are shuffled by their numbers, which this batch lacks")
        # Rows that lie together are often alike: steps go over those of a tile in an order of their own.
        order = np.argsort(mixed(batch.rows.astype(np.uint64), 3), kind="stable")
        for part in tiles(len(order), self.rows):
            here = order[part]
            Z = batch.Z[here] - self.shift.astype(batch.Z.dtype)
            moved = (self.centres - self.shift).astype(Z.dtype)
            labels, _ = assigned(Z, moved, np.square(moved).sum(axis=1))
            weight = np.ones(len(here)) if batch.weight is None else batch.weight[here]
            added = np.bincount(labels, weight, len(moved))
            sums = members(labels, weight, len(moved), Z.dtype) @ Z
            total = self.before + self.weight + added
            share = 1.0 / np.where(total > 0.0, total, 1.0)[:, None]
            self.centres = self.centres + share * (sums - added[:, None] * (self.centres - self.shift))
            self.weight = self.weight + added

    def __add__(self, other: Self) -> Self:
        if not np.array_equal(self.start, other.start):
            raise DataError("centres with different beginnings do not add up; sweep all rows from the same ones")
        both = self.fresh()
        both.weight = self.weight + other.weight
        share = other.weight / np.where(both.weight > 0.0, both.weight, 1.0)
        both.centres = self.centres + share[:, None] * (other.centres - self.centres)
        return both


def assigned(Z: Float, centres: Float, lengths: Float) -> tuple[NDArray[np.int64], Float]:
    """The centre that is nearest to each row, the first of equal ones, and ‖z − c‖² − ‖z‖²."""
    products = Z @ (-2.0 * centres.T).astype(Z.dtype)
    products += lengths
    labels = products.argmin(axis=1)
    return labels, products[np.arange(len(Z)), labels]


def members(labels: NDArray[np.int64], weight: Float64, count: int, dtype: Any) -> Any:
    """The matrix (clusters, rows) whose product with rows are the sums of each cluster."""
    n = len(labels)
    return sp.csr_array(sp.csc_array((weight.astype(dtype), labels, np.arange(n + 1)), shape=(count, n)))
