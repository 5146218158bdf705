"""Averaged stochastic descent over groups of rows: one approximate pass."""

from __future__ import annotations

from typing import Self

import numpy as np

from bochner.arrays import Float64, tiles
from bochner.errors import DataError
from bochner.stats.base import Batch, Statistic
from bochner.stats.folds import mixed
from bochner.stats.gradient import LossFunction

#: rows of a step: fewer give more steps, more give faster products
STEP = 16


class Averaged(Statistic):
    """The average of coefficients along steps of stochastic gradients, of mean loss + ½ decay ‖coef‖².

    Step t is 1/(radius + decay t) times the mean gradient of a few rows, where ``radius`` is the mean of
    ‖z‖² times the curvature of the loss: that of Pegasos (Shalev-Shwartz et al. 2011), 1/(decay t), begun
    where it no longer overshoots.  Every group of rows begins at ``coef`` and ``intercept``, and the
    averages of groups are averaged (Zhang, Duchi & Wainwright 2013), so that groups can go in parallel.

    >>> from bochner.solvers.losses import SquaredHinge
    >>> way = Averaged(SquaredHinge(), np.zeros((1, 1)), np.zeros(1), decay=0.0, radius=2.0)
    >>> way.update(Batch(np.array([[1.0], [1.0]]), np.array([1, 1]), rows=np.arange(2)))
    >>> way.coef.tolist(), way.intercept.tolist()
    ([[1.0]], [1.0])
    """

    tile_bytes = 1 << 21

    def __init__(self, loss: LossFunction, coef: Float64, intercept: Float64, decay: float, radius: float):
        self.of, self.start = loss, (coef, intercept)
        self.decay, self.radius = decay, radius
        self.coef, self.intercept = coef, intercept
        self.rows, self._steps, self._mass = 0, 0, 0.0
        self._here = np.vstack([coef, intercept])

    def fresh(self) -> Self:
        return type(self)(self.of, *self.start, self.decay, self.radius)

    @property
    def nbytes(self) -> int:
        return 4 * self._here.nbytes

    def update(self, batch: Batch) -> None:
        if batch.target is None or not len(batch.Z):
            return
        if batch.rows is None:
            raise DataError("rows are shuffled by their numbers, which this batch lacks")
        # Rows that lie together are often alike: steps go over them in an order of their own.
        order = np.argsort(mixed(batch.rows.astype(np.uint64), 2), kind="stable")
        mean, mass = np.vstack([self.coef, self.intercept]), self._mass
        here = self._here
        for part in tiles(len(order), STEP):
            rows = order[part]
            Z, codes = batch.Z[rows], batch.target[rows]
            outputs = np.asarray(Z @ here[:-1].astype(Z.dtype) + here[-1], dtype=np.float64)
            slope = self.of.value_and_slope(outputs, codes)[1]
            if batch.weight is not None:
                slope *= batch.weight[rows, None]
            slope /= len(rows)
            size = 1.0 / (self.radius + self.decay * self._steps)
            step = np.vstack([Z.T @ slope.astype(Z.dtype), slope.sum(axis=0)])
            step[:-1] += self.decay * here[:-1]
            here = here - size * step
            # Later steps count more (Shamir & Zhang 2013), so that the start is forgotten.
            self._steps += 1
            share = self._steps * len(rows)
            mass += share
            mean += (share / mass) * (here - mean)
        self._here, self._mass = here, mass
        self.coef, self.intercept = mean[:-1], mean[-1]
        self.rows += len(order)

    def __add__(self, other: Self) -> Self:
        total = self.fresh()
        total.rows = self.rows + other.rows
        if total.rows:
            share = other.rows / total.rows
            total.coef = (1.0 - share) * self.coef + share * other.coef
            total.intercept = (1.0 - share) * self.intercept + share * other.intercept
        return total
