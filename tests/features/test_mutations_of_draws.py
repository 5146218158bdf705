"""Broken maps of histograms, and broken draws: the laws reject them too."""

import warnings

import feature_laws as laws
import numpy as np
import pytest
from broken_maps import broken, mean, put, rejects, variance

from bochner import features
from bochner.arrays import Rows
from bochner.features import frequencies, laplace, products, sampled
from bochner.kernels import Chi2, Exponential, ExponentialSemigroup, Gaussian, Polynomial, ReciprocalSemigroup
from bochner.kernels.laplace import Levy
from bochner.seeds import Seed


# ---- Laplace features
def test_a_levy_law_of_the_wrong_scale(monkeypatch):
    monkeypatch.setattr(Levy, "quantile", lambda self, u: self.parameter**2 / laplace.special.ndtri(0.5 * u) ** 2)
    with rejects:
        mean(features.RandomLaplace(ExponentialSemigroup(0.3), 64), 3)


def test_a_reciprocal_law_of_the_wrong_rate():
    with rejects:
        mean(features.RandomLaplace(ReciprocalSemigroup(3.0), 64), 3, kernel=ReciprocalSemigroup(6.0))


@pytest.mark.parametrize("kernel", [ExponentialSemigroup(0.3), ReciprocalSemigroup(3.0)], ids=str)
def test_tilted_frequencies_without_their_weights(kernel):
    recipe = features.RandomLaplace(kernel, 256, "tilted")

    def change(drawn):
        drawn.log_weight = np.full_like(drawn.log_weight, -0.5 * np.log(drawn.width))

    mean(recipe, 3)
    with rejects:
        mean(broken(recipe.prepared(3, Seed(0), Rows(laws.rows(kernel, 3, n=60, seed=1))), change), 3)


def test_zero_entries_under_infinite_frequencies():
    X = laws.rows(ExponentialSemigroup(0.3), 3)
    drawn = features.RandomLaplace(ExponentialSemigroup(0.3), 64).draw(3)
    laws.row_by_row(drawn, X)
    w = np.array(drawn.w)
    w[:, 0] = np.inf
    put(drawn, w=w)
    with rejects, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        laws.row_by_row(drawn, X)


# ---- additive maps
def test_sampled_signatures_without_the_root_of_l(monkeypatch):
    """All rows of the paper's table lack √L."""
    kernel, X = Chi2(), laws.rows(Chi2(), 5)
    K, weights = kernel.gram(X), sampled.sample_weights
    right = features.SampledSignature(kernel, 85).draw(5).gram(X)
    laws.close(right, K, 1e-3)
    monkeypatch.setattr(
        sampled, "sample_weights", lambda p, r, period, w: weights(p, r, period, w) * period / (2.0 * np.pi)
    )
    with rejects:
        laws.close(features.SampledSignature(kernel, 85).draw(5).gram(X), K, 1e-3)


@pytest.mark.parametrize("wrong", ["1/x", "no pi"])
def test_the_printed_second_chebyshev_column(wrong):
    """−√2 ln x/(πx) is off by a factor of 140; without π the series does not converge."""
    X = laws.rows(Chi2(), 5) + 0.05
    drawn = features.ChebyshevChi2(Chi2(), 200, scale=1.0).draw(5)
    K, scalar = Chi2().gram(X), drawn._scalar
    laws.close(drawn.gram(X), K, 1e-2)

    def changed(x, out):
        scalar(x, out)
        out[..., 1] *= 1.0 / x if wrong == "1/x" else np.pi

    drawn._scalar = changed
    with rejects:
        laws.close(drawn.gram(X), K, 1e-2)


# ---- laws about one draw, and about rates
def test_a_map_that_sees_other_rows():
    drawn = features.RandomFourier(Gaussian(0.3), 64).draw(3)
    fill = drawn._fill
    drawn._fill = lambda X, out: fill(X - X.mean(axis=0), out)
    with rejects:
        laws.row_by_row(drawn, laws.rows(Gaussian(0.3), 3))


def test_a_map_that_writes_into_its_input():
    drawn = features.RandomFourier(Gaussian(0.3), 64).draw(3)
    fill = drawn._fill

    def careless(X, out):
        X *= 2.0
        fill(X, out)

    drawn._fill = careless
    with pytest.raises(ValueError, match="read-only"):
        laws.into_out(drawn, laws.rows(Gaussian(0.3), 3))
    with rejects:
        laws.into_out(drawn, np.array(laws.rows(Gaussian(0.3), 3)))


def test_a_map_that_forgets_sparse_zeros():
    drawn = features.RandomFourier(Gaussian(0.3), 64).draw(3)
    fill = drawn._fill

    def dropped(X, out):
        fill(X[:, [1, 2, 0]] if hasattr(X, "indptr") else X, out)

    drawn._fill = dropped
    with rejects:
        laws.sparse(drawn, laws.rows(Gaussian(0.3), 3))


def test_a_draw_that_depends_on_its_size(monkeypatch):
    points = dict(frequencies.POINTS)
    monkeypatch.setitem(points, "iid", lambda seed, count, dims: points["latin"](seed, count, dims))
    monkeypatch.setattr(frequencies, "POINTS", points)
    recipe = features.RandomFourier(Gaussian(0.3), 64)
    with rejects:
        laws.prefix(recipe, 3, laws.rows(Gaussian(0.3), 3))


def test_a_recipe_that_forgets_an_option(monkeypatch):
    drawn = features.RandomFourier(Gaussian(0.3), 64, form="phase").draw(3)
    laws.survives(drawn, laws.rows(Gaussian(0.3), 3))
    right = drawn.recipe()
    monkeypatch.setattr(type(drawn), "recipe", lambda self: {**right, "form": "pairs"})
    with rejects:
        laws.survives(drawn, laws.rows(Gaussian(0.3), 3))


def test_a_seed_that_is_ignored():
    recipe = broken(features.RandomFourier(Gaussian(0.3), 64), lambda drawn: None)
    X = laws.rows(Gaussian(0.3), 3)
    laws.random(recipe, 3, X)
    with rejects:
        laws.random(features.Mercer1D(Chi2(), 12).prepared(3, Seed(0), Rows(np.abs(X))), 3, np.abs(X))


def test_a_budget_that_is_exceeded():
    recipe = features.RandomMaclaurin(Exponential(), 64, exact_low_orders=True)
    with rejects:
        laws.width(recipe.draw(3), recipe)


@pytest.mark.parametrize("cls", [features.RandomMaclaurin, features.RandomFourier, features.RandomLaplace])
def test_a_variance_that_is_off_by_two(monkeypatch, cls):
    recipe = next(iter(cls.examples(3)))
    drawn = type(recipe._draw(3, Seed(0)))
    right = drawn.variance
    variance(recipe, 3)
    for factor in (0.5, 2.0):
        monkeypatch.setattr(drawn, "variance", lambda self, X, f=factor: f * right(self, X))
        with rejects:
            variance(recipe, 3)


def test_an_error_that_does_not_fall():
    """A biased map stops falling; a map that repeats its columns never falls."""
    kernel, X = Gaussian(0.1), laws.rows(Gaussian(0.1), 5)
    K = kernel.gram(X)

    def errors(change):
        recipe = broken(features.RandomFourier(kernel, 64), change)
        return [laws.rms(recipe.sized(size), 5, X, K, 40) for size in (32, 128, 512)]

    laws.falling(errors(lambda drawn: None), K, -0.67, -0.33)

    def repeated(drawn):
        W = drawn.frequencies.matrix[np.dtype(np.float64)]
        drawn.frequencies.matrix = {W.dtype: W[:, np.arange(W.shape[1]) % 8]}

    for change in (repeated, lambda drawn: put(drawn, amplitude=1.2 * drawn.amplitude)):
        with rejects:
            laws.falling(errors(change), K, -0.67, -0.33)


def test_a_test_that_could_see_nothing():
    """Too few seeds of a noisy map are refused, whatever their mean."""
    recipe = features.RandomMaclaurin(Polynomial(3), 4)
    with pytest.raises(AssertionError, match="would go unseen"):
        mean(recipe, 5, seeds=20)


def test_products_of_maps_with_a_lost_factor():
    """GPJax returned a·b·c for (a + b)·c; tests at depth one do not see it."""
    a, b, c = Gaussian(0.1), Polynomial(2), Gaussian(0.3)
    right = features.ProductSketch(
        (a + b) * c,
        256,
        (
            features.Concatenate(a + b, 96, (features.RandomFourier(a, 64), features.OptimalMaclaurin(b, 32))),
            features.RandomFourier(c, 64),
        ),
    )
    mean(right, 3)
    wrong = features.ProductSketch(
        a * b * c, 256, (features.RandomFourier(a, 64), features.OptimalMaclaurin(b, 32), features.RandomFourier(c, 64))
    )
    with rejects:
        mean(wrong, 3, kernel=right.kernel)


def test_a_sketch_of_a_product_without_its_amplitude(monkeypatch):
    first, second = Gaussian(0.1), Polynomial(2)
    recipe = features.ProductSketch(
        first * second, 64, (features.RandomFourier(first, 64), features.OptimalMaclaurin(second, 64))
    )
    mean(recipe, 3)
    call = products.ComplexSketch.__call__
    monkeypatch.setattr(products.ComplexSketch, "__call__", lambda self, rows: np.sqrt(2.0) * call(self, rows))
    with rejects:
        mean(recipe, 3)
