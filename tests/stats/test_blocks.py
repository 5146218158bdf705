"""Moments of blocks are those of the whole without what lies between blocks."""

import numpy as np

from bochner.stats import Batch, BlockMoments, Moments

rng = np.random.default_rng(0)
Z, W = rng.normal(size=(200, 7)) + 5.0, rng.uniform(0.5, 2.0, 200)


def fed(statistic, rows, target=None):
    statistic.update(Batch(Z[rows].copy(), target, W[rows]))
    return statistic


def test_blocks_are_blocks_of_the_whole():
    whole = fed(Moments(7), slice(None)).total()
    empty = BlockMoments((4, 3))
    merged = empty + fed(BlockMoments((4, 3)), slice(0, 120)) + fed(BlockMoments((4, 3)), slice(120, None))
    again = empty.restored(merged.to_arrays())
    for found in (merged, again, merged + empty.fresh()):
        for part, here in zip(found.parts, (slice(4), slice(4, 7)), strict=True):
            np.testing.assert_allclose(part.mean, whole.mean[here], rtol=1e-12)
            np.testing.assert_allclose(part.scatter, whole.scatter[here, here], rtol=1e-10, atol=1e-10)
            assert part.count == 200
    assert merged.nbytes == 8 * (16 + 9)


def test_rows_without_a_target_count_where_they_shall():
    target = np.ones((50, 1))
    for unlabelled, count in ((True, 200), (False, 50)):
        moments = BlockMoments((4, 3), unlabelled)
        fed(fed(moments, slice(50), target), slice(50, None))
        assert [part.count for part in moments.parts] == [count, count]
