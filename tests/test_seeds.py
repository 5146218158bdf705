"""Streams: the same numbers for ever, of the laws that they are named after."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from bochner.seeds import Seed, Stream, as_seed

DRAWS = 20_000


def stream(*path):
    return Stream(42, path or (1, 2))


def test_golden_values():
    """A model file keeps seeds instead of matrices: these numbers may never change."""
    assert stream()._raw(3).tolist() == [0xC5F4F084EEB6952C, 0x2D6E873F08C2A543, 0x639D362620175471]
    signs = [-1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1, -1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, -1]
    assert stream().signs(24).tolist() == signs
    assert stream().permutation(8).tolist() == [5, 7, 1, 6, 2, 3, 0, 4]
    assert stream().integers(1000, 6).tolist() == [773, 177, 389, 683, 925, 107]
    assert stream().geometric(0.5, 12).tolist() == [0, 2, 1, 0, 0, 3, 1, 3, 3, 2, 1, 1]
    assert stream().choice(np.array([1.0, 0.0, 2.0, 5.0]), 12).tolist() == [3, 2, 3, 3, 3, 0, 2, 0, 0, 2, 2, 3]
    uniform = [float.fromhex(u) for u in ("0x1.8be9e109dd6d2p-1", "0x1.6b7439f846152p-3", "0x1.8e74d898805d5p-2")]
    np.testing.assert_allclose(stream().uniform(3), uniform, rtol=0, atol=2.0**-52)
    # Quantiles are as exact as SciPy's special functions, and no more.
    for found, wanted in [
        (stream().normal(3), [0.7496549629098916, -0.9250583505282722, -0.2816195932368132]),
        (stream().chi(5.0, 3), [2.630407084046037, 1.479271449304315, 1.8928553453451298]),
        (stream().gamma(0.7, 3), [1.043850437837972, 0.07716499976791527, 0.2632019523088698]),
    ]:
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert Seed(7).child("signs", 3) == Seed(7, (1100246657, 3))
    assert Seed(7).stream("signs", 3).integers(10**6, 2).tolist() == [710304, 596653]


LAWS = [
    (lambda s: s.uniform(DRAWS), stats.uniform()),
    (lambda s: s.normal(DRAWS), stats.norm()),
    (lambda s: s.chi(7, DRAWS), stats.chi(7)),
    (lambda s: s.chi(1, DRAWS), stats.chi(1)),
    (lambda s: s.chi(500, DRAWS), stats.chi(500)),
    (lambda s: s.gamma(0.3, DRAWS), stats.gamma(0.3)),
    (lambda s: s.gamma(4.5, DRAWS), stats.gamma(4.5)),
]


@pytest.mark.parametrize(("draw", "law"), LAWS)
def test_continuous_laws(draw, law):
    assert stats.kstest(draw(stream()), law.cdf).pvalue > 1e-3


def agrees(counts, probabilities):
    expected = np.asarray(probabilities) * np.sum(counts)
    return stats.chisquare(counts, expected).pvalue > 1e-3


@pytest.mark.parametrize("ratio", [0.5, 0.1, 0.9, 1 / 3])
def test_geometric(ratio):
    n = stream().geometric(ratio, DRAWS)
    assert n.min() == 0
    last = int(np.log(50 / DRAWS) / np.log(ratio))
    counts = np.bincount(np.minimum(n, last), minlength=last + 1)
    probabilities = [*((1 - ratio) * ratio**i for i in range(last)), ratio**last]
    assert agrees(counts, probabilities)


def test_signs():
    signs = stream().signs(DRAWS, 3)
    assert signs.dtype == np.int8
    assert set(np.unique(signs)) == {-1, 1}
    codes = (signs > 0) @ np.array([1, 2, 4])
    assert agrees(np.bincount(codes, minlength=8), np.full(8, 1 / 8))


def test_integers():
    assert agrees(np.bincount(stream().integers(7, DRAWS), minlength=7), np.full(7, 1 / 7))
    assert stream().integers(1, 10).max() == 0


def test_permutations():
    source = stream()
    orders = [source.permutation(4) for _ in range(DRAWS // 10)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    codes = [int(order @ np.array([64, 16, 4, 1])) for order in orders]
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == math.factorial(4)
    assert agrees(counts, np.full(24, 1 / 24))
    assert stream().permutation(0).tolist() == []


def test_choice():
    weights = np.array([0.0, 3.0, 0.0, 1.0, 4.0, 0.0])
    chosen = stream().choice(weights, DRAWS)
    counts = np.bincount(chosen, minlength=6)
    assert (counts[weights == 0] == 0).all()
    assert agrees(counts[weights > 0], [3 / 8, 1 / 8, 4 / 8])


def test_draws_follow_each_other():
    """A longer draw begins with the shorter one, and two calls continue where one long one would."""
    for name, arguments in [("uniform", ()), ("normal", ()), ("chi", (3,)), ("geometric", (0.5,)), ("integers", (9,))]:
        whole = getattr(stream(), name)(*arguments, 12)
        source = stream()
        parts = [getattr(source, name)(*arguments, n) for n in (5, 7)]
        assert np.array_equal(np.concatenate(parts), whole)
        assert np.array_equal(getattr(stream(), name)(*arguments, 3, 4), whole.reshape(3, 4))
    assert np.array_equal(stream().signs(200)[:70], stream().signs(70))


def test_shapes():
    assert stream().uniform().shape == ()
    assert stream().uniform(0, 3).shape == (0, 3)
    assert stream().signs(0).shape == (0,)
    assert stream().signs(2, 3).shape == (2, 3)


def test_the_ends_are_never_drawn():
    u = stream().uniform(1_000_000)
    assert 0.0 < u.min() < 1e-5
    assert 1.0 - 1e-5 < u.max() < 1.0


PATHS = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), ("a",), ("b",), ("a", 0), ("a", "b"), ("ab",), (2**31,)]


def test_children_differ():
    firsts = {Seed(root).stream(*path).uniform(1)[0] for root in (0, 1, 2**40) for path in PATHS}
    assert len(firsts) == 3 * len(PATHS)


def test_children_are_independent():
    u = np.array([Seed(3).stream("block", j).uniform(2_000) for j in range(20)])
    correlations = np.corrcoef(u)[np.triu_indices(20, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(2_000)
    assert stats.kstest(u[:, 0], stats.uniform.cdf).pvalue > 1e-3


def test_the_path_is_all_that_counts():
    seed = Seed(5)
    assert seed.child("a").child(1) == seed.child("a", 1)
    assert hash(seed.child("a")) == hash(Seed(5).child("a"))
    assert pickle.loads(pickle.dumps(seed.child("a", 1))) == seed.child("a", 1)
    assert np.array_equal(seed.child("a").stream(1).uniform(3), seed.stream("a", 1).uniform(3))


def test_as_seed():
    assert as_seed(3) == as_seed(np.int64(3)) == as_seed(Seed(3)) == Seed(3)
    with pytest.raises(ValueError, match="non-negative integer, got -1"):
        as_seed(-1)


@pytest.mark.parametrize("seed", [1.5, "1", None, -1])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match="non-negative integer"):
        as_seed(seed)
