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
from bochner.errors import SolverError
from bochner.estimators.learning import Learnt, by_loss, by_one_pass, rows_of
from bochner.estimators.supervised import KernelPredictor
from bochner.features import Drawn, FeatureMap
from bochner.solvers.calibrate import Calibration, HeldOut, calibrated
from bochner.solvers.losses import LOSSES
from bochner.sources import Chunk, MemorySource, Scaling, Source
from bochner.sources.numbered import Numbered
from bochner.stats import Classes, Moments, Sweep
from bochner.stats.targets import missing


def _as_source(sample: Chunk) -> Source:
    """The rows of a sample under their own numbers, so that each is in its fold."""
    return Numbered(MemorySource(Rows(sample.X), sample.y, sample.weight, sample.group), sample.numbers)


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic" and not estimator.calibrate:
        raise AttributeError(f"the {estimator.loss} loss has probabilities only with calibrate=True")
    return True


class KernelClassifier(ClassifierMixin, KernelPredictor):  # type: ignore[misc]
    """A kernel classifier of any number of classes.

    Parameters are those of ``KernelRegressor``, and

    loss : "squared", "logistic", "squared_hinge" or "smoothed_hinge"
        "squared" is one-against-all least squares: one pass, exact cross-validation, exact updates.  The
        others sweep the rows some ten to twenty times for a penalty; with alpha="cv" one fold is held out to
        choose it along a path.

    solver : "auto", "moments", "sweeps", "blocks" or "stochastic"
        As for ``KernelRegressor``; losses other than "squared" always sweep.  "stochastic" is for the
        impatient: one approximate pass of averaged stochastic gradients for a loss other than "squared".

    calibrate : bool
        Whether scores become log-odds, by a slope and a bias for each class that are fitted on held-out
        scores of a sample: this makes ``predict_proba`` and comparable scores.  The logistic loss needs
        none.  Updates keep the calibration.

    sweep_tol, max_sweeps : float, int
        Sweeps end when the norm of the gradient is this share of that at zero (for the squared loss: when the
        objective is within this share of its minimum), or after so many.

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
    solvers = ("auto", "moments", "sweeps", "blocks", "stochastic")

    def __init__(
        self,
        kernel: Any = "auto",
        n_features: Any = "auto",
        *,
        loss: str = "squared",
        solver: str = "auto",
        map: FeatureMap | Drawn | None = None,
        tol: float | None = None,
        alpha: Any = "cv",
        pca: Any = None,
        penalty: str = "ridge",
        l1_ratio: float = 0.5,
        weights: Any = None,
        calibrate: bool = True,
        sweep_tol: float = 1e-3,
        max_sweeps: int = 100,
        folds: int = 5,
        scaling: str | Scaling = "auto",
        precision: str = "auto",
        memory: int = 8 << 30,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.n_features = n_features
        self.loss = loss
        self.solver = solver
        self.map = map
        self.tol = tol
        self.alpha = alpha
        self.pca = pca
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.weights = weights
        self.calibrate = calibrate
        self.sweep_tol = sweep_tol
        self.max_sweeps = max_sweeps
        self.folds = folds
        self.scaling = scaling
        self.precision = precision
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _require_options(self) -> None:
        super()._require_options()
        if self.loss not in LOSSES:
            raise SolverError(f"loss is one of {', '.join(LOSSES)}; got {self.loss!r}")
        if self.solver == "moments" and self.loss != "squared":
            raise SolverError(f"only the squared loss is solved from moments, not {self.loss}; use solver='auto'")
        if self.solver == "blocks" and self.loss != "squared":
            raise SolverError(f"blocks are for the squared loss, not {self.loss}; use solver='auto'")
        if self.solver == "stochastic" and self.loss == "squared":
            raise SolverError("solver='stochastic' is for other losses than the squared one; use solver='auto'")
        if isinstance(self.n_features, (list, tuple)) and self.loss != "squared":
            raise SolverError("numbers of features are compared for the squared loss only; give one as n_features")

    def _learn(self, source: Source, sample: Chunk, progress: bool) -> None:
        if self.loss == "squared":
            super()._learn(source, sample, progress)
        elif self.solver == "stochastic":
            self._learn_approximately(source, sample, progress)
        else:
            self.moments_ = self._collect(source, 0, progress)
            self.rows_seen_ = rows_of(self.moments_)
            sweep = self._sweep(self._flow(source, self.targets_, self._folds), progress)
            with self._timed("solving"):
                learnt = self._by_loss(sweep, self.moments_)
            self._settle(learnt, sample)

    def _by_loss(self, sweep: Sweep, moments: Moments) -> Learnt:
        return by_loss(sweep, moments, LOSSES[self.loss], self.alpha, self.sweep_tol, self.max_sweeps)

    def _learn_approximately(self, source: Source, sample: Chunk, progress: bool) -> None:
        """A fit of the sample to begin with, then one pass over all rows."""
        self.moments_ = None
        few = self._sweep(self._flow(_as_source(sample), self.targets_, self._folds))
        with self._timed("solving for a sample"):
            moments = few(self._empty())
            start = self._by_loss(few, moments)
        whole = replace(self._flow(source, self.targets_, self._folds), by_class=False)
        weight = moments.total().weight * (source.n_rows or len(sample)) / len(sample)
        with self._timed("sweeping"):
            learnt = by_one_pass(self._sweep(whole, progress), few, moments, LOSSES[self.loss], start, weight)
        self._settle(learnt, sample)

    def _settle(self, learnt: Learnt, sample: Chunk | None) -> None:
        super()._settle(learnt, sample)
        if not self.calibrate or self.loss == "logistic":
            return
        if sample is not None:
            with self._timed("calibrating"):
                self.calibration_ = self._calibrated(learnt, sample)
        self.model_ = replace(self.model_, calibration=self.calibration_)

    def _calibrated(self, learnt: Learnt, sample: Chunk) -> Calibration | None:
        """From scores of the sample, each of a model that was fitted without the fold of the row."""
        solutions = {} if learnt.without is None else learnt.without()
        if not solutions:
            return None
        held = self._sweep(self._flow(_as_source(sample), self.targets_, self._folds))(HeldOut(solutions))
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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of right labels; a source brings its own target and weights."""
        if not isinstance(X, Source):
            return float(super().score(X, y, sample_weight))
        target, predicted, weight = self._compared(X)
        return float(np.average([a == b for a, b in zip(target, predicted, strict=True)], weights=weight))

    def decision_function(self, X: Any) -> Float64:
        """Scores: one for each class, or one in all for two classes (> 0 is the second)."""
        return self._told(X, self.model_.decision)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Float64:
        """Probabilities of the classes: of the logistic model, or of calibrated scores."""
        return self._told(X, self.model_.probabilities)
