"""Mean, variance and rate of every registered random map, over independent seeds."""

import itertools

import feature_laws as laws
import numpy as np
import pytest

from bochner import features
from bochner.arrays import Rows
from bochner.kernels import (
    Chi2,
    Exponential,
    ExponentialSemigroup,
    Gaussian,
    Intersection,
    JensenShannon,
    Laplacian,
    SkewedChi2,
    VovkInfinite,
)
from bochner.seeds import Seed

EXAMPLES = list(laws.examples())
RANDOM = [case for case in EXAMPLES if not case[1].deterministic]
# Landmarks and components are random before they are fitted only; the others have files of their own.
ELSEWHERE = (features.Nystroem, features.PCAFeatures, features.Chain, features.ExactDiagonal)
DRAWN = [case for case in RANDOM if not isinstance(case[1], ELSEWHERE)]


def each(cases):
    return pytest.mark.parametrize(("recipe", "d"), [case[1:] for case in cases], ids=[case[0] for case in cases])


def few(recipe, seeds):
    """A fifth of the seeds for a map that tabulates the map inside with every draw."""
    return seeds // 5 if isinstance(recipe, features.Projected) else seeds


def mean_and_variance(recipe, d, factor=1):
    X = laws.data(recipe, d)
    prepared = laws.fitted(recipe, d)
    drawn = prepared._draw(d, Seed(0))
    seeds = 800 if drawn.variance_is_exact else few(recipe, 200)
    stack, K = laws.grams(prepared, d, X, factor * seeds), prepared.kernel.gram(X)
    if recipe.unbiased:
        laws.unbiased(stack, K)
    elif hasattr(drawn, "bias"):  # a truncated series says what it lacks
        laws.unbiased(stack, K, slack=drawn.bias)
    else:  # the map inside is deterministic, and its error remains
        inner = prepared.inner._draw(d, Seed(0))
        assert inner.map.deterministic
        laws.unbiased(stack, inner.gram(X))
    law = laws.stated_variance if drawn.variance_is_exact else laws.estimated_variance
    law(stack, drawn.variance(X))
    laws.close(drawn.variance(X[:4], X[4:]), drawn.variance(X)[:4, 4:], 1e-9)


@each(DRAWN)
def test_mean_and_variance(recipe, d):
    mean_and_variance(recipe, d)


@pytest.mark.slow
@each(DRAWN)
def test_mean_and_variance_over_many_seeds(recipe, d):
    mean_and_variance(recipe, d, factor=10)


def independent(recipe):
    """Whether the error is a mean over independent columns, which falls neither slower nor faster."""
    if isinstance(recipe, (features.Scaled, features.OnColumns)):
        recipe = recipe.inner
    return recipe.independent_columns or getattr(recipe, "frequencies", "") == "iid"


def rate(recipe, d, seeds):
    X = laws.data(recipe, d)
    K = recipe.kernel.gram(X)
    least = 64 if isinstance(recipe, features.ProductSketch) else 32
    sizes = (least, 4 * least, 16 * least)
    errors = [laws.rms(laws.fitted(recipe.sized(size), d), d, X, K, seeds) for size in sizes]
    laws.falling(errors, K, -0.67 if independent(recipe) else -np.inf, -0.33)


@each(DRAWN)
def test_rate(recipe, d):
    rate(recipe, d, few(recipe, 40))


@pytest.mark.slow
@each(DRAWN)
def test_rate_over_many_seeds(recipe, d):
    rate(recipe, d, 400)


@pytest.mark.parametrize("law", ["sobol", "orthogonal", "hadamard", "latin"])
def test_better_frequencies_have_less_error(law):
    d = 3 if law in ("sobol", "latin") else 64
    X, kernel = laws.rows(Gaussian(0.5 / d), d), Gaussian(0.5 / d)
    K = kernel.gram(X)
    plain, better = (
        laws.rms(features.RandomFourier(kernel, 256, frequencies=f).prepared(d, Seed(0), None), d, X, K, 40)
        for f in ("iid", law)
    )
    assert better < 0.9 * plain


@pytest.mark.parametrize("frequencies", ["sobol", "latin", "extremes"])
def test_low_discrepancy_frequencies_of_the_laplacian(frequencies):
    X, kernel = laws.rows(Laplacian(0.5), 3), Laplacian(0.5 / 3)
    errors = [
        laws.rms(features.RandomFourier(kernel, 256, frequencies=f), 3, X, kernel.gram(X), 40)
        for f in ("iid", frequencies)
    ]
    assert errors[1] < 0.7 * errors[0]


@pytest.mark.parametrize(("d", "n_features"), [(32, 256), (128, 512)])
def test_orthogonal_normals_win_for_light_tails(d, n_features):
    """Skewed χ²: beyond what Sobol' points and Latin hypercubes reach in as many columns."""
    X = laws.read_only(np.random.default_rng(0).dirichlet(np.ones(d), 24))
    kernel = SkewedChi2("median").resolve(X)
    errors = {
        law: laws.rms(features.RandomFourier(kernel, n_features, frequencies=law), d, X, kernel.gram(X), 30)
        for law in ("iid", "sobol", "latin", "orthogonal")
    }
    assert errors["orthogonal"] < 0.6 * min(errors[law] for law in ("iid", "sobol", "latin"))


def test_stratified_extremes_win_where_columns_are_many():
    """Laplacian in 400 columns, where Sobol' points and Latin hypercubes gain nothing yet from 128 frequencies."""
    X = np.random.default_rng(0).standard_normal((24, 400))
    kernel = Laplacian(0.5 / float(np.abs(X[:, None] - X[None]).sum(axis=2).mean()))
    errors = {
        law: laws.rms(features.RandomFourier(kernel, 256, frequencies=law), 400, X, kernel.gram(X), 40)
        for law in ("iid", "latin", "extremes")
    }
    assert errors["extremes"] < 0.9 * min(errors["iid"], errors["latin"])


# ---- maps without randomness have rates of their own
def deterministic_errors(recipe, d, X, columns):
    K = recipe.kernel.gram(X)
    made = [recipe.sized(m * d).draw(d, sample=X) for m in columns]
    return K, [float(np.sqrt(np.square(drawn.gram(X) - K).mean())) for drawn in made]


HISTOGRAMS = laws.rows(Chi2(), 10, n=40)


@pytest.mark.parametrize("window", ["uniform", "rect"])
@pytest.mark.parametrize("kernel", [Chi2(), JensenShannon()], ids=str)
def test_sampled_signatures_converge_like_exp_of_a_root(kernel, window):
    recipe = features.SampledSignature(kernel, 10, window=window)
    r = np.array([2, 4, 8, 16, 32])
    K, errors = deterministic_errors(recipe, 10, HISTOGRAMS, 2 * r + 1)
    decay = -np.diff(np.log(errors)) / np.diff(np.sqrt(r))
    assert ((decay > 2.0) & (decay < 3.5)).all(), f"errors {errors}"
    assert errors[-1] < 1e-6 * np.abs(K).mean()


@pytest.mark.parametrize("window", ["uniform", "rect"])
def test_sampled_signatures_of_a_corner_converge_like_one_over_r(window):
    K, errors = deterministic_errors(
        features.SampledSignature(Intersection(), 10, window=window), 10, HISTOGRAMS, (9, 33, 129)
    )
    laws.falling(errors, K, -1.3, -0.7)


@pytest.mark.parametrize("scale", ["data", 1.0])
def test_chebyshev_series_converges_like_one_over_m(scale):
    K, errors = deterministic_errors(features.ChebyshevChi2(Chi2(), 10, scale=scale), 10, HISTOGRAMS, (8, 32, 128))
    laws.falling(errors, K, -1.6, -0.7)


def test_elementary_series_converges_geometrically_away_from_zero():
    X = HISTOGRAMS + 0.2
    K, errors = deterministic_errors(features.ElementaryChi2(Chi2(), 10), 10, X, (4, 8, 16, 32))
    decay = -np.diff(np.log(errors)) / np.diff([4, 8, 16, 32])
    assert (decay > 0.2).all(), f"errors {errors}"
    assert errors[-1] < 1e-6 * np.abs(K).mean()


@pytest.mark.parametrize(
    ("kernel", "factor"),
    [(Chi2(), 6.0), (JensenShannon(), 10.0), (Intersection(), 1.2), (Chi2(degree=0.5), 6.0)],
    ids=str,
)
def test_mercer_maps_fall_fast(kernel, factor):
    """By a factor for every two columns more; by a power of them for the kernel with a corner."""
    _, errors = deterministic_errors(features.Mercer1D(kernel, 10), 10, HISTOGRAMS, (1, 3, 5, 7, 9, 11))
    assert all(before > factor * after for before, after in itertools.pairwise(errors)), f"errors {errors}"


def test_mercer_maps_beat_the_others_at_equal_columns():
    def at_three(recipe):
        return deterministic_errors(recipe, 10, HISTOGRAMS, (3,))[1][0]

    best = at_three(features.Mercer1D(Chi2(), 10))
    published = at_three(features.SampledSignature(Chi2(), 10))
    tuned = at_three(features.SampledSignature(Chi2(), 10, period="tuned"))
    assert best < 0.1 * tuned
    assert tuned < 0.9 * published
    assert best < 0.2 * at_three(features.ChebyshevChi2(Chi2(), 10))
    assert best < 0.2 * at_three(features.ElementaryChi2(Chi2(), 10))


def test_exact_homogeneity_moves_the_data_to_where_the_series_is_short():
    X = 1e-3 * HISTOGRAMS
    for series in (features.ChebyshevChi2, features.ElementaryChi2):
        (_, scaled), (_, plain) = (
            deterministic_errors(series(Chi2(), 10, scale=scale), 10, X, (5,)) for scale in ("data", 1.0)
        )
        assert scaled[0] < 0.05 * plain[0]


@pytest.mark.parametrize("map_", [features.SampledSignature(Chi2(), 50), features.Mercer1D(Chi2(), 40)], ids=repr)
def test_a_constant_factor_on_all_data_changes_nothing(map_):
    small, large = (map_.draw(10, sample=c * HISTOGRAMS).gram(c * HISTOGRAMS) / c for c in (1e-3, 1e3))
    if isinstance(map_, features.SampledSignature):
        laws.close(small, large, 1e-9)
    else:
        laws.close(small, large, 1e-5)


def test_the_variance_of_a_series_that_grows_too_fast_is_infinite():
    """Vovk's infinite kernel needs c² > pM: on the diagonal of unit rows M = 3 − 2Σx⁴."""
    X = np.full((1, 100), 0.1)
    finite, infinite = (features.RandomMaclaurin(VovkInfinite(c), 64).draw(100).variance(X)[0, 0] for c in (2.6, 2.3))
    assert np.isfinite(finite)
    assert infinite == np.inf


def test_the_variance_of_plain_laplace_features_explodes_and_of_tilted_ones_does_not():
    kernel = ExponentialSemigroup(1.0)
    X = np.full((1, 8), 1.0)
    K = kernel.gram(X)[0, 0]
    plain = features.RandomLaplace(kernel, 1).draw(8)
    tilted = features.RandomLaplace(kernel, 1, sampling="tilted").draw(8, sample=X)
    assert np.sqrt(plain.variance(X)[0, 0]) / K > 20.0
    assert np.sqrt(tilted.variance(X, replicates=200)[0, 0]) / K < 1.0


def test_exponential_far_out_is_better_by_fourier_features():
    d, kernel = 64, Exponential(0.5)
    X = np.random.default_rng(0).normal(size=(20, d)) / np.sqrt(d)
    K = kernel.gram(X)
    errors = [
        laws.rms(cls(kernel, 512).prepared(d, Seed(0), Rows(X)), d, X, K, 20)
        for cls in (features.OptimalMaclaurin, features.FourierExponential)
    ]
    assert errors[1] < errors[0]
