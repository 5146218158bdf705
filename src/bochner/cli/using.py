"""``predict`` and ``score``."""

from __future__ import annotations

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
    from bochner.report.truth import compare
    from bochner.saved import load

    truth = compare(load(model), source_of(data, **options))
    result: dict[str, Any] = {"rows": truth.rows, **truth.scores}
    if truth.classes is not None:
        found = truth.classes
        result["classes"] = [
            {"class": label, "rows": rows, "recall": recall, "precision": precision}
            for label, rows, recall, precision in zip(
                found.labels.tolist(),
                found.counts.sum(axis=1).tolist(),
                _plain(found.recall),
                _plain(found.precision),
                strict=True,
            )
        ]
    tell(result, _shown(result), as_json)


def _plain(values: Any) -> list[float | None]:
    """A class that does not occur has no recall."""
    return [float(value) if value == value else None for value in values]


def _shown(result: dict[str, Any]) -> str:
    lines = [f"{name:18s} {value:,.6g}" for name, value in result.items() if name != "classes"]
    for row in result.get("classes", []):
        recall, precision = ("none" if row[name] is None else f"{row[name]:.4f}" for name in ("recall", "precision"))
        lines.append(f"{row['class']!s:18s} {row['rows']:>10,.6g} rows, recall {recall}, precision {precision}")
    return "\n".join(lines)


@click.command(epilog="\b\nExample:\n  bochner report model.bochner held-out.parquet --target class -o report.html")
@click.argument("model")
@data_options
@TARGET
@click.option("--title", default="", help="Of the page.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), default="report.html", show_default=True)
def report(model: str, data: tuple[str, ...], title: str, output: str, **options: Any) -> None:
    """A page about MODEL and how well it predicts the rows of DATA, which it has not seen."""
    require_writable(output)
    from bochner.report import write_page
    from bochner.saved import opened

    write_page(output, opened(model), source_of(data, **options), title)
    print(output)


@click.command(epilog="\b\nExample:\n  bochner export model.bochner -o model.onnx")
@click.argument("model")
@click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="File to write, .onnx.")
def export(model: str, output: str) -> None:
    """Write MODEL as ONNX: input X, output prediction, and scores of classes."""
    require_writable(output)
    from bochner.export import to_onnx
    from bochner.saved import load

    to_onnx(load(model), output)
    print(output)
