"""Moments: what slow definitions give, in any order and any cut, with nothing lost in the digits."""

import numpy as np
import pytest

from bochner.errors import DataError
from bochner.stats.base import Batch
from bochner.stats.moments import UNLABELLED, Moments, Part, merged

rng = np.random.default_rng(0)
N, D, K = 500, 7, 3
Z = rng.normal(1.0, 1.0, size=(N, D))
T = rng.normal(size=(N, K)) + Z[:, :K]
CODES = rng.integers(0, K, N)
WEIGHT = rng.uniform(0.1, 3.0, N)
FOLD = rng.integers(0, 3, N)
for array in (Z, T, CODES, WEIGHT, FOLD):
    array.flags.writeable = False


def slow(Z, T, weight=None):
    """Moments by their definitions."""
    w = np.ones(len(Z)) if weight is None else weight
    mean, target_mean = w @ Z / w.sum(), w @ T / w.sum()
    Zc, Tc = Z - mean, T - target_mean
    return Part(
        len(Z),
        w.sum(),
        mean,
        target_mean,
        (Zc * w[:, None]).T @ Zc,
        (Zc * w[:, None]).T @ Tc,
        w @ Tc**2,
        (w**2).sum(),
        (w * np.log(w)).sum(),
    )


def of(Z, target=None, weight=None, fold=None, cuts=5, outputs=None):
    """Moments of rows in several batches."""
    outputs = (
        outputs if outputs is not None else (0 if target is None else (K if target.ndim == 1 else target.shape[1]))
    )
    moments = Moments(Z.shape[1], outputs)
    for rows in np.array_split(np.arange(len(Z)), cuts):
        for f in np.unique(0 if fold is None else fold[rows]):
            here = rows if fold is None else rows[fold[rows] == f]
            moments.update(
                Batch(
                    Z[here].copy(),
                    None if target is None else target[here],
                    None if weight is None else weight[here],
                    int(f),
                )
            )
    return moments


def alike(a: Part, b: Part, tolerance=1e-12):
    """Equal to a share of the scale of each moment."""
    assert a.count == b.count
    scale = {
        "weight": b.weight,
        "mean": np.abs(b.mean).max() + 1.0,
        "target_mean": np.abs(b.target_mean).max(initial=0.0) + 1.0,
        "scatter": np.trace(b.scatter),
        "cross": np.sqrt(np.trace(b.scatter) * b.target_scatter.sum()),
        "target_scatter": b.target_scatter.sum(),
        "weight_square": b.weight_square,
        "weight_log": b.weight + abs(b.weight_log),
    }
    for name, size in scale.items():
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=0, atol=tolerance * max(size, 1e-300), err_msg=name
        )


def same_bits(a: Part, b: Part):
    for name in Part.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("cuts", [1, 4, 60])
def test_numbers_as_by_definition(weight, cuts):
    alike(of(Z, T, weight, cuts=cuts).total(), slow(Z, T, weight))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("sort", [True, False], ids=["runs of classes", "in any order"])
def test_classes_are_their_indicators(weight, sort):
    order = np.argsort(CODES, kind="stable") if sort else np.arange(N)
    w = None if weight is None else weight[order]
    alike(of(Z[order], CODES[order], w).total(), slow(Z, np.eye(K)[CODES], weight))


def test_one_column_of_numbers_and_none():
    alike(of(Z, T[:, :1]).total(), slow(Z, T[:, :1]))
    alike(of(Z).total(), slow(Z, np.empty((N, 0))))


def test_weights_are_repeated_rows():
    counts = rng.integers(1, 5, N)
    repeated = np.repeat(np.arange(N), counts)
    weighted = of(Z, T, counts.astype(float)).total()
    expanded = of(Z[repeated], T[repeated]).total()
    for name in ("weight", "mean", "target_mean", "scatter", "cross", "target_scatter"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(expanded, name), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_weights_scale_everything(scale, dtype):
    a = of(Z.astype(dtype), T, WEIGHT * scale).total()
    alike(a, slow(Z.astype(dtype).astype(float), T, WEIGHT * scale), 1e-6 if dtype == "float32" else 1e-12)


def test_rows_of_weight_zero_count_for_nothing():
    w = WEIGHT * (np.arange(N) % 2)
    some = w > 0
    a, b = of(Z, T, w).total(), of(Z[some], T[some], w[some]).total()
    np.testing.assert_allclose(a.scatter, b.scatter, atol=1e-10)
    np.testing.assert_allclose(a.weight_log, b.weight_log, rtol=1e-12)
    none = of(Z, T, np.zeros(N))
    assert none.total().weight == 0.0
    assert (none + of(Z, T)).total().weight == N
    np.testing.assert_array_equal((of(Z, T) + none).total().scatter, of(Z, T).total().scatter)


def test_float32_tiles_are_promoted():
    rows, width = 60_000, 64
    X = rng.normal(size=(rows, width)) @ rng.normal(size=(width, width)) / 8.0
    X = np.cos(X).astype(np.float32)
    moments = Moments(width, 1)
    for part in np.array_split(np.arange(rows), 30):
        moments.update(Batch(X[part].copy(), X[part, :1].astype(np.float64)))
    exact = slow(X.astype(np.float64), X[:, :1].astype(np.float64))
    mean_diagonal = np.trace(exact.scatter) / width
    off = moments.total().scatter - exact.scatter
    assert np.sqrt(np.mean(off**2)) < 3e-8 * mean_diagonal
    assert np.abs(off).max() < 2e-7 * mean_diagonal
    np.testing.assert_allclose(moments.total().mean, exact.mean, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_targets_with_a_large_mean_lose_nothing(dtype):
    X = Z.astype(dtype)
    far, near = of(X, T + 1e6).total(), of(X, T).total()
    np.testing.assert_allclose(far.target_mean - 1e6, near.target_mean, atol=1e-9)
    tolerance = 1e-7 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(far.cross, near.cross, rtol=0, atol=tolerance * np.abs(near.cross).max())
    np.testing.assert_allclose(far.target_scatter, near.target_scatter, rtol=1e-9)


def test_features_with_a_large_mean_lose_nothing_in_float64():
    alike(of(Z + 1e6, T).total(), slow(Z + 1e6, T), 1e-9)
    np.testing.assert_allclose(of(Z + 1e6, T).total().scatter, slow(Z, T).scatter, rtol=0, atol=1e-6)


def test_targets_that_drift_from_batch_to_batch():
    drift = T + 1e4 * np.arange(N)[:, None]
    alike(of(Z, drift, cuts=50).total(), slow(Z, drift), 1e-11)


def test_a_fresh_one_is_the_identity_both_ways():
    moments = of(Z, T, WEIGHT, FOLD)
    empty = moments.fresh()
    for joined in (empty + moments, moments + empty):
        assert joined.parts.keys() == moments.parts.keys()
        for key, part in moments.parts.items():
            same_bits(joined.parts[key], part)
    assert (empty + empty).parts == {}


def test_parts_merge_in_any_grouping():
    a, b, c = (of(Z[s], T[s], WEIGHT[s]).total() for s in (slice(0, 3), slice(3, 200), slice(200, N)))
    whole = slow(Z, T, WEIGHT)
    alike((a + b) + c, whole)
    alike(a + (b + c), whole)
    alike((c + b) + a, whole)
    identity = Part.empty(D, K)
    same_bits(a + identity, a)
    same_bits(identity + a, a)
    alike(merged([a, b, c], D, K), whole)


def test_one_row_has_no_scatter():
    part = of(Z[:1], T[:1]).total()
    assert part.count == 1
    np.testing.assert_allclose(part.scatter, 0.0, atol=1e-15)
    np.testing.assert_allclose(part.mean, Z[0])


def test_what_was_added_can_be_taken_away():
    first, second = of(Z[:300], T[:300], WEIGHT[:300]), of(Z[300:], T[300:], WEIGHT[300:])
    alike((first + second - second).total(), slow(Z[:300], T[:300], WEIGHT[:300]), 1e-11)
    alike((first + second - first).total(), slow(Z[300:], T[300:], WEIGHT[300:]), 1e-11)
    assert (first - first).parts == {}
    same_bits((first - first.fresh()).total(), first.total())


def test_rows_that_were_never_added_are_not_taken_away():
    few, many = of(Z[:10], T[:10]), of(Z, T)
    with pytest.raises(DataError, match="500 rows cannot be taken from 10"):
        _ = few - many
    with pytest.raises(DataError, match="no rows of fold 1"):
        _ = many - of(Z[:5], T[:5], fold=np.ones(5, dtype=int))
    with pytest.raises(DataError, match="7 features and 3 targets do not combine with those of 7 features and 1"):
        _ = many + of(Z, T[:, :1])
    with pytest.raises(DataError, match="do not combine"):
        _ = many.total() + of(Z[:, :2], T).total()


def test_folds_are_kept_apart():
    moments = of(Z, T, WEIGHT, FOLD)
    assert list(moments.parts) == [0, 1, 2]
    for key, part in moments.parts.items():
        alike(part, slow(Z[FOLD == key], T[FOLD == key], WEIGHT[FOLD == key]))
    alike(moments.total(), slow(Z, T, WEIGHT))
    alike(moments.total() - moments.parts[1], slow(Z[FOLD != 1], T[FOLD != 1], WEIGHT[FOLD != 1]), 1e-11)


def test_unlabelled_rows_are_a_part_of_their_own():
    moments = of(Z[:300], T[:300], fold=FOLD[:300])
    moments.update(Batch(Z[300:].copy(), None, None, 0))
    assert list(moments.parts) == [UNLABELLED, 0, 1, 2]
    assert len(moments.labelled()) == 3
    alike(moments.total(), slow(Z[:300], T[:300]))
    everything = moments.total(unlabelled=True)
    np.testing.assert_allclose(everything.scatter, slow(Z, T).scatter, atol=1e-10)
    np.testing.assert_allclose(everything.mean, Z.mean(axis=0), atol=1e-13)


def test_an_empty_batch_changes_nothing():
    moments = of(Z, T)
    before = moments.total()
    moments.update(Batch(np.empty((0, D)), np.empty((0, K))))
    same_bits(moments.total(), before)


def test_parts_can_be_read_between_updates():
    moments = of(Z[:100], T[:100])
    assert moments.total().count == 100
    moments.update(Batch(Z[100:].copy(), T[100:]))
    alike(moments.total(), slow(Z, T))


def test_other_features_from_moments_alone():
    part = of(Z, T, WEIGHT).total()
    basis = rng.normal(size=(D, 4))
    alike(part.transformed(basis), slow(Z @ basis, T, WEIGHT), 1e-11)
    alike(part.leading(3, 2.0), slow(2.0 * Z[:, :3], T, WEIGHT), 1e-11)
    factors = rng.uniform(0.0, 2.0, D)
    alike(part.scaled(factors), slow(Z * factors, T, WEIGHT), 1e-11)


def test_arrays_bring_moments_back_bit_for_bit():
    moments = of(Z, CODES, WEIGHT, FOLD)
    moments.update(Batch(Z[:9].copy(), None))
    again = Moments.from_arrays(moments.to_arrays())
    assert again.parts.keys() == moments.parts.keys()
    for key, part in moments.parts.items():
        same_bits(again.parts[key], part)
    assert isinstance(again.total().count, int)
    assert Moments.from_arrays(Moments(D, K).to_arrays()).parts == {}


def changed(name, value):
    arrays = of(Z, T).to_arrays()
    if value is None:
        del arrays[name]
    else:
        arrays[name] = value
    return arrays


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shape", None),
        ("shape", np.array([7])),
        ("shape", np.array([6, 3])),
        ("shape", np.array([-7, 3])),
        ("0.scatter", None),
        ("0.scatter", np.full((D, D), np.nan)),
        ("0.scatter", np.eye(D, dtype=complex)),
        ("0.scatter", np.full((D, D), "1")),
        ("0.scatter", np.eye(D) + np.eye(D, k=1)),
        ("0.scatter", -np.eye(D)),
        ("0.target_scatter", -np.ones(K)),
        ("0.mean", np.zeros((1, D))),
        ("0.weight", np.array(-1.0)),
        ("0.count", np.array(-3)),
        ("0.count", np.array(2.5)),
        ("0.surprise", np.zeros(1)),
        ("x.mean", np.zeros(D)),
    ],
)
def test_arrays_that_are_not_moments_are_refused(name, value):
    with pytest.raises(DataError, match="these are not moments"):
        Moments.from_arrays(changed(name, value))


def test_memory_is_known_before_rows_are_seen():
    assert Moments(100, 0).nbytes == 8 * 100 * 100
    assert Moments(100, 10, folds=5).nbytes >= 5 * 8 * (100 * 100 + 100 * 10)
