"""BLAS on one thread while our own threads work: threads inside threads cost more than they give."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_users = 0
_limits: Any = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """One BLAS thread until the last of all users is done (the limit is the process's, so users are counted).

    >>> with single_threaded():
    ...     pass
    """
    global _users, _limits
    with _lock:
        if _users == 0:
            from threadpoolctl import threadpool_limits

            _limits = threadpool_limits(1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()
                _limits = None
