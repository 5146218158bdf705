"""``verify`` and ``inspect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bochner.cli.options import JSON, tell

if TYPE_CHECKING:
    from bochner.sources import Source

_OURS = (".bochner", ".moments", ".checkpoint")


@click.command(epilog="\b\nExample:\n  bochner verify model.bochner data/*.parquet")
@click.argument("files", nargs=-1, required=True)
@JSON
def verify(files: tuple[str, ...], as_json: bool) -> None:
    """Read FILES whole and say whether they are what was written; the exit code is 1 where one is not."""
    from bochner.errors import BochnerError

    results: list[dict[str, Any]] = []
    for file in files:
        try:
            results.append({"file": file, "sound": True, "what": _checked(file)})
        except (BochnerError, OSError) as error:
            results.append({"file": file, "sound": False, "what": str(error)})
    text = "\n".join(f"{'sound' if r['sound'] else 'WRONG'}  {r['file']}: {r['what']}" for r in results)
    tell({"files": results}, text, as_json)
    if not all(result["sound"] for result in results):
        sys.exit(1)


def _checked(file: str) -> str:
    """What a sound file is; an error where it is not sound."""
    if _is_ours(file):
        from bochner import tensors

        about, arrays = tensors.read(file)
        if about.get("what") == "model":
            from bochner.saved import revived

            revived(file, about, arrays)
        return f"a {about.get('what')} whose contents have the digest that was written with them"
    from bochner.sources.files import find
    from bochner.sources.pages import has_checksums

    kind, paths = find(file)
    rows = sum(len(chunk) for chunk in _opened(file, kind).chunks())
    if kind != "parquet":
        return f"{rows:,} rows of numbers that can be read; {kind} files carry no checksums"
    bare = [str(path) for path in paths if not has_checksums(path)]
    if bare:
        return (
            f"{rows:,} rows that can be read, but {', '.join(bare)} carries no page checksums: a flipped bit would "
            "not be seen; write with write_page_checksum=True"
        )
    return f"{rows:,} rows, every page with its checksum"


def _opened(file: str, kind: str) -> Source:
    """The rows of a file; gaps are no damage."""
    from bochner.sources.scan import scan

    return (scan(file, missing=0.0) if kind in ("parquet", "ipc", "csv") else scan(file)).settle()


def _is_ours(file: str) -> bool:
    return Path(file).suffix in _OURS


@click.command(epilog="\b\nExample:\n  bochner inspect model.bochner")
@click.argument("file")
@JSON
def inspect(file: str, as_json: bool) -> None:
    """Say what is in FILE: a model, statistics, a checkpoint, or rows."""
    result = _model(file) if _is_ours(file) else _rows(file)
    tell(result, "\n".join(f"{name:12s} {_line(value)}" for name, value in result.items()), as_json)


def _line(value: Any) -> str:
    return str(value).replace("\n", "\n" + " " * 13)


def _model(file: str) -> dict[str, Any]:
    from bochner import tensors

    about, arrays = tensors.read(file)
    size = sum(array.nbytes for array in arrays.values())
    found: dict[str, Any] = {"file": file, "what": about.get("what"), "version": about.get("version"), "bytes": size}
    if about.get("what") == "model":
        from bochner.saved import revived

        model = revived(file, about, arrays)
        names = model.schema.names
        found |= {
            "columns": model.schema.d if names is None else ", ".join(names[:20]) + (" …" if len(names) > 20 else ""),
            "scaling": model.scaling.kind,
            "kernel": str(model.drawn.kernel),
            "map": f"{type(model.drawn.map).__name__}, {model.drawn.width} features, seed {model.drawn.seed.root}",
            "predicts": str(model.targets.to_json())[:200],
            "loss": model.loss,
            "precision": model.dtype,
            "outcome": model.solution.outcome.value,
            "updatable": any(name.startswith("moments/") for name in arrays),
        }
        report = about.get("more", {}).get("report")
        if report:
            from bochner.estimators.chosen import Report

            found["report"] = Report.from_json(report)
    elif about.get("what") == "moments":
        from bochner.saved import load_moments

        moments, more = load_moments(file)
        parts = {("unlabelled" if key < 0 else f"fold {key}"): p.count for key, p in moments.parts.items()}
        found |= {"features": moments.width, "outputs": moments.outputs, "rows": parts, "kept with it": more}
    else:
        found["identity"] = about.get("identity")
    return found


def _rows(file: str) -> dict[str, Any]:
    from bochner.sources.files import find

    kind, paths = find(file)
    source = _opened(file, kind)
    schema = source.schema
    columns: Any = schema.d
    if schema.columns:
        columns = [f"{c.name} ({c.kind}{f' of {c.numbers}' if c.numbers != 1 else ''})" for c in schema.columns]
    return {"file": file, "what": kind, "files": len(paths), "rows": source.n_rows, "columns": columns}
