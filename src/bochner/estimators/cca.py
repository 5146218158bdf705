"""Kernel CCA of two views of any number of rows, from the joint moments of their features."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from bochner.arrays import Float, Float64, Matrix, as_rows
from bochner.errors import DataError, SolverError
from bochner.estimators.base import KernelEstimator, default_width, seed_of
from bochner.estimators.learning import rows_of
from bochner.estimators.pca import Told, Unsupervised, scores
from bochner.estimators.rows import RowsEstimator
from bochner.features import Drawn
from bochner.kernels.columns import positions, selection
from bochner.run import Flow
from bochner.solvers.cca import Views, correlations, cross_validated, penalties_for
from bochner.solvers.ridge import require_penalties
from bochner.sources import Scaling, Source
from bochner.sources.views import Joined, Selected
from bochner.stats import Folds, Moments

#: penalties that alpha="cv" compares, as shares of the trace of each view's scatter
SHARES = tuple(10.0**power for power in range(-7, 1))
_FLOATS = [np.float64, np.float32]
#: features that n_features="auto" gives each view at most: every penalty and fold decomposes a matrix of that size
MOST = 512


class _View(KernelEstimator):
    """What is drawn for one view."""

    def __init__(self, kernel: Any, n_features: Any, map: Any, tol: float | None, scaling: Any, random_state: int):
        self.kernel, self.n_features, self.map, self.tol = kernel, n_features, map, tol
        self.scaling, self.random_state = scaling, random_state

    def drawn_for(self, source: Source) -> Drawn:
        """Settle scaling and map on the rows of the view."""
        self._draw(source, self.random_state)
        return self.drawn_

    def _width(self, rows: int | None) -> Any:
        if isinstance(self.n_features, str) and self.n_features == "auto" and self.tol is None:
            return min(MOST, default_width(rows))
        return super()._width(rows)

    def __str__(self) -> str:
        why = self.map_.why or "as given"
        return (
            f"{self.drawn_.d:,} columns, scaling {self.scaling_.kind}, {self.kernel_}, "
            f"{type(self.map_).__name__}: {self.drawn_.width:,} features; {why}"
        )


class _Pair(Drawn):
    """Two maps side by side, each of its own columns."""

    def __init__(self, left: Drawn, right: Drawn):
        super().__init__(left.map, left.d + right.d, left.seed, left.width + right.width)
        self.left, self.right = left, right

    def recipe(self) -> dict[str, Any]:
        return {"left": self.left.recipe(), "right": self.right.recipe()}

    def _checked(self, X: Any) -> Matrix:
        values = as_rows(X).values
        self.left._checked(values[:, : self.left.d])
        self.right._checked(values[:, self.left.d :])
        return values

    def _fill(self, X: Matrix, out: Float) -> None:
        self.left.fill(X[:, : self.left.d], out[:, : self.left.width])
        self.right.fill(X[:, self.left.d :], out[:, self.left.width :])


class KernelCCA(Unsupervised):
    """Kernel canonical correlation analysis of two views: pairs of scores that correlate as much as possible.

    One pass collects the joint moments of both views' random features; the weights solve a regularised CCA on
    them, and the penalty is chosen by the correlations of held-out scores.

    Parameters
    ----------
    kernel, n_features, map, scaling
        As in ``KernelPCA``; a pair (tuple) of them gives each view its own.  n_features="auto" is at most 512.
    n_components : int
        How many pairs of scores.
    alpha : "cv", float or pair of float
        What is added to the scatter of the features: chosen by the mean correlation of held-out scores, one
        number for both views, or a pair.
    views : pair of columns, optional
        Where both views are columns of one table or source: which columns each takes, as in ``kernel.on``.
    folds : int
        The number of folds of cross-validation.
    tol, precision, random_state, n_jobs
        As in ``KernelPCA``.

    Attributes
    ----------
    canonical_correlations_ : of the scores of the training rows
    held_out_correlations_ : of held-out scores at the chosen penalty, where it was chosen
    x_weights_, y_weights_ : (features of the view, n_components)
    alpha_ : the penalty of each view
    moments_, drawn_, report_ : the joint statistics, the two maps, what was chosen

    Examples
    --------
    >>> from bochner import KernelCCA
    >>> import numpy as np
    >>> angle = np.random.default_rng(0).uniform(0.0, 6.28, 500)
    >>> X, Y = np.column_stack([np.cos(angle), np.sin(angle)]), (np.cos(2 * angle))[:, None]
    >>> model = KernelCCA("gaussian(gamma=1)", 1, random_state=0).fit(X, Y)    # cos 2t = 2 cos² t − 1
    >>> bool(model.held_out_correlations_[0] > 0.99)
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian(gamma=median)",
        n_components: int = 2,
        *,
        n_features: Any = "auto",
        alpha: Any = "cv",
        views: Any = None,
        folds: int = 5,
        map: Any = None,
        tol: float | None = None,
        scaling: Any = "auto",
        precision: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.n_features = n_features
        self.alpha = alpha
        self.views = views
        self.folds = folds
        self.map = map
        self.tol = tol
        self.scaling = scaling
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---- views ------------------------------------------------------------------------------------
    def _both(self, X: Any, Y: Any, sample_weight: Any = None, *, reset: bool) -> tuple[Source, Source]:
        """The two views as sources of the same rows."""
        if self.views is None and Y is None:
            raise DataError(
                "KernelCCA requires y to be passed, but the target y is None; pass the second view, or say with "
                "views=… which columns of X are which"
            )
        if self.views is not None and Y is not None:
            raise DataError("views=… takes both views from X; leave out the second one, or views")
        source = self._source(X, None, sample_weight, reset=reset)
        if self.views is not None:
            names = source.schema.names
            columns = [positions(selection(view), names, source.d) for view in _pair(self.views, "views")]
            return Selected(source, columns[0]), Selected(source, columns[1])
        return source, self._second(Y, reset)

    def _second(self, Y: Any, reset: bool) -> Source:
        """The second view as a source."""
        if not isinstance(Y, Source) and not hasattr(Y, "columns") and not hasattr(Y, "column_names"):
            Y = check_array(Y, accept_sparse="csr", dtype=_FLOATS, ensure_2d=False, input_name="y")
            Y = Y.reshape(-1, 1) if Y.ndim == 1 else Y
        if reset:
            self._other = RowsEstimator()
        elif not isinstance(Y, Source) and Y.shape[1] != self._maps[1].d:
            raise DataError(f"the second view had {self._maps[1].d} columns, these rows have {Y.shape[1]}")
        return self._other._source(Y, reset=reset)

    # ---- fitting ----------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, progress: bool = False) -> Self:
        """Learn from views X and y of the same rows, as arrays, tables or sources; or from X alone with ``views``."""
        penalties = None if isinstance(self.alpha, str) else require_penalties(self.alpha)
        if (isinstance(self.alpha, str) and self.alpha != "cv") or (penalties is not None and len(penalties) > 2):
            raise SolverError(f'alpha is "cv", a number ≥ 0 or a pair of them; got {self.alpha!r}')
        sources = self._both(X, y, sample_weight, reset=True)
        seed, start = seed_of(self.random_state), time.perf_counter()
        options = {name: _pair(getattr(self, name), name) for name in ("kernel", "n_features", "map", "tol", "scaling")}
        found = [_View(**{name: pair[i] for name, pair in options.items()}, random_state=seed + i) for i in (0, 1)]
        self._maps = [view.drawn_for(source) for view, source in zip(found, sources, strict=True)]
        self._scalings = (found[0].scaling_, found[1].scaling_)
        self.drawn_ = _Pair(self._maps[0], self._maps[1])
        self._settle_precision(sources[0], self.drawn_.width)
        self._folds = Folds(self.folds, seed)
        middle = time.perf_counter()
        self.moments_ = self._collect(sources, 0, progress)
        end = time.perf_counter()
        self._seconds = {"choosing the maps": middle - start, "sweeping": end - middle}
        self._told = {name: str(view) for name, view in zip(("X", "Y"), found, strict=True)}
        self.rows_seen_ = rows_of(self.moments_)
        self._solve()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, progress: bool = False) -> Self:
        """Add rows: with the maps and scalings of the first call, what a fit on all rows gives."""
        if not hasattr(self, "moments_"):
            return self.fit(X, y, sample_weight, progress=progress)
        more = self._collect(self._both(X, y, sample_weight, reset=False), self.rows_seen_, progress)
        self.moments_ = self.moments_ + more
        self.rows_seen_ += rows_of(more)
        self._solve()
        return self

    def _collect(self, sources: tuple[Source, Source], first: int, progress: bool) -> Moments:
        source = Joined(*sources, self._scalings)
        flow = Flow(source, self.drawn_, Scaling(), None, self._folds, self.dtype_, first)
        return self._sweep(flow, progress)(Moments(self.drawn_.width, folds=self._folds.count))

    def _solve(self) -> None:
        start = time.perf_counter()
        total, split, rank = self.moments_.total(), self._maps[0].width, self.n_components
        most = min(self._maps[0].width, self._maps[1].width)
        if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 1 <= rank <= most:
            raise SolverError(f"n_components is a whole number from 1 to the {most} features of a view; got {rank!r}")
        if isinstance(self.alpha, str):
            path = [penalties_for(total, split, share) for share in SHARES]
            held = cross_validated(self.moments_.labelled(), split, path, rank)
            best = int(np.argmax(held.mean(axis=1)))
            self.alpha_, self.held_out_correlations_ = path[best], held[best]
            why = f"the best of {len(path)} by exact cross-validation over {self._folds.count} folds"
        else:
            given = np.resize(require_penalties(self.alpha), 2)
            self.alpha_, why = (float(given[0]), float(given[1])), "as given"
        found = Views.of(total, split).solve(self.alpha_, rank)
        self.x_weights_, self.y_weights_ = found.left, found.right
        self.canonical_correlations_ = correlations(total, split, found)
        self._means = total.mean[:split], total.mean[split:]
        self._n_features_out = rank if self.views is None else 2 * rank
        self._seconds["solving"] = time.perf_counter() - start
        lines = {"data": f"{total.count:,} rows", **self._told}
        lines["penalty"] = f"{self.alpha_[0]:.4g} and {self.alpha_[1]:.4g}; {why}"
        lines["trained"] = f"correlations {_shown(self.canonical_correlations_)}"
        if isinstance(self.alpha, str):
            lines["held out"] = f"correlations {_shown(self.held_out_correlations_)}"
        lines["seconds"] = ", ".join(f"{stage} {s:.2f}" for stage, s in self._seconds.items())
        self.report_ = Told(lines)

    # ---- scores -----------------------------------------------------------------------------------
    def transform(self, X: Any, y: Any = None) -> Any:
        """The scores of the first view, or with y of both, as a pair; with ``views`` those of both side by side."""
        check_is_fitted(self, "x_weights_")
        if self.views is not None:
            return np.hstack([self._scores(source, i) for i, source in enumerate(self._both(X, y, reset=False))])
        first = self._scores(self._source(X, reset=False), 0)
        return first if y is None else (first, self._scores(self._second(y, reset=False), 1))

    def _scores(self, source: Source, which: int) -> Float:
        weights = (self.x_weights_, self.y_weights_)[which]
        return np.concatenate(
            [
                scores(chunk.X, self._scalings[which], self._maps[which], self._means[which], weights, chunk.X.dtype)
                for chunk in source.chunks()
            ]
        )

    def score(self, X: Any, y: Any = None) -> float:
        """The mean correlation of the pairs of scores of these rows."""
        check_is_fitted(self, "x_weights_")
        sources = self._both(X, y, reset=False)
        x, y = (self._scores(source, i).astype(np.float64) for i, source in enumerate(sources))
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        spread = np.sqrt(np.square(x).sum(axis=0) * np.square(y).sum(axis=0))
        return float(np.mean((x * y).sum(axis=0) / np.where(spread > 0.0, spread, 1.0)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.views is None
        tags.target_tags.multi_output = True
        return tags


def _pair(value: Any, name: str) -> tuple[Any, Any]:
    """One for each view: a tuple gives each its own."""
    if not isinstance(value, tuple) and name != "views":
        return value, value
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise SolverError(f"{name} is a pair, one for each of the two views; got {value!r}")
    return value[0], value[1]


def _shown(values: Float64) -> str:
    return ", ".join(f"{value:.4f}" for value in values[:8]) + (", …" if len(values) > 8 else "")
