"""Kernel ridge regression at the cost of a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.estimators.supervised import KernelPredictor
from bochner.features import Drawn, FeatureMap
from bochner.solvers.ridge import Prepared
from bochner.sources import Scaling, Source


class KernelRegressor(RegressorMixin, KernelPredictor):  # type: ignore[misc]
    """Kernel ridge regression of one or more targets: Σ w (t − f)² + alpha ‖v‖² for f(x) = z(x)·v + b.

    Parameters
    ----------
    kernel : "auto", Kernel or str
        "auto" compares suitable kernels and bandwidths on a sample; else a kernel or its text form.
    n_features : int, list of int or "auto"
        The number of features; "auto" is the power of two next to the number of rows, at most 2048, or
        with ``tol`` the least for which the measured kernel error is below it.  Of a list, exact
        cross-validation picks one, after one pass with the largest.
    solver : "auto", "moments", "sweeps" or "blocks"
        How coefficients are found.  "moments": one pass, exact cross-validation, exact updates.  "sweeps":
        conjugate gradients over some ten to twenty sweeps, for thousands of features; a penalty is chosen on
        one held-out fold.  "blocks": a block of features at a time, for more than memory holds otherwise.
        "auto" goes by rows, features and memory; the report says which way was taken, and why.
    sweep_tol, max_sweeps : float, int
        Sweeps end when the objective is within this share of its minimum, or after so many.
    memory : int
        Bytes that moments, or a preconditioner, may take.
    map : FeatureMap or Drawn, optional
        A recipe, or a map that was drawn before, to use instead of the default choice.
    alpha : "cv", "gcv", "evidence", float or list of float
        The penalty: chosen by exact cross-validation over a wide path or over a list, by generalised
        cross-validation, by the marginal likelihood, or given.
    pca : None, "cv", int, float, list of int or Reduction
        Learn on principal components of the features instead of on all: how many, or the share of the variance,
        or "cv" or a list to choose their number by exact cross-validation too.  Rows without a target help to
        find them; ``Reduction`` has more options.  Predicting costs no more.
    penalty : "ridge", "lasso", "elasticnet" or "group"
        "lasso" is ½ Σ w (t − f)² + alpha ‖v‖₁, where scikit-learn's alpha is this one over Σ w; "elasticnet"
        is ½ Σ w (t − f)² + alpha (l1_ratio ‖v‖₁ + ½ (1 − l1_ratio) ‖v‖²).  They select features.  "group"
        selects kernels of a sum, k1 + k2 + …, for all targets together: ½ Σ w (t − f)² + alpha Σ_j s_j ‖v_j‖ with
        s_j² the variance of the features of kernel j.  ``report_.selection`` says which are in.
    weights : None, "cv" or list of float
        Of the kernels of a sum, with penalty="ridge": "cv" chooses them together with the penalty by exact
        cross-validation from the moments of one pass.  The coefficients have them in them.
    folds : int
        The number of folds of cross-validation.
    scaling : "auto", "none", "norm", "l1", "standard" or Scaling
        What is done to rows before the kernel sees them; "auto" goes by the kernel.
    precision : "auto", "float32" or "float64"
        Of features and tiles (sums are always float64); "auto" is float64 for small data.
    random_state, n_jobs
        The seed of every draw; the number of threads.

    Examples
    --------
    >>> from bochner import KernelRegressor
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-3, 3, (400, 1))
    >>> model = KernelRegressor("gaussian(gamma=1)", 64, random_state=0).fit(X, np.sin(2 * X[:, 0]))
    >>> bool(model.score(X, np.sin(2 * X[:, 0])) > 0.999)
    True
    """

    classify = False
    loss = "squared"
    solvers = ("auto", "moments", "sweeps", "blocks")

    def __init__(
        self,
        kernel: Any = "auto",
        n_features: Any = "auto",
        *,
        solver: str = "auto",
        map: FeatureMap | Drawn | None = None,
        tol: float | None = None,
        alpha: Any = "cv",
        pca: Any = None,
        penalty: str = "ridge",
        l1_ratio: float = 0.5,
        weights: Any = None,
        folds: int = 5,
        scaling: str | Scaling = "auto",
        sweep_tol: float = 1e-4,
        max_sweeps: int = 100,
        precision: str = "auto",
        memory: int = 8 << 30,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.n_features = n_features
        self.solver = solver
        self.map = map
        self.tol = tol
        self.alpha = alpha
        self.pca = pca
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.weights = weights
        self.folds = folds
        self.scaling = scaling
        self.sweep_tol = sweep_tol
        self.max_sweeps = max_sweeps
        self.precision = precision
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _checked_targets(self, y: Any) -> NDArray[Any]:
        values = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y", ensure_min_samples=0
        )
        return np.asarray(values)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Numbers for each row; with ``return_std`` also the standard deviation of a new target there.

        Var t = σ² (1 + 1/n + ‖(z(x) − z̄) F‖²), F Fᵀ = (S + alpha)⁻¹: the posterior of Bayesian ridge
        regression with a prior variance σ²/alpha of the coefficients and σ² from the residuals.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        if self.penalty != "ridge":
            raise SolverError(f"a standard deviation is known for penalty='ridge', not for {self.penalty!r}")
        if self.alpha_ <= 0.0:
            raise SolverError("a standard deviation needs a penalty > 0: it is the prior of the coefficients")
        if self._reduced is None:
            total = self._kept().total()
            roots = np.ones(total.width) if self._factors is None else self._factors
            prepared = Prepared(total.scaled(roots), self._noise)
            centre, factor = total.mean, roots[:, None] * prepared.spread(self.alpha_)
        else:
            prepared, centre, factor = self._reduced.spread(self.alpha_, self._noise)
        n = prepared.part.weight
        relative = self._told(X, lambda rows: self.model_.spread(rows, centre, factor))
        variance = np.multiply.outer(1.0 + 1.0 / n + relative, prepared.noise_variance(self.alpha_))
        deviation: Float64 = np.sqrt(variance)
        return mean, deviation[:, 0] if mean.ndim == 1 else deviation

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² of the predictions; a source brings its own target and weights."""
        if not isinstance(X, Source):
            return float(super().score(X, y, sample_weight))
        target, predicted, weight = self._compared(X)
        return float(r2_score(target.astype(float), predicted, sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
