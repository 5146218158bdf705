"""Sweeps: every row once, in any number of threads with the same bits; failures are told; nothing hangs."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from bochner import features, kernels
from bochner.errors import DataError
from bochner.run import Flow, Local
from bochner.sources import MemorySource, Scaling
from bochner.stats import Batch, Classes, Folds, Moments, Numbers, Statistic

rng = np.random.default_rng(0)
N, D = 70_000, 24
X = rng.normal(size=(N, 3)).astype(np.float32)
y = rng.integers(0, 4, N)
drawn = features.RandomFourier(kernels.Gaussian(0.5), D).draw(3, seed=0)


class Seen(Statistic):
    """The numbers of the rows, in the order in which they came."""

    def __init__(self, rows=()):
        self.rows = list(rows)

    def fresh(self):
        return Seen()

    def update(self, batch: Batch):
        self.rows.extend(batch.rows.tolist())

    def __add__(self, other):
        return Seen(self.rows + other.rows)


class Failing(Seen):
    """Fails at one row."""

    def __init__(self, at, rows=()):
        super().__init__(rows)
        self.at = at

    def fresh(self):
        return Failing(self.at)

    def update(self, batch):
        if self.at in batch.rows:
            raise DataError(f"row {self.at} is bad", self.at)


def flow(**options):
    return Flow(MemorySource(X, y), drawn, **options)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_row_comes_once_and_in_order(threads):
    assert Local(threads).sweep(flow(), Seen()).rows == list(range(N))


def test_moments_have_the_same_bits_for_any_number_of_threads():
    options = {"targets": Classes(np.arange(4)), "folds": Folds(3)}
    results = [Local(threads).sweep(flow(**options), Moments(D, 4, folds=3)).to_arrays() for threads in (1, 2, 5)]
    for other in results[1:]:
        for name, array in results[0].items():
            np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_moments_are_those_of_all_features_at_once():
    total = Local(2).sweep(flow(targets=Classes(np.arange(4)), dtype="float64"), Moments(D, 4)).total()
    Z = drawn(X.astype(np.float64))
    Zc = Z - Z.mean(axis=0)
    np.testing.assert_allclose(total.scatter, Zc.T @ Zc, rtol=0, atol=1e-9 * N)
    np.testing.assert_allclose(total.cross, Zc.T @ np.eye(4)[y], rtol=0, atol=1e-9 * N)
    assert total.count == N


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("at", [0, 33_000, N - 1])
def test_a_failure_is_told_and_no_thread_stays(threads, at):
    before = threading.active_count()
    with pytest.raises(DataError, match=f"row {at} is bad"):
        Local(threads).sweep(flow(), Failing(at))
    assert threading.active_count() == before


class Interrupted(MemorySource):
    """A reader that is interrupted halfway."""

    def chunks(self, *where):
        for chunk in super().chunks(*where):
            if chunk.start > N // 2:
                raise KeyboardInterrupt
            yield chunk


def test_an_interrupt_ends_every_thread():
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        Local(2).sweep(Flow(Interrupted(X), drawn), Seen())
    assert threading.active_count() == before


def test_progress_ends_at_all_rows():
    seen = []
    Local(2, progress=seen.append).sweep(flow(), Seen())
    assert [p.rows for p in seen] == sorted(p.rows for p in seen)
    assert seen[-1].rows == seen[-1].of == N


def test_memory_bounds_the_number_of_threads():
    heavy = Moments(D, 0)
    assert Local(8, memory=3 * heavy.nbytes)._workers(flow(), heavy) == 2
    assert Local(8, memory=0)._workers(flow(), heavy) == 1


def test_wide_rows_make_small_chunks_that_depend_on_the_data_alone():
    wide = features.RandomFourier(kernels.Gaussian(0.5), 4).draw(50_000, seed=0)
    assert Flow(MemorySource(np.ones((3, 50_000), np.float32)), wide).chunk == 512
    assert Flow(MemorySource(sp.csr_array(np.eye(3, 50_000))), wide).chunk == 8192
    assert flow().chunk == 8192
    assert flow().group == 1
    assert Flow(MemorySource(np.zeros((10**6, 1), np.float32)), drawn).group == 4


def test_rows_are_cut_by_fold_and_class_and_unlabelled_ones_come_last():
    target = np.array([2.0, np.nan, 0.0, 1.0, np.nan, 2.0])
    source = MemorySource(np.arange(18.0).reshape(6, 3), target, weight=np.arange(6.0))
    folds = Folds(2)
    flow = Flow(source, drawn, targets=Classes(np.array([0.0, 1.0, 2.0])), folds=folds)
    segments = list(flow.segments(next(source.chunks())))
    *labelled, unlabelled = segments
    assert unlabelled.target is None
    assert unlabelled.rows.tolist() == [1, 4]
    assert sorted(np.concatenate([s.rows for s in labelled]).tolist()) == [0, 2, 3, 5]
    fold = folds.assign(0, 6)
    for segment in labelled:
        assert set(fold[segment.rows]) == {segment.fold}
        assert (np.diff(segment.target) >= 0).all()
        np.testing.assert_array_equal(segment.weight, segment.rows)


def test_folds_go_by_the_number_of_the_row_when_rows_are_added_later():
    whole = Local(1).sweep(flow(targets=Numbers(), folds=Folds(3)), Moments(D, 1))
    parts = [
        Local(1).sweep(
            Flow(MemorySource(X[rows], y[rows]), drawn, targets=Numbers(), folds=Folds(3), first=first),
            Moments(D, 1),
        )
        for first, rows in ((0, slice(0, 30_000)), (30_000, slice(30_000, None)))
    ]
    joined = parts[0] + parts[1]
    assert {key: part.count for key, part in joined.parts.items()} == {k: p.count for k, p in whole.parts.items()}
    for key, part in whole.parts.items():
        np.testing.assert_allclose(joined.parts[key].scatter, part.scatter, rtol=0, atol=1e-5 * part.count)


def test_rows_are_scaled_before_they_are_rounded():
    shifted = X.astype(np.float64) + 1e8
    scaling = Scaling.learn("standard", [shifted])
    total = Local(1).sweep(Flow(MemorySource(shifted), drawn, scaling), Moments(D)).total()
    Z = drawn((X - X.mean(axis=0, dtype=np.float64)) / X.std(axis=0, dtype=np.float64))
    np.testing.assert_allclose(total.mean, Z.mean(axis=0), atol=1e-5)


def test_an_error_names_the_row_of_the_source():
    bad = X[:30_000].copy()
    bad[20_123, 1] = np.nan
    with pytest.raises(DataError, match="row 20123, column 1 is nan"):
        Local(2).sweep(Flow(MemorySource(bad), drawn), Seen())
    negative = np.abs(X[:30_000])
    negative[25_000, 2] = -1.0
    chi2 = features.choose(kernels.Chi2(), 9, 3).draw(3, sample=np.abs(X[:50]))
    with pytest.raises(DataError, match="row 25000, column 2 is -1"):
        Local(2).sweep(Flow(MemorySource(negative), chi2), Seen())
