"""Kernel k-means at the cost of k-means on explicit features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bochner.arrays import Float, Float64, tiles
from bochner.errors import SolverError
from bochner.estimators.base import KernelEstimator, seed_of
from bochner.features import Drawn, FeatureMap
from bochner.run import Journal
from bochner.run.flow import features_of
from bochner.seeds import Seed
from bochner.solvers import Outcome
from bochner.solvers.kmeans import Clustering, in_memory, lloyd, mini_batch, started
from bochner.sources import Chunk, Scaling, Source
from bochner.stats.clusters import assigned

#: numbers of a feature matrix up to which float64 costs little and is taken; of the features of a sample
SMALL, FEW = 1 << 24, 1 << 24
#: rows of a sample for each cluster, at least
_EACH = 20
#: bytes of a tile of features
_TILE = 8 << 20


@dataclass(frozen=True)
class ClusterReport:
    """What was chosen, and what was found.  ``print`` it."""

    rows: int
    columns: int
    kernel: str
    scaling: str
    map: str
    map_why: str
    n_features: int
    start: str
    sweeps: int
    outcome: Outcome
    inertia: float
    #: the share of the variance in feature space that the centres explain
    explained: float
    #: Σw of each cluster
    weights: Float64
    seconds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        least, most = float(self.weights.min()), float(self.weights.max())
        lines = [
            f"data      {self.rows:,} rows, {self.columns:,} columns, scaling {self.scaling}",
            f"kernel    {self.kernel}",
            f"map       {self.map}: {self.n_features:,} features; {self.map_why}",
            f"start     {self.start}",
            f"sweeps    {self.sweeps}, {self.outcome.value}" + ("" if not self.advice else f": {self.advice}"),
            f"clusters  {len(self.weights)} of {least:,.6g} to {most:,.6g} rows; inertia {self.inertia:.6g}; "
            f"they explain {self.explained:.4f} of the variance of the features",
            "seconds   " + ", ".join(f"{stage} {s:.2f}" for stage, s in self.seconds.items()),
        ]
        return "\n".join(lines)

    @property
    def advice(self) -> str:
        return "use batch_size=None for a minimum" if self.outcome is Outcome.APPROXIMATE else self.outcome.advice

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, KernelEstimator):  # type: ignore[misc]
    """k-means in the feature space of a kernel: the centres are means of features z(x).

    A sample finds the start: the best of ``n_init`` runs of k-means++ and Lloyd's steps on its features.
    Lloyd's steps then sweep over all rows, chunk by chunk, so that the features of all are never there at once.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    kernel : Kernel or str
        A kernel or its text form.
    n_features : int or "auto"
        The number of features; "auto" is the power of two next to the number of rows, at most 2048, or
        with ``tol`` the least for which the measured kernel error is below it.
    init : "k-means++" or array (n_clusters, features)
        How centres begin; an array has them in feature space, as ``cluster_centers_`` does.
    n_init : int
        The number of starts that are compared on the sample.
    batch_size : int, optional
        With a number, one approximate pass instead of Lloyd's sweeps: the centres move with every so many
        rows, or fewer.
    sweep_tol, max_sweeps : float, int
        Sweeps end when one lowers the inertia by no more than this share (with 0, when nothing moves), or
        after so many, with a warning.
    map, tol, scaling, precision, random_state, n_jobs
        As for ``KernelRegressor``.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, features)
    labels_ : the cluster of each row that was fitted; not kept for a source, where ``predict(source)`` has it
    inertia_ : Σ w ‖z(x) − nearest centre‖²
    n_iter_ : sweeps
    report_ : what was chosen and found

    Examples
    --------
    >>> from bochner import KernelKMeans
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> model = KernelKMeans(3, "gaussian(gamma=0.05)", 64, random_state=0).fit(X)
    >>> sorted(np.bincount(model.labels_).tolist())
    [100, 100, 100]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: Any = "gaussian(gamma=median)",
        n_features: Any = "auto",
        *,
        init: Any = "k-means++",
        n_init: int = 3,
        batch_size: int | None = None,
        sweep_tol: float = 1e-4,
        max_sweeps: int = 300,
        map: FeatureMap | Drawn | None = None,
        tol: float | None = None,
        scaling: str | Scaling = "auto",
        precision: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.n_features = n_features
        self.init = init
        self.n_init = n_init
        self.batch_size = batch_size
        self.sweep_tol = sweep_tol
        self.max_sweeps = max_sweeps
        self.map = map
        self.tol = tol
        self.scaling = scaling
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---- fitting ----------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        progress: bool = False,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Find the centres of rows X, or of a source (``bochner.scan``), whose target is not looked at.

        ``progress`` writes rows, speed and remaining time of each sweep to standard error.  A fit with a folder as
        ``checkpoint`` keeps its sweeps there: where it was killed, the same fit goes on to the same bits.
        """
        self._require_options()
        source = self._source(X, None, sample_weight, reset=True)
        if source.n_rows is not None and source.n_rows < self.n_clusters:
            raise SolverError(
                f"{self.n_clusters} clusters need as many rows or more, there are {source.n_rows}; use fewer clusters"
            )
        seconds: dict[str, float] = {}
        begun = time.perf_counter()
        seed = seed_of(self.random_state)
        sample = self._draw(source, seed)
        small = source.n_rows is not None and source.n_rows * self.drawn_.width <= SMALL
        self.dtype_ = ("float64" if small else "float32") if self.precision == "auto" else self.precision
        seconds["choosing map"] = time.perf_counter() - begun

        begun = time.perf_counter()
        start, shift, how = self._start(source, sample, Seed(seed).child("clusters"))
        seconds["start"] = time.perf_counter() - begun

        begun = time.perf_counter()
        label = not isinstance(X, Source)
        self._journal = None if checkpoint is None else Journal(Path(checkpoint))
        try:
            sweep = self._sweep(self._flow(source), progress)
            if self.batch_size is None:
                found = lloyd(sweep, start.centres, shift, self.sweep_tol, self.max_sweeps, label)
            else:
                found = mini_batch(sweep, start, shift, self.batch_size, label)
        finally:
            self._journal = None
        seconds["sweeping"] = time.perf_counter() - begun
        self._shift = shift
        self._settle(found, how, seconds, label)
        return self

    def _require_options(self) -> None:
        for name, value in (("n_clusters", self.n_clusters), ("n_init", self.n_init), ("max_sweeps", self.max_sweeps)):
            if not _whole(value):
                raise SolverError(f"{name} is a whole number ≥ 1, got {value!r}")
        if self.batch_size is not None and not _whole(self.batch_size):
            raise SolverError(f"batch_size is None or a whole number ≥ 1, got {self.batch_size!r}")
        if not self.sweep_tol >= 0.0:
            raise SolverError(f"sweep_tol is a number ≥ 0, got {self.sweep_tol!r}")
        if self.precision not in ("auto", "float32", "float64"):
            raise SolverError(f'precision is "auto", "float32" or "float64", got {self.precision!r}')
        if isinstance(self.init, str) and self.init != "k-means++":
            raise SolverError(f'init is "k-means++" or an array of centres in feature space, got {self.init!r}')
        if isinstance(self.n_features, (list, tuple)):
            raise SolverError("numbers of features are compared by what they predict; give one as n_features")

    def _start(self, source: Source, sample: Chunk, seed: Seed) -> tuple[Clustering, Float64, str]:
        """Centres from a sample, or given ones with the mean of the sample."""
        most = max(FEW // self.drawn_.width, _EACH * self.n_clusters)
        if _EACH * self.n_clusters > len(sample) and source.n_rows != len(sample):
            sample = source.sample(most, seed.child("sample"))
        if len(sample) > most:
            sample = sample.take(np.linspace(0, len(sample) - 1, most).astype(int))
        Z = self._features_of(sample.X, sample.numbers)
        if isinstance(self.init, str):
            found, shift = started(
                Z, sample.weight, self.n_clusters, self.n_init, seed, self.sweep_tol, self.max_sweeps
            )
            how = f"the best of {self.n_init} by k-means++ and Lloyd's steps on {len(Z):,} rows"
            return found, shift, how
        centres = np.asarray(self.init, dtype=np.float64)
        if centres.shape != (self.n_clusters, self.drawn_.width) or not np.isfinite(centres).all():
            raise SolverError(
                f"init has finite centres of shape ({self.n_clusters}, {self.drawn_.width}), one for each cluster in "
                f"feature space, got shape {centres.shape}"
            )
        shift = np.asarray(Z.mean(axis=0, dtype=np.float64))
        return lloyd(in_memory(Z, sample.weight), centres, shift, most=0), shift, "as given"

    def _settle(self, found: Clustering, how: str, seconds: dict[str, float], label: bool) -> None:
        if found.outcome is Outcome.STOPPED:
            warnings.warn(
                f"{self.max_sweeps} sweeps have not brought the centres to rest; {found.outcome.advice}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.cluster_centers_ = found.centres
        self.inertia_, self.n_iter_ = found.inertia, max(1, found.sweeps)
        self._labels = found.sums.labels() if label else None
        self._n_features_out = self.n_clusters
        self.report_ = ClusterReport(
            rows=found.sums.count,
            columns=self.n_features_in_,
            kernel=str(self.kernel_),
            scaling=self.scaling_.kind,
            map=type(self.map_).__name__,
            map_why=self.map_.why or "as given",
            n_features=self.drawn_.width,
            start=how,
            sweeps=found.sweeps,
            outcome=found.outcome,
            inertia=found.inertia,
            explained=1.0 - found.inertia / max(found.sums.spread, 1e-300),
            weights=found.sums.weight,
            seconds=seconds,
        )

    @property
    def labels_(self) -> NDArray[np.int32]:
        """The cluster of each row of the array or table that was fitted."""
        if not hasattr(self, "report_"):
            raise AttributeError("labels_ is known after fit")
        if self._labels is None:
            raise AttributeError("the labels of the rows of a source are not kept; use predict(source)")
        return self._labels

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """The cluster of each row that is fitted."""
        self.fit(X, y, sample_weight)
        return self.predict(X) if isinstance(X, Source) else self.labels_

    # ---- using ------------------------------------------------------------------------------------
    def predict(self, X: Any) -> NDArray[np.int32]:
        """The cluster of each row of an array, a table or a source."""
        centres, lengths, shift = self._moved()
        found = [assigned(Z - shift, centres, lengths)[0] for Z in self._features(X)]
        return np.concatenate(found).astype(np.int32)

    def transform(self, X: Any) -> Float:
        """The distance of each row to each centre, in feature space."""
        centres, lengths, shift = self._moved()
        found = []
        for Z in self._features(X):
            Z -= shift
            own = np.einsum("ij,ij->i", Z, Z)
            squares = own[:, None] + lengths - 2.0 * (Z @ centres.T)
            found.append(np.sqrt(np.maximum(squares, 0.0)))
        distances = np.concatenate(found)
        given = getattr(X, "dtype", None)
        return distances.astype(given if given in (np.float32, np.float64) else np.float64, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus Σ w ‖z(x) − nearest centre‖²."""
        check_is_fitted(self, "report_")
        source = self._source(X, None, sample_weight, reset=False)
        return -lloyd(self._sweep(self._flow(source)), self.cluster_centers_, self._shift, most=0).inertia

    def _moved(self) -> tuple[Float, Float, Float]:
        """Centres about a point near the mean, their squared lengths, and that point, as precise as the features."""
        check_is_fitted(self, "report_")
        shift = self._shift.astype(self.dtype_)
        centres = self.cluster_centers_ - shift.astype(np.float64)
        return centres.astype(self.dtype_), np.square(centres).sum(axis=1).astype(self.dtype_), shift

    def _features(self, X: Any) -> Iterator[Float]:
        """Features of the rows, tile by tile."""
        size = max(64, _TILE // (self.drawn_.width * np.dtype(self.dtype_).itemsize))
        for chunk in self._source(X, reset=False).chunks():
            for part in tiles(len(chunk), size):
                yield self._features_of(chunk.X[part], chunk.numbers[part])

    def _features_of(self, X: Any, numbers: NDArray[np.int64]) -> Float:
        return features_of(self.drawn_, self.scaling_.apply(X).astype(self.dtype_, copy=False), numbers)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)
