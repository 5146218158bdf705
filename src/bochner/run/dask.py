"""A cluster: the groups of a sweep are tasks of Dask, and a chain of tasks merges them in the order of the rows.

A task gets where its rows are, never the rows; what it gives stays on the workers, or in a folder that all share.
Each group has a statistic of its own and total_{g+1} = total_g + part_g, as on one machine: so the bits are the same.
"""

from __future__ import annotations

import pickle
import secrets
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypeVar, cast

from bochner.errors import BochnerError, DataError, MissingDependency, SolverError
from bochner.features import Drawn, from_recipe
from bochner.run.flow import Flow
from bochner.run.groups import merged, part_of
from bochner.run.journal import identity, state_digest
from bochner.run.local import Progress
from bochner.run.shelf import Shelf, Unreadable
from bochner.sources import Source
from bochner.stats import Statistic

S = TypeVar("S", bound=Statistic)

#: bytes up to which something travels with each task; what is larger is sent to the workers once
_SMALL = 1 << 16
#: of a worker's memory, what statistics may take: Dask begins to spill at 0.6 and pauses at 0.8
_SHARE = 0.6
#: seconds between looks at the cluster while nothing arrives
_TICK = 1.0


@dataclass(frozen=True)
class DaskExecutor:
    """``sweep`` on the workers of a ``distributed.Client``, with the bits of ``Local``.

    ``folder`` is one that the client and all workers see: parts and totals are written there, so that a worker's
    death costs the group that it was at, and a sweep that broke off goes on.  Without it the sums are in
    the workers' memory, and a death may cost all groups of that sweep.  After ``retries`` losses in a row
    without a new merged group, or ``patience`` seconds without a worker or without work, it stops.

    >>> from bochner import KernelClassifier
    >>> from bochner.run.dask import DaskExecutor
    >>> client = ...  # distributed.Client("tcp://…")
    >>> KernelClassifier().fit(X, y, executor=DaskExecutor(client))  # doctest: +SKIP
    """

    client: Any
    folder: str | PathLike[str] | None = None
    retries: int = 8
    patience: float = 60.0
    _sent: Any = field(default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        distributed()
        if self.retries < 0 or not self.patience > 0.0:
            raise SolverError(f"retries ≥ 0 and patience > 0 are needed, got {self.retries} and {self.patience}")

    def sweep(self, flow: Flow, statistic: S, progress: Callable[[Progress], None] | None = None) -> S:
        """The statistic of all rows, added to a fresh one of the same shape as ``statistic``."""
        if statistic.shared:
            raise SolverError(
                "this solver keeps something for every row in one process, which a cluster has not; "
                "give another one, such as solver='sweeps', or fit without executor"
            )
        flow.source.settle()
        run = _Run(self, flow, statistic, progress)
        try:
            return cast(S, run.result())
        finally:
            run.drop()


def distributed() -> Any:
    """The package distributed."""
    try:
        import distributed
    except ImportError:
        raise MissingDependency("clusters are used through Dask; pip install 'bochner[dask]'") from None
    return distributed


# ---- on the client ------------------------------------------------------------------------------------


def _travelling(drawn: Drawn) -> dict[str, Any] | None:
    """The recipe of a map, where that gives the same one again: a part of a map has the recipe of the whole."""
    recipe = drawn.recipe()
    try:
        again = from_recipe(recipe)
    except BochnerError:
        return None
    return recipe if type(again) is type(drawn) and again.width == drawn.width else None


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at ``address``, or of N processes on this machine that ``local:N`` starts."""
    dask = distributed()
    kind, _, count = address.partition(":")
    if kind == "local" and not (count.isdecimal() and int(count)):
        raise SolverError(f"local:N starts N worker processes, got {address!r}")
    with ExitStack() as stack:
        try:
            if kind == "local":
                local = dask.LocalCluster(
                    n_workers=int(count), threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
                )
                stack.enter_context(local)
            client = stack.enter_context(dask.Client(local if kind == "local" else address, timeout=10))
        except (OSError, ValueError, RuntimeError) as error:
            raise SolverError(f"there is no Dask scheduler at {address}: {' '.join(str(error).split())}") from error
        yield client


class _Lost(Exception):
    """The cluster lost a result; the sums that are left will do to go on."""


class _Run:
    """One sweep: at any time a window of groups is under way, each with its part and the total up to it."""

    def __init__(
        self, executor: DaskExecutor, flow: Flow, statistic: Statistic, progress: Callable[[Progress], None] | None
    ):
        self.executor, self.client, self.flow = executor, executor.client, flow
        self.progress, self.started = progress, time.monotonic()
        self.empty = statistic.fresh()
        rows = flow.source.n_rows
        self.rows = sum(len(chunk) for chunk in flow.source.chunks(flow.chunk)) if rows is None else rows
        self.span = flow.chunk * flow.group
        self.groups = -(-self.rows // self.span)
        self.recipe = _travelling(flow.drawn)
        self.shelf = self._shelf()
        self.turn = 0 if self.shelf is None else self.shelf.groups()
        self.total: Any = None
        self.window: deque[Any] = deque()
        self.sent: tuple[Any, ...] | None = None
        self.room, self.looked, self.least = 0, float("-inf"), float("inf")

    def _shelf(self) -> Shelf | None:
        if self.executor.folder is None or not self.empty.to_arrays():
            return None
        known = identity(self.flow, self.empty)
        if self.recipe is None:
            known["map"] = state_digest(self.flow.drawn)
        return Shelf.of(self.executor.folder, known)

    def result(self) -> Any:
        """The total of all groups, after as many losses as may be."""
        best, losses = self.turn, 0
        while True:
            try:
                while self.turn < self.groups:
                    self._fill()
                    self._step()
                return self._gathered()
            except (_Lost, Unreadable) as error:
                losses = 0 if self.turn > best else losses + 1
                best = max(best, self.turn)
                if losses > self.executor.retries:
                    raise SolverError(
                        f"{self._place(self.turn)} were lost {losses} times, the last time because {error}; "
                        "a worker that ends again and again most often lacks memory: give it more, or fewer threads"
                    ) from error.__cause__
                self._restart(again=losses > 1)

    def _place(self, group: int) -> str:
        first = group * self.span
        return f"rows {first} to {min(first + self.span, self.rows) - 1}"

    def _restart(self, again: bool) -> None:
        """Forget what is under way; go on from the shelf, or the last total, or where that did not help, at row 0."""
        for future in self.window:
            future.release()
        self.window.clear()
        # What is sent may have been lost with the workers that had it, without a word to the client.
        self.sent = None
        self.executor._sent.pop(self.flow.source, None)
        if self.shelf is not None:
            self.total, self.turn = None, self.shelf.groups()
        elif again or self.total is None or self.total.status != "finished":
            self.total, self.turn = None, 0

    def drop(self) -> None:
        """Let the cluster forget this sweep."""
        for future in self.window:
            future.cancel()
        self.window.clear()
        self.total = None

    # ---- sending ----------------------------------------------------------------------------------
    def _fill(self) -> None:
        """Submit groups until as many are under way as the workers can have."""
        last = self.turn + len(self.window)
        if last == self.groups:
            return
        room = self._room()
        if self.sent is None:
            self.sent = self._send()
        token = secrets.token_hex(6)
        for group in range(last, min(self.turn + room, self.groups)):
            before = self.window[-1] if self.window else self.total
            keys = [f"bochner-{kind}-{token}-{group}" for kind in ("part", "total")]
            with self._told():
                part = self.client.submit(part_of, *self.sent, group, self.shelf, key=keys[0], pure=False)
                # Merges go first: they make room.
                rest = (before, part, self.sent[2], group, self.shelf)
                self.window.append(self.client.submit(merged, *rest, key=keys[1], pure=False, priority=1))

    def _send(self) -> tuple[Any, ...]:
        """Source, form and statistic as tasks get them: as bytes, or where they are large as what all workers hold."""
        source, recipe = self.flow.source, self.recipe
        form = replace(self.flow, source=cast(Source, None))
        if recipe is not None:
            form = form.with_drawn(cast(Drawn, None))
        sent = self.executor._sent
        known = sent.get(source)
        if known is None or (not isinstance(known, bytes) and known.status != "finished"):
            known = sent[source] = self._put(source, keep=True)
        return known, self._put((form, recipe)), self._put(self.empty)

    def _put(self, item: Any, keep: bool = False) -> Any:
        # Classes that were defined in a script or a notebook travel with what they made.
        from cloudpickle import dumps

        buffers: list[pickle.PickleBuffer] = []
        try:
            head = dumps(item, protocol=5, buffer_callback=buffers.append)
        except Exception as error:
            raise DataError(
                f"{type(item).__name__} cannot be sent to the workers ({error}); write the rows to a file and scan it"
            ) from error
        size = len(head) + sum(buffer.raw().nbytes for buffer in buffers)
        if keep and size > _SHARE * self.least:
            raise DataError(
                f"the rows in memory take {_gib(size)} and a worker has {_gib(self.least)}; "
                "write them to files that the workers can read, and scan those"
            )
        if size <= _SMALL:
            return dumps(item, protocol=5)
        with self._told():
            return self.client.scatter(item if keep else dumps(item, protocol=5), hash=False, broadcast=True)

    # ---- looking ----------------------------------------------------------------------------------
    def _workers(self) -> dict[str, Any]:
        """What the scheduler tells of its workers; {} where it does not answer."""
        try:
            found = self.client.sync(self.client.scheduler.identity, callback_timeout=self.executor.patience)
            return cast(dict[str, Any], found["workers"])
        except Exception:  # whatever it is that a lost connection raises
            return {}

    def _room(self) -> int:
        """How many groups may be under way: one for each thread and one more for each worker, where memory allows."""
        now = time.monotonic()
        if now - self.looked < _TICK:
            return self.room
        workers = self._workers()
        while not workers:
            if time.monotonic() - now > self.executor.patience:
                raise self._nobody()
            time.sleep(min(_TICK, self.executor.patience / 4))
            workers = self._workers()
        self.least = min(worker["memory_limit"] or float("inf") for worker in workers.values())
        size = max(self.empty.nbytes, 1) if self.shelf is None else 0
        room = 0
        for worker in workers.values():
            limit = _SHARE * (worker["memory_limit"] or float("inf"))
            # A merge holds two and makes a third.
            affordable = (limit - 3 * self.empty.nbytes) / size if size else float("inf")
            if limit < 3 * self.empty.nbytes or affordable < 1:
                raise SolverError(
                    f"a worker has {_gib(worker['memory_limit'])}, of which sums may take {_SHARE:.0%}, and merging "
                    f"them takes {_gib(4 * self.empty.nbytes)}; use fewer features, workers of more memory, or "
                    "solver='sweeps'"
                )
            room += int(min(worker["nthreads"] + 1, affordable))
        self.room, self.looked = room, now
        return room

    def _step(self) -> None:
        """Wait for the oldest total."""
        future = self.window[0]
        idle = time.monotonic()
        while True:
            try:
                distributed().wait([future], timeout=min(_TICK, self.executor.patience))
                break
            except TimeoutError:
                pass
            except Exception as error:
                raise self._loss(error) from error
            now = time.monotonic()
            if self._busy():
                idle = now
            elif now - idle > self.executor.patience:
                if not self._workers():
                    raise self._nobody()
                raise _Lost(f"no worker did anything for {self.executor.patience:g} s")
        if future.status != "finished":
            raise self._failure(future)
        self.total = self.window.popleft()
        self.turn += 1
        if self.progress is not None:
            rows = min(self.turn * self.span, self.rows)
            self.progress(Progress(rows, self.rows, time.monotonic() - self.started))

    def _busy(self) -> bool:
        try:
            return any(self.client.processing().values())
        except Exception:  # as in _workers
            return False

    def _gathered(self) -> Any:
        if self.groups == 0:
            return self.empty
        if self.shelf is not None:
            total = self.shelf.total(self.groups, self.empty)
            self.shelf.tidy(self.groups)
            return total
        try:
            return self.total.result(timeout=max(self.executor.patience, 600.0))
        except Exception as error:
            if isinstance(error, BochnerError):
                raise
            raise self._loss(error) from error

    # ---- failing ----------------------------------------------------------------------------------
    def _failure(self, future: Any) -> Exception:
        """What to raise for a task that failed."""
        try:
            error = future.exception(timeout=self.executor.patience)
        except Exception as lost:
            error = lost
        if isinstance(error, (BochnerError, Unreadable)):
            return error
        if error is None or isinstance(error, _losses()):
            return self._loss(error)
        found = SolverError(f"a worker failed at {self._place(self.turn)}: {type(error).__name__}: {error}")
        found.__cause__ = error
        return found

    def _loss(self, error: BaseException | None) -> Exception:
        """A loss, or the end where the client has no scheduler any more."""
        if self.client.status != "running":
            return SolverError(
                f"the scheduler is gone ({self.turn} of {self.groups} groups were merged); connect a new client and "
                f"fit again{'' if self.shelf is None else ', which goes on from the folder'}"
            )
        found = _Lost(" ".join(str(error).split()) or type(error).__name__)
        found.__cause__ = error
        return found

    @contextmanager
    def _told(self) -> Iterator[None]:
        """An error of the connection is a loss."""
        try:
            yield
        except Exception as error:
            raise self._loss(error) from error

    def _nobody(self) -> SolverError:
        return SolverError(
            f"the cluster had no worker for {self.executor.patience:g} s ({self.turn} of {self.groups} groups were "
            f"merged); start workers and fit again{'' if self.shelf is None else ', which goes on from the folder'}"
        )


def _losses() -> tuple[type[BaseException], ...]:
    """What Dask says where a worker or the connection to it is gone."""
    from concurrent.futures import CancelledError

    dask = distributed()
    return (dask.KilledWorker, dask.comm.CommClosedError, CancelledError, OSError, TimeoutError)


def _gib(size: float) -> str:
    return f"{size / 2**30:.3g} GiB"
