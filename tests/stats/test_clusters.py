"""Sums next to centres: those of a loop over rows, however they are cut and added."""

import numpy as np
import pytest

from bochner.errors import DataError
from bochner.stats.base import Batch
from bochner.stats.clusters import SPARES, Clusters, MiniBatches

rng = np.random.default_rng(0)
N, D, K = 300, 6, 4
Z = rng.normal(size=(N, D)) + 3.0 * rng.integers(0, K, (N, 1))
CENTRES = Z[:K] + 0.1
WEIGHT = rng.uniform(0.2, 2.0, N)
for array in (Z, CENTRES, WEIGHT):
    array.flags.writeable = False


def sums(rows, weight=WEIGHT, shift=None, dtype=float, centres=CENTRES, offset=0.0):
    found = Clusters(centres + offset, shift, label=True)
    own = None if weight is None else weight[rows]
    found.update(Batch((Z[rows] + offset).astype(dtype), None, own, rows=np.asarray(rows)))
    return found


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_sums_are_those_of_a_loop(weight):
    found = sums(np.arange(N), weight, Z.mean(axis=0))
    w = np.ones(N) if weight is None else weight
    distances = np.square(Z[:, None] - CENTRES).sum(axis=2)
    labels = distances.argmin(axis=1)
    np.testing.assert_array_equal(found.labels(), labels)
    np.testing.assert_allclose(found.weight, [w[labels == j].sum() for j in range(K)])
    assert found.inertia == pytest.approx(w @ distances.min(axis=1), rel=1e-12)
    mean = np.average(Z, axis=0, weights=w)
    assert found.spread == pytest.approx(w @ np.square(Z - mean).sum(axis=1), rel=1e-12)
    for j in range(K):
        np.testing.assert_allclose(found.means()[j], np.average(Z[labels == j], axis=0, weights=w[labels == j]))
    far = np.argsort(-distances.min(axis=1))[:SPARES]
    np.testing.assert_array_equal(found.spares.rows, far)


def test_parts_add_up_both_ways_and_an_empty_one_is_nothing():
    whole = sums(np.arange(N))
    left, right, empty = sums(np.arange(100)), sums(np.arange(100, N)), Clusters(CENTRES, label=True)
    for total in (left + right, right + left, empty + left + right, left + (right + empty)):
        assert total.count == N
        np.testing.assert_allclose(total.means(), whole.means(), atol=1e-12)
        np.testing.assert_array_equal(total.labels(), whole.labels())
        np.testing.assert_array_equal(total.spares.rows, whole.spares.rows)
        assert total.inertia == pytest.approx(whole.inertia)
    with pytest.raises(DataError, match="different centres"):
        left + Clusters(CENTRES + 1.0)


def test_what_is_kept_in_a_file_is_all_of_it():
    found = sums(np.arange(N))
    for one in (found, Clusters(CENTRES, label=True), Clusters(CENTRES)):
        again = one.fresh().restored(one.to_arrays())
        for total in (again, again + one.fresh()):
            assert (total.count, total.inertia, total.energy) == (one.count, one.inertia, one.energy)
            np.testing.assert_array_equal(total.means(), one.means())
            np.testing.assert_array_equal(total.labels(), one.labels())
            np.testing.assert_array_equal(total.spares.features, one.spares.features)
    batches = MiniBatches(CENTRES, np.ones(K), 8)
    batches.update(Batch(Z.copy(), rows=np.arange(N)))
    again = batches.fresh().restored(batches.to_arrays())
    np.testing.assert_array_equal(again.centres, batches.centres)
    np.testing.assert_array_equal(again.weight, batches.weight)


def test_a_large_mean_costs_no_digits():
    near = sums(np.arange(N), shift=Z.mean(axis=0))
    far = sums(np.arange(N), shift=Z.mean(axis=0) + 1e6, offset=1e6)
    assert far.inertia == pytest.approx(near.inertia, rel=1e-8)
    np.testing.assert_allclose(far.means() - 1e6, near.means(), atol=1e-8)
    single = sums(np.arange(N), shift=Z.mean(axis=0), dtype=np.float32)
    assert single.inertia == pytest.approx(near.inertia, rel=1e-5)


def test_rows_as_far_as_each_other_are_kept_by_their_numbers():
    same = Clusters(np.zeros((1, 1)))
    for rows in (np.arange(20, 40), np.arange(20)):
        same.update(Batch(np.ones((20, 1)), rows=rows))
    assert same.spares.rows.tolist() == list(range(SPARES))


def test_an_empty_cluster_takes_the_row_that_is_farthest():
    found = sums(np.arange(N), centres=np.vstack([CENTRES, [[1e3] * D, [2e3] * D]]))
    means, row = found.means(), found.spares.rows
    np.testing.assert_allclose(means[4:], Z[row[:2]])
    left = found.labels() == found.labels()[row[0]]
    left[row[:2]] = False
    np.testing.assert_allclose(means[found.labels()[row[0]]], np.average(Z[left], axis=0, weights=WEIGHT[left]))
    # Where every row is on a centre there is nothing to take, and rows of weight 0 are never taken.
    on = Clusters(np.array([[1.0], [5.0]]))
    on.update(Batch(np.ones((4, 1))))
    assert on.means().ravel().tolist() == [1.0, 5.0]
    none = Clusters(np.array([[1.0], [5.0]]))
    none.update(Batch(np.array([[1.0], [2.0]]), None, np.array([1.0, 0.0])))
    assert none.means().ravel().tolist() == [1.0, 5.0]


def test_labels_need_numbers():
    with pytest.raises(DataError, match="by their numbers"):
        Clusters(CENTRES, label=True).update(Batch(Z.copy()))
    with pytest.raises(DataError, match="by their numbers"):
        MiniBatches(CENTRES, np.ones(K), 8).update(Batch(Z.copy()))


def test_mini_batches_are_running_means():
    before = np.full(K, 5.0)
    one = MiniBatches(CENTRES, before, N, Z.mean(axis=0))
    one.update(Batch(Z.copy(), None, WEIGHT, rows=np.arange(N)))
    labels = np.square(Z[:, None] - CENTRES).sum(axis=2).argmin(axis=1)
    for j in range(K):
        own = WEIGHT * (labels == j)
        np.testing.assert_allclose(one.centres[j], (5.0 * CENTRES[j] + own @ Z) / (5.0 + own.sum()))
    # Groups are averaged by what they saw; an empty one is nothing.
    empty = MiniBatches(CENTRES, before, N, Z.mean(axis=0))
    for total in (one + empty, empty + one):
        np.testing.assert_allclose(total.centres, one.centres)
    np.testing.assert_allclose((one + one).centres, one.centres)
    with pytest.raises(DataError, match="different beginnings"):
        one + MiniBatches(CENTRES + 1.0, before, N)
    # Many small steps follow the rows, and their order within a tile is not that of the rows.
    steps = MiniBatches(CENTRES, np.zeros(K), 10)
    steps.update(Batch(Z.copy(), rows=np.arange(N)))
    distances = np.square(Z[:, None] - steps.centres).sum(axis=2).min(axis=1)
    assert distances.sum() < 0.9 * sums(np.arange(N), None).inertia
