"""Explicit features as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bochner import features
from bochner.arrays import Float, Rows
from bochner.estimators.base import SAMPLE, kernel_of, seed_of
from bochner.estimators.rows import RowsEstimator
from bochner.features import Drawn, FeatureMap
from bochner.run.flow import features_of


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowsEstimator):  # type: ignore[misc]
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
        """Choose and draw a map for the rows of an array, a table or a source; at most 10,000 of them are looked at."""
        source = self._source(X, reset=True)
        seed, d = seed_of(self.random_state), source.d
        rows = Rows(source.sample(SAMPLE, seed).X, source.schema.names)
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
        source = self._source(X, reset=False)
        names = source.schema.names
        return np.concatenate(
            [features_of(self.drawn_, Rows(chunk.X, names), chunk.numbers) for chunk in source.chunks()]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
