"""Parts and totals of one sweep in a folder that several machines share."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bochner import tensors
from bochner.errors import BochnerError, FileError
from bochner.stats import Statistic

S = TypeVar("S", bound=Statistic)

_PART, _TOTAL = "part", "total"


class Unreadable(Exception):
    """A file that should be there is missing or damaged; it is removed, and its groups are swept again."""


@dataclass(frozen=True)
class Shelf:
    """``part-g`` is the statistic of group g, ``total-g`` that of the first g groups; both last once written.

    Whoever writes one of them twice writes the same.
    """

    place: Path

    @classmethod
    def of(cls, folder: str | os.PathLike[str], known: Mapping[str, Any]) -> Shelf:
        """The shelf of a sweep that is ``known`` by its data, map and statistic, and of no other."""
        text = json.dumps(known, sort_keys=True, default=str)
        place = Path(folder).absolute() / hashlib.sha256(text.encode()).hexdigest()[:32]
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{place} cannot be made: {error.strerror or error}") from None
        return cls(place)

    def _path(self, kind: str, number: int) -> Path:
        return self.place / f"{kind}-{number:09d}"

    def _numbers(self, kind: str) -> list[int]:
        found = (path.name.removeprefix(f"{kind}-") for path in self.place.glob(f"{kind}-*"))
        return sorted(int(number) for number in found if number.isdecimal())

    def groups(self) -> int:
        """How many groups the latest total has."""
        return max(self._numbers(_TOTAL), default=0)

    def has_part(self, group: int) -> bool:
        """Whether a group has been swept: as a part, or within a total."""
        return self._path(_PART, group).exists() or self.groups() > group

    def write_part(self, group: int, part: Statistic) -> None:
        self._write(_PART, group, part)

    def merge(self, group: int, empty: Statistic) -> None:
        """Write the total of all groups up to this one; the total before the last stays, in case that is damaged."""
        if self.groups() > group:
            return
        try:
            total = empty.fresh() if group == 0 else self.total(group, empty)
            self._write(_TOTAL, group + 1, total + self._read(_PART, group, empty))
        except Unreadable:
            if self.groups() > group:  # another worker did the same at the same time, and tidied up
                return
            raise
        self._path(_PART, group).unlink(missing_ok=True)
        for number in self._numbers(_TOTAL):
            if number < group:
                self._path(_TOTAL, number).unlink(missing_ok=True)

    def total(self, groups: int, empty: S) -> S:
        return self._read(_TOTAL, groups, empty)

    def tidy(self, groups: int) -> None:
        """Keep the total of all groups alone."""
        for path in self.place.iterdir():
            if path != self._path(_TOTAL, groups):
                path.unlink(missing_ok=True)

    def _write(self, kind: str, number: int, statistic: Statistic) -> None:
        tensors.write(self._path(kind, number), {"what": kind, "number": number}, statistic.to_arrays())

    def _read(self, kind: str, number: int, empty: S) -> S:
        path = self._path(kind, number)
        try:
            about, arrays = tensors.read(path)
            if about != {"what": kind, "number": number}:
                raise FileError(f"it holds {about}")
            return empty.restored(arrays)
        except (BochnerError, KeyError, TypeError, ValueError) as error:
            path.unlink(missing_ok=True)
            raise Unreadable(
                f"{path} cannot be read back ({error}); all workers and the client must share its folder"
            ) from None


def cleared(folder: str | os.PathLike[str]) -> None:
    """Remove the shelves in a folder, and the folder where nothing else is in it."""
    for place in Path(folder).iterdir():
        if re.fullmatch(r"[0-9a-f]{32}", place.name) and place.is_dir():
            for path in place.iterdir():
                if path.name.lstrip(".").startswith((_PART, _TOTAL)):
                    path.unlink(missing_ok=True)
            if not any(place.iterdir()):
                place.rmdir()
    if not any(Path(folder).iterdir()):
        Path(folder).rmdir()
