"""Exact updates of regression and classification: moments of rows are added and taken away, and kept in files."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bochner.errors import DataError, SolverError
from bochner.estimators.learning import rows_of
from bochner.estimators.reopened import kept, revive
from bochner.saved import opened
from bochner.sources import Chunk, Source
from bochner.sources.numbered import Numbered
from bochner.stats import Classes, Moments, Targets, learn_targets


def _updatable(estimator: Any) -> bool:
    if estimator.loss != "squared":
        raise AttributeError(f"a model of the {estimator.loss} loss is not made from moments and cannot be updated")
    return True


class UpdatingMixin:
    """What an estimator can do with its moments after a fit."""

    classify: ClassVar[bool]
    moments_: Moments | None
    rows_seen_: int

    def _supervised(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, *, reset: bool) -> Source:
        raise NotImplementedError

    def _fit(self, source: Source, targets: Targets, progress: bool) -> None:
        raise NotImplementedError

    def _collect(self, source: Source, first: int, progress: bool) -> Moments:
        raise NotImplementedError

    def _solve(self, sample: Chunk | None, source: Source | None = None, progress: bool = False) -> None:
        raise NotImplementedError

    @available_if(_updatable)  # type: ignore[untyped-decorator]
    def collect(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        rows: Any = None,
        first: int = 0,
        progress: bool = False,
    ) -> Moments:
        """The moments of other rows under this estimator's map; the estimator does not change.

        They can be computed anywhere, saved (``to_arrays``) and given to ``absorb``.  ``first`` is the
        number of the first row, or ``rows`` the number of each: folds go by them.
        """
        check_is_fitted(self, "model_")
        source = self._supervised(X, y, sample_weight, groups, reset=False)
        if rows is not None:
            source, first = Numbered(source, rows), 0
        return self._collect(source, first, progress)

    @available_if(_updatable)  # type: ignore[untyped-decorator]
    def absorb(self, moments: Moments) -> Self:
        """The model of all rows so far and those of other moments: what a fit on the union gives."""
        check_is_fitted(self, "model_")
        self.moments_ = self._kept() + moments
        self.rows_seen_ += rows_of(moments)
        self._solve(None)
        return self

    @available_if(_updatable)  # type: ignore[untyped-decorator]
    def solve(self) -> Self:
        """Choose and solve again from the moments, without a row: after ``set_params(alpha=…)``, say."""
        check_is_fitted(self, "model_")
        self._solve(None)
        return self

    @available_if(_updatable)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        classes: Any = None,
        *,
        groups: Any = None,
        progress: bool = False,
    ) -> Self:
        """Add rows: with the map and scaling of the first call, exactly what a fit on all rows gives.

        The first call fits; ``classes`` then names all labels, where these rows lack some.
        """
        if hasattr(self, "model_"):
            more = self.collect(X, y, sample_weight, groups=groups, first=self.rows_seen_, progress=progress)
            self.absorb(more)
            return self
        source = self._supervised(X, y, sample_weight, groups, reset=True)
        targets = learn_targets(source.targets(), self.classify) if classes is None else Classes(np.unique(classes))
        self._fit(source, targets, progress)
        return self

    @available_if(_updatable)  # type: ignore[untyped-decorator]
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None, *, rows: Any, groups: Any = None) -> Self:
        """Take rows out again: what a fit without them gives, to rounding.

        ``rows`` are the numbers that they had: their places among all rows that were fitted, from 0 on.
        """
        kept = self._kept() - self.collect(X, y, sample_weight, rows=rows, groups=groups)
        if not kept.total().count:
            raise DataError("these are all rows that the model has; a model of no rows is none")
        self.moments_ = kept
        self._solve(None)
        return self

    def save(self, path: str | PathLike[str], *, moments: bool = False) -> None:
        """Write the model to a file for ``bochner.load``; with its moments ``load`` gives one that can be updated."""
        check_is_fitted(self, "model_")
        kept(self, path, moments)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The fitted estimator that ``save`` wrote."""
        estimator = cls()
        revive(estimator, opened(path), path)
        return estimator

    def _kept(self) -> Moments:
        if self.moments_ is None:
            raise SolverError("this model was fitted without moments and cannot be updated; use solver='moments'")
        return self.moments_
