"""k-means from sums next to centres: a start on a sample, steps by sweeps over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, tiles
from bochner.errors import SolverError
from bochner.seeds import Seed
from bochner.solvers.base import Outcome
from bochner.stats.base import Batch, S, Sweep
from bochner.stats.clusters import Clusters, MiniBatches

#: sweeps over a sample cost little, so that their tolerance is a smaller one
_FINER = 0.1


@dataclass(frozen=True)
class Clustering:
    """Centres, the sums of a last sweep next to them, and how it came to them."""

    centres: Float64
    sums: Clusters
    outcome: Outcome
    #: sweeps that moved the centres, and the inertia at the beginning of each
    sweeps: int
    inertias: tuple[float, ...]

    @property
    def inertia(self) -> float:
        """Σ w ‖z − nearest centre‖²."""
        return self.sums.inertia


def lloyd(
    sweep: Sweep, centres: Float64, shift: Float64, tol: float = 1e-4, most: int = 300, label: bool = False
) -> Clustering:
    """Lloyd's steps until a sweep lowers the inertia by no more than a share ``tol``; with 0, until nothing moves.

    These are scikit-learn's steps, and with 0 its end; a cluster that becomes empty takes one of the farthest
    rows.  (scikit-learn's own tolerance is for the moves of the centres, which can go on for a hundred sweeps that
    change the inertia in the fourth digit: here each is a pass over the data.)
    """
    inertias: list[float] = []
    while len(inertias) < most:
        sums = sweep(Clusters(centres, shift, label))
        inertias.append(sums.inertia)
        after = sums.means()
        least = tol * sums.inertia if tol > 0.0 and (sums.weight > 0.0).all() else -np.inf
        if (after == centres).all() or (len(inertias) > 1 and inertias[-2] - inertias[-1] <= least):
            return Clustering(centres, sums, Outcome.CONVERGED, len(inertias), tuple(inertias))
        centres = after
    return Clustering(centres, sweep(Clusters(centres, shift, label)), Outcome.STOPPED, len(inertias), tuple(inertias))


def mini_batch(sweep: Sweep, start: Clustering, shift: Float64, rows: int, label: bool = False) -> Clustering:
    """One approximate pass: the centres move with every few rows, from those of a sample and their weights."""
    found = sweep(MiniBatches(start.centres, start.sums.weight, rows, shift))
    centres = found.centres
    return Clustering(centres, sweep(Clusters(centres, shift, label)), Outcome.APPROXIMATE, 1, (start.inertia,))


def in_memory(Z: Float, weight: Float64 | None) -> Sweep:
    """Sweeps over the features of a sample."""

    def sweep(statistic: S) -> S:
        found = statistic.fresh()
        size = max(64, statistic.tile_bytes // max(1, Z.shape[1] * Z.itemsize))
        for part in tiles(len(Z), size):
            own = None if weight is None else weight[part]
            found.update(Batch(Z[part].copy(), None, own, rows=np.arange(part.start, part.stop)))
        return found

    return sweep


def started(
    Z: Float, weight: Float64 | None, clusters: int, starts: int, seed: Seed, tol: float, most: int
) -> tuple[Clustering, Float64]:
    """The best of some starts on a sample, each by k-means++ and Lloyd's steps; and the mean of the sample."""
    if clusters > len(Z):
        raise SolverError(f"{clusters} clusters need as many rows or more, there are {len(Z)}; use fewer clusters")
    if weight is not None and not weight.any():
        raise SolverError("all weights are 0, so that no row counts; give some rows a weight > 0")
    shift = np.asarray(np.average(Z, axis=0, weights=weight), dtype=np.float64)
    run = partial(lloyd, in_memory(Z, weight), shift=shift, tol=_FINER * tol, most=most)
    found = [run(plusplus(Z, weight, clusters, seed.child("start", i), shift)) for i in range(starts)]
    return min(found, key=lambda clustering: clustering.inertia), shift


def plusplus(Z: Float, weight: Float64 | None, clusters: int, seed: Seed, shift: Float64) -> Float64:
    """k-means++ (Arthur & Vassilvitskii 2007): each centre a row drawn by its distance to those that are there.

    Of 2 + log k draws the one that leaves the least inertia is taken, as in scikit-learn.
    """
    stream = seed.stream("rows")
    weights = np.ones(len(Z)) if weight is None else np.asarray(weight, dtype=np.float64)
    moved = Z - shift.astype(Z.dtype)
    squares = np.einsum("ij,ij->i", moved, moved, dtype=np.float64)
    trials = 2 + int(np.log(clusters))
    first = int(stream.choice(weights, 1)[0])
    picks = [first]
    closest = _distances(moved, squares, np.array([first]))[0]
    for _ in range(1, clusters):
        mass = weights * closest
        if not mass.any():  # fewer different rows than clusters
            mass = weights * ~np.isin(np.arange(len(Z)), picks)
            mass = mass if mass.any() else weights
        candidates = stream.choice(mass, trials)
        left = np.minimum(closest, _distances(moved, squares, candidates))
        best = int(np.argmin(left @ weights))
        picks.append(int(candidates[best]))
        closest = left[best]
    return np.asarray(Z[picks], dtype=np.float64)


def _distances(moved: Float, squares: Float64, rows: NDArray[np.int64]) -> Float64:
    """Squared distances (rows, n) of some rows to all."""
    products = (moved @ moved[rows].T).T.astype(np.float64)
    found = np.maximum(squares[rows][:, None] + squares - 2.0 * products, 0.0)
    found[np.arange(len(rows)), rows] = 0.0
    return np.asarray(found)
