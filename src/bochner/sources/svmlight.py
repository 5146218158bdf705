"""Text in the format of svmlight and LIBSVM → numbers: whole blocks at once, and line by line where that fails.

A line is ``label [qid:group] index:value index:value … [# comment]``, with increasing indices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float64
from bochner.errors import DataError

Int64 = NDArray[np.int64]

_NEWLINE, _COLON = 10, 58
#: every number on a line of its own
_APART = bytes.maketrans(b" :\t\r", b"\n\n\n\n")
_COMMENT = re.compile(rb"#[^\n]*")
_QID = re.compile(rb"^([ \t]*[^ \t\r\n:]+[ \t]+)qid:([0-9]+)(?=[ \t\r\n])", re.MULTILINE)
#: whole numbers below it are floats
_EXACT = 2.0**53
#: digits of an index that a light pass reads
_DIGITS = 10


@dataclass(frozen=True)
class Parsed:
    """Rows of text: a label, and entries ``indices[indptr[i] : indptr[i + 1]]`` as the file numbers them."""

    labels: Float64
    indptr: Int64
    indices: Int64
    values: Float64
    group: Int64 | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, start: int, stop: int) -> Parsed:
        """Consecutive rows."""
        first, last = self.indptr[start], self.indptr[stop]
        group = None if self.group is None else self.group[start:stop]
        entries = slice(first, last)
        indptr = self.indptr[start : stop + 1] - first
        return Parsed(self.labels[start:stop], indptr, self.indices[entries], self.values[entries], group)


@dataclass(frozen=True)
class Place:
    """Where a block of text stands, for errors: the file, and the numbers of its first line and row."""

    name: str
    line: int = 1
    row: int = 0


@dataclass(frozen=True)
class Bounds:
    """Which indices may occur: from ``lowest`` (0 or 1) up to below ``beyond``."""

    lowest: int = 0
    beyond: int | None = None


def parse(block: bytes, place: Place, bounds: Bounds = Bounds(), grouped: bool = False) -> Parsed:
    """The rows of whole lines of text; with ``grouped``, each has a qid.

    >>> parse(b"1 1:0.5 4:2\\n-1 2:3\\n", Place("a.svm")).indices.tolist()
    [1, 4, 2]
    """
    found = _at_once(block, bounds, grouped)
    return _line_by_line(block, place, bounds, grouped) if found is None else found


def survey(block: bytes) -> tuple[int, int, int]:
    """How many rows whole lines of text hold, and their least and largest index (that of no entry: 2⁶³ − 1, −1)."""
    text, _ = _plain(block)
    bytes_ = np.frombuffer(text, np.uint8)
    starts = np.flatnonzero(bytes_ == _NEWLINE)[:-1] + 1
    if (bytes_[starts] <= 32).any():
        starts = _tokens(bytes_)[1]
    colons = np.flatnonzero(bytes_ == _COLON)
    edges = np.searchsorted(colons, np.append(starts, len(bytes_)))
    filled = np.flatnonzero(np.diff(edges) > 0)
    if not len(filled):
        return len(starts), np.iinfo(np.int64).max, -1
    first, last = (_whole_before(bytes_, colons[at]) for at in (edges[filled], edges[filled + 1] - 1))
    return len(starts), int(first.min()), int(last.max())


def _plain(block: bytes) -> tuple[bytes, list[bytes]]:
    """The text between line ends, without comments and qids; and the qids."""
    qids: list[bytes] = []
    if b"#" in block:
        block = _COMMENT.sub(b"", block)
    if b"qid:" in block:
        qids = [match[2] for match in _QID.finditer(block)]
        block = _QID.sub(rb"\1", block)
    return b"\n" + block + (b"" if block.endswith(b"\n") else b"\n"), qids


def _tokens(bytes_: NDArray[np.uint8]) -> tuple[Int64, Int64, Int64]:
    """Where numbers begin; where lines that hold some begin; the place of each such line's first number."""
    apart = (bytes_ <= 32) | (bytes_ == _COLON)
    starts = np.flatnonzero(apart[:-1] & ~apart[1:]) + 1
    lines = np.flatnonzero(bytes_ == _NEWLINE)
    firsts = np.searchsorted(starts, lines)
    filled = np.flatnonzero(np.diff(firsts) > 0)
    return starts, lines[filled] + 1, firsts[filled]


def _whole_before(bytes_: NDArray[np.uint8], ends: Int64) -> Int64:
    """The whole numbers whose digits end before these places."""
    value, unit, inside = np.zeros(len(ends), np.int64), 1, np.ones(len(ends), bool)
    for back in range(1, _DIGITS + 1):
        digit = bytes_[ends - back].astype(np.int64) - 48
        inside &= (digit >= 0) & (digit < 10)
        if not inside.any():
            break
        value += np.where(inside, digit * unit, 0)
        unit *= 10
    return value


def _at_once(block: bytes, bounds: Bounds, grouped: bool) -> Parsed | None:
    """All rows by array operations; None where anything at all is unusual, so that a line can be blamed."""
    text, qids = _plain(block)
    bytes_ = np.frombuffer(text, np.uint8)
    starts, _, firsts = _tokens(bytes_)
    rows = len(firsts)
    if grouped and len(qids) != rows:
        return None
    numbers = _numbers(text.translate(_APART), len(starts))
    if numbers is None:
        return None
    entry = np.ones(len(starts), bool)
    entry[firsts] = False
    # Between label and line end, every second number follows a colon, and nothing else does.
    after_colon = bytes_[starts - 1] == _COLON
    paired = after_colon[entry]
    count = len(paired) // 2
    if len(paired) % 2 or not paired[1::2].all() or paired[::2].any() or after_colon[firsts].any():
        return None
    ends = starts[entry]
    ends[1::2] -= 1  # the colon before a value ends an index
    if int((bytes_ == _COLON).sum()) != count or (bytes_[ends[1::2] - 1] <= 32).any():
        return None
    if count and np.logical_or.reduceat(bytes_ - np.uint8(48) > 9, ends)[::2].any():
        return None  # an index is made of digits
    entries = numbers[entry]
    if count and entries[::2].max() >= _EXACT:
        return None
    indices, values, labels = entries[::2].astype(np.int64), entries[1::2], numbers[firsts]
    indptr = np.append((firsts - np.arange(rows)) // 2, count)
    if not np.isfinite(values).all() or np.isinf(labels).any():
        return None
    rising = np.diff(indices) > 0
    inner = indptr[1:-1]
    rising[inner[(inner > 0) & (inner < count)] - 1] = True
    if not rising.all():
        return None
    if count and (indices.min() < bounds.lowest or (bounds.beyond is not None and indices.max() >= bounds.beyond)):
        return None
    return Parsed(labels, indptr, indices, values, np.array(qids, dtype=np.int64) if grouped else None)


def _numbers(text: bytes, count: int) -> Float64 | None:
    """The numbers of lines of one number each; None where some are none, or there are more or fewer."""
    if count == 0:
        return np.empty(0)
    try:
        import pyarrow as pa
        import pyarrow.csv as csv
    except ImportError:
        return _numbers_of_numpy(text, count)
    try:
        column = csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(use_threads=False, column_names=["x"], block_size=len(text) + 1),
            csv.ParseOptions(delimiter="\x01", quote_char=False),
            csv.ConvertOptions(column_types={"x": pa.float64()}, null_values=[]),
        )["x"]
    except pa.ArrowInvalid:
        return None
    return column.to_numpy() if len(column) == count else None


def _numbers_of_numpy(text: bytes, count: int) -> Float64 | None:
    """The same without pyarrow."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = np.fromstring(text.decode("ascii"), sep="\n")
        except (ValueError, DeprecationWarning):
            return None
    return found if len(found) == count else None


def _line_by_line(block: bytes, place: Place, bounds: Bounds, grouped: bool) -> Parsed:
    """The same rows, slowly; the first line that is wrong is named."""
    labels, values = list[float](), list[float]()
    indices, indptr, group = list[int](), [0], list[int]()
    for offset, raw in enumerate(block.split(b"\n")):
        tokens = raw.split(b"#", 1)[0].decode("utf-8", errors="replace").split()
        if not tokens:
            continue
        line = _Line(place.name, place.line + offset, place.row + len(labels))
        labels.append(line.label(tokens[0]))
        del tokens[0]
        if tokens and tokens[0].startswith("qid:"):
            group.append(line.whole(tokens[0][4:], tokens[0]))
            del tokens[0]
        if grouped and len(group) != len(labels):
            raise line.wrong("has no qid, but group='qid' asks for one on every line")
        before: int | None = None
        for token in tokens:
            before, value = line.entry(token, before, bounds)
            indices.append(before)
            values.append(value)
        indptr.append(len(indices))
    return Parsed(
        np.array(labels, dtype=np.float64),
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(group, dtype=np.int64) if grouped else None,
    )


@dataclass(frozen=True)
class _Line:
    """One line, and what can be wrong with it."""

    file: str
    number: int
    row: int

    def wrong(self, what: str, column: int | None = None) -> DataError:
        return DataError(f"{self.file}: line {self.number} (row {self.row}) {what}", self.row, column)

    def label(self, token: str) -> float:
        if "," in token:
            raise self.wrong(f"has several labels ({token[:40]}); give each row one label, or one file for each label")
        try:
            value = float(token)
        except ValueError:
            raise self.wrong(f"has the label {token[:40]!r}, which is not a number; write labels as numbers") from None
        if np.isinf(value):
            raise self.wrong(f"has the label {token[:40]}; labels are finite, or nan where they are missing")
        return value

    def whole(self, digits: str, token: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,18}", digits) is None:
            raise self.wrong(f"holds {token[:40]!r}, whose part before the value is not a whole number; mend the line")
        return int(digits)

    def entry(self, token: str, before: int | None, bounds: Bounds) -> tuple[int, float]:
        name, colon, text = token.partition(":")
        if not colon or not name or not text:
            raise self.wrong(f"holds {token[:40]!r}, which is not index:value; mend the line")
        index = self.whole(name, token)
        if index < 0:
            raise self.wrong(f"has the negative index {index}; indices count from 0 or 1", index)
        if index < bounds.lowest:
            raise self.wrong("has the index 0, but indices are said to count from 1; scan with zero_based=True", index)
        if bounds.beyond is not None and index >= bounds.beyond:
            raise self.wrong(
                f"has the index {index}, but the largest known one is {bounds.beyond - 1}; "
                "name the number of columns with n_features=… when the model is fitted",
                index,
            )
        if before is not None and index <= before:
            said = f"has the index {index} twice" if index == before else f"has the index {index} after {before}"
            raise self.wrong(f"{said}; the indices of a line must increase", index)
        try:
            value = float(text)
        except ValueError:
            raise self.wrong(f"holds {token[:40]!r}, whose value is not a number; mend the line", index) from None
        if not np.isfinite(value):
            raise self.wrong(f"has the value {text[:40]} in column {index}; remove or fill such values first", index)
        return index, value


def joined(parts: list[Parsed]) -> Parsed:
    """Rows one after another."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.indices) for part in parts)])

    def all_of(name: str) -> Any:
        return None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])

    indptr = np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(parts, ends, strict=False))])
    return Parsed(all_of("labels"), indptr, all_of("indices"), all_of("values"), all_of("group"))
