"""Named arrays and a description in one file: written whole or not at all, read with suspicion.

The format is that of safetensors: the length of a header, the header as JSON, then the bytes of the arrays.  Its
one metadata key holds the description and a SHA-256 digest of everything, so that equal contents are equal bytes
and a changed byte is noticed.  A digest shows damage; it does not show who wrote a file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bochner.errors import FileError

_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_KEY = "bochner"
#: a longer header is refused before it is read
LONGEST_HEADER = 1 << 28


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` when it is complete and on the disk; until then, nothing has changed."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        try:
            with open(draft, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}") from None


def _sync_folder(folder: Path) -> None:
    """Make a rename last, where the system lets a folder be synchronised."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: str | os.PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays of numbers and a description that JSON can hold."""
    # Larger items first, so that every array begins at a multiple of its item.
    kept = {name: _plain(name, array) for name, array in arrays.items()}
    order = sorted(kept, key=lambda name: (-kept[name].dtype.itemsize, name))
    header: dict[str, Any] = {}
    end = 0
    for name in order:
        start, end = end, end + kept[name].nbytes
        header[name] = _entry(kept[name], start, end)
    text = json.dumps(about, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    digest = _digest(text, header, (kept[name] for name in order))
    note = {"about": text, "sha256": digest}
    whole = {"__metadata__": {_KEY: json.dumps(note, ensure_ascii=False, separators=(",", ":"))}, **header}
    encoded = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > LONGEST_HEADER:
        raise FileError(f"{path}: a description of {len(encoded)} bytes is longer than a file may have")
    with replacing(path) as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for name in order:
            file.write(_bytes(kept[name]))


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Little-endian and contiguous."""
    little = np.asarray(array)
    little = np.ascontiguousarray(little.astype(little.dtype.newbyteorder("<"), copy=False)).reshape(little.shape)
    if little.dtype not in _NAMES or name == "__metadata__":
        raise FileError(f"the array {name!r} of dtype {little.dtype} cannot be kept in a file")
    return little


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8).data)


def _entry(array: NDArray[Any], start: int, end: int) -> dict[str, Any]:
    return {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}


def _digest(text: str, header: Mapping[str, Any], arrays: Iterator[NDArray[Any]]) -> str:
    found = hashlib.sha256(text.encode())
    found.update(json.dumps(header, ensure_ascii=False).encode())
    for array in arrays:
        found.update(_bytes(array))
    return found.hexdigest()


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description and the arrays that ``write`` wrote, or one error that says what is wrong with the file."""
    try:
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except _Damaged as error:
        raise FileError(f"{path} {error}") from None


class _Damaged(Exception):
    """What is wrong, to follow the name of the file."""


def _read(file: IO[bytes], size: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= size - 8:
        raise _Damaged("is not a file of bochner, or its end is missing")
    if length > LONGEST_HEADER:
        raise _Damaged(f"has a header of {length} bytes, more than any file of bochner")
    header = _json(file.read(length))
    note = _note(header.pop("__metadata__", None))
    spans = sorted((_span(name, entry, size - 8 - length), name) for name, entry in header.items())
    ends = [0, *(end for (_, end), _ in spans)]
    if [start for (start, _), _ in spans] != ends[:-1] or ends[-1] != size - 8 - length:
        raise _Damaged("does not have the arrays that its header names: its end is missing, or it was changed")
    arrays = {}
    for (start, end), name in spans:
        flat = np.frombuffer(file.read(end - start), dtype=_TYPES[header[name]["dtype"]])
        if flat.nbytes != end - start:
            raise _Damaged("became shorter while it was read")
        arrays[name] = flat.reshape(header[name]["shape"])
    if _digest(note["about"], {name: header[name] for _, name in spans}, iter(arrays.values())) != note["sha256"]:
        raise _Damaged("is damaged: its contents do not have the digest that was written with them")
    return _json(note["about"]), arrays


def _note(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not isinstance(metadata.get(_KEY), str):
        raise _Damaged("holds arrays but was not written by bochner")
    note = _json(metadata[_KEY])
    if note.keys() != {"about", "sha256"} or not all(isinstance(value, str) for value in note.values()):
        raise _Damaged("has a description of an unknown form")
    return note


def _json(text: str | bytes) -> dict[str, Any]:
    """A JSON object without keys that come twice and without numbers that are none."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key comes twice")
        return dict(pairs)

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not a number")

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"has a header that is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise _Damaged("has a header that is not a JSON object")
    return value


def _span(name: str, entry: Any, room: int) -> tuple[int, int]:
    """Where the bytes of an array lie, after a check that they are as many as its shape says."""
    right = isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}
    if right:
        shape, offsets = entry["shape"], entry["data_offsets"]
        numbers = [*shape, *offsets] if isinstance(shape, list) and isinstance(offsets, list) else [None]
        whole = all(type(n) is int and 0 <= n <= max(room, 1 << 40) for n in numbers)
        right = whole and len(offsets) == 2 and len(shape) <= 8 and entry["dtype"] in _TYPES
    if right:
        start, end = offsets
        right = start <= end and math.prod(shape) * np.dtype(_TYPES[entry["dtype"]]).itemsize == end - start
    if not right:
        raise _Damaged(f"has a wrong entry for the array {name!r}")
    return start, end
