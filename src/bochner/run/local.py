"""One machine: groups of chunks are dealt to threads in turn, and their statistics merge in order."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

from bochner.hot.blas import single_threaded
from bochner.run.flow import Flow
from bochner.sources import Chunk
from bochner.sources.readahead import read_ahead
from bochner.stats import Statistic

S = TypeVar("S", bound=Statistic)


@dataclass(frozen=True)
class Progress:
    """How far a sweep is: rows read, of how many (where that is known), after how many seconds."""

    rows: int
    of: int | None
    seconds: float


@dataclass(frozen=True)
class Begun(Generic[S]):
    """The state of a sweep between two groups: the statistic of the first ``groups`` of them."""

    total: S
    groups: int


@dataclass(frozen=True)
class Local:
    """``sweep`` on ``threads`` threads (all cores without a number).

    The rows are cut into groups of chunks by the data alone (``Flow.group``); each group has a statistic of
    its own, and these are added in the order of the rows.  So the bits do not depend on the number of
    threads, except where there is one group only and BLAS shares its work among threads.  ``memory`` bounds
    the bytes of the statistics, one for each thread and the total; where that leaves one thread, BLAS has
    all of them.
    """

    threads: int | None = None
    memory: int = 8 << 30
    progress: Callable[[Progress], None] | None = None

    def sweep(
        self, flow: Flow, statistic: S, begun: Begun[S] | None = None, merged: Callable[[Begun[S]], None] | None = None
    ) -> S:
        """The statistic of all rows, added to a fresh one of the same shape as ``statistic``.

        With ``begun`` it goes on after those groups; ``merged`` is told the state after each group.
        """
        started = time.monotonic()
        begun = begun or Begun(statistic.fresh(), 0)
        first = begun.groups * flow.group * flow.chunk

        def chunks() -> Generator[Chunk]:
            seen = first
            with closing(read_ahead(flow.source.chunks(flow.chunk, first))) as ahead:
                for chunk in ahead:
                    yield chunk
                    seen += len(chunk)
                    if self.progress is not None:
                        self.progress(Progress(seen, flow.source.n_rows, time.monotonic() - started))

        workers = self._workers(flow, statistic)
        sweep = _Sweep(flow, statistic, workers, begun, merged)
        with closing(chunks()) as items:
            if workers > 1:
                with single_threaded():
                    return sweep.dealt(items)
            return sweep.alone(items)

    def _workers(self, flow: Flow, statistic: Statistic) -> int:
        wanted = self.threads or os.cpu_count() or 1
        rows = flow.source.n_rows
        groups = wanted if rows is None else -(-rows // (flow.chunk * flow.group))
        affordable = self.memory // max(statistic.nbytes, 1) - 1
        return max(1, min(wanted, groups, affordable))


class _Sweep(Generic[S]):
    """The state of one sweep: the total of the groups before ``turn``."""

    def __init__(
        self, flow: Flow, statistic: S, workers: int, begun: Begun[S], merged: Callable[[Begun[S]], None] | None
    ):
        self.flow, self.empty, self.workers, self.merged = flow, statistic, workers, merged
        self.total, self.first = begun.total, begun.groups
        self.turn = begun.groups
        self.turns = threading.Condition()
        self.failures: list[tuple[int, BaseException]] = []

    def alone(self, chunks: Iterator[Chunk]) -> S:
        part = self.empty.fresh()
        fed = 0
        for chunk in chunks:
            self.flow.feed(chunk, part)
            fed += 1
            if fed == self.flow.group:
                self._add(part)
                part, fed = self.empty.fresh(), 0
        if fed:
            self._add(part)
        return self.total

    def _add(self, part: S) -> None:
        self.total = self.total + part
        self.turn += 1
        if self.merged is not None:
            self.merged(Begun(self.total, self.turn))

    def dealt(self, chunks: Iterator[Chunk]) -> S:
        """Group g goes to thread g mod T."""
        lines: list[queue.Queue[Chunk | None]] = [queue.Queue(self.flow.group + 1) for _ in range(self.workers)]
        threads = [threading.Thread(target=self._work, args=(i, line), daemon=True) for i, line in enumerate(lines)]
        for thread in threads:
            thread.start()
        try:
            for number, chunk in enumerate(chunks):
                if self.failures:
                    break
                lines[number // self.flow.group % self.workers].put(chunk)
        except BaseException as error:  # the threads must not wait for turns that never come
            self._fail(-1, error)
            raise
        finally:
            for line in lines:
                line.put(None)
            for thread in threads:
                thread.join()
        if self.failures:
            raise min(self.failures, key=lambda failure: failure[0])[1]
        return self.total

    def _work(self, which: int, line: queue.Queue[Chunk | None]) -> None:
        group = self.first + which
        part, fed = self.empty.fresh(), 0
        while (chunk := line.get()) is not None:
            if self.failures:
                continue  # the line is emptied so that nobody waits to add to it
            try:
                self.flow.feed(chunk, part)
                fed += 1
                if fed == self.flow.group:
                    self._merge(group, part)
                    group += self.workers
                    part, fed = self.empty.fresh(), 0
            except BaseException as error:  # told to the caller, in whose thread it belongs
                self._fail(chunk.start, error)
        if fed and not self.failures:
            try:
                self._merge(group, part)
            except BaseException as error:
                self._fail(group, error)

    def _merge(self, group: int, part: S) -> None:
        with self.turns:
            self.turns.wait_for(lambda: self.turn == group or bool(self.failures))
            if not self.failures:
                self._add(part)
                self.turns.notify_all()

    def _fail(self, place: int, error: BaseException) -> None:
        with self.turns:
            self.failures.append((place, error))
            self.turns.notify_all()
