"""Fitted estimators as files: what an update needs to go on where a fit ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

import numpy as np

from bochner.arrays import frozen
from bochner.errors import FileError, SolverError
from bochner.estimators.chosen import Report
from bochner.estimators.reduced import Reduction, Stage, remembered
from bochner.kernels import Kernel
from bochner.model import Model
from bochner.saved import Opened, save
from bochner.stats import Folds, Moments

#: parameters that stand in the model itself
_IN_MODEL = ("map", "scaling", "n_features")


def kept(estimator: Any, path: str | PathLike[str], moments: bool) -> None:
    """Write a fitted estimator."""
    if moments and estimator._stage.drawn is not None:
        raise SolverError(
            "moments of components that two passes found have no map that a file can keep; raise memory in "
            "Reduction, so that one pass is enough, or save without moments"
        )
    more = {
        "estimator": type(estimator).__name__,
        "parameters": {
            name: _plain(value) for name, value in estimator.get_params(deep=False).items() if name not in _IN_MODEL
        },
        "folds": [estimator._folds.count, estimator._folds.seed],
        "rows_seen": getattr(estimator, "rows_seen_", 0),
        "promoted": estimator._promoted,
        "penalty": estimator.alpha_,
        "streamed": estimator._streamed,
        "rank": None if estimator.pca_ is None else estimator.pca_.rank,
        "factors": None if estimator._factors is None else estimator._factors.tolist(),
        "report": estimator.report_.to_json(),
    }
    save(estimator.model_, path, estimator._kept() if moments else None, **more)


def _plain(value: Any) -> Any:
    """A parameter as JSON; a random state that is no number has done its work."""
    if isinstance(value, Kernel):
        return str(value)
    if isinstance(value, Reduction):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (bool, int, float, str)) else None


def revive(estimator: Any, file: Opened, path: Any) -> None:
    """Make an estimator what the one was that ``kept`` wrote."""
    try:
        _revive(estimator, file.model, file.moments, file.more)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} was not written by {type(estimator).__name__}.save ({error!r})") from None


def _revive(estimator: Any, model: Model, moments: Moments | None, more: Mapping[str, Any]) -> None:
    if more["estimator"] != type(estimator).__name__:
        raise ValueError(f"it holds a {more['estimator']}")
    known = estimator.get_params(deep=False)
    given = {name: value for name, value in more["parameters"].items() if name in known}
    if isinstance(given.get("pca"), dict):
        given["pca"] = Reduction(**given["pca"])
    estimator.set_params(**given)
    estimator.set_params(map=model.drawn, n_features=model.drawn.width, scaling=model.scaling)
    count, seed = more["folds"]
    estimator._folds, estimator._promoted = Folds(int(count), int(seed)), bool(more["promoted"])
    estimator._schema, estimator._streamed = model.schema, bool(more["streamed"])
    estimator.n_features_in_ = model.schema.d
    if model.schema.names is not None:
        estimator.feature_names_in_ = frozen(model.schema.names, dtype=object)
    estimator.model_, estimator.targets_, estimator.dtype_ = model, model.targets, model.dtype
    estimator.drawn_, estimator.map_, estimator.kernel_ = model.drawn, model.drawn.map, model.drawn.kernel
    estimator.scaling_, estimator.search_ = model.scaling, None
    estimator.coef_, estimator.intercept_ = model.solution.coef.T, model.solution.intercept
    estimator.alpha_, estimator.rows_seen_ = float(more["penalty"]), int(more["rows_seen"])
    estimator.n_iter_ = max(1, int(model.solution.info.get("sweeps", 1)))
    estimator._factors = None if more["factors"] is None else frozen(more["factors"], float)
    estimator.moments_, estimator.report_ = moments, Report.from_json(more["report"])
    if estimator.classify:
        estimator.calibration_ = model.calibration
    estimator._stage, estimator._reduced, estimator.pca_ = Stage(), None, None
    rank = more.get("rank")
    if rank is not None and moments is not None:
        estimator._reduced = remembered(moments, estimator._reduction, model.drawn, estimator._noise, int(rank))
        estimator.pca_ = estimator._reduced.components
    estimator._seconds = {}
