"""Gradients by sweeps are those of all rows at once, at every point; held-out rows count elsewhere."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from bochner import features, kernels
from bochner.errors import DataError
from bochner.run import Flow, Local
from bochner.solvers.losses import LOSSES, Logistic
from bochner.sources import MemorySource
from bochner.stats import Batch, Classes, Folds, Numbers
from bochner.stats.gradient import Gradient

rng = np.random.default_rng(0)
N, D, POINTS = 3000, 16, 3
X = rng.normal(size=(N, 3))
y = (X @ rng.normal(size=(3, 4))).argmax(axis=1)
weight = rng.uniform(0.0, 3.0, N)
drawn = features.RandomFourier(kernels.Gaussian(0.5), D).draw(3, seed=0)
Z = drawn(X)
centre = Z.mean(axis=0)
for array in (X, y, weight, Z, centre):
    array.flags.writeable = False


def points(k):
    return 3.0 * rng.normal(size=(POINTS, D, k)), rng.normal(size=(POINTS, k))


def swept(sums, labels=y, classes=4, threads=1, **options):
    options = {"targets": Classes(np.arange(classes)), "dtype": "float64", **options}
    return Local(threads).sweep(Flow(MemorySource(X, labels, weight), drawn, **options), sums)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=str)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_sums_are_those_of_all_rows_at_once(loss, classes, threads):
    codes = y % classes
    coef, intercept = points(loss.outputs(classes))
    sums = swept(Gradient(loss, coef, intercept, centre), codes, classes, threads)
    assert sums.count == N
    assert sums.weight == pytest.approx(weight.sum(), rel=1e-14)
    for p in range(POINTS):
        outputs = (Z - centre) @ coef[p] + intercept[p]
        value, slope = loss.value_and_slope(outputs, codes)
        np.testing.assert_allclose(sums.loss[p], weight @ value, rtol=1e-12)
        np.testing.assert_allclose(sums.slopes[p], weight @ slope, atol=1e-9)
        np.testing.assert_allclose(sums.gradient[p], (Z - centre).T @ (slope * weight[:, None]), atol=1e-9)
        np.testing.assert_allclose(sums.curvature[p], loss.curvature(outputs, slope, weight), atol=1e-9)


def test_the_gradient_is_that_of_the_loss():
    def sums(x):
        return swept(Gradient(Logistic(), x[:-1].reshape(1, D, 1), x[-1:].reshape(1, 1)), y % 2, 2)

    def gradient(x):
        at = sums(x)
        return np.append(at.gradient.ravel(), at.slopes.ravel())

    x = rng.normal(size=D + 1)
    assert check_grad(lambda x: sums(x).loss[0], gradient, x, epsilon=1e-6) < 1e-5 * np.linalg.norm(gradient(x))


def test_features_in_single_precision_give_sums_in_double():
    coef, intercept = points(4)
    exact = swept(Gradient(Logistic(), coef, intercept, centre))
    single = swept(Gradient(Logistic(), coef, intercept, centre), dtype="float32")
    assert single.gradient.dtype == single.loss.dtype == np.float64
    assert (exact.precision, single.precision) == (np.finfo("f8").eps, np.finfo("f4").eps)
    np.testing.assert_allclose(single.gradient, exact.gradient, atol=3e-6 * np.abs(exact.gradient).max())
    np.testing.assert_allclose(single.loss, exact.loss, rtol=1e-6)


def test_rows_of_the_held_fold_count_only_as_held():
    coef, intercept = points(4)
    folds = Folds(3)
    held = folds.assign(0, N) == 1
    sums = swept(Gradient(Logistic(), coef, intercept, centre, held=1), folds=folds)
    for p in range(POINTS):
        outputs = (Z - centre) @ coef[p] + intercept[p]
        value, slope = Logistic().value_and_slope(outputs, y)
        wrong = outputs.argmax(axis=1) != y
        np.testing.assert_allclose(sums.loss[p], (weight * value)[~held].sum(), rtol=1e-12)
        np.testing.assert_allclose(sums.held_loss[p], (weight * value)[held].sum(), rtol=1e-12)
        np.testing.assert_allclose(sums.held_errors[p], (weight * wrong)[held].sum(), rtol=1e-12)
        expected = (Z - centre)[~held].T @ (slope * weight[:, None])[~held]
        np.testing.assert_allclose(sums.gradient[p], expected, atol=1e-9)
    assert sums.held_weight == pytest.approx(weight[held].sum(), rel=1e-14)
    assert sums.weight == pytest.approx(weight[~held].sum(), rel=1e-14)


def test_unlabelled_rows_are_ignored():
    coef, intercept = points(4)
    labels = np.where(np.arange(N) % 3 == 0, np.nan, y)
    some = swept(Gradient(Logistic(), coef, intercept), labels)
    rows = np.arange(N) % 3 != 0
    value, _ = Logistic().value_and_slope(Z @ coef[0] + intercept[0], y)
    np.testing.assert_allclose(some.loss[0], (weight * value)[rows].sum(), rtol=1e-12)
    assert some.count == rows.sum()


def test_merging_is_adding_and_a_fresh_one_is_the_identity_both_ways():
    coef, intercept = points(4)
    whole = swept(Gradient(Logistic(), coef, intercept, centre, held=1), folds=Folds(3))
    for both in (whole + whole.fresh(), whole.fresh() + whole):
        for name in ("count", "weight", "held_weight", "precision"):
            assert getattr(both, name) == getattr(whole, name)
        for name in ("loss", "held_loss", "held_errors", "slopes", "gradient", "curvature"):
            np.testing.assert_array_equal(getattr(both, name), getattr(whole, name), err_msg=name)
    assert (whole + whole).loss.tolist() == (2.0 * whole.loss).tolist()


def test_other_points_do_not_merge():
    coef, intercept = points(4)
    with pytest.raises(DataError, match="different points"):
        Gradient(Logistic(), coef, intercept) + Gradient(Logistic(), coef + 1.0, intercept)


def test_numbers_are_no_classes():
    coef, intercept = points(1)
    with pytest.raises(DataError, match="need class codes"):
        swept(Gradient(Logistic(), coef, intercept), targets=Numbers())


def test_memory_is_what_is_held():
    coef, intercept = points(4)
    sums = Gradient(Logistic(), coef, intercept)
    sums.update(Batch(Z[:10].copy(), y[:10]))
    arrays = [sums._gradient, sums._cast[0], sums.curvature]
    assert sum(array.nbytes for array in arrays) <= sums.nbytes
