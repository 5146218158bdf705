"""Regression and classification: rows go by once, choices are made from moments, and updates are exact."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bochner.arrays import Float64
from bochner.errors import DataError, SolverError
from bochner.estimators.base import KernelEstimator, seed_of
from bochner.estimators.chosen import Report
from bochner.estimators.learning import Learnt, from_moments, refined, rows_of, shares_of
from bochner.estimators.reduced import ReducedMixin, Reduction, Stage, after_pca, first_stage
from bochner.estimators.selecting import Options, learn
from bochner.estimators.sweeping import SweepingMixin
from bochner.estimators.updating import UpdatingMixin
from bochner.hot.blas import single_threaded
from bochner.model import Model
from bochner.run import Journal
from bochner.solvers import Outcome
from bochner.solvers.ridge import FLOAT32_NOISE, FLOAT64_NOISE, narrowed
from bochner.sources import Chunk, Source
from bochner.stats import Classes, Folds, Moments, Targets, learn_targets

#: numbers of a feature matrix up to which float64 costs little and is taken
SMALL = 1 << 24
#: features up to which one thread solves
_NARROW = 2048


#: outcomes that a user asked for or need not hear of
_QUIET = (Outcome.CONVERGED, Outcome.EARLY, Outcome.APPROXIMATE)
_AGAIN = "float32 moments lack the precision for the penalties that matter: gathered again in float64"


class KernelPredictor(UpdatingMixin, SweepingMixin, ReducedMixin, KernelEstimator):
    """What KernelRegressor and KernelClassifier share.

    Fitted attributes: ``model_`` (predicts), ``report_`` (what was chosen and why), ``moments_`` (the
    statistics that updates go by), ``map_``, ``kernel_``, ``drawn_``, ``scaling_``, ``targets_``,
    ``alpha_``, ``coef_`` (outputs, features), ``intercept_`` (outputs,), ``rows_seen_`` (the number that
    the next row gets), ``pca_`` (the principal components that were learnt on, or None).
    """

    classify: ClassVar[bool]
    loss: str
    solver: str
    alpha: Any
    folds: int
    penalty: str
    l1_ratio: float
    weights: Any
    #: the words for ``solver``
    solvers: ClassVar[tuple[str, ...]]
    model_: Model
    report_: Report
    moments_: Moments | None
    targets_: Targets

    # ---- rows -------------------------------------------------------------------------------------
    def _supervised(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, *, reset: bool) -> Source:
        if isinstance(X, Source):
            if not X.target:
                raise DataError("the source has no target; name one with scan(…, target=…)")
            return self._source(X, y, sample_weight, groups, reset=reset)
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; pass labels or numbers"
            )
        return self._source(X, self._checked_targets(y), sample_weight, groups, reset=reset)

    def _checked_targets(self, y: Any) -> NDArray[Any]:
        raise NotImplementedError

    # ---- fitting ----------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        progress: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        executor: Any = None,
    ) -> Self:
        """Learn from rows X and targets y, or from a source (``bochner.scan``) that has both.

        Rows whose target is missing (NaN or None) are unlabelled.  Rows of one group are never in
        different folds.  ``progress`` writes rows, speed and remaining time to standard error.  A fit with
        a folder as ``checkpoint`` keeps its sweeps there: where it was killed, the same fit goes on to the
        same bits.  Remove the folder once the model is saved.  With a ``bochner.run.dask.DaskExecutor``
        as ``executor`` a cluster sweeps, to the same bits.
        """
        if executor is not None and checkpoint is not None:
            raise SolverError("an executor keeps its sweeps itself; give it the folder, DaskExecutor(client, folder)")
        source = self._supervised(X, y, sample_weight, groups, reset=True)
        targets = learn_targets(source.targets(), self.classify)
        self._journal = None if checkpoint is None else Journal(Path(checkpoint))
        self._executor = executor
        try:
            self._fit(source, targets, progress)
        finally:
            self._journal = self._executor = None
        return self

    def _fit(self, source: Source, targets: Targets, progress: bool) -> None:
        self._require_options()
        self._seconds: dict[str, float] = {}
        seed = seed_of(self.random_state)
        self.targets_, self._folds = targets, Folds(self.folds, seed)
        with self._timed("choosing kernel and map"):
            sample = self._draw(source, seed, targets)
        Options.of(self).require_sum(self.kernel_, len(self.drawn_.blocks()))
        small = source.n_rows is not None and source.n_rows * self.drawn_.width <= SMALL
        self.dtype_ = ("float64" if small else "float32") if self.precision == "auto" else self.precision
        self._promoted = False
        self._learn(source, sample, progress)

    def _require_options(self) -> None:
        if self.precision not in ("auto", "float32", "float64"):
            raise SolverError(f'precision is "auto", "float32" or "float64", got {self.precision!r}')
        if self.solver not in self.solvers:
            raise SolverError(f"solver is one of {', '.join(self.solvers)}; got {self.solver!r}")
        options = Options.of(self)
        self._require_reduction(self.loss, self.solver, self.n_features)
        if self._reduction is not None and not options.plain:
            raise SolverError("pca goes with penalty='ridge' and without weights of kernels")
        self._stage = Stage()

    @property
    def _separate(self) -> bool:
        return Options.of(self).by_kernel

    def _learn(self, source: Source, sample: Chunk, progress: bool) -> None:
        way = self._way(source)
        if way.solver != "moments":
            self._learn_by_sweeps(source, sample, way, progress)
            return
        if (how := self._reduction) is not None:
            flow = self._flow(source, self.targets_)
            sweep = partial(self._sweep, flow, progress, f"{type(self).__name__}, first of two passes")
            with self._timed("sweeping for the first stage"):
                outputs = self.targets_.outputs
                self._stage = first_stage(how, self.drawn_, outputs, self._folds.count, sweep, self._noise)
        self.moments_ = self._collect(source, 0, progress)
        if not self.moments_.total().count:
            raise DataError("no row has a target (all are missing); there is nothing to learn from")
        self.rows_seen_ = rows_of(self.moments_)
        self._solve(sample, source, progress)

    def _collect(self, source: Source, first: int, progress: bool) -> Moments:
        flow = self._flow(source, self.targets_, self._folds, first=first, promoted=self._promoted)
        with self._timed("sweeping"):
            found: Moments = self._sweep(flow.with_drawn(self._gathered), progress)(self._empty())
        return found

    def _empty(self) -> Moments:
        return Moments(self._gathered.width, self.targets_.outputs, folds=self._folds.count)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._seconds[stage] = self._seconds.get(stage, 0.0) + time.perf_counter() - start

    @property
    def _noise(self) -> float:
        return FLOAT64_NOISE if self._promoted or self.dtype_ == "float64" else FLOAT32_NOISE

    def _solve(self, sample: Chunk | None, source: Source | None = None, progress: bool = False) -> None:
        """Coefficients from the moments; from the rows again where the moments lack the precision."""
        moments = self._kept()
        if (how := self._reduction) is not None:
            self._settle(self._after_pca(how, source, progress), sample)
            return
        choose = isinstance(self.n_features, (list, tuple))
        if choose and not self.map_.prefix_stable:
            raise SolverError(
                f"{type(self.map_).__name__} draws other features at each size, so that one pass cannot compare sizes; "
                "give one number as n_features, or a map such as RandomFourier"
            )
        widths = shares_of(moments.width) if self.map_.prefix_stable else [moments.width]
        if choose:
            widths = sorted({min(int(size), moments.width) for size in self.n_features})
        plain = Options.of(self).plain
        with self._timed("solving"):
            learnt = self._chosen(widths, choose)
        hidden = learnt.hidden or (not plain and learnt.solution.outcome is Outcome.BELOW_PRECISION)
        if source is not None and hidden and self.precision == "auto" and self._noise == FLOAT32_NOISE:
            learnt = self._sharp(source, progress, widths, choose)
        if learnt.width < moments.width:
            self._narrow(learnt.width)
        below = plain and learnt.solution.outcome is Outcome.BELOW_PRECISION
        if source is not None and below and self._noise == FLOAT32_NOISE:
            flow = self._flow(source, self.targets_, self._folds, promoted=True)
            with self._timed("refining"):
                learnt = refined(learnt, self._sweep(flow, progress), self._kept().total())
            if learnt.solution.outcome is Outcome.BELOW_PRECISION:
                again = self._sharp(source, progress, [learnt.width], alpha=learnt.penalty)
                learnt = replace(learnt, solution=again.solution, notes=again.notes, without=again.without)
        self._settle(learnt, sample)

    def _after_pca(self, how: Reduction, source: Source | None, progress: bool) -> Learnt:
        """What is learnt of principal components; from moments in float64 where those in float32 do not suffice."""
        with self._timed("solving"), self._calm():
            learnt = after_pca(self._kept(), self.alpha, self._noise, how, self.drawn_, self._stage)
        blurred = learnt.hidden or learnt.solution.outcome is Outcome.BELOW_PRECISION
        if source is None or not blurred or self.precision != "auto" or self._noise != FLOAT32_NOISE:
            return learnt
        self._promoted = True
        self.moments_ = self._collect(source, 0, progress)
        learnt = after_pca(self._kept(), self.alpha, self._noise, how, self.drawn_, self._stage)
        return replace(learnt, notes=(*learnt.notes, _AGAIN))

    def _chosen(self, widths: list[int], choose: bool = False, alpha: Any = None) -> Learnt:
        with self._calm():
            return self._from_moments(widths, choose, alpha)

    def _calm(self) -> AbstractContextManager[None]:
        """One thread of BLAS for small matrices: several wait for each other, long where a machine is busy."""
        return single_threaded() if self._kept().width <= _NARROW else nullcontext()

    def _from_moments(self, widths: list[int], choose: bool, alpha: Any) -> Learnt:
        options, alpha = Options.of(self), self.alpha if alpha is None else alpha
        if options.plain:
            return from_moments(self._kept(), alpha, self._noise, widths, choose)
        return learn(options, self._kept(), self.drawn_.blocks(), alpha, self._noise, self._names())

    def _sharp(
        self, source: Source, progress: bool, widths: list[int], choose: bool = False, alpha: Any = None
    ) -> Learnt:
        """What is learnt from moments that are gathered again in float64."""
        self._promoted = True
        self.moments_ = self._collect(source, 0, progress)
        learnt = self._chosen(widths, choose, alpha)
        return replace(learnt, notes=(*learnt.notes, _AGAIN))

    def _narrow(self, width: int) -> None:
        """Keep the first features only: those of the narrower draw of the same map, and their moments."""
        moments, drawn = self._kept(), self.drawn_
        self.drawn_ = drawn.map.sized(width).draw(drawn.d, drawn.seed)
        self.drawn_.names = drawn.names
        self.map_ = self.drawn_.map
        parts = {key: narrowed(part, width)[0] for key, part in moments.parts.items()}
        self.moments_ = Moments(width, moments.outputs, parts, moments.folds)

    def _settle(self, learnt: Learnt, sample: Chunk | None) -> None:
        """The model and the report of what was learnt; ``sample`` has rows for what is learnt after coefficients."""
        solution = learnt.solution
        if solution.outcome not in _QUIET:
            warnings.warn(f"{solution.outcome.value}: {solution.outcome.advice}", ConvergenceWarning, stacklevel=5)
        self.model_ = Model(
            self._schema, self.scaling_, self.drawn_, self.targets_, solution, self.loss, dtype=self.dtype_
        )
        self.alpha_, self._factors = learnt.penalty, learnt.factors
        self._reduced = learnt.reduced
        self.pca_ = None if learnt.reduced is None else learnt.reduced.components
        self.coef_, self.intercept_ = solution.coef.T, solution.intercept
        self.n_iter_ = max(1, int(solution.info.get("sweeps", 1)))
        total = None if self.moments_ is None else self.moments_.total()
        rows = int(solution.info.get("rows", 0)) if total is None else total.count
        self.report_ = Report(
            rows=rows,
            columns=self.n_features_in_,
            kernel=str(self.kernel_),
            scaling=self.scaling_.kind,
            map=type(self.map_).__name__,
            map_why=self.map_.why or "as given",
            n_features=self.drawn_.width,
            loss=self.loss,
            solver=learnt.solver,
            solver_why=learnt.solver_why,
            penalty=learnt.penalty,
            penalty_why=learnt.penalty_why,
            outcome=solution.outcome,
            unlabelled=0 if self.moments_ is None else rows_of(self.moments_) - rows,
            classes=len(self.targets_.labels) if isinstance(self.targets_, Classes) else None,
            folds=self._folds.count,
            surface=learnt.surface,
            search=self.search_,
            selection=learnt.selection,
            notes=learnt.notes,
            pca="" if learnt.reduced is None else learnt.reduced.why,
            rank=None if self.pca_ is None else self.pca_.rank,
            seconds=dict(self._seconds),
        )

    # ---- predicting -------------------------------------------------------------------------------
    def _told(self, X: Any, form: Callable[[Model, Any], NDArray[Any]]) -> NDArray[Any]:
        """What the model tells of every row, chunk by chunk; errors number rows as the source does."""
        check_is_fitted(self, "model_")
        found = []
        for chunk in self._source(X, reset=False).chunks():
            try:
                found.append(form(self.model_, chunk.X))
            except DataError as error:
                raise error.located(chunk.start) from None
        return np.concatenate(found)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels or numbers for the rows of an array, a table or a source."""
        return self._told(X, Model.predict)

    def _outputs(self, X: Any) -> Float64:
        return self._told(X, Model.outputs)
