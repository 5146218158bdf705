"""Probabilities from the scores of one-against-all least squares, fitted on rows that the scores have not seen.

p(k | x) = softmax(slope · f(x) + bias)ₖ.  One slope for all classes makes scores of different classes
comparable and sharp (least squares makes them as flat as its penalty is large); a bias for each class puts
right what a rare class loses against a frequent one.  With two classes this is Platt's sigmoid (2000).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from bochner.arrays import Float, Float64, frozen, tiles
from bochner.errors import DataError
from bochner.solvers.base import Outcome, Solution
from bochner.stats.base import Batch, Statistic
from bochner.stats.folds import mixed

#: numbers of a tile of scores
_TILE = 1 << 21
#: prior standard deviations: of a bias, and of the slope in units of the spread of the scores
_BIAS_SPREAD, _SLOPE_SPREAD = 1.0, 10.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """softmax(slope · scores + bias).

    >>> calibration = Calibration(2.0, np.zeros(2))
    >>> calibration.probabilities(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3).tolist()
    [[0.5, 0.5], [0.881, 0.119]]
    """

    slope: float
    bias: Float64
    outcome: Outcome = Outcome.CONVERGED

    def probabilities(self, outputs: Float) -> Float64:
        """One for each class, (rows, classes), from scores of the same shape."""
        return np.asarray(softmax(self.scores(outputs), axis=1))

    def scores(self, outputs: Float) -> Float64:
        """Log-odds up to a constant of each row: the largest is of the most probable class."""
        self._require(outputs)
        return np.asarray(self.slope * np.asarray(outputs, dtype=np.float64) + self.bias)

    def log_loss(self, outputs: Float, codes: NDArray[np.int64], weight: Float64 | None = None) -> float:
        """The weighted mean of −log p(class | x)."""
        scores = self.scores(outputs)
        return float(np.average(logsumexp(scores, axis=1) - scores[np.arange(len(codes)), codes], weights=weight))

    def _require(self, outputs: Float) -> None:
        if outputs.ndim != 2 or outputs.shape[1] != len(self.bias):
            raise DataError(f"scores of {len(self.bias)} classes are expected, got shape {outputs.shape}")

    def to_json(self) -> dict[str, Any]:
        return {"slope": self.slope, "bias": self.bias.tolist(), "outcome": self.outcome.name}

    @classmethod
    def from_json(cls, item: Any) -> Calibration:
        """What ``to_json`` wrote."""
        try:
            slope, bias = float(item["slope"]), np.asarray(item["bias"], dtype=np.float64)
            outcome = Outcome[item["outcome"]]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a calibration has a slope, a bias for each class and an outcome ({error!r})") from None
        if bias.ndim != 1 or len(bias) < 2 or not np.isfinite(bias).all() or not 0.0 <= slope < np.inf:
            raise DataError("a calibration has a finite slope ≥ 0 and a finite bias for each of 2 classes or more")
        return cls(slope, frozen(bias), outcome)


def for_each_class(outputs: Float) -> Float:
    """One score for each class: a margin f for the second of two classes becomes −f/2 and f/2."""
    return np.hstack([-0.5 * outputs, 0.5 * outputs]) if outputs.shape[1] == 1 else outputs


def calibrated(outputs: Float, codes: NDArray[np.int64], weight: Float64 | None = None) -> Calibration:
    """The calibration of least log loss on held-out scores (rows, classes) of rows of known class.

    Weak normal priors keep the slope finite where the scores separate the classes, and the bias of a class
    with few rows close to 0.
    """
    scores = np.asarray(outputs, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2 or len(scores) != len(codes) or not len(codes):
        raise DataError(f"scores are (rows, classes) with a class code for each row, got {scores.shape}, {len(codes)}")
    if not np.isfinite(scores).all():
        raise DataError("the scores are not finite; raise the penalty of the model that gives them")
    n, classes = scores.shape
    ones = np.ones(n) if weight is None else np.asarray(weight) * (n / np.sum(weight))
    # The optimiser sees scores of unit spread: the slope and the biases are then of one scale.
    spread = float((scores - scores.mean(axis=1, keepdims=True)).std()) or 1.0
    scores = scores / spread
    target = np.bincount(codes, weights=ones, minlength=classes)
    hit = float(ones @ scores[np.arange(n), codes])
    rows = tiles(n, _TILE // classes)

    def objective(theta: Float64) -> tuple[float, Float64]:
        slope, bias = theta[0], theta[1:]
        value = 0.5 * (slope / _SLOPE_SPREAD) ** 2 + 0.5 * float(bias @ bias) / _BIAS_SPREAD**2
        value -= slope * hit + float(bias @ target)
        gradient = np.concatenate([[slope / _SLOPE_SPREAD**2 - hit], bias / _BIAS_SPREAD**2 - target])
        for part in rows:
            p = slope * scores[part] + bias
            largest = p.max(axis=1)
            p -= largest[:, None]
            np.exp(p, out=p)
            total = p.sum(axis=1)
            value += float(ones[part] @ (largest + np.log(total)))
            share = ones[part] / total
            gradient[0] += float(share @ np.einsum("ij,ij->i", p, scores[part]))
            gradient[1:] += share @ p
        return value / n, gradient / n

    start = np.concatenate([[1.0], np.zeros(classes)])
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] + [(None, None)] * classes,
        options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-7},
    )
    outcome = Outcome.CONVERGED if found.success else Outcome.STOPPED
    return Calibration(float(found.x[0]) / spread, frozen(found.x[1:]), outcome)


class HeldOut(Statistic):
    """Scores of a sample of the labelled rows, each from the solution that was fitted without the fold of the row.

    ``share`` of the rows are kept, picked by a hash of their numbers; rows of a fold without solution are not.
    """

    def __init__(self, solutions: Mapping[int, Solution], share: float = 1.0):
        self.solutions, self.share = solutions, share
        self._kept: list[tuple[Float64, NDArray[np.int64], Float64]] = []

    def fresh(self) -> Self:
        return type(self)(self.solutions, self.share)

    def update(self, batch: Batch) -> None:
        if batch.target is None or not len(batch.Z) or batch.fold not in self.solutions:
            return
        kept: Any = slice(None)
        if self.share < 1.0:
            if batch.rows is None:
                raise DataError("a sample of the rows is picked by their numbers, which this batch lacks")
            places = mixed(batch.rows.astype(np.uint64), 1) >> np.uint64(11)
            kept = places * 2.0**-53 < self.share
        weight = np.ones(len(batch.Z)) if batch.weight is None else batch.weight
        scores = for_each_class(self.solutions[batch.fold].decision(batch.Z[kept]))
        self._kept.append((scores, batch.target[kept], weight[kept]))

    def __add__(self, other: Self) -> Self:
        joined = self.fresh()
        joined._kept = self._kept + other._kept
        return joined

    @property
    def outputs(self) -> Float64:
        """Scores (rows, classes)."""
        return self._joined(0)

    @property
    def codes(self) -> NDArray[np.int64]:
        """The class of each row."""
        return self._joined(1)

    @property
    def weight(self) -> Float64:
        """The weight of each row."""
        return self._joined(2)

    def _joined(self, which: int) -> NDArray[Any]:
        if not self._kept:
            raise DataError("there are no labelled rows to calibrate on")
        return np.concatenate([np.asarray(item[which]) for item in self._kept])
