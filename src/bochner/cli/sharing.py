"""``moments``, ``merge``, ``solve``, ``update`` and ``forget``: statistics instead of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bochner.cli.options import JSON, OUTPUT, QUIET, TARGET, data_options, source_of, tell
from bochner.cli.options import writable as require_writable

if TYPE_CHECKING:
    from bochner.estimators.supervised import KernelPredictor
    from bochner.model import Model
    from bochner.stats import Moments


def estimator_of(path: str) -> KernelPredictor:
    """The fitted estimator of a model file."""
    from bochner import KernelClassifier, KernelRegressor
    from bochner.estimators.reopened import revive
    from bochner.saved import opened
    from bochner.stats import Classes

    file = opened(path)
    found: KernelPredictor = KernelClassifier() if isinstance(file.model.targets, Classes) else KernelRegressor()
    revive(found, file, path)
    return found


@click.command(
    epilog="\b\nExample, on another machine:\n"
    "  bochner moments base.bochner part-2.parquet --target y --first 1000000 -o part-2.moments"
)
@click.argument("base")
@data_options
@TARGET
@click.option("--first", type=int, default=0, show_default=True, help="Number of the first row; folds go by it.")
@QUIET
@JSON
@OUTPUT
def moments(
    base: str, data: tuple[str, ...], output: str, first: int, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Statistics of the rows of DATA under the map of the model BASE: no row can be read from them."""
    require_writable(output)
    from bochner.saved import save_moments

    estimator = estimator_of(base)
    found = estimator.collect(source_of(data, **options), first=first, progress=not quiet)
    save_moments(found, output, first=first, map=_map_of(estimator.model_))
    rows = _rows(found)
    tell({"moments": output, "rows": rows, "first": first}, f"{rows:,} rows from number {first:,}: {output}", as_json)


@click.command(epilog="\b\nExample:\n  bochner merge part-*.moments -o all.moments")
@click.argument("parts", nargs=-1, required=True)
@JSON
@OUTPUT
def merge(parts: tuple[str, ...], output: str, as_json: bool) -> None:
    """Add up the statistics in PARTS."""
    require_writable(output)
    from bochner.saved import save_moments

    total, digest = _added(parts)
    save_moments(total, output, map=digest)
    tell({"moments": output, "rows": _rows(total)}, f"{_rows(total):,} rows: {output}", as_json)


@click.command(epilog="\b\nExample:\n  bochner solve base.bochner part-*.moments -o model.bochner")
@click.argument("base")
@click.argument("parts", nargs=-1)
@click.option("--alpha", type=float, help="Another penalty than the model chooses.")
@JSON
@OUTPUT
def solve(base: str, parts: tuple[str, ...], alpha: float | None, output: str, as_json: bool) -> None:
    """A model from the statistics that BASE carries (fit --moments) and those in PARTS.

    Choices are made anew from all of them.
    """
    require_writable(output)
    estimator = estimator_of(base)
    if alpha is not None:
        estimator.set_params(alpha=alpha)
    if parts:
        total, digest = _added(parts)
        _require_map(digest, _map_of(estimator.model_), parts[0], base)
        estimator.absorb(total)
    else:
        estimator.solve()
    _save(estimator, output, as_json)


@click.command(epilog="\b\nExample:\n  bochner update model.bochner today.parquet --target y -o model.bochner")
@click.argument("model")
@data_options
@TARGET
@QUIET
@JSON
@OUTPUT
def update(model: str, data: tuple[str, ...], output: str, quiet: bool, as_json: bool, **options: Any) -> None:
    """Add the rows of DATA to MODEL, which carries its statistics (fit --moments)."""
    require_writable(output)
    estimator = estimator_of(model)
    estimator.partial_fit(source_of(data, **options), progress=not quiet)
    _save(estimator, output, as_json)


@click.command(epilog="\b\nExample:\n  bochner forget model.bochner gone.csv --target y --first 5000 -o model.bochner")
@click.argument("model")
@data_options
@TARGET
@click.option("--first", type=int, help="Number that the first of these rows had, where they were consecutive.")
@click.option("--numbers", type=click.Path(exists=True), help=".npy file with the number that each row had.")
@JSON
@OUTPUT
def forget(
    model: str,
    data: tuple[str, ...],
    output: str,
    first: int | None,
    numbers: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Take the rows of DATA out of MODEL: what a fit without them gives, to rounding.

    Rows are told by what they hold and by their numbers: their places among all that were fitted, from 0 on.
    """
    require_writable(output)
    if (first is None) == (numbers is None):
        raise click.UsageError("say which rows these were: --first for consecutive ones, or --numbers")
    import numpy as np

    source = source_of(data, **options).settle()
    if numbers is None:
        rows = int(first or 0) + np.arange(_counted(source))
    else:
        from bochner.sources.beside import values_of

        rows = np.asarray(values_of(numbers))
    estimator = estimator_of(model)
    estimator.forget(source, rows=rows)
    _save(estimator, output, as_json)


def _counted(source: Any) -> int:
    return source.n_rows if source.n_rows is not None else sum(len(chunk) for chunk in source.chunks())


def _rows(found: Moments) -> int:
    return sum(part.count for part in found.parts.values())


def _map_of(model: Model) -> str:
    """A digest of the map and scaling of a model: statistics of others do not add up."""
    import hashlib
    import json

    what = [model.drawn.recipe(), model.scaling.to_json(), model.targets.to_json()]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _added(parts: tuple[str, ...]) -> tuple[Moments, str]:
    from bochner.saved import load_moments

    total, more = load_moments(parts[0])
    for path in parts[1:]:
        found, other = load_moments(path)
        _require_map(other.get("map"), more.get("map"), path, parts[0])
        total = total + found
    return total, str(more.get("map"))


def _require_map(one: Any, other: Any, path: str, like: str) -> None:
    from bochner.errors import FileError

    if one != other:
        raise FileError(f"{path} and {like} are statistics of different maps; collect them with the same model as base")


def _save(estimator: KernelPredictor, output: str, as_json: bool) -> None:
    estimator.save(output, moments=True)
    report = estimator.report_
    result = {"model": output, "rows": report.rows, "penalty": report.penalty, "held_out_error": report.error}
    tell(result, f"{report}\nmodel     {output}", as_json)
