"""Models and moments as files: recipes instead of matrices where possible, and nothing is executed on loading."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner import tensors
from bochner.arrays import decode, encode, frozen
from bochner.errors import BochnerError, FileError
from bochner.features import from_recipe
from bochner.model import Model
from bochner.solvers import Outcome, Solution
from bochner.solvers.calibrate import Calibration
from bochner.solvers.losses import LOSSES
from bochner.sources import Scaling, Schema
from bochner.stats import Moments
from bochner.stats.targets import targets_from_json

#: of the form of a file; every earlier one can be read
VERSION = 1
#: bytes of one array of a map; a recipe that asks for more is refused
LIMIT = 1 << 34
_MODEL, _MOMENTS, _ARRAY = "model", "moments", "array"
#: what a solver may have found that is worth keeping
_SCALARS = (bool, int, float, str)


def save(model: Model, path: str | os.PathLike[str], moments: Moments | None = None, **more: Any) -> None:
    """Write a model, and with it the moments it was learnt from where it is to be updated later.

    ``more`` is kept with it: JSON by name.
    """
    arrays: dict[str, NDArray[Any]] = {"coef": model.solution.coef, "intercept": model.solution.intercept}
    about = {
        "what": _MODEL,
        "version": VERSION,
        "schema": model.schema.to_json(),
        "scaling": model.scaling.to_json(),
        "map": _lifted(model.drawn.recipe(), arrays),
        "targets": model.targets.to_json(),
        "loss": model.loss,
        "dtype": model.dtype,
        "calibration": None if model.calibration is None else model.calibration.to_json(),
        "outcome": model.solution.outcome.name,
        "info": {name: value for name, value in model.solution.info.items() if isinstance(value, _SCALARS)},
        "more": more,
    }
    if moments is not None:
        arrays |= {f"moments/{name}": array for name, array in moments.to_arrays().items()}
    tensors.write(path, about, arrays)


def load(path: str | os.PathLike[str], limit: int = LIMIT) -> Model:
    """The model that ``save`` wrote.  Its map is drawn again; none of its arrays takes more than ``limit`` bytes.

    >>> import tempfile, bochner
    >>> X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    >>> fitted = bochner.KernelRegressor("gaussian(gamma=0.1)", n_features=16, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted.save(folder + "/m.bochner")
    ...     model = bochner.load(folder + "/m.bochner")
    >>> bool((model.predict(X) == fitted.predict(X)).all())
    True
    """
    about, arrays = tensors.read(path)
    _require(path, about, _MODEL)
    return revived(path, about, arrays, limit)


def revived(path: Any, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], limit: int = LIMIT) -> Model:
    """The model of a description and its arrays; ``path`` is named in errors."""
    try:
        return _model(about, arrays, limit)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FileError(f"{path} does not describe a model: {_told(error)}") from None
    except MemoryError:
        raise FileError(f"{path} describes a model that does not fit into memory") from None


@dataclass(frozen=True)
class Opened:
    """All that a model file holds."""

    model: Model
    #: where the file carries them
    moments: Moments | None
    #: what was kept with the model, by name
    more: dict[str, Any]


def opened(path: str | os.PathLike[str], limit: int = LIMIT) -> Opened:
    """A model with its moments and what else was kept with it."""
    about, arrays = tensors.read(path)
    _require(path, about, _MODEL)
    return Opened(revived(path, about, arrays, limit), _moments(path, arrays), _more(about))


def load_moments(path: str | os.PathLike[str]) -> tuple[Moments, dict[str, Any]]:
    """The moments of a file of their own, or those that a model carries, and what was kept with them."""
    about, arrays = tensors.read(path)
    _require(path, about, _MODEL, _MOMENTS)
    found = _moments(path, arrays)
    if found is None:
        raise FileError(f"{path} carries no moments; save the model with them to update it later")
    return found, _more(about)


def _moments(path: Any, arrays: Mapping[str, NDArray[Any]]) -> Moments | None:
    kept = {name.removeprefix("moments/"): array for name, array in arrays.items() if name.startswith("moments/")}
    try:
        return Moments.from_arrays(kept) if kept else None
    except BochnerError as error:
        raise FileError(f"{path}: {error}") from None


def _more(about: Mapping[str, Any]) -> dict[str, Any]:
    more = about.get("more")
    return more if isinstance(more, dict) else {}


def save_moments(moments: Moments, path: str | os.PathLike[str], **more: Any) -> None:
    """Write moments alone: what other machines merge and solve, without any row."""
    arrays = {f"moments/{name}": array for name, array in moments.to_arrays().items()}
    tensors.write(path, {"what": _MOMENTS, "version": VERSION, "more": more}, arrays)


def _require(path: Any, about: Mapping[str, Any], *kinds: str) -> None:
    if about.get("what") not in kinds:
        raise FileError(f"{path} is a file of {about.get('what')!r}, where {' or '.join(kinds)} is expected")
    version = about.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise FileError(f"{path} is of version {version!r}; this version of bochner reads 1 to {VERSION}: update it")


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, BochnerError) else f"{type(error).__name__}: {error}"


def _model(about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], limit: int) -> Model:
    coef, intercept = (_numbers(name, arrays[name], ndim) for name, ndim in (("coef", 2), ("intercept", 1)))
    targets = targets_from_json(about["targets"])
    schema, scaling = Schema.from_json(about["schema"]), Scaling.from_json(about["scaling"])
    loss, dtype = about["loss"], about["dtype"]
    if loss not in LOSSES:
        raise FileError(f"there is no loss {loss!r}")
    if dtype not in ("float32", "float64"):
        raise FileError(f"there is no precision {dtype!r}")
    recipe = _settled(about["map"], arrays)
    _require_affordable(recipe, limit)
    drawn = from_recipe(recipe)
    # One row inside every domain shows whether the arrays of the map fit each other.
    probe = np.empty((1, drawn.width))
    with np.errstate(all="ignore"):
        drawn.fill(np.full((1, drawn.d), 1.0 / (drawn.d + 1)), probe)
    if not np.isfinite(probe).all():
        raise FileError("its map does not give finite features")
    if coef.shape != (drawn.width, len(intercept)) or schema.d != drawn.d:
        raise FileError(
            f"coefficients {coef.shape}, {len(intercept)} outputs, {schema.d} columns and a map from {drawn.d} columns "
            f"to {drawn.width} features do not belong together"
        )
    for name in ("shift", "factor"):
        constant = getattr(scaling, name)
        if constant is not None and constant.shape not in ((), (1,), (drawn.d,)):
            raise FileError(f"a scaling of shape {constant.shape} does not fit {drawn.d} columns")
    if len(intercept) not in {targets.outputs, 1 if targets.outputs == 2 else targets.outputs}:
        raise FileError(f"{len(intercept)} outputs do not fit {targets.outputs} targets")
    calibration = None if about["calibration"] is None else Calibration.from_json(about["calibration"])
    if calibration is not None and len(calibration.bias) != targets.outputs:
        raise FileError(f"a calibration of {len(calibration.bias)} classes does not fit {targets.outputs}")
    info = {str(name): value for name, value in about["info"].items() if isinstance(value, _SCALARS)}
    solution = Solution(coef, intercept, Outcome[about["outcome"]], info)
    return Model(schema, scaling, drawn, targets, solution, loss, calibration, dtype)


def _numbers(name: str, array: NDArray[Any], ndim: int) -> NDArray[np.float64]:
    if array.ndim != ndim or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise FileError(f"{name} does not hold finite numbers in {ndim} dimensions")
    return frozen(array, np.float64)


def _lifted(item: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """JSON with its encoded arrays moved to ``arrays``."""
    if isinstance(item, Mapping):
        if "base64" in item:
            name = f"map/{len(arrays)}"
            arrays[name] = decode(dict(item))
            return {_ARRAY: name}
        return {key: _lifted(value, arrays) for key, value in item.items()}
    return [_lifted(value, arrays) for value in item] if isinstance(item, (list, tuple)) else item


def _settled(item: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The same JSON with its arrays back."""
    if isinstance(item, Mapping):
        if item.keys() == {_ARRAY}:
            return encode(arrays[item[_ARRAY]])
        return {key: _settled(value, arrays) for key, value in item.items()}
    return [_settled(value, arrays) for value in item] if isinstance(item, list) else item


def _require_affordable(recipe: Mapping[str, Any], limit: int) -> None:
    """Refuse sizes whose arrays would not fit, before anything of that size is made."""
    sizes = [recipe["d"]]

    def walk(item: Any) -> None:
        if isinstance(item, Mapping):
            if "map" in item:
                sizes.append(item["n_features"])
            for value in item.values():
                walk(value)
        elif isinstance(item, list):
            for value in item:
                walk(value)

    walk(recipe)
    if not all(type(size) is int and size >= 1 for size in sizes):
        raise FileError("a number of columns or features is not a whole number ≥ 1")
    first, second = sorted([*sizes, 1])[-2:]
    if 8 * first * second > limit:
        raise FileError(f"a map of {first} by {second} numbers is larger than the limit of {limit} bytes; raise it")
