"""What the estimators share: rows from arrays, tables and sources; a map drawn from a sample; sweeps."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bochner import features, kernels
from bochner.arrays import Rows
from bochner.errors import DataError
from bochner.estimators.rows import RowsEstimator
from bochner.estimators.search import Search, scaling_for, search
from bochner.features import Drawn, FeatureMap
from bochner.hot.blas import single_threaded
from bochner.kernels import Kernel
from bochner.run import Flow, Journal, Local, Meter
from bochner.sources import Chunk, Scaling, Source
from bochner.stats import Folds, Sweep, Targets

#: rows that data-dependent parts of a map are fitted on, and kernels compared on
SAMPLE = 10_000
#: features that n_features="auto" gives at most
MOST_FEATURES = 2048


def seed_of(random_state: Any) -> int:
    """An integer seed from what scikit-learn calls a random state."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def kernel_of(kernel: Any) -> Kernel:
    """A kernel, or the kernel that its text form describes."""
    return kernel if isinstance(kernel, Kernel) else kernels.parse(kernel)


def default_width(rows: int | None) -> int:
    """n_features="auto": the power of two next to the number of rows, from 64 to 2048.

    More features than rows cannot help: the span of the rows has no more dimensions.
    """
    if rows is None:
        return MOST_FEATURES
    return int(np.clip(1 << max(rows - 1, 1).bit_length(), 64, MOST_FEATURES))


class KernelEstimator(RowsEstimator):
    """Parameters ``kernel``, ``n_features``, ``map``, ``scaling``, ``precision``, ``random_state``, ``n_jobs``.

    Subclasses store them in ``__init__`` as scikit-learn asks for.
    """

    kernel: Any
    n_features: Any
    map: FeatureMap | Drawn | None
    tol: float | None
    scaling: str | Scaling
    precision: str
    #: the precision of features
    dtype_: str
    random_state: Any
    n_jobs: int | None
    drawn_: Drawn
    scaling_: Scaling
    search_: Search | None
    #: keeps the sweeps of a fit that can be resumed
    _journal: Journal | None = None
    #: sweeps in place of this machine: a ``DaskExecutor``
    _executor: Any = None

    def _draw(self, source: Source, seed: int, targets: Targets | None = None) -> Chunk:
        """Settle kernel, scaling and map: ``search_``, ``scaling_``, ``drawn_``, ``map_``, ``kernel_``.

        Returns the sample of rows, as they come from the source, that decided.
        """
        sample = source.sample(SAMPLE, seed)
        # Many small products: threads of BLAS would wait for each other, much longer on a busy machine.
        with single_threaded():
            self._choose(source, sample, seed, targets)
        return sample

    def _choose(self, source: Source, sample: Chunk, seed: int, targets: Targets | None) -> None:
        self.search_ = None
        recipe, scaling = self.map, self.scaling
        if isinstance(recipe, Drawn):
            self.scaling_ = self._learn_scaling(source, "none" if scaling == "auto" else scaling)
            self.drawn_ = recipe
        else:
            width = self._width(source.n_rows)
            if recipe is not None:
                kernel = recipe.kernel
            elif isinstance(self.kernel, str) and self.kernel == "auto":
                most = width if isinstance(width, int) else MOST_FEATURES
                self.search_ = search(sample, scaling, targets, most, seed)
                kernel, scaling = self.search_.best.kernel, self.search_.best.scaling
            else:
                kernel = kernel_of(self.kernel)
            self.scaling_ = self._learn_scaling(source, scaling_for(kernel) if scaling == "auto" else scaling)
            rows = Rows(self.scaling_.apply(sample.X), source.schema.names)
            if recipe is None:
                recipe = features.choose(
                    kernel, width, source.d, tol=self.tol, sample=rows, seed=seed, separate=self._separate
                )
            self.drawn_ = recipe.draw(source.d, seed, sample=rows)
        self.map_, self.kernel_ = self.drawn_.map, self.drawn_.kernel

    @property
    def _separate(self) -> bool:
        """Whether every kernel of a sum needs columns of its own."""
        return False

    def _width(self, rows: int | None) -> Any:
        """The number of features to draw: of several that are compared, the largest."""
        asked = self.n_features
        if isinstance(asked, (list, tuple)):
            if not asked:
                raise DataError("n_features is an empty list; name the numbers of features to compare")
            return max(asked)
        return default_width(rows) if isinstance(asked, str) and asked == "auto" and self.tol is None else asked

    def _learn_scaling(self, source: Source, scaling: str | Scaling) -> Scaling:
        if isinstance(scaling, Scaling):
            return scaling
        return Scaling.learn(scaling, (chunk.X for chunk in source.chunks()))

    def _flow(
        self,
        source: Source,
        targets: Targets | None = None,
        folds: Folds | None = None,
        *,
        dtype: str | None = None,
        first: int = 0,
        promoted: bool = False,
    ) -> Flow:
        """The rows of a source through the drawn map."""
        return Flow(source, self.drawn_, self.scaling_, targets, folds, dtype or self.dtype_, first, promoted=promoted)

    def _sweep(self, flow: Flow, progress: bool = False, what: str = "") -> Sweep:
        """One pass over a flow, on ``n_jobs`` threads or by the executor of this fit."""
        meter = Meter(what or type(self).__name__) if progress else None
        if self._executor is not None:
            return partial(self._executor.sweep, flow, progress=meter)
        local = Local(threads=self.n_jobs, progress=meter)
        return partial(local.sweep, flow) if self._journal is None else partial(self._journal.sweep, local, flow)
