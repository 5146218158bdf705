"""Sweeps that outlive their process: what has been swept is kept on disk, and a new run goes on from there.

A fit is a sequence of sweeps, and what it does next follows from what they gave.  So a folder that keeps the
result of every sweep that is done, and the state of the one that is going on, is enough to go on with the same
bits: the same command runs again, and finds its sweeps done.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bochner import tensors
from bochner.errors import BochnerError, FileError
from bochner.run.flow import Flow
from bochner.run.local import Begun, Local
from bochner.stats import Statistic

S = TypeVar("S", bound=Statistic)

VERSION = 1
_NAME = re.compile(r"sweep-(\d{6})-(\d{9}|done)\.checkpoint")
#: of the time of a sweep, what writing may take at most
_SHARE = 0.05


def identity(flow: Flow, statistic: Statistic) -> dict[str, Any]:
    """JSON that changes whenever the bits of a sweep might: data, map, options, versions."""
    import scipy

    from bochner import __version__

    return {
        "data": flow.source.fingerprint(),
        "map": _digest(flow.drawn.recipe()),
        "scaling": _digest(flow.scaling.to_json()),
        "targets": None if flow.targets is None else _digest(flow.targets.to_json()),
        "folds": None if flow.folds is None else [flow.folds.count, flow.folds.seed],
        "precision": [flow.dtype, flow.promoted],
        "rows": [flow.first, flow.chunk, flow.group, flow.by_class],
        "statistic": state_digest(statistic.fresh()),
        "versions": {"bochner": __version__, "numpy": np.__version__, "scipy": scipy.__version__},
    }


def _digest(item: Any) -> str:
    return hashlib.sha256(json.dumps(item, sort_keys=True, default=str).encode()).hexdigest()


def state_digest(item: Any) -> str:
    """A digest of an object: of its arrays and numbers, by name."""
    found = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            found.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Mapping):
            for key in sorted(value, key=str):
                add(str(key))
                add(value[key])
        elif isinstance(value, (list, tuple)):
            for inner in (len(value), *value):
                add(inner)
        elif callable(value) and hasattr(value, "__qualname__"):  # a class or function; objects may be callable too
            add(value.__qualname__)
        elif hasattr(value, "__dict__") and not isinstance(value, Enum):
            add(type(value).__qualname__)
            add(vars(value))
        else:
            found.update(repr(value).encode() + b";")

    add(item)
    return found.hexdigest()


@dataclass
class Journal:
    """The sweeps of one fit in ``folder``: what each that is done gave, and how far the one is that goes on.

    The latter is written every ``every`` seconds, with 0 after each group.  What another fit, or the
    same fit on other data, left in the folder is refused.
    """

    folder: Path
    every: float = 30.0
    #: sweeps so far
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{self.folder} cannot be made: {error.strerror or error}") from None

    def sweep(self, executor: Local, flow: Flow, statistic: S) -> S:
        """As ``executor.sweep``; what is on disk is not done again."""
        number, self.count = self.count, self.count + 1
        known = identity(flow, statistic)
        done = self._read(number, known, statistic, "done")
        if done is not None:
            return done.total
        begun = self._read(number, known, statistic)
        result = executor.sweep(flow, statistic, begun, self._keeper(number, known))
        self._write(number, known, Begun(result, -1))
        self._tidy(number)
        return result

    def _keeper(self, number: int, known: Mapping[str, Any]) -> Callable[[Begun[S]], None]:
        last, cost = time.monotonic(), 0.0

        def keep(begun: Begun[S]) -> None:
            nonlocal last, cost
            now = time.monotonic()
            if self.every > 0.0 and now - last < max(self.every, cost / _SHARE):
                return
            self._write(number, known, begun)
            last = time.monotonic()
            cost = last - now
            self._tidy(number, keep=2)

        return keep

    def _write(self, number: int, known: Mapping[str, Any], begun: Begun[Any]) -> None:
        arrays = begun.total.to_arrays()
        if not arrays:
            return
        state = "done" if begun.groups < 0 else f"{begun.groups:09d}"
        about = {"what": "checkpoint", "version": VERSION, "groups": begun.groups, "identity": dict(known)}
        tensors.write(self.folder / f"sweep-{number:06d}-{state}.checkpoint", about, arrays)

    def _files(self, number: int) -> list[Path]:
        """The states of a sweep that is going on, the latest first."""
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted((path for path in found if path.name.startswith(f"sweep-{number:06d}-")), reverse=True)

    def _read(self, number: int, known: Mapping[str, Any], empty: S, state: str = "") -> Begun[S] | None:
        """The latest state that can be read; a damaged one is left out, with a warning."""
        for path in self._files(number):
            if path.name.endswith("-done.checkpoint") != (state == "done"):
                continue
            try:
                about, arrays = tensors.read(path)
            except FileError as error:
                warnings.warn(f"{error}; an earlier state is used", RuntimeWarning, stacklevel=4)
                continue
            _require_same(self.folder, about, known)
            try:
                return Begun(empty.restored(arrays), int(about["groups"]))
            except (BochnerError, KeyError, TypeError, ValueError) as error:
                raise FileError(f"{path} does not fit this fit: {error}; use another folder") from None
        return None

    def _tidy(self, number: int, keep: int = 0) -> None:
        """Remove states that nothing needs any more: all but the latest ``keep`` of a sweep that is going on."""
        states = [path for path in self._files(number) if not path.name.endswith("-done.checkpoint")]
        for path in states[keep:]:
            path.unlink(missing_ok=True)
        for path in self.folder.glob(".sweep-*.checkpoint.*.tmp"):
            path.unlink(missing_ok=True)


def _require_same(folder: Path, about: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    if about.get("what") != "checkpoint" or about.get("version") != VERSION:
        raise FileError(f"{folder} holds checkpoints of another version of bochner; use another folder")
    before = about.get("identity")
    before = before if isinstance(before, Mapping) else {}
    # As JSON, in which tuples are lists.
    now = json.loads(json.dumps(known, default=str))
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        raise FileError(
            f"the checkpoints in {folder} are of a fit with other {', '.join(changed)}; "
            f"start with the same data and options to go on with it, or use another folder"
        )


def cleared(folder: str | os.PathLike[str]) -> None:
    """Remove the checkpoints in a folder, and the folder where nothing else is in it."""
    place = Path(folder)
    for path in place.iterdir():
        if _NAME.fullmatch(path.name):
            path.unlink(missing_ok=True)
    if not any(place.iterdir()):
        place.rmdir()
