"""Kernel classifiers at the cost of linear models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from bochner.arrays import Float64, Rows
from bochner.estimators.supervised import KernelPredictor
from bochner.features import Drawn, FeatureMap
from bochner.solvers.calibrate import Calibration, HeldOut, calibrated
from bochner.solvers.ridge import Prepared
from bochner.sources import Chunk, MemorySource, Scaling
from bochner.sources.numbered import Numbered
from bochner.stats import Classes, Moments
from bochner.stats.moments import UNLABELLED
from bochner.stats.targets import missing


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic" and not estimator.calibrate:
        raise AttributeError(f"the {estimator.loss} loss has probabilities only with calibrate=True")
    return True


class KernelClassifier(ClassifierMixin, KernelPredictor):  # type: ignore[misc]
    """A kernel classifier of any number of classes.

    Parameters are those of ``KernelRegressor``, and

    loss : "squared", "logistic", "squared_hinge" or "smoothed_hinge"
        "squared" is one-against-all least squares: one pass, exact cross-validation, exact updates.  The
        others sweep the rows some ten to twenty times.

    calibrate : bool
        Whether scores of least squares become log-odds, by a slope and a bias for each class that are
        fitted on held-out scores of a sample: this makes ``predict_proba`` and comparable scores.  Updates
        keep the calibration.

    Examples
    --------
    >>> from bochner import KernelClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelClassifier("gaussian(gamma=median)", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    classify = True

    def __init__(
        self,
        kernel: Any = "auto",
        n_features: Any = "auto",
        *,
        loss: str = "squared",
        map: FeatureMap | Drawn | None = None,
        tol: float | None = None,
        alpha: Any = "cv",
        calibrate: bool = True,
        folds: int = 5,
        scaling: str | Scaling = "auto",
        precision: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.n_features = n_features
        self.loss = loss
        self.map = map
        self.tol = tol
        self.alpha = alpha
        self.calibrate = calibrate
        self.folds = folds
        self.scaling = scaling
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _solve(self, sample: Chunk | None) -> None:
        super()._solve(sample)
        if not self.calibrate or self.moments_ is None:
            return
        if sample is not None:
            with self._timed("calibrating"):
                self.calibration_ = self._calibrated(sample, self.moments_)
        self.model_ = replace(self.model_, calibration=self.calibration_)

    def _calibrated(self, sample: Chunk, moments: Moments) -> Calibration | None:
        """From scores of the sample, each of the model that was fitted without the fold of the row."""
        total, parts = moments.total(), moments.parts
        left_out = {key: total - part for key, part in parts.items() if key != UNLABELLED}
        if len(left_out) < 2:
            return None
        solutions = {key: Prepared(part, self._noise).solve(self.alpha_) for key, part in left_out.items()}
        source = Numbered(MemorySource(Rows(sample.X), sample.y, sample.weight, sample.group), sample.numbers)
        held = self._sweep(self._flow(source, self.targets_, self._folds))(HeldOut(solutions))
        return calibrated(held.outputs, held.codes, held.weight)

    def _checked_targets(self, y: Any) -> NDArray[Any]:
        labels = np.asarray(column_or_1d(y, warn=True))
        gaps = missing(labels)
        known = labels[~gaps]
        if known.dtype.kind == "f":
            assert_all_finite(known, input_name="y")
        if len(known):
            check_classification_targets(np.array(known.tolist()) if known.dtype.kind == "O" else known)
        return labels

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of columns of scores and probabilities."""
        if not isinstance(getattr(self, "targets_", None), Classes):
            raise AttributeError("classes_ is known after fit")
        return self.targets_.labels  # type: ignore[attr-defined, no-any-return]

    def decision_function(self, X: Any) -> Float64:
        """Scores: one for each class, or one in all for two classes (> 0 is the second)."""
        return np.concatenate([self.model_.decision(rows) for rows in self._rows_of(X)])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Float64:
        """Probabilities of the classes: of the logistic model, or of calibrated scores."""
        return np.concatenate([self.model_.probabilities(rows) for rows in self._rows_of(X)])
