"""Explicit features as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bochner import features
from bochner.arrays import Float, Rows, spread
from bochner.estimators.base import SAMPLE, kernel_of, seed_of
from bochner.features import Drawn, FeatureMap


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Explicit features z(x) with ⟨z(x), z(y)⟩ ≈ K(x, y), as a transformer.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel, or its text form such as ``"gaussian(gamma=median)"``.
    n_features : int or "auto"
        The number of features; "auto" finds the least for which the measured error is below ``tol``.
    map : FeatureMap, optional
        A recipe to use instead of the default choice; its kernel and size are used as they are.
    tol : float
        The relative kernel error asked for by n_features="auto".
    random_state : int, RandomState or None
        The seed of the draw.
    n_components : int, optional
        Another name for ``n_features``, as scikit-learn's transformers have it.

    Attributes
    ----------
    map_ : the recipe that was drawn (``map_.why`` says why)
    kernel_ : the kernel, with every parameter a number
    drawn_ : the drawn map

    Examples
    --------
    >>> from bochner import KernelFeatures
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> KernelFeatures("laplacian(gamma=median)", 64, random_state=0).fit_transform(X).shape
    (150, 64)
    """

    def __init__(
        self,
        kernel: Any = "gaussian(gamma=median)",
        n_features: Any = 512,
        *,
        map: FeatureMap | None = None,
        tol: float = 0.05,
        random_state: Any = None,
        n_components: int | None = None,
    ):
        self.kernel = kernel
        self.n_features = n_features
        self.map = map
        self.tol = tol
        self.random_state = random_state
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose and draw a map; data-dependent parts are fitted on at most 10,000 rows of X."""
        rows = self._rows(X, reset=True)
        seed = seed_of(self.random_state)
        n, d = rows.values.shape
        if n > SAMPLE:
            rows = Rows(spread(rows.values, SAMPLE), rows.names)
        recipe = self.map
        if recipe is None:
            size = self.n_features if self.n_components is None else self.n_components
            recipe = features.choose(kernel_of(self.kernel), size, d, tol=self.tol, sample=rows, seed=seed)
        self.drawn_: Drawn = recipe.draw(d, seed, sample=rows)
        self.map_ = self.drawn_.map
        self.kernel_ = self.drawn_.kernel
        self._n_features_out = self.drawn_.width
        return self

    def transform(self, X: Any) -> Float:
        """Features of every row, in float32 or float64 as X."""
        check_is_fitted(self)
        return self.drawn_(self._rows(X, reset=False))

    def _rows(self, X: Any, reset: bool) -> Rows:
        values = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1 + reset
        )
        names = getattr(self, "feature_names_in_", None)
        return Rows(values, None if names is None else tuple(names))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
