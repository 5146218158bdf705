"""One machine: chunks are dealt to threads in turn, each has a statistic of its own, and they merge in order."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bochner.run.flow import Flow
from bochner.sources import Chunk
from bochner.sources.readahead import read_ahead
from bochner.stats import Statistic

S = TypeVar("S", bound=Statistic)
_WAITING = 2  # chunks that wait for a thread


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    rows: int
    of: int | None
    seconds: float


@dataclass(frozen=True)
class Local:
    """``sweep`` on ``threads`` threads (all cores without a number).

    Results are the same bits for the same data, chunks and number of threads.  ``memory`` bounds the
    bytes of the threads' own statistics; with less than that there is one, and BLAS has all threads.
    """

    threads: int | None = None
    memory: int = 4 << 30
    progress: Callable[[Progress], None] | None = None

    def sweep(self, flow: Flow, statistic: S) -> S:
        """The statistic of all rows, added to a fresh one of the same shape as ``statistic``."""
        count = self.threads or os.cpu_count() or 1
        workers = max(1, min(count, self.memory // max(statistic.nbytes, 1)))
        rows_known = flow.source.n_rows
        if rows_known is not None:
            workers = max(1, min(workers, -(-rows_known // flow.chunk)))
        started = time.monotonic()
        seen = 0

        def chunks() -> Any:
            nonlocal seen
            for chunk in read_ahead(flow.source.chunks(flow.chunk)):
                yield chunk
                seen += len(chunk)
                if self.progress is not None:
                    self.progress(Progress(seen, rows_known, time.monotonic() - started))

        from threadpoolctl import threadpool_limits

        if workers == 1:
            result = statistic.fresh()
            with threadpool_limits(count, user_api="blas"):
                for chunk in chunks():
                    flow.feed(chunk, result)
            return result
        with threadpool_limits(1, user_api="blas"):
            parts = _dealt(chunks(), flow, [statistic.fresh() for _ in range(workers)])
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def _dealt(chunks: Any, flow: Flow, statistics: list[S]) -> list[S]:
    """Chunk i goes to thread i mod T, so that what each thread adds does not depend on who is faster."""
    waiting: list[queue.Queue[Chunk | None]] = [queue.Queue(_WAITING) for _ in statistics]
    failures: list[BaseException] = []

    def work(which: int) -> None:
        while (chunk := waiting[which].get()) is not None:
            if failures:
                continue
            try:
                flow.feed(chunk, statistics[which])
            except BaseException as error:  # told to the caller, in whose thread it belongs
                failures.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(statistics))]
    for thread in threads:
        thread.start()
    try:
        for number, chunk in enumerate(chunks):
            if failures:
                break
            waiting[number % len(statistics)].put(chunk)
    finally:
        for line in waiting:
            line.put(None)
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return statistics
