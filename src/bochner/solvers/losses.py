"""Losses of classification: values, slopes and curvatures at outputs f = z(x) @ coef + intercept.

The objective is always Σ w loss(f, class) + ½ penalty ‖coef‖² with a free intercept, so that ``Logistic``
is scikit-learn's LogisticRegression with C = 1/penalty, and ``Squared`` is ridge regression on indicators
with the same penalty.  Two classes have one output, the margin for class 1, except in ``Squared``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from bochner.arrays import Float64
from bochner.errors import SolverError

Codes = NDArray[np.int64]


class Loss(ABC):
    """A convex function of the outputs (rows, k) for each class code."""

    name: ClassVar[str]
    #: whether each output of three or more is a problem of its own, of two classes
    one_against_all: ClassVar[bool] = False

    def outputs(self, classes: int) -> int:
        """How many outputs k a model of that many classes has."""
        return 1 if classes == 2 else classes

    @abstractmethod
    def value_and_slope(self, outputs: Float64, codes: Codes) -> tuple[Float64, Float64]:
        """The loss of each row, and its derivatives with respect to the outputs, (rows, k)."""

    @abstractmethod
    def curvature(self, outputs: Float64, slopes: Float64, weight: Float64) -> Float64:
        """Σ w times the second derivatives, (k, k), of rows with these outputs and slopes."""

    @abstractmethod
    def bound(self, k: int) -> Float64:
        """A matrix (k, k) that the second derivatives of one row nowhere exceed."""

    @abstractmethod
    def constant(self, prior: Float64) -> Float64:
        """The outputs (k,) of least mean loss that do not depend on the row, for the shares of the classes."""

    def codes(self, outputs: Float64) -> Codes:
        """The predicted class of each row."""
        return (outputs[:, 0] > 0.0).astype(np.int64) if outputs.shape[1] == 1 else outputs.argmax(axis=1)

    def probabilities(self, outputs: Float64) -> Float64:
        """Of each class, (rows, classes), where the loss means them."""
        raise SolverError(f"the {self.name} loss has no probabilities; calibrate its outputs, or use loss='logistic'")


@dataclass(frozen=True)
class Logistic(Loss):
    """−log p(class): p = 1/(1 + exp(−f)) of class 1, or p = softmax(f) of three or more classes.

    Its curvature is at most 1/4, or ½ (I − 11ᵀ/K) (Böhning & Lindsay 1988; Böhning 1992).

    >>> Logistic().probabilities(np.array([[0.0], [800.0]])).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    name: ClassVar[str] = "logistic"

    def value_and_slope(self, outputs: Float64, codes: Codes) -> tuple[Float64, Float64]:
        if outputs.shape[1] == 1:
            signs = _signs(outputs, codes)
            margins = signs * outputs
            tail = np.exp(-np.abs(margins))
            value = np.maximum(-margins, 0.0) + np.log1p(tail)
            return value[:, 0], -signs * np.where(margins > 0.0, tail, 1.0) / (1.0 + tail)
        rows = np.arange(len(codes))
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        slopes = np.exp(shifted)
        totals = slopes.sum(axis=1)
        value = np.log(totals) - shifted[rows, codes]
        slopes /= totals[:, None]
        slopes[rows, codes] -= 1.0
        return value, slopes

    def curvature(self, outputs: Float64, slopes: Float64, weight: Float64) -> Float64:
        if outputs.shape[1] == 1:
            wrong = np.abs(slopes[:, 0])
            return np.atleast_2d(weight @ (wrong * (1.0 - wrong)))
        p = np.where(slopes < 0.0, 1.0 + slopes, slopes)  # only the own class has a negative slope
        return np.asarray(np.diag(weight @ p) - (p * weight[:, None]).T @ p)

    def bound(self, k: int) -> Float64:
        return np.full((1, 1), 0.25) if k == 1 else 0.5 * (np.eye(k) - 1.0 / k)

    def constant(self, prior: Float64) -> Float64:
        logs = np.log(np.maximum(prior, 1e-12))
        return logs[1:] - logs[:1] if len(prior) == 2 else logs - logs.mean()

    def probabilities(self, outputs: Float64) -> Float64:
        if outputs.shape[1] == 1:
            return np.hstack([expit(-outputs), expit(outputs)])
        return np.asarray(softmax(outputs, axis=1))


class _Margin(Loss):
    """One class against all others: a function of the margin ±f, summed over the outputs."""

    one_against_all: ClassVar[bool] = True

    @abstractmethod
    def of_gap(self, gap: Float64) -> tuple[Float64, Float64]:
        """Value and slope as functions of gap = 1 − margin."""

    def value_and_slope(self, outputs: Float64, codes: Codes) -> tuple[Float64, Float64]:
        signs = _signs(outputs, codes)
        value, slope = self.of_gap(1.0 - signs * outputs)
        return value.sum(axis=1), -signs * slope


@dataclass(frozen=True)
class SquaredHinge(_Margin):
    """Σ max(0, 1 − margin)², whose curvature is 2 or 0.

    >>> SquaredHinge().value_and_slope(np.array([[-1.0], [1.5]]), np.array([1, 1]))[0].tolist()
    [4.0, 0.0]
    """

    name: ClassVar[str] = "squared_hinge"

    def of_gap(self, gap: Float64) -> tuple[Float64, Float64]:
        positive = np.maximum(gap, 0.0)
        return positive**2, 2.0 * positive

    def curvature(self, outputs: Float64, slopes: Float64, weight: Float64) -> Float64:
        return np.diag(2.0 * weight @ (slopes != 0.0))

    def bound(self, k: int) -> Float64:
        return 2.0 * np.eye(k)

    def constant(self, prior: Float64) -> Float64:
        return np.asarray(2.0 * _shares(prior) - 1.0)


@dataclass(frozen=True)
class SmoothedHinge(_Margin):
    """Σ max(0, 1 − margin), with a parabola in the last ``width`` before margin 1 (Rennie & Srebro 2005).

    Second derivatives are 1/width or 0, and would vanish for all rows far from margin 1; ``curvature`` sums
    slope/gap instead, that of the parabola that touches there and is least at gap 0 (as for Huber's loss).
    """

    width: float = 0.5
    name: ClassVar[str] = "smoothed_hinge"

    def __post_init__(self) -> None:
        if not 0.0 < self.width <= 1.0:
            raise SolverError(f"the width of a smoothed hinge lies in (0, 1], got {self.width}")

    def of_gap(self, gap: Float64) -> tuple[Float64, Float64]:
        inside = np.clip(gap, 0.0, self.width)
        return inside * (gap - 0.5 * inside) / self.width, inside / self.width

    def curvature(self, outputs: Float64, slopes: Float64, weight: Float64) -> Float64:
        gap = 1.0 + np.sign(slopes) * outputs  # the sign of a slope is opposite to that of the class
        return np.diag(weight @ (np.abs(slopes) / np.maximum(gap, self.width * np.abs(slopes))))

    def bound(self, k: int) -> Float64:
        return np.eye(k) / self.width

    def constant(self, prior: Float64) -> Float64:
        share = _shares(prior)
        odds = np.minimum(share, 1.0 - share) / np.maximum(share, 1.0 - share)
        return np.asarray(np.sign(2.0 * share - 1.0) * (1.0 - self.width * odds))


@dataclass(frozen=True)
class Squared(Loss):
    """½ Σ (indicator − f)², one output for each class: ridge regression has it exactly, without sweeps."""

    name: ClassVar[str] = "squared"

    def outputs(self, classes: int) -> int:
        return classes

    def value_and_slope(self, outputs: Float64, codes: Codes) -> tuple[Float64, Float64]:
        slope = outputs - (codes[:, None] == np.arange(outputs.shape[1]))
        return np.asarray(0.5 * np.square(slope).sum(axis=1)), slope

    def curvature(self, outputs: Float64, slopes: Float64, weight: Float64) -> Float64:
        return float(weight.sum()) * np.eye(outputs.shape[1])

    def bound(self, k: int) -> Float64:
        return np.eye(k)

    def constant(self, prior: Float64) -> Float64:
        return prior


def _signs(outputs: Float64, codes: Codes) -> Float64:
    """+1 for the output of a row's own class, −1 for the others."""
    classes = np.arange(outputs.shape[1]) if outputs.shape[1] > 1 else np.ones(1, dtype=int)
    return np.where(codes[:, None] == classes, 1.0, -1.0)


def _shares(prior: Float64) -> Float64:
    """The share of the class that each output is for."""
    return prior[1:] if len(prior) == 2 else prior


#: by the name that estimators take
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Squared(), Logistic(), SquaredHinge(), SmoothedHinge())}
