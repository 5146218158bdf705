"""Traps of random Laplace features: infinite frequencies, weights, tilts far from the reference, shifts."""

import feature_laws as laws
import numpy as np
import pytest
from scipy import stats

from bochner import features
from bochner.arrays import Rows
from bochner.errors import DataError, DomainError, MapError
from bochner.kernels import ExponentialSemigroup, Gaussian, ReciprocalSemigroup
from bochner.seeds import Seed

KERNELS = [ExponentialSemigroup(0.3), ReciprocalSemigroup(3.0)]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def rows(d=4, n=10, scale=1.0, seed=0):
    X = scale * np.random.default_rng(seed).gamma(1.0, 1.0, (n, d))
    X[0], X[1, 0] = 0.0, 0.0
    return X


@each_kernel
@pytest.mark.parametrize("points", ["iid", "sobol", "latin", "mirrored"])
@pytest.mark.parametrize("sampling", ["plain", "tilted"])
def test_every_way_of_sampling_has_the_right_mean(kernel, sampling, points):
    X = rows()
    recipe = features.RandomLaplace(kernel, 64, sampling, points).prepared(4, Seed(0), Rows(rows(seed=1, n=50)))
    laws.unbiased(laws.grams(recipe, 4, X, 400), kernel.gram(X))


# ---- frequencies
def test_plain_frequencies_follow_their_laws():
    for kernel, law in (
        (ExponentialSemigroup(0.7), stats.levy(scale=0.7**2 / 2)),
        (ReciprocalSemigroup(2.0), stats.expon(scale=0.5)),
    ):
        w = features.RandomLaplace(kernel, 4000).draw(3).w
        assert w.shape == (3, 4000)
        assert all(stats.kstest(row, law.cdf).pvalue > 1e-3 for row in w)


def test_tilted_frequencies_follow_their_laws():
    theta = 2.0 * 0.8
    for kernel, law in (
        (ExponentialSemigroup(0.7), stats.invgauss(0.7 / (2 * np.sqrt(theta)) / (0.7**2 / 2), scale=0.7**2 / 2)),
        (ReciprocalSemigroup(2.0), stats.expon(scale=1.0 / (2.0 + theta))),
    ):
        recipe = features.RandomLaplace(kernel, 4000, "tilted", plain_share=1e-9, reference=np.full((1, 2), 0.8))
        assert all(stats.kstest(row, law.cdf).pvalue > 1e-3 for row in recipe.draw(2).w)


def test_infinite_frequencies_make_no_nan_at_zero_entries():
    """A Lévy quantile reaches 1e16 and beyond; 0 · ∞ is not a number, and e^{−0·w} is 1."""

    class Infinite(ExponentialSemigroup):
        def laplace(self):
            measure = super().laplace()
            object.__setattr__(measure, "quantile", lambda u: np.where(u < 0.5, np.inf, 1.0))
            return measure

    for sampling in ("plain", "tilted"):
        recipe = features.RandomLaplace(Infinite(0.5), 50, sampling, plain_share=0.9, reference=rows(2))
        drawn = recipe.draw(2)
        Z = drawn(np.array([[0.0, 0.0], [0.0, 1.0], [1e-3, 1e8]]))
        assert np.isfinite(Z).all()
        assert np.allclose(Z[0], np.exp(drawn.log_weight))
        assert (Z[2] == 0.0).any()


@each_kernel
def test_huge_and_tiny_entries(kernel):
    X = np.array([[0.0, 1e-300, 1e300], [1e-8, 1.0, 1e8], [0.0, 0.0, 0.0]])
    for sampling in ("plain", "tilted"):
        drawn = features.RandomLaplace(kernel, 64, sampling).draw(3, sample=X)
        assert np.isfinite(drawn.log_weight).all()
        assert np.isfinite(drawn(X)).all()
        assert np.isfinite(drawn(X.clip(max=1e30).astype(np.float32))).all()


# ---- weights
@each_kernel
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_tilted_weights_are_at_most_one_over_the_plain_share(kernel, share):
    recipe = features.RandomLaplace(kernel, 3000, "tilted", plain_share=share)
    drawn = recipe.draw(4, sample=rows(n=60))
    ratio = 3000 * np.exp(2.0 * drawn.log_weight)
    assert ratio.max() <= 1.0 / share * (1 + 1e-9)
    assert ratio.mean() == pytest.approx(1.0, abs=0.1)
    if share == 1.0:
        assert np.allclose(ratio, 1.0)
    else:
        assert np.ptp(ratio) > 0.01


@each_kernel
def test_tilted_features_are_unbiased_far_from_the_reference(kernel):
    recipe = features.RandomLaplace(kernel, 128, "tilted").prepared(4, Seed(0), Rows(rows(n=50, scale=3.0)))
    for scale in (0.01, 0.3, 10.0):
        X = rows(seed=2, scale=scale)
        laws.unbiased(laws.grams(recipe, 4, X, 1000), kernel.gram(X), finest=0.5)


@each_kernel
def test_tilting_lowers_the_error_where_the_data_are(kernel):
    X = rows(n=20, scale=4.0)[2:]
    K = kernel.gram(X)
    fit = Rows(rows(n=100, scale=4.0, seed=1)[2:])
    errors = [
        laws.rms(features.RandomLaplace(kernel, 128, sampling).prepared(4, Seed(0), fit), 4, X, K, 40)
        for sampling in ("plain", "tilted")
    ]
    assert errors[1] < 0.7 * errors[0]


@pytest.mark.parametrize(("d", "n_features"), [(32, 64), (128, 256)])
def test_mirrored_points_win_for_many_small_entries(d, n_features):
    """Where −log k is about 4; for wider kernels the two are alike, and a sample decides."""
    rng = np.random.default_rng(0)
    X, fit = rng.dirichlet(np.ones(d), 24), Rows(rng.dirichlet(np.ones(d), 100))
    kernel = ReciprocalSemigroup(0.48)
    errors = [
        laws.rms(
            features.RandomLaplace(kernel, n_features, "tilted", points, components=16).prepared(d, Seed(0), fit),
            d,
            X,
            kernel.gram(X),
            20,
        )
        for points in ("sobol", "mirrored")
    ]
    assert errors[1] < 0.75 * errors[0]


def test_an_odd_number_of_mirrored_points():
    recipe = features.RandomLaplace(KERNELS[1], 33, "tilted", "mirrored").prepared(4, Seed(0), Rows(rows(seed=1)))
    laws.prefix(recipe, 4, rows(), sizes=(33, 70))


def test_reference_rows_can_be_given():
    kernel, X = ReciprocalSemigroup(3.0), rows()
    given = features.RandomLaplace(kernel, 64, "tilted", reference=rows(n=5, seed=1))
    assert given.is_fitted()
    laws.survives(given.draw(4), X)
    with pytest.raises(DataError, match="the reference rows have 4 columns, the map is drawn for 3"):
        given.draw(3)
    broken = rows()
    broken[2, 1] = -1.0
    with pytest.raises(DomainError, match="row 2, column 1 is -1"):
        features.RandomLaplace(kernel, 64, "tilted", reference=broken).draw(4)


# ---- the shift of Lemma 7
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
def test_the_shift_of_lemma_7_costs_at_most_half_of_epsilon(epsilon):
    beta, d = 0.7, 5
    kernel, delta = ExponentialSemigroup(beta), epsilon**2 / (8.0 * beta**2 * d**2)
    assert features.lemma_7_shift(beta, d, epsilon) == pytest.approx(delta)
    X = np.concatenate([np.zeros((1, d)), 10.0 ** -np.arange(1.0, 9.0)[:, None] * np.ones(d), rows(d)])
    lost = kernel.gram(X) - kernel.gram(X + delta)
    assert lost.min() >= 0.0
    assert lost.max() <= epsilon / 2
    assert lost.max() > 0.9 * (1.0 - np.exp(-epsilon / 2))  # at zero rows the bound is nearly met


def test_shifted_features_are_those_of_shifted_rows():
    kernel, X = ExponentialSemigroup(0.4), rows()
    plain = features.RandomLaplace(kernel, 64).draw(4, seed=1)
    shifted = features.RandomLaplace(kernel, 64, shift=0.25).draw(4, seed=1)
    laws.close(shifted(X), plain(X + 0.25), 1e-12)
    assert not shifted.map.unbiased
    assert plain.map.unbiased
    laws.close(shifted.variance(X), plain.variance(X + 0.25), 1e-12)


# ---- errors
def test_options_are_checked():
    kernel = KERNELS[0]
    for options, message in [
        ({"sampling": "best"}, "sampling must be one of plain, tilted"),
        ({"points": "halton"}, "points must be one of iid, sobol, latin, mirrored"),
        ({"plain_share": 0.0}, "plain_share"),
        ({"plain_share": 1.1}, "plain_share"),
        ({"plain_share": np.nan}, "plain_share"),
        ({"shift": -1.0}, "shift"),
        ({"shift": np.inf}, "shift"),
        ({"components": 0}, "components"),
    ]:
        with pytest.raises(MapError, match=message):
            features.RandomLaplace(kernel, 64, **options)
    with pytest.raises(MapError, match=r"gaussian\(gamma=1.0\) has no Laplace measure"):
        features.RandomLaplace(Gaussian(1.0), 64).draw(2)
    with pytest.raises(MapError, match="made from data"):
        features.RandomLaplace(kernel, 64, "tilted").draw(2)
