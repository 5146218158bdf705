"""Columns as one chooses them: positions, names, and ranges of either."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bochner.errors import DataError, KernelError

_PLAIN = r"[^\W\d]\w*(:[^\W\d]\w*)?|(-?\d+)?:(-?\d+)?"
#: ranges of positions up to this length are kept position by position, so that equal choices are equal
_EXPANDED = 1 << 16


def is_plain(column: str) -> bool:
    """Whether the text form can show a name or a range without quotes."""
    return re.fullmatch(_PLAIN, column) is not None


def selection(columns: Any) -> tuple[int | str, ...]:
    """What ``k.on`` accepts, as items of ``On.columns``."""
    if isinstance(columns, slice):
        if columns.step not in (None, 1):
            raise KernelError("a slice of columns cannot have a step; give a list of positions")
        start = "" if columns.start is None else columns.start
        return (f"{start}:{'' if columns.stop is None else columns.stop}",)
    if isinstance(columns, str):
        return tuple(_item(part.strip()) for part in columns.split(","))
    return tuple(_item(c) for c in (columns if np.iterable(columns) else (columns,)))


def _item(column: Any) -> int | str:
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        return int(column)
    if not isinstance(column, str) or not column:
        raise KernelError(f"a column is a position, a name or a range, not {column!r}")
    return int(column) if re.fullmatch(r"-?\d{1,18}", column, re.ASCII) else column


def expanded(item: int | str) -> Sequence[int | str]:
    """The positions of a closed range; anything else is left to the rows."""
    match = re.fullmatch(r"(\d{1,18}):(\d{1,18})", item, re.ASCII) if isinstance(item, str) else None
    if match is None:
        return (item,)
    start, stop = int(match[1]), int(match[2])
    if start >= stop:
        raise KernelError(f"the range of columns {item} is empty")
    return range(start, stop) if stop - start <= _EXPANDED else (item,)


def positions(columns: Sequence[int | str], names: Sequence[str] | None, d: int) -> tuple[int, ...]:
    """Positions of the chosen columns among d; columns without names are called f0, f1, …"""
    if all(isinstance(item, int) for item in columns):
        names = ()  # wide rows need no names then
    names = [f"f{j}" for j in range(d)] if names is None else list(names)
    known = {name: j for j, name in enumerate(names)}
    twice = {name for name in names if known[name] != names.index(name)} if len(known) < len(names) else set()
    found: list[int] = []
    for item in columns:
        if isinstance(item, int):
            if not -d <= item < d:
                raise DataError(f"the kernel asks for column {item}, the rows have {d}", column=item)
            found.append(item % d)
        elif ":" in item and item not in known:
            found.extend(_between(item, known, twice, d))
        else:
            found.append(_place(item, known, twice, item))
    return tuple(found)


def _between(item: str, known: dict[str, int], twice: set[str], d: int) -> range:
    """The positions of a range, by position (without its end) or by name (with its end)."""
    start, stop = item.split(":", 1)
    if all(re.fullmatch(r"(-?\d{1,18})?", end, re.ASCII) for end in (start, stop)):
        low, high, _ = slice(int(start) if start else None, int(stop) if stop else None).indices(d)
        if (stop and int(stop) > d) or low >= high:
            raise DataError(f"the kernel asks for columns {item}, the rows have {d}", column=item)
    else:
        low, high = _place(start, known, twice, item), _place(stop, known, twice, item) + 1
        if low >= high:
            raise DataError(f"the kernel asks for columns {item}, but {stop} comes before {start}", column=item)
    return range(low, high)


def _place(name: str, known: dict[str, int], twice: set[str], item: str) -> int:
    if name not in known:
        shown = ", ".join(list(known)[:5]) + (", …" if len(known) > 5 else "")
        raise DataError(f"the kernel asks for column {name!r} (in {item!r}), the rows have {shown}", column=name)
    if name in twice:
        raise DataError(f"the kernel asks for column {name!r}, and the rows have several of that name", column=name)
    return known[name]


def ranges(columns: Sequence[int | str]) -> list[int | str]:
    """Runs of four or more positions, written as ranges."""
    out: list[int | str] = []
    i = 0
    while i < len(columns):
        item, j = columns[i], i
        while (
            isinstance(item, int)
            and item >= 0
            and j + 1 < len(columns)
            and isinstance(columns[j + 1], int)
            and columns[j + 1] == item + (j + 1 - i)
        ):
            j += 1
        if j - i >= 3 and isinstance(item, int):
            out.append(f"{item}:{item + j - i + 1}")
        else:
            out.extend(columns[i : j + 1])
        i = j + 1
    return out
