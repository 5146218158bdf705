"""Predictions beside the targets that a source brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bochner.arrays import Float64
from bochner.errors import DataError
from bochner.sources import Source
from bochner.stats.targets import missing

if TYPE_CHECKING:
    from bochner.estimators.supervised import KernelPredictor


def compared(estimator: KernelPredictor, source: Source) -> tuple[NDArray[Any], NDArray[Any], Float64 | None]:
    """Targets, predictions and weights of the labelled rows of a source."""
    check_is_fitted(estimator, "model_")
    if not source.target:
        raise DataError("the source has no target to compare with; name one with scan(…, target=…)")
    rows = estimator._source(source, reset=False)
    found = [(chunk.y, chunk.weight) for chunk in rows.chunks()]
    y = np.concatenate([target for target, _ in found])
    known = ~missing(y) if y.ndim == 1 else ~np.isnan(y.astype(float)).any(axis=1)
    if not known.any():
        raise DataError("no row of the source has a target to compare with")
    weight = None if found[0][1] is None else np.concatenate([part for _, part in found])[known]
    return y[known], estimator.predict(source)[known], weight
