"""Which files are meant, in which order; what tells their content; how a damaged one is reported."""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from glob import glob
from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

from bochner.errors import DataError, MissingDependency

T = TypeVar("T")

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "ipc",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".tsv": "csv",
    ".npy": "npy",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".txt": "libsvm",
}
_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
PACKED = tuple(_OPEN)
#: formats of text, which may be packed
_TEXT = ("csv", "libsvm")
#: bytes at either end of a file that stand for its content
_ENDS = 1 << 16


def is_path(where: Any) -> bool:
    """Whether something names files: a path, or a list of paths."""
    if isinstance(where, (list, tuple)):
        return bool(where) and all(isinstance(item, (str, PathLike)) for item in where)
    return isinstance(where, (str, PathLike))


def natural(path: Path) -> tuple[Any, ...]:
    """A key that sorts part-2 before part-10: runs of digits compare as numbers.

    >>> [path.name for path in sorted(map(Path, ["b10.csv", "b9.csv", "a.csv"]), key=natural)]
    ['a.csv', 'b9.csv', 'b10.csv']
    """
    parts = re.split(r"([0-9]+)", str(path))
    return (*((int(part) if i % 2 else part) for i, part in enumerate(parts)), str(path))


def format_of(path: Path) -> str | None:
    """The format that a file's name stands for, or None."""
    packed = path.suffix.lower() in PACKED
    kind = FORMATS.get((path.with_suffix("") if packed else path).suffix.lower())
    return None if packed and kind not in _TEXT else kind


def find(where: Any, format: str | None = None) -> tuple[str, list[Path]]:
    """The format and the files of a path, folder, glob or list of them; ``format`` where names do not tell it.

    A folder stands for all files below it whose names end as a format does (names that begin with "." or
    "_" are left out), and like a glob it comes in natural order; a list keeps its own.  Empty files are
    left out.
    """
    if format is not None and format not in FORMATS.values():
        raise DataError(f"format is one of {', '.join(dict.fromkeys(FORMATS.values()))}; got {format!r}")
    items = where if isinstance(where, (list, tuple)) else [where]
    paths = [path for item in items for path in _expanded(Path(fspath(item)).expanduser(), format)]
    kinds: dict[str, Path] = {}
    for path in paths:
        kind = format or format_of(path)
        if kind is None:
            raise DataError(
                f"{path} has no known format; the names of files end in {_endings()}, or say which with format=…"
            )
        kinds.setdefault(kind, path)
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise DataError(f"{first} is {one} and {second} is {other}; give files of one format")
    full = [path for path in paths if path.stat().st_size > 0]
    if not full:
        raise DataError(f"there are no rows: {', '.join(map(str, paths[:3]))} holds nothing")
    return next(iter(kinds)), full


def _expanded(path: Path, format: str | None) -> list[Path]:
    if path.is_dir():
        inside = (p for p in path.rglob("*") if p.is_file() and (format or format_of(p)) is not None)
        found = [p for p in inside if not any(part[0] in "._" for part in p.relative_to(path).parts)]
        if not found:
            raise DataError(f"the folder {path} holds no file whose name ends in {_endings()}")
        return sorted(found, key=natural)
    if path.is_file():
        return [path]
    matches = [Path(name) for name in glob(str(path), recursive=True)] if re.search(r"[*?[]", str(path)) else []
    found = sorted((match for match in matches if match.is_file()), key=natural)
    if not found:
        raise DataError(f"there is no file {path}; check the path")
    return found


def _endings() -> str:
    return f"{', '.join(FORMATS)} (text also with {' or '.join(PACKED)})"


def content(path: Path) -> dict[str, Any]:
    """Facts of a file that survive a copy and change with its content: size, and a digest of both ends."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        digest = sha256(file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        digest.update(file.read(_ENDS))
    return {"bytes": size, "ends": digest.hexdigest()}


def unpacked(path: Path) -> Any:
    """A file of bytes, without the packing that its name tells of."""
    return _OPEN.get(path.suffix.lower(), open)(path, "rb")


def arrow() -> Any:
    """The package pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependency("tables are read with pyarrow; pip install 'bochner[io]'") from None
    return pyarrow


@contextmanager
def reading(name: str, explain: Callable[[str], DataError | None] = lambda text: None) -> Generator[None]:
    """What goes wrong in here becomes one sentence that names the file.

    ``explain`` may turn the reader's own words into a better error.
    """
    try:
        yield
    except DataError:
        raise
    except (OSError, EOFError, ValueError, KeyError, IndexError, NotImplementedError, MemoryError, zlib.error) as error:
        text = " ".join(str(error).split())
        if "CRC checksum" in text:
            raise DataError(f"{name} fails a checksum ({text}): it is damaged; write or fetch it again") from error
        raise explain(text) or DataError(f"{name} cannot be read: {text[:300] or type(error).__name__}") from error


def guarded(items: Generator[T], name: str, explain: Callable[[str], DataError | None]) -> Generator[T]:
    """The same items; an error of the reader names the file, and the reader is closed at the end."""
    with closing(items):
        while True:
            with reading(name, explain):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item


@contextmanager
def placed(name: str, at: int, first: int) -> Generator[None]:
    """An error about rows names their file, and the row by its number in the source and in the file.

    ``at`` is the number of the first row in the file, ``first`` that in the source.
    """
    try:
        yield
    except DataError as error:
        found = error.located(first, None, name)
        if error.row is None or at == first:
            raise found from None
        number = first + error.row
        both = f"row {number} (row {at + error.row} of the file)"
        raise type(found)(re.sub(rf"\brow {number}\b", both, str(found), count=1), number, found.column) from None
