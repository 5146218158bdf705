"""What the estimators share: rows from arrays, tables and sources; a map drawn from a sample; sweeps."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from bochner import features, kernels
from bochner.arrays import Rows
from bochner.features import Drawn, FeatureMap
from bochner.kernels import Kernel
from bochner.run import Flow, Local
from bochner.sources import MemorySource, Scaling, Source
from bochner.stats import Folds, Sweep, Targets

#: rows that data-dependent parts of a map are fitted on
SAMPLE = 10_000


def seed_of(random_state: Any) -> int:
    """An integer seed from what scikit-learn calls a random state."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def kernel_of(kernel: Any) -> Kernel:
    """A kernel, or the kernel that its text form describes."""
    return kernel if isinstance(kernel, Kernel) else kernels.parse(kernel)


class KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters ``kernel``, ``n_features``, ``map``, ``scaling``, ``precision``, ``random_state``, ``n_jobs``.

    Subclasses store them in ``__init__`` as scikit-learn asks for.
    """

    kernel: Any
    n_features: Any
    map: FeatureMap | None
    scaling: str
    random_state: Any
    n_jobs: int | None
    drawn_: Drawn
    scaling_: Scaling

    def _source(self, X: Any, y: Any = None, sample_weight: Any = None, *, reset: bool) -> Source:
        """X itself where it is a source; else a source of the checked rows of an array or table."""
        if isinstance(X, Source):
            if reset:
                self.n_features_in_ = X.d
                if X.schema.names is not None:
                    self.feature_names_in_ = np.asarray(X.schema.names, dtype=object)
                elif hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
            return X
        values = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1 + reset
        )
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, values, dtype=np.float64)
        return MemorySource(Rows(values, self._names()), y, weight)

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    def _draw(self, source: Source, seed: int) -> None:
        """Learn the scaling and draw the map: ``scaling_``, ``drawn_``, ``map_`` and ``kernel_``."""
        self.scaling_ = Scaling.learn(self.scaling, (chunk.X for chunk in source.chunks()))
        rows = Rows(self.scaling_.apply(source.sample(SAMPLE, seed).X), source.schema.names)
        recipe = self.map
        if recipe is None:
            recipe = features.choose(kernel_of(self.kernel), self.n_features, source.d, sample=rows, seed=seed)
        self.drawn_ = recipe.draw(source.d, seed, sample=rows)
        self.map_, self.kernel_ = self.drawn_.map, self.drawn_.kernel

    def _flow(
        self, source: Source, targets: Targets | None = None, folds: Folds | None = None, dtype: str = "float32"
    ) -> Flow:
        """The rows of a source through the drawn map."""
        return Flow(source, self.drawn_, self.scaling_, targets, folds, dtype)

    def _sweep(self, flow: Flow) -> Sweep:
        """One pass over a flow, on ``n_jobs`` threads."""
        return partial(Local(threads=self.n_jobs).sweep, flow)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
