"""Products of second moments with vectors, and right-hand sides: those of all rows at once, however they come."""

import numpy as np
import pytest
import scipy.sparse as sp

from bochner import features, kernels
from bochner.errors import DataError
from bochner.run import Flow, Local
from bochner.sources import MemorySource
from bochner.stats import Batch, Classes, Folds, Numbers
from bochner.stats.products import FEW, Cross, Guess, Products, RightSide
from bochner.stats.together import Together

rng = np.random.default_rng(0)
N, D = 3000, 24
X = rng.normal(size=(N, 3))
WEIGHT = rng.uniform(0.0, 3.0, N)
NUMBERS = rng.normal(size=(N, 2)) + 1e6
DRAWN = features.RandomFourier(kernels.Gaussian(0.5), D).draw(3, seed=0)
Z = DRAWN(X)
V = rng.normal(size=(D, 3))
for array in (X, WEIGHT, NUMBERS, Z, V):
    array.flags.writeable = False


def swept(statistic, y=NUMBERS, weight=None, rows=X, threads=1, **options):
    classes = np.asarray(y).ndim == 1
    targets = Classes(np.arange(int(np.nanmax(y)) + 1)) if classes else Numbers(y.shape[1])
    options = {"targets": targets, "dtype": "float64", **options}
    return Local(threads).sweep(Flow(MemorySource(rows, y, weight), DRAWN, **options), statistic)


def expected(y, weight, rows=slice(None)):
    """Mean, target mean, cross and squares, plainly."""
    T = np.eye(int(y.max()) + 1)[y] if y.ndim == 1 else y
    w = np.ones(N)[rows] if weight is None else weight[rows]
    T, z = T[rows], Z[rows]
    mean, target_mean = np.average(z, axis=0, weights=w), np.average(T, axis=0, weights=w)
    moved = (T - target_mean) * w[:, None]
    return mean, target_mean, (z - mean).T @ moved, (moved * (T - target_mean)).sum(axis=0), w


def check(found: Cross, y, weight, rows=slice(None)):
    mean, target_mean, cross, squares, w = expected(y, weight, rows)
    np.testing.assert_allclose(found.mean, mean, atol=1e-14)
    np.testing.assert_allclose(found.target_mean, target_mean, rtol=1e-14)
    np.testing.assert_allclose(found.cross, cross, atol=1e-9 * np.abs(cross).max())
    np.testing.assert_allclose(found.target_scatter, squares, rtol=1e-9)
    np.testing.assert_allclose(found.trace, (w @ np.square(Z[rows] - mean)).sum(), rtol=1e-12)
    assert found.weight == pytest.approx(w.sum(), rel=1e-14)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weight", [None, WEIGHT, 1e-8 * WEIGHT], ids=["plain", "weighted", "light"])
@pytest.mark.parametrize("classes", [None, 3, FEW, FEW + 9])
@pytest.mark.parametrize("by_class", [True, False])
def test_right_sides_are_those_of_all_rows_at_once(threads, weight, classes, by_class):
    y = NUMBERS if classes is None else np.arange(N) * 7 % classes
    outputs = 2 if classes is None else classes
    found = swept(RightSide(D, outputs), y, weight, threads=threads, by_class=by_class).value
    check(found, y, weight)
    assert found.count == N


def test_the_value_of_a_right_side_can_be_asked_for_on_the_way():
    side = RightSide(D, 2)
    for rows in (slice(0, 1000), slice(1000, N)):
        side.update(Batch(Z[rows].copy(), NUMBERS[rows]))
        assert side.value.count == rows.stop
    check(side.value, NUMBERS, None)


def test_held_out_rows_make_a_right_side_of_their_own():
    folds = Folds(3)
    of = folds.assign(0, N)
    both = Together(RightSide(D, 2, held=1), RightSide(D, 2, only=1))
    rest, only = swept(both, folds=folds, weight=WEIGHT).parts
    check(rest.value, NUMBERS, WEIGHT, of != 1)
    check(only.value, NUMBERS, WEIGHT, of == 1)
    check(rest.value + only.value, NUMBERS, WEIGHT)


def test_an_empty_right_side_is_the_identity_both_ways_and_others_do_not_add():
    whole = swept(RightSide(D, 2))
    for both in (whole + whole.fresh(), whole.fresh() + whole):
        np.testing.assert_array_equal(both.value.cross, whole.value.cross)
        assert both.value.count == N
    nothing = RightSide(D, 2)
    nothing.update(Batch(Z[:2].copy(), NUMBERS[:2], weight=np.zeros(2)))
    assert (whole + nothing).value.count == N + 2
    np.testing.assert_array_equal((whole + nothing).value.cross, whole.value.cross)
    for other in (RightSide(D, 3), RightSide(D, 2, held=1), RightSide(D, 2, only=1)):
        with pytest.raises(DataError, match="do not add"):
            whole + other


def scatter(weight, mean, rows=slice(None)):
    w = np.ones(N)[rows] if weight is None else weight[rows]
    return ((Z[rows] - mean) * w[:, None]).T @ (Z[rows] - mean)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("weight", [None, WEIGHT, 1e8 * WEIGHT], ids=["plain", "weighted", "heavy"])
def test_products_are_those_of_the_scatter(threads, far, weight):
    mean = np.average(Z, axis=0, weights=weight)
    found = swept(Products(V, mean, far=far), weight=weight, threads=threads)
    S = scatter(weight, mean)
    np.testing.assert_allclose(found.value, S @ V, atol=1e-12 * np.abs(S).max())
    moments = swept(RightSide(D, 2), weight=weight).value
    assert moments.trace == pytest.approx(np.trace(S), rel=1e-12)


def test_how_rows_are_stored_and_cut_makes_no_difference():
    mean = Z.mean(axis=0)
    plain = swept(Products(V, mean)).value
    sparse = swept(Products(V, mean), rows=sp.csr_array(X)).value
    np.testing.assert_allclose(sparse, plain, atol=1e-10 * N)
    single = swept(Products(V, mean), dtype="float32").value
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, plain, atol=1e-6 * np.abs(plain).max())


def test_a_mean_that_is_longer_than_the_deviations_loses_no_digits_where_it_is_said():
    moved = (Z + 3000.0).astype(np.float32)
    mean = moved.mean(axis=0, dtype=np.float64)
    exact = (moved - mean).T @ ((moved - mean) @ V)
    error = {}
    for far in (False, True):
        products = Products(V, mean, far=far)
        products.update(Batch(moved.copy(), NUMBERS))
        error[far] = np.abs(products.value - exact).max() / np.abs(exact).max()
    assert error[True] < 1e-4
    assert error[True] < 0.01 * error[False]


def test_unlabelled_rows_count_for_nothing():
    y = NUMBERS.copy()
    y[::3, 1] = np.nan
    rows = np.arange(N) % 3 != 0
    check(swept(RightSide(D, 2), y, WEIGHT).value, NUMBERS, WEIGHT, rows)
    mean = np.average(Z[rows], axis=0, weights=WEIGHT[rows])
    found = swept(Products(V, mean), y, WEIGHT).value
    np.testing.assert_allclose(found, scatter(WEIGHT, mean, rows) @ V, atol=1e-9 * N)


@pytest.mark.parametrize("classes", [None, 3])
def test_guesses_are_judged_on_the_held_out_rows_alone(classes):
    folds, outputs, sets = Folds(4), classes or 2, 2
    held = folds.assign(0, N) == 2
    y = NUMBERS if classes is None else np.arange(N) * 7 % classes
    T = y if classes is None else np.eye(classes)[y]
    mean = Z[~held].mean(axis=0)
    guess = Guess(rng.normal(size=(D, sets * outputs)), rng.normal(size=sets * outputs), outputs)
    found = swept(Products(V, mean, 2, guess), y, WEIGHT, folds=folds)
    np.testing.assert_allclose(found.value, scatter(WEIGHT, mean, ~held) @ V, atol=1e-9 * N)
    f = Z @ guess.coef + guess.intercept
    error = WEIGHT[held] @ np.square(f - np.tile(T, sets))[held]
    np.testing.assert_allclose(found.held_error, error, rtol=1e-10)
    assert found.held_weight == pytest.approx(WEIGHT[held].sum())
    if classes is not None:
        wrong = [WEIGHT[held] @ (part.argmax(axis=1) != y)[held] for part in np.hsplit(f, sets)]
        np.testing.assert_allclose(found.held_wrong, wrong, rtol=1e-12)
    both = found + found.fresh()
    np.testing.assert_array_equal(both.held_error, found.held_error)
    np.testing.assert_array_equal(both.held_wrong, found.held_wrong)


def test_products_of_other_directions_do_not_add():
    with pytest.raises(DataError, match="different directions"):
        Products(V, np.zeros(D)) + Products(V + 1.0, np.zeros(D))
