"""BLAS threads while our own work: limited once, restored when the last user is done."""

from threadpoolctl import threadpool_info

from bochner.hot.blas import single_threaded


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_limit_holds_until_the_last_user_is_done():
    before = blas_threads()
    first, second = single_threaded(), single_threaded()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before
