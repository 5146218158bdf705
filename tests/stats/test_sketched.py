"""Sketches: every row once, under its sign and in its place, whatever the batches; near the scatter in the mean."""

import numpy as np
import pytest

from bochner.errors import DataError
from bochner.stats import Batch
from bochner.stats.sketched import BUCKETS, Sketch

rng = np.random.default_rng(0)
N, D, TOGETHER = 5 * BUCKETS + 77, 6, 3
Z = rng.normal(size=(N, D)) + 2.0
TARGET = np.zeros((N, 1))
WEIGHT = rng.uniform(0.0, 2.0, N)
ROWS = np.arange(N)
for array in (Z, TARGET, WEIGHT, ROWS):
    array.flags.writeable = False


def sketch(batches, weight=None, order="C", **options):
    found = Sketch(D, TOGETHER, dtype=np.float64, **options)
    for rows in batches:
        fresh = np.array(Z[rows], order=order)
        found.update(Batch(fresh, TARGET[rows], None if weight is None else weight[rows], rows=ROWS[rows]))
        np.testing.assert_array_equal(fresh, Z[rows])  # others may still want them
    return found


def plain(weight=None, seed=0):
    """Row by row."""
    root = np.ones(N) if weight is None else np.sqrt(weight)
    probe = Sketch(D, TOGETHER, seed).seed
    windows = -(-N // (BUCKETS * TOGETHER))
    signs = np.concatenate([probe.stream("signs", w).signs(BUCKETS * TOGETHER) for w in range(windows)])[:N]
    S, counts = np.zeros((windows * BUCKETS, D)), np.zeros(windows * BUCKETS)
    for i in range(N):
        place = i // (BUCKETS * TOGETHER) * BUCKETS + i % BUCKETS
        S[place] += signs[i] * root[i] * Z[i]
        counts[place] += signs[i] * root[i]
    return S, counts


PIECES = {
    "whole": [slice(0, N)],
    "tiles": [slice(i, min(i + 100, N)) for i in range(0, N, 100)],
    "backwards": [slice(i, min(i + 700, N)) for i in reversed(range(0, N, 700))],
    "shuffled": np.array_split(np.random.default_rng(1).permutation(N), 7),
    "by class": [np.flatnonzero(ROWS % 3 == c) for c in range(3)],
    "single": [np.array([i]) for i in range(N)],
}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("batches", PIECES.values(), ids=PIECES)
def test_every_row_is_where_its_number_says(batches, order, weight):
    S, counts = plain(weight)
    mean = Z.mean(axis=0)
    found = sketch(batches, weight, order)
    np.testing.assert_allclose(found.take(mean), S - np.outer(counts, mean), atol=1e-11)


def test_sketches_of_parts_merge_and_a_fresh_one_is_the_identity():
    mean = Z.mean(axis=0)
    whole = sketch(PIECES["whole"]).take(mean)
    for cut in (1000, 2 * BUCKETS * TOGETHER):
        a, b = sketch([slice(0, cut)]), sketch([slice(cut, N)])
        np.testing.assert_allclose((a + b + a.fresh()).take(mean), whole, atol=1e-11)
    np.testing.assert_array_equal((sketch([]) + sketch(PIECES["whole"])).take(mean), whole)
    for other in (Sketch(D, 4), Sketch(D, TOGETHER, 1, dtype=np.float64), Sketch(D, TOGETHER, dtype=np.float32)):
        with pytest.raises(DataError, match="do not add"):
            sketch([]) + other


def test_its_gram_is_the_scatter_in_the_mean():
    mean = np.average(Z, axis=0, weights=WEIGHT)
    scatter = ((Z - mean) * WEIGHT[:, None]).T @ (Z - mean)
    grams = []
    for seed in range(40):
        S = sketch(PIECES["whole"], WEIGHT, seed=seed).take(mean)
        grams.append(S.T @ S)
    spread = np.std(grams, axis=0) / np.sqrt(40)
    assert (np.abs(np.mean(grams, axis=0) - scatter) < 5.0 * spread).all()
    assert np.linalg.norm(grams[0] - scatter) < 0.2 * np.linalg.norm(scatter)


def test_unlabelled_and_held_out_rows_are_left_out():
    found = sketch([slice(0, 100)], held=1)
    found.update(Batch(Z[100:200].copy(), None, rows=ROWS[100:200]))
    found.update(Batch(Z[200:300].copy(), TARGET[200:300], fold=1, rows=ROWS[200:300]))
    np.testing.assert_array_equal(found.take(np.zeros(D)), sketch([slice(0, 100)]).take(np.zeros(D)))


def test_rows_without_numbers_are_refused():
    with pytest.raises(DataError, match="numbers of the rows"):
        Sketch(D, 2).update(Batch(Z[:3].copy(), TARGET[:3]))
