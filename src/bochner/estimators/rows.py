"""Rows for an estimator: from arrays, tables and sources; those to predict as those that were fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from bochner.arrays import Rows
from bochner.errors import DataError
from bochner.sources import MemorySource, Schema, Source
from bochner.sources.beside import Beside
from bochner.sources.scan import is_table, scan


class RowsEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that takes rows from arrays, sparse matrices, tables and sources."""

    #: the columns of the rows that were fitted, and whether a source brought them
    _schema: Schema
    _streamed: bool

    def _source(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, *, reset: bool) -> Source:
        """X itself where it is a source; else a source of the checked rows of an array or table.

        After a fit on a source, tables too are read by its schema: categories, fills, columns by name.
        """
        if isinstance(X, Source):
            if y is not None or sample_weight is not None or groups is not None:
                raise DataError("a source brings its own target, weights and groups; name them in scan(…)")
            if not reset:
                return X.with_schema(self._schema).settle()
            source = X.settle()
            self._schema, self._streamed = source.schema, True
            self.n_features_in_ = source.d
            if source.schema.names is not None:
                self.feature_names_in_ = np.asarray(source.schema.names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return source
        if not reset and self._streamed and self._schema.columns and is_table(X):
            rows = scan(X).with_schema(self._schema)
            return rows.settle() if y is None else Beside(rows, y, sample_weight, groups).settle()
        values = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1 + reset
        )
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, values, dtype=np.float64)
        memory = MemorySource(Rows(values, self._names()), y, weight, groups)
        if reset:
            self._schema, self._streamed = memory.schema, False
        return memory

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
