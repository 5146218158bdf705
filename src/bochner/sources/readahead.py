"""Reading ahead: the next chunks are decoded in the background while this one is worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_END: Any = object()


def read_ahead(items: Iterator[T], depth: int = 2) -> Generator[T]:
    """The same items in the same order, with up to ``depth`` of them made before they are asked for.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
    stop = threading.Event()

    def put(item: Any, error: BaseException | None = None) -> None:
        while not stop.is_set():
            try:
                return ready.put((item, error), timeout=0.1)
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
            put(_END)
        except BaseException as error:  # told to whoever asks next
            put(_END, error)

    thread = threading.Thread(target=work, daemon=True, name="bochner-read-ahead")
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stop.set()
        thread.join()
        close = getattr(items, "close", None)
        if close is not None:
            close()
