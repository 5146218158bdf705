"""Reading ahead: order, errors, early stops, and that no thread stays behind."""

import threading
import time

import pytest

from bochner.errors import DataError
from bochner.sources.readahead import read_ahead


def alive():
    return [thread for thread in threading.enumerate() if thread.name == "bochner-read-ahead"]


def test_items_come_in_order():
    assert list(read_ahead(iter(range(100)))) == list(range(100))
    assert list(read_ahead(iter([None, None]))) == [None, None]
    assert list(read_ahead(iter([]))) == []
    assert not alive()


def test_work_overlaps():
    def slow():
        for i in range(5):
            time.sleep(0.04)
            yield i

    start = time.perf_counter()
    for _ in read_ahead(slow()):
        time.sleep(0.04)
    assert time.perf_counter() - start < 0.36  # one after the other takes 0.4


def test_no_more_is_made_than_asked_for():
    made = []

    def items():
        for i in range(50):
            made.append(i)
            yield i

    ahead = read_ahead(items(), depth=2)
    assert next(ahead) == 0
    time.sleep(0.2)
    assert len(made) <= 5
    ahead.close()
    assert not alive()


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        raise DataError("row 1 is bad", 1)

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(DataError, match="row 1 is bad"):
        next(ahead)
    assert not alive()


def test_stopping_early_ends_the_thread_and_closes_the_source():
    closed = []

    def items():
        try:
            yield from range(10**9)
        finally:
            closed.append(True)

    for item in (ahead := read_ahead(items())):
        if item == 3:
            break
    ahead.close()
    assert closed == [True]
    assert not alive()


def test_a_consumer_that_fails_leaves_no_thread():
    def use():
        for item in read_ahead(iter(range(10**9))):
            if item == 2:
                raise RuntimeError("the consumer")

    with pytest.raises(RuntimeError, match="the consumer"):
        use()
    assert not alive()
