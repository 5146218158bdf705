"""The page: sections of words, tables and charts, without anything from a network."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from bochner import tensors
from bochner.estimators.chosen import Report, share
from bochner.features import error as kernel_error
from bochner.report import charts
from bochner.report.truth import Truth, compare
from bochner.saved import Opened
from bochner.solvers.ridge import FLOAT32_NOISE, Prepared
from bochner.sources import Source

#: classes up to which a square of confusions is drawn
_SQUARE = 40
#: rows on which the error of the kernel is measured
_PAIRS = 1000

_STYLE = """
:root{--ink:#1c1e21;--soft:#5b6470;--paper:#fff;--card:#f5f6f8;--rule:#d7dbe0;--a:#2563b0;--b:#c2561a;--c:#2d7d46;
--d:#8a3b9e;--e:#a07800;--f:#b0305c}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa4b0;--paper:#15181c;--card:#1f2329;--rule:#3a414a;
--a:#6aa5ee;--b:#f0965c;--c:#6cc38a;--d:#cf8fe0;--e:#dcb64a;--f:#ef7fa6}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem;max-width:46rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);
background:var(--paper);overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 .6rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
p{margin:.4rem 0}.soft{color:var(--soft);font-size:.9rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:.8rem 0}
.cards div{background:var(--card);border-radius:8px;padding:.6rem .8rem}
.cards b{display:block;font-size:1.15rem}.cards span{color:var(--soft);font-size:.82rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}th,td{text-align:left;padding:.3rem .5rem .3rem 0;
border-bottom:1px solid var(--rule);vertical-align:top}th{font-weight:600;white-space:nowrap}
td:first-child{white-space:nowrap}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.scroll{overflow-x:auto}
svg{width:100%;height:auto;display:block;margin:.4rem 0}svg text{font:11.5px system-ui,sans-serif;fill:var(--soft)}
svg text.value{fill:var(--ink)}svg text.light{fill:var(--paper)}
.grid{stroke:var(--rule);stroke-width:1;fill:none;opacity:.6}.rule{stroke:var(--soft);stroke-dasharray:4 3;fill:none}
.line{fill:none;stroke-width:2}.dot{stroke:none}.band{stroke:none;opacity:.15}.bar{fill:var(--a)}
.cell{fill:var(--a);stroke:var(--rule);stroke-width:.5}
.line.s0{stroke:var(--a)}.line.s1{stroke:var(--b)}.line.s2{stroke:var(--c)}.line.s3{stroke:var(--d)}
.line.s4{stroke:var(--e)}.line.s5{stroke:var(--f)}
.dot.s0,.band.s0{fill:var(--a)}.dot.s1,.band.s1{fill:var(--b)}.dot.s2,.band.s2{fill:var(--c)}
.dot.s3,.band.s3{fill:var(--d)}.dot.s4,.band.s4{fill:var(--e)}.dot.s5,.band.s5{fill:var(--f)}
.legend span{margin-right:1rem;font-size:.85rem;color:var(--soft);white-space:nowrap}
.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em;vertical-align:-.05em}
i.s0{background:var(--a)}i.s1{background:var(--b)}i.s2{background:var(--c)}i.s3{background:var(--d)}
i.s4{background:var(--e)}i.s5{background:var(--f)}
@media print{body{max-width:none;font-size:11pt}section{break-inside:avoid}}
"""


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    body: str


def write_page(path: str | os.PathLike[str], opened: Opened, source: Source | None = None, title: str = "") -> None:
    """Write the page of a model file; with a source of held-out rows, how well it predicts them too."""
    with tensors.replacing(path) as file:
        file.write(page(opened, source, title).encode())


def page(opened: Opened, source: Source | None = None, title: str = "") -> str:
    """The page as text."""
    report = Report.from_json(opened.more["report"])
    truth = None if source is None else compare(opened.model, source)
    sections = "".join(
        f"<section><h2>{escape(s.title)}</h2>{s.body}</section>" for s in _sections(opened, report, truth, source)
    )
    heading = escape(title or f"{_short(report.kernel)}: {report.rows:,} rows")
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{heading}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{heading}</h1>{_cards(report, truth)}{sections}</body></html>"
    )


def _short(text: str) -> str:
    """Numbers to four digits: the full ones stand in the table."""
    return re.sub(r"\d+\.\d{4,}(?:e-?\d+)?", lambda found: f"{float(found[0]):.4g}", text)


def _cards(report: Report, truth: Truth | None) -> str:
    found = [("rows", f"{report.rows:,}"), ("columns", f"{report.columns:,}"), ("features", f"{report.n_features:,}")]
    if report.classes is not None:
        found.append(("classes", f"{report.classes:,}"))
    if report.error is not None:
        found.append(("cross-validated error, of the variance", f"{report.error:.4f}"))
    if truth is not None:
        found += [(f"{name.replace('_', ' ')}, held out", f"{value:.4g}") for name, value in truth.scores.items()]
    return (
        '<div class="cards">' + "".join(f"<div><b>{b}</b><span>{escape(a)}</span></div>" for a, b in found) + "</div>"
    )


def _sections(opened: Opened, report: Report, truth: Truth | None, source: Source | None) -> Iterator[Section]:
    yield Section("What was chosen, and why", _choices(opened, report))
    yield Section("The data", _data(opened, report))
    if report.surface is not None:
        yield Section("Cross-validation", _surface(report))
    if report.search is not None:
        yield Section("Kernels that were tried", _kernels(report))
    if report.selection is not None:
        yield Section("Which kernels matter", _members(report))
    if source is not None:
        yield Section("How close the map is to its kernel", _map_error(opened, source))
    if truth is not None:
        yield from (Section(*item) for item in _truth(truth))
    if opened.moments is not None and opened.model.loss == "squared":
        yield Section("Spectrum of the features", _spectrum(opened, report))
    if report.seconds:
        yield Section("Time", _times(report))


def _table(rows: list[tuple[Any, ...]], header: tuple[str, ...] = (), numbers: int = 0) -> str:
    """A table whose last ``numbers`` columns are right-aligned."""

    def line(cells: tuple[Any, ...], tag: str) -> str:
        first = len(cells) - numbers
        return "".join(
            f"<{tag}{' class=n' if i >= first else ''}>{escape(str(cell))}</{tag}>" for i, cell in enumerate(cells)
        )

    head = f"<thead><tr>{line(header, 'th')}</tr></thead>" if header else ""
    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def _choices(opened: Opened, report: Report) -> str:
    rows: list[tuple[Any, ...]] = [
        ("kernel", report.kernel, "the best of those tried on a sample" if report.search else "as given"),
        ("map", f"{report.map}, {report.n_features:,} features", report.map_why),
        ("scaling", report.scaling, ""),
        ("solver", f"{report.solver}, {report.loss} loss", report.solver_why),
        ("penalty", f"{report.penalty:.4g}", report.penalty_why),
        ("outcome", report.outcome.value, report.outcome.advice),
        ("precision", opened.model.dtype, ""),
    ]
    if report.pca:
        rows.insert(2, ("components", report.rank, report.pca))
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    return _table(rows, ("", "choice", "why")) + notes


def _data(opened: Opened, report: Report) -> str:
    schema = opened.model.schema
    words = f"<p>{report.rows:,} rows with a target"
    words += f" and {report.unlabelled:,} without" if report.unlabelled else ""
    words += f", {report.columns:,} columns of numbers. Scaling: {escape(report.scaling)}.</p>"
    if not schema.columns:
        return words
    rows: list[tuple[Any, ...]] = []
    for column in schema.columns[:60]:
        values = ", ".join(map(str, (column.categories or ())[:12])) + (
            " …" if len(column.categories or ()) > 12 else ""
        )
        gap = "refused" if column.fill is None else f"filled with {column.fill}"[:60]
        rows.append((column.name, column.kind, values, gap, column.numbers))
    more = f'<p class="soft">and {len(schema.columns) - 60} more columns</p>' if len(schema.columns) > 60 else ""
    return words + _table(rows, ("column", "kind", "values", "missing", "numbers"), 1) + more


def _surface(report: Report) -> str:
    surface = report.surface
    assert surface is not None
    scale = max(float(surface.baseline.sum()), 1e-300)
    order = np.argsort(surface.penalties)
    penalties = surface.penalties[order].tolist()
    what = "features" if report.rank is None else "components"
    shown = surface.sizes if len(surface.sizes) <= 6 else [surface.sizes[i] for i in _spaced(len(surface.sizes), 6)]
    series = []
    for size in shown:
        at = surface.sizes.index(size)
        folds = surface.by_fold[:, at, order] / scale
        spread = folds.std(axis=0, ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else np.zeros(len(order))
        last = size == shown[-1]
        error = (surface.mean[at][order] / scale).tolist()
        series.append(charts.Line(f"{size:,} {what}", penalties, error, spread.tolist() if last else None))
    chart = charts.lines(
        "Held-out error over penalties",
        "penalty",
        "error, share of the variance",
        series,
        log_x=True,
        mark=(report.penalty, f"chosen: {report.penalty:.3g}"),
        words=f"The least is {report.error:.4f} at penalty {report.penalty:.3g}.",
    )
    words = (
        "<p>Held-out squared error as a share of the variance of the target; the band is the standard error over "
        "folds.</p>"
    )
    if len(surface.sizes) < 2:
        return words + chart
    best = [share(surface, size) for size in surface.sizes]
    ends = f"From {best[0]:.4f} with {surface.sizes[0]:,} to {best[-1]:.4f} with {surface.sizes[-1]:,}."
    curve = charts.lines(
        f"Held-out error over {what}",
        f"number of {what}",
        "error at its best penalty",
        [charts.Line("error", [float(size) for size in surface.sizes], best)],
        log_x=True,
        words=ends,
    )
    return f"{words}{chart}<p>Whether more {what} would help: {ends}</p>{curve}"


def _spaced(n: int, most: int) -> list[int]:
    return sorted({round(i * (n - 1) / (most - 1)) for i in range(most)})


def _kernels(report: Report) -> str:
    assert report.search is not None
    tried = [c for c in report.search.tried if np.isfinite(c.error)][:16]
    names = [f"{_short(str(c.kernel))}, scaling {c.scaling}, {c.rows:,} rows" for c in tried]
    errors = [c.error for c in tried]
    words = f"The best was {names[0]} with {errors[0]:.4f}." if names else ""
    return (
        "<p>Held-out error on a sample as a share of the variance; less is better. Later rounds see more rows.</p>"
        + charts.bars("Kernels tried on a sample", names, errors, lambda v: f"{v:.4f}", words)
    )


def _members(report: Report) -> str:
    assert report.selection is not None
    rows = [
        (m.kernel, f"{m.selected} of {m.n_features}", "" if m.weight is None else f"{m.weight:.4g}", f"{m.share:.4f}")
        for m in report.selection.members
    ]
    return _table(rows, ("kernel", "features", "weight", "share of the variance"), 1)


def _map_error(opened: Opened, source: Source) -> str:
    sample = source.with_schema(opened.model.schema).settle().sample(_PAIRS, 1)
    found = kernel_error(opened.model.drawn, opened.model.scaling.apply(sample.X), max_rows=_PAIRS)
    return (
        f"<p>On pairs of {found.rows:,} rows that the map has not seen, its relative error is "
        f"<b>{found.relative:.3g}</b>, between {found.low:.3g} and {found.high:.3g} with a confidence of "
        f"{found.confidence:.0%}. The mean absolute error is {found.mean:.3g}, the largest {found.max:.3g}.</p>"
    )


def _truth(truth: Truth) -> Iterator[tuple[str, str]]:
    if truth.classes is not None:
        labels = [str(label) for label in truth.classes.labels]
        counts = truth.classes.counts
        totals = np.maximum(counts.sum(axis=1), 1e-300)
        rows = [
            (name, f"{precision:.4f}", f"{recall:.4f}", f"{n:,.6g}")
            for name, precision, recall, n in zip(
                labels, truth.classes.precision, truth.classes.recall, counts.sum(axis=1), strict=True
            )
        ]
        if len(rows) > 200:
            rows = rows[:200]
        square = ""
        if len(labels) <= _SQUARE:
            square = charts.grid(
                "Confusion in percent: true class by row, predicted class by column",
                labels,
                (counts / totals[:, None]).tolist(),
                f"{np.trace(counts) / counts.sum():.1%} of the weight is on the diagonal.",
            )
        yield "Classes, on held-out rows", square + _table(rows, ("class", "precision", "recall", "rows"), 3)
        if truth.classes.reliability is not None:
            said, came, weight = truth.classes.reliability
            gap = float(np.average(np.abs(said - came), weights=weight))
            chart = charts.lines(
                "Calibration",
                "probability that was predicted",
                "share that came true",
                [charts.Line("classes", said.tolist(), came.tolist())],
                diagonal=True,
                words=f"On average the two differ by {gap:.3f}.",
            )
            yield (
                "Calibration, on held-out rows",
                f"<p>Predicted and true shares differ by {gap:.3f} on average.</p>{chart}",
            )
        return
    assert truth.residuals is not None
    edges, counts = truth.residuals
    spread = f"The root mean square is {truth.scores['rmse']:.4g}."
    yield (
        "Residuals, on held-out rows",
        charts.columns("Residuals", "prediction − truth", "rows", edges.tolist(), counts.tolist(), spread)
        + f"<p>{spread}</p>",
    )


def _spectrum(opened: Opened, report: Report) -> str:
    assert opened.moments is not None
    prepared = Prepared(opened.moments.total(), FLOAT32_NOISE if opened.model.dtype == "float32" else 0.0)
    values = prepared.eigenvalues[::-1]
    keep = values > 1e-12 * max(float(values[0]), 1e-300)
    places = np.unique(np.geomspace(1, max(1, int(keep.sum())), 80).astype(int))
    freedom = prepared.degrees_of_freedom(report.penalty)
    chart = charts.lines(
        "Eigenvalues of the scatter of the features",
        "number",
        "eigenvalue",
        [charts.Line("eigenvalues", places.astype(float).tolist(), values[places - 1].tolist(), dots=False)],
        log_x=True,
        log_y=True,
        words=f"At the chosen penalty the model has {freedom:.1f} effective degrees of freedom.",
    )
    return (
        f"<p>At the chosen penalty the model has <b>{freedom:,.1f}</b> effective degrees of freedom of "
        f"{report.n_features + 1:,}.</p>{chart}"
    )


def _times(report: Report) -> str:
    names, seconds = list(report.seconds), list(report.seconds.values())
    words = f"{sum(seconds):.1f} seconds in all."
    return f"<p>{words}</p>" + charts.bars("Seconds of each stage", names, seconds, lambda v: f"{v:.2f} s", words)
