"""Kernel PCA of any number of rows: principal components of random features, as a transformer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bochner.arrays import Float, Float64, Matrix, tiles
from bochner.errors import DataError, SolverError
from bochner.estimators.base import KernelEstimator, seed_of
from bochner.estimators.learning import rows_of
from bochner.estimators.reduced import Reduction, first_stage, staged, told, unfolded
from bochner.estimators.supervised import SMALL
from bochner.features import Drawn, FeatureMap
from bochner.model import TILE
from bochner.solvers.pca import rank_for
from bochner.solvers.ridge import FLOAT32_NOISE, FLOAT64_NOISE
from bochner.sources import MemorySource, Scaling, Source
from bochner.stats import Moments


@dataclass(frozen=True)
class Told:
    """What a fit chose and why, a line for each thing."""

    lines: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(f"{name:<10}{text}" for name, text in self.lines.items())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Unsupervised(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):  # type: ignore[misc]
    """What transformers made from moments share."""

    _n_features_out: int

    def _settle_precision(self, source: Source, width: int) -> None:
        if self.precision not in ("auto", "float32", "float64"):
            raise SolverError(f'precision is "auto", "float32" or "float64", got {self.precision!r}')
        small = source.n_rows is not None and source.n_rows * width <= SMALL
        self.dtype_ = ("float64" if small else "float32") if self.precision == "auto" else self.precision

    @property
    def _noise(self) -> float:
        return FLOAT64_NOISE if self.dtype_ == "float64" else FLOAT32_NOISE

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def scores(X: Matrix, scaling: Scaling, drawn: Drawn, mean: Float64, projection: Float64, dtype: Any) -> Float:
    """(z(x) − mean) @ projection of every row, tile by tile: the features of all rows are never there at once."""
    out = np.empty((X.shape[0], projection.shape[1]), dtype=dtype)
    centre, basis = mean.astype(dtype), projection.astype(dtype)
    for rows in tiles(len(out), max(64, TILE // (drawn.width * out.itemsize))):
        try:
            Z = drawn(scaling.apply(X[rows]).astype(dtype, copy=False))
        except DataError as error:
            raise error.located(rows.start) from None
        Z -= centre
        np.matmul(Z, basis, out=out[rows])
    return out


class KernelPCA(Unsupervised):
    """Kernel PCA as PCA of random features: one pass over any number of rows.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel, or its text form.
    n_components : int, float or None
        How many components are kept, or the share of the variance that they explain; None keeps all that are
        not rounding.
    n_features : int or "auto"
        The number of random features; "auto" is the power of two next to the number of rows, at most 2048, or
        with ``tol`` the least for which the measured kernel error is below it.
    whiten : bool
        Whether components are scaled to variance 1.
    each : int, float, list or None
        For a sum of kernels: how many components of each kernel's own features are kept first, as a number (at
        most), a share of the variance, or one of these for each kernel.
    memory : int
        Bytes that the joint moments of several kernels may take; with more, ``each`` makes it two passes.
    map : FeatureMap or Drawn, optional
        A recipe, or a map that was drawn before, to use instead of the default choice.
    scaling : "auto", "none", "norm", "l1", "standard" or Scaling
        What is done to rows before the kernel sees them; "auto" goes by the kernel.
    precision : "auto", "float32" or "float64"
        Of features and tiles (sums are always float64); "auto" is float64 for small data.
    random_state, n_jobs
        The seed of every draw; the number of threads.

    Attributes
    ----------
    components_ : (n_components, features), each of unit norm
    explained_variance_, explained_variance_ratio_, eigenvalues_ : of the components; the last are those of the
        centred kernel matrix
    mean_ : of the features
    moments_ : the statistics that updates go by
    drawn_, map_, kernel_, scaling_, report_ : what was chosen

    Examples
    --------
    >>> from bochner import KernelPCA
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> KernelPCA("gaussian(gamma=median)", 2, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    def __init__(
        self,
        kernel: Any = "gaussian(gamma=median)",
        n_components: int | float | None = None,
        *,
        n_features: Any = "auto",
        whiten: bool = False,
        each: Any = None,
        memory: int = 2 << 30,
        map: FeatureMap | Drawn | None = None,
        tol: float | None = None,
        scaling: str | Scaling = "auto",
        precision: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.n_features = n_features
        self.whiten = whiten
        self.each = each
        self.memory = memory
        self.map = map
        self.tol = tol
        self.scaling = scaling
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, progress: bool = False) -> Self:
        """Learn from rows, or from a source (``bochner.scan``); targets are not looked at."""
        if isinstance(self.n_features, (list, tuple)):
            raise SolverError("KernelPCA has no target to compare numbers of features by; give one as n_features")
        source = self._source(X, None, sample_weight, reset=True)
        self._seconds: dict[str, float] = {}
        start = time.perf_counter()
        self._draw(source, seed_of(self.random_state))
        self._settle_precision(source, self.drawn_.width)
        middle = time.perf_counter()
        sweep = partial(self._sweep, self._flow(source), progress, "KernelPCA, first of two passes")
        self._stage = first_stage(self._how, self.drawn_, 0, 1, sweep, self._noise)
        self.moments_ = self._collect(source, 0, progress)
        self.rows_seen_ = rows_of(self.moments_)
        self._seconds = {"choosing the map": middle - start, "sweeping": time.perf_counter() - middle}
        self._solve()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, progress: bool = False) -> Self:
        """Add rows: with the map and scaling of the first call, what a fit on all rows gives."""
        if not hasattr(self, "moments_"):
            return self.fit(X, y, sample_weight, progress=progress)
        more = self._collect(self._source(X, None, sample_weight, reset=False), self.rows_seen_, progress)
        self.moments_ = self.moments_ + more
        self.rows_seen_ += rows_of(more)
        self._solve()
        return self

    @property
    def _how(self) -> Reduction:
        return Reduction(None, each=self.each, memory=self.memory)

    def _collect(self, source: Source, first: int, progress: bool) -> Moments:
        gathered = self._stage.drawn or self.drawn_
        return self._sweep(self._flow(source, first=first).with_drawn(gathered), progress)(Moments(gathered.width))

    def _solve(self) -> None:
        total = self.moments_.total()
        start = time.perf_counter()
        first = staged(total, self._how, self.drawn_, self._stage, self._noise)
        rank = rank_for(first.components, self.n_components, self._noise)
        found = first.components.leading(rank)
        self._seconds["solving"] = time.perf_counter() - start
        what = f"{told(found, first.components)}{first.why}"
        if self._stage.drawn is not None:
            found = unfolded(found, self._stage.drawn)
        self._found, self._n_features_out = found, found.rank
        self.components_, self.mean_, self.n_components_ = found.basis.T, found.mean, found.rank
        self.eigenvalues_, self.explained_variance_ = found.values, found.variance
        self.explained_variance_ratio_ = found.ratio
        self.report_ = Told(
            {
                "data": f"{total.count:,} rows, {self.n_features_in_:,} columns, scaling {self.scaling_.kind}",
                "kernel": str(self.kernel_),
                "map": f"{type(self.map_).__name__}: {self.drawn_.width:,} features; {self.map_.why or 'as given'}",
                "pca": what,
                "seconds": ", ".join(f"{stage} {s:.2f}" for stage, s in self._seconds.items()),
            }
        )

    def transform(self, X: Any) -> Float:
        """The components of every row, in float32 or float64 as X; of a source, in the precision of the fit."""
        check_is_fitted(self, "components_")
        source = self._source(X, reset=False)
        projection = self._found.projection(self.whiten)
        return np.concatenate(
            [
                scores(
                    chunk.X,
                    self.scaling_,
                    self.drawn_,
                    self._found.mean,
                    projection,
                    chunk.X.dtype if isinstance(source, MemorySource) else self.dtype_,
                )
                for chunk in source.chunks()
            ]
        )
