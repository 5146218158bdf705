"""``predict`` and ``score``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bochner.cli.options import JSON, TARGET, data_options, source_of, tell
from bochner.cli.options import writable as require_writable

if TYPE_CHECKING:
    from bochner.model import Model
    from bochner.sources import Source

Columns = dict[str, Any]


@click.command(
    epilog="\b\nExamples:\n"
    "  bochner predict model.bochner new.parquet -o predictions.parquet --probabilities\n"
    "  bochner predict model.bochner new.csv > predictions.csv"
)
@click.argument("model")
@data_options
@click.option("--probabilities", "-p", is_flag=True, help="A column for each class.")
@click.option("--deviation", is_flag=True, help="The standard deviation of each prediction; needs fit --moments.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help=".csv, .parquet or .npy; CSV to standard output.")
def predict(model: str, data: tuple[str, ...], output: str | None, **options: Any) -> None:
    """Predict the rows of DATA with MODEL, chunk by chunk.

    Columns are found by name: their order does not matter, and more of them do no harm.
    """
    if output is not None:
        require_writable(output)
    from bochner.errors import DataError

    kind = ".csv" if output is None else Path(output).suffix.lower()
    if kind not in _WRITERS:
        raise DataError(f"{output} does not end in {', '.join(_WRITERS)}; predictions are written as one of these")
    rows = _columns(model, data, options)
    _WRITERS[kind](output, rows)


def _columns(path: str, data: tuple[str, ...], options: dict[str, Any]) -> Iterator[Columns]:
    """Predictions by name of column, chunk by chunk."""
    from bochner.errors import SolverError
    from bochner.stats import Classes

    if options["deviation"]:
        from bochner import KernelRegressor

        mean, deviation = KernelRegressor.load(path).predict(source_of(data, **options), return_std=True)
        yield _numbered("prediction", mean) | _numbered("deviation", deviation)
        return
    from bochner.saved import load

    model = load(path)
    if options["probabilities"] and not isinstance(model.targets, Classes):
        raise SolverError(f"{path} predicts numbers, which have no probabilities; leave out --probabilities")
    for chunk in _known(model, source_of(data, **options)).chunks():
        if not options["probabilities"]:
            yield _numbered("prediction", model.predict(chunk.X))
            continue
        shares = model.probabilities(chunk.X)
        labels = model.targets.labels  # type: ignore[attr-defined]
        named = {f"p({label})": shares[:, j] for j, label in enumerate(labels.tolist())}
        yield {"prediction": labels[shares.argmax(axis=1)]} | named


def _known(model: Model, source: Source) -> Source:
    return source.with_schema(model.schema).settle()


def _numbered(name: str, values: Any) -> Columns:
    return {name: values} if values.ndim == 1 else {f"{name} {j}": values[:, j] for j in range(values.shape[1])}


def _write_csv(output: str | None, rows: Iterator[Columns]) -> None:
    import csv
    import io
    import sys

    from bochner.tensors import replacing

    def lines() -> Iterator[str]:
        for number, columns in enumerate(rows):
            text = io.StringIO()
            out = csv.writer(text, lineterminator="\n")
            if number == 0:
                out.writerow(columns)
            out.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
            yield text.getvalue()

    if output is None:
        for part in lines():
            sys.stdout.write(part)
        return
    with replacing(output) as file:
        for part in lines():
            file.write(part.encode())


def _write_parquet(output: str | None, rows: Iterator[Columns]) -> None:
    from bochner.sources.files import arrow
    from bochner.tensors import replacing

    pa = arrow()
    import pyarrow.parquet as parquet

    assert output is not None
    with replacing(output) as file:
        writer = None
        for columns in rows:
            table = pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})
            if writer is None:
                writer = parquet.ParquetWriter(file, table.schema, write_page_checksum=True)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _write_npy(output: str | None, rows: Iterator[Columns]) -> None:
    import numpy as np

    from bochner.tensors import replacing

    parts = [np.column_stack(list(columns.values())) for columns in rows]
    whole = np.concatenate(parts)
    with replacing(str(output)) as file:
        np.save(file, whole[:, 0] if whole.shape[1] == 1 else whole, allow_pickle=False)


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet, ".npy": _write_npy}


@click.command(epilog="\b\nExample:\n  bochner score model.bochner held-out.parquet --target class")
@click.argument("model")
@data_options
@TARGET
@JSON
def score(model: str, data: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Compare the predictions of MODEL for the rows of DATA with their targets, chunk by chunk."""
    from bochner.errors import DataError
    from bochner.saved import load
    from bochner.stats import Classes

    loaded, source = load(model), source_of(data, **options)
    if not source.target:
        raise DataError("name the column of the truth with --target")
    known = _known(loaded, source)
    result = _classes(loaded, known) if isinstance(loaded.targets, Classes) else _numbers(loaded, known)
    tell(result, _shown(result), as_json)


def _classes(model: Model, source: Source) -> dict[str, Any]:
    import numpy as np

    from bochner.stats import Classes

    assert isinstance(model.targets, Classes)
    labels = model.targets.labels
    k = len(labels)
    counts, log_loss, weight = np.zeros((k, k)), 0.0, 0.0
    probable = model.loss == "logistic" or model.calibration is not None
    for chunk in source.chunks():
        assert chunk.y is not None
        codes, told = model.targets.encode(chunk.y, chunk.start)
        codes = codes[told]
        w = np.ones(len(codes)) if chunk.weight is None else chunk.weight[told]
        decision = model.decision(chunk.X[told])
        found = np.searchsorted(labels, model.meant(decision))
        np.add.at(counts, (codes, found), w)
        weight += float(w.sum())
        if probable:
            shares = model.probabilities(chunk.X[told])[np.arange(len(codes)), codes]
            log_loss -= float(w @ np.log(np.maximum(shares, 1e-300)))
    right, true, said = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    with np.errstate(invalid="ignore"):
        recall, precision = right / true, right / said
    by_class = [
        {"class": label, "rows": true[j], "recall": recall[j], "precision": precision[j]}
        for j, label in enumerate(labels.tolist())
    ]
    return {
        "rows": weight,
        "accuracy": float(right.sum() / weight),
        "balanced_accuracy": float(np.nanmean(recall)),
        **({"log_loss": log_loss / weight} if probable else {}),
        "classes": by_class,
    }


def _numbers(model: Model, source: Source) -> dict[str, Any]:
    import numpy as np

    from bochner.stats import Part

    squared, absolute, truth = 0.0, 0.0, Part.empty(0, model.targets.outputs)
    for chunk in source.chunks():
        assert chunk.y is not None
        y, told = model.targets.encode(chunk.y, chunk.start)
        y = y[told]
        w = np.ones(len(y)) if chunk.weight is None else chunk.weight[told]
        off = model.predict(chunk.X[told]).reshape(y.shape) - y
        squared += w @ np.square(off)
        absolute += w @ np.abs(off)
        mean = np.average(y, axis=0, weights=w)
        truth = truth + Part(
            len(y), float(w.sum()), np.empty(0), mean, np.empty((0, 0)), np.empty((0, len(mean))), w @ (y - mean) ** 2
        )
    n = truth.weight
    return {
        "rows": n,
        "r2": float(np.mean(1.0 - squared / np.maximum(truth.target_scatter, 1e-300))),
        "rmse": math.sqrt(float(np.mean(squared)) / n),
        "mae": float(np.mean(absolute)) / n,
    }


def _shown(result: dict[str, Any]) -> str:
    lines = [f"{name:18s} {value:,.6g}" for name, value in result.items() if name != "classes"]
    for row in result.get("classes", []):
        shown = f"{row['class']!s:18s} {row['rows']:>10,.6g} rows, recall {row['recall']:.4f}"
        lines.append(f"{shown}, precision {row['precision']:.4f}")
    return "\n".join(lines)
