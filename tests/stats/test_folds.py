"""Folds: by the number of the row or its group, however the rows are cut."""

import numpy as np
import pytest

from bochner.errors import DataError
from bochner.stats.folds import Folds


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_folds_do_not_depend_on_chunks(cut):
    folds = Folds(5, seed=3)
    whole = folds.assign(0, 3000)
    parts = [folds.assign(start, min(cut, 3000 - start)) for start in range(0, 3000, cut)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_folds_are_even_and_independent_of_the_order(count):
    fold = Folds(count).assign(0, 100_000)
    share = np.bincount(fold, minlength=count) / 100_000
    assert len(share) == count
    np.testing.assert_allclose(share, 1.0 / count, atol=5 * np.sqrt(1.0 / count / 100_000))
    # Neighbours: as often in one fold as chance has it.
    assert np.mean(fold[1:] == fold[:-1]) == pytest.approx(1.0 / count, abs=0.01)


def test_another_seed_gives_other_folds():
    a, b = Folds(4, seed=0).assign(0, 10_000), Folds(4, seed=1).assign(0, 10_000)
    assert np.mean(a == b) == pytest.approx(0.25, abs=0.02)
    np.testing.assert_array_equal(a, Folds(4, seed=0).assign(0, 10_000))


def test_the_assignment_stays_from_version_to_version():
    assert Folds(5).assign(0, 12).tolist() == [0, 0, 0, 3, 3, 3, 2, 2, 2, 3, 1, 3]


@pytest.mark.parametrize("dtype", [int, str, object])
def test_groups_are_never_apart(dtype):
    group = np.random.default_rng(0).integers(0, 400, 5000).astype(dtype)
    folds = Folds(3)
    fold = folds.assign(0, 5000, group)
    for name in np.unique(group):
        assert len(np.unique(fold[group == name])) == 1
    np.testing.assert_array_equal(
        np.concatenate([folds.assign(0, 99, group[:99]), folds.assign(99, 4901, group[99:])]), fold
    )
    share = np.bincount(fold, minlength=3) / 5000
    assert share.min() > 0.2


def test_fewer_than_two_folds_are_refused():
    with pytest.raises(DataError, match="at least 2 folds, got 1"):
        Folds(1)
