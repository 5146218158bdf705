"""What a worker of a cluster does: the statistic of a group of chunks, and the merging of two."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from bochner.features import from_recipe
from bochner.hot.blas import single_threaded
from bochner.run.flow import Flow
from bochner.run.shelf import Shelf
from bochner.sources import Chunk
from bochner.sources.readahead import read_ahead

#: how many things that it was sent a process keeps, by digest
_KEPT = 8

_opened: dict[str, Any] = {}
_lock = threading.Lock()


def part_of(source: Any, form: bytes, statistic: bytes, group: int, shelf: Shelf | None) -> Any:
    """The statistic of one group of chunks: itself, or None once it is on the shelf."""
    if shelf is not None and shelf.has_part(group):
        return None
    flow = replace(opened(form, flow_of), source=opened(source, pickle.loads))
    part = opened(statistic, pickle.loads).fresh()

    def chunks() -> Generator[Chunk]:
        rows: Iterator[Chunk] = flow.source.chunks(flow.chunk, group * flow.group * flow.chunk)
        with closing(rows):  # type: ignore[type-var]
            yield from islice(rows, flow.group)

    with single_threaded(), closing(read_ahead(chunks())) as ahead:
        for chunk in ahead:
            flow.feed(chunk, part)
    if shelf is None:
        return part
    shelf.write_part(group, part)
    return None


def merged(total: Any, part: Any, statistic: bytes, group: int, shelf: Shelf | None) -> Any:
    """The statistic of all groups up to this one: itself, or None once it is on the shelf."""
    empty = opened(statistic, pickle.loads)
    if shelf is None:
        return (empty.fresh() if total is None else total) + part
    shelf.merge(group, empty)
    return None


def flow_of(form: bytes) -> Flow:
    """A flow without its source, whose map is drawn from its recipe."""
    flow, recipe = pickle.loads(form)
    return cast(Flow, flow if recipe is None else flow.with_drawn(from_recipe(recipe)))


def opened(item: Any, make: Callable[[bytes], Any]) -> Any:
    """What bytes stand for, made once in each process; anything else is itself."""
    if not isinstance(item, bytes):
        return item
    digest = hashlib.sha256(item).hexdigest()
    with _lock:
        if digest not in _opened:
            while len(_opened) >= _KEPT:
                del _opened[next(iter(_opened))]
            _opened[digest] = make(item)
        return _opened[digest]
