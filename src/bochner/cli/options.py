"""Options that several commands share, and what they mean."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bochner.sources import Source

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size(value: Any) -> int:
    """Bytes: 4GB, 512M, 1.5g."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", str(value).lower())
    if not found:
        raise click.BadParameter(f"{value!r} is no size such as 4GB or 512M")
    return int(float(found[1]) * _UNITS[found[2]])


def columns(value: str) -> list[str | int]:
    """Columns, by commas: names, or numbers where columns have none."""
    return [int(word) if re.fullmatch(r"-?\d+", word) else word for word in value.split(",") if word]


def number(*words: str, whole: bool = False) -> Callable[[Any], Any]:
    """A number, or one of some words."""

    def converted(value: Any) -> Any:
        if value in words:
            return value
        try:
            return int(value) if whole else float(value)
        except ValueError:
            kind = "a whole number" if whole else "a number"
            raise click.BadParameter(f"{value!r} is neither {kind} nor {' or '.join(words)}") from None

    converted.__name__ = "number or word"
    return converted


_DATA = (
    click.argument("data", nargs=-1, required=True),
    click.option("--features", type=columns, help="Columns of the rows, by commas: these only."),
    click.option("--drop", type=columns, help="Columns that are left out."),
    click.option("--weight", help="Column of weights."),
    click.option("--group", help="Column of groups, which stay together in cross-validation."),
    click.option("--categories", type=columns, help="Columns of numbers that are categories all the same."),
    click.option(
        "--missing",
        type=number("refuse", "mean", "median", "most_frequent"),
        default="refuse",
        show_default=True,
        help="What stands in for a missing number: refuse, mean, median, most_frequent or a number.",
    ),
    click.option("--format", type=click.Choice(["parquet", "ipc", "csv", "libsvm", "npy"]), help="Of the files."),
    click.option("--delimiter", help="What separates the columns of text."),
    click.option("--columns", type=int, help="How many columns libsvm files have."),
)
TARGET = click.option("--target", type=columns, help="Column that is predicted; several by commas. Not for libsvm.")
THREADS = click.option("--threads", type=int, help="All cores without it.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="No progress.")
JSON = click.option("--json", "as_json", is_flag=True, help="Results as JSON on standard output.")
OUTPUT = click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="File to write.")


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says which rows to read."""
    for option in reversed(_DATA):
        command = option(command)
    return command


def source_of(data: tuple[str, ...], target: Any = None, **options: Any) -> Source:
    """The rows that a command names."""
    from bochner.sources.scan import scan

    names = ("features", "drop", "weight", "group", "categories", "missing", "format", "delimiter")
    given = {name: options[name] for name in names if options.get(name) is not None}
    given["n_features"] = options.get("columns")
    target = target[0] if isinstance(target, list) and len(target) == 1 else target
    return scan(data[0] if len(data) == 1 else list(data), target, **given)


def writable(path: str) -> None:
    """Refuse, before work begins, a file that could not be written at its end."""
    import os
    from pathlib import Path

    from bochner.errors import FileError

    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path} cannot be written: the folder {folder} is not writable")


def tell(result: dict[str, Any], text: str, as_json: bool) -> None:
    """A result on standard output."""
    print(json.dumps(result, ensure_ascii=False, default=str) if as_json else text, file=sys.stdout)
