"""Predictions beside the truth, chunk by chunk: scores, confusions, calibration, residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float64
from bochner.errors import DataError
from bochner.model import Model
from bochner.sources import Source
from bochner.stats import Classes, Part

_BINS = 15
#: rows whose residuals set the edges of a histogram
_FIRST = 20_000


@dataclass(frozen=True)
class OfClasses:
    """Weights of (true, predicted) classes, and for bins of predicted probability: predicted, true share, weight."""

    labels: NDArray[Any]
    counts: Float64
    reliability: tuple[Float64, Float64, Float64] | None

    @property
    def recall(self) -> Float64:
        return _ratio(np.diag(self.counts), self.counts.sum(axis=1))

    @property
    def precision(self) -> Float64:
        return _ratio(np.diag(self.counts), self.counts.sum(axis=0))


@dataclass(frozen=True)
class Truth:
    """How predictions compare with the truth: ``scores`` by name, and what a chart needs."""

    rows: float
    scores: dict[str, float]
    classes: OfClasses | None = None
    #: edges and counts
    residuals: tuple[Float64, Float64] | None = None


def _ratio(a: Float64, b: Float64) -> Float64:
    """a/b, NaN where b is 0."""
    return np.asarray(np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0))


def compare(model: Model, source: Source) -> Truth:
    """Scores of a model on the labelled rows of a source."""
    if not source.target:
        raise DataError("the rows have no target to compare with; name its column")
    known = source.with_schema(model.schema).settle()
    return _classes(model, model.targets, known) if isinstance(model.targets, Classes) else _numbers(model, known)


def _classes(model: Model, targets: Classes, source: Source) -> Truth:
    k = len(targets.labels)
    counts, log_loss, weight = np.zeros((k, k)), 0.0, 0.0
    bins = np.zeros((3, _BINS))
    probable = model.loss == "logistic" or model.calibration is not None
    for chunk in source.chunks():
        codes, told = targets.encode(_given(chunk.y), chunk.start)
        codes = codes[told]
        if not len(codes):
            continue
        w = np.ones(len(codes)) if chunk.weight is None else chunk.weight[told]
        X = chunk.X[told]
        found = np.searchsorted(targets.labels, model.predict(X))
        np.add.at(counts, (codes, found), w)
        weight += float(w.sum())
        if probable:
            shares = model.probabilities(X)
            log_loss -= float(w @ np.log(np.maximum(shares[np.arange(len(codes)), codes], 1e-300)))
            place = np.minimum((shares * _BINS).astype(int), _BINS - 1)
            right = codes[:, None] == np.arange(k)
            spread = np.broadcast_to(w[:, None], shares.shape)
            for row, values in enumerate((spread * shares, spread * right, spread)):
                bins[row] += np.bincount(place.ravel(), values.ravel(), _BINS)
    if weight == 0.0:
        raise DataError("no row has a target to compare with")
    reliability = None
    if probable:
        full = bins[2] > 0
        reliability = bins[0][full] / bins[2][full], bins[1][full] / bins[2][full], bins[2][full]
    classes = OfClasses(targets.labels, counts, reliability)
    scores = {
        "accuracy": float(np.trace(counts) / weight),
        "balanced_accuracy": float(np.nanmean(classes.recall)),
        **({"log_loss": log_loss / weight} if probable else {}),
    }
    return Truth(weight, scores, classes)


def _numbers(model: Model, source: Source) -> Truth:
    k = model.targets.outputs
    squared, absolute, truth = np.zeros(k), np.zeros(k), Part.empty(0, k)
    edges: Float64 | None = None
    counts = np.zeros(2 * _BINS + 2)
    first: list[Float64] = []
    for chunk in source.chunks():
        y, told = model.targets.encode(_given(chunk.y), chunk.start)
        y = y[told]
        if not len(y):
            continue
        w = np.ones(len(y)) if chunk.weight is None else chunk.weight[told]
        off = model.predict(chunk.X[told]).reshape(y.shape) - y
        squared += w @ np.square(off)
        absolute += w @ np.abs(off)
        mean = np.average(y, axis=0, weights=w)
        none = np.empty(0)
        truth = truth + Part(
            len(y), float(w.sum()), none, mean, np.empty((0, 0)), np.empty((0, k)), w @ np.square(y - mean)
        )
        flat = off.ravel()
        if edges is None:
            first.append(flat)
            if sum(map(len, first)) < _FIRST:
                continue
            edges, flat = _edges(np.concatenate(first)), np.concatenate(first)
        counts += _binned(flat, edges)
    if truth.weight == 0.0:
        raise DataError("no row has a target to compare with")
    if edges is None:
        flat = np.concatenate(first)
        edges = _edges(flat)
        counts += _binned(flat, edges)
    scores = {
        "r2": float(np.mean(1.0 - squared / np.maximum(truth.target_scatter, 1e-300))),
        "rmse": math.sqrt(float(np.mean(squared)) / truth.weight),
        "mae": float(np.mean(absolute)) / truth.weight,
    }
    return Truth(truth.weight, scores, residuals=(edges, counts[1:-1]))


def _given(y: NDArray[Any] | None) -> NDArray[Any]:
    if y is None:
        raise DataError("the rows have no target to compare with; name its column")
    return y


def _edges(values: Float64) -> Float64:
    """Bins for all but the outermost residuals."""
    reach = float(np.quantile(np.abs(values), 0.995)) or 1.0
    return np.linspace(-reach, reach, 2 * _BINS + 1)


def _binned(values: Float64, edges: Float64) -> Float64:
    return np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1).astype(np.float64)
