"""Traps of Fourier features: the law of the frequencies, orthogonality, float32 phases."""

from concurrent.futures import ThreadPoolExecutor

import feature_laws as laws
import numpy as np
import pytest
from scipy import stats

from bochner import features
from bochner.errors import MapError
from bochner.features.fourier import RandomFourier
from bochner.features.frequencies import LAWS, draw_frequencies
from bochner.kernels import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
    SkewedChi2,
    SkewedIntersection,
)
from bochner.seeds import Seed

RADIAL = [Gaussian(0.3), Matern(0.5, 1.5), Matern(1.5, 1.5), Matern(2.5, 1.5), Cauchy(0.4), RationalQuadratic(2.0, 1.2)]
INDEPENDENT = [Laplacian(0.3), SkewedChi2(0.5), SkewedIntersection(0.5)]


def frequencies(kernel, d, count, law, seed):
    """The matrix of frequencies (d, count)."""
    drawn = draw_frequencies(kernel.spectrum(), d, count, law, Seed(seed))
    return drawn._project(np.eye(d))


def unbiased(kernel, d, law, n_features=64, form="pairs", seeds=200):
    X = laws.rows(kernel, d)
    recipe = RandomFourier(kernel, n_features, form, law)
    laws.unbiased(laws.grams(recipe, d, X, seeds), kernel.gram(X))


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kernel", RADIAL, ids=str)
def test_radial_kernels_under_every_law(kernel, law, d):
    """Drawn coordinate by coordinate, Matérn frequencies would give another kernel in every d > 1."""
    unbiased(kernel, d, law, form="phase" if d == 2 else "pairs")


@pytest.mark.parametrize("law", [law for law in LAWS if law != "hadamard"])
@pytest.mark.parametrize("kernel", INDEPENDENT, ids=str)
def test_kernels_of_independent_coordinates(kernel, law):
    unbiased(kernel, 4, law)


@pytest.mark.parametrize("kernel", INDEPENDENT, ids=str)
def test_hadamard_frequencies_need_a_radial_kernel(kernel):
    with pytest.raises(MapError, match="radial"):
        RandomFourier(kernel, 64, frequencies="hadamard").draw(3)


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian([0.1, 0.5, 2.0]),
        Matern(1.5, [0.5, 2.0, 1.0]),
        Gaussian(0.2) * Matern(1.5, 2.0),
        2.0 * Gaussian(0.3),
        Gaussian(0.2).on([0, 2]) * Laplacian(0.3).on([1]),
        SkewedChi2(0.5) * SkewedIntersection(1.0),
    ],
    ids=str,
)
def test_scales_products_and_columns(kernel):
    X = laws.rows(kernel, 3)
    laws.unbiased(laws.grams(RandomFourier(kernel, 128).prepared(3, Seed(0), None), 3, X, 200), kernel.gram(X))


# ---- the law of one frequency
@pytest.mark.parametrize(
    ("kernel", "law"),
    [
        pytest.param(Gaussian(0.5), stats.norm(), id="gaussian"),
        pytest.param(Laplacian(2.0), stats.cauchy(scale=2.0), id="laplacian"),
        pytest.param(Matern(1.5, 2.0), stats.t(3, scale=0.5), id="matern"),
        pytest.param(SkewedChi2(1.0), stats.hypsecant(scale=1.0 / np.pi), id="skewed_chi2"),
        pytest.param(SkewedIntersection(1.0), stats.cauchy(scale=0.5), id="skewed_intersection"),
    ],
)
def test_each_coordinate_has_the_law_of_the_spectrum(kernel, law):
    for points in ("iid", "orthogonal"):
        W = frequencies(kernel, 3, 4000, points, 0)
        for row in W:
            assert stats.kstest(row, law.cdf).pvalue > 1e-3
        assert len(np.unique(W)) == W.size


@pytest.mark.parametrize("d", [1, 3, 64])
@pytest.mark.parametrize("law", ["orthogonal", "hadamard"])
def test_orthogonal_frequencies_are_normal_one_by_one(law, d):
    W = np.array([frequencies(Gaussian(0.5), d, min(d, 4), law, seed)[:, -1] for seed in range(1500)])
    # Three Hadamard factors of signs lie on a lattice, so that an entry is zero now and then.
    most = 0.07 if law == "hadamard" else 0.05
    for column in W.T[:3]:
        assert stats.kstest(column, "norm").statistic < most
    assert stats.kstest(np.linalg.norm(W, axis=1), stats.chi(d).cdf).statistic < most


@pytest.mark.parametrize("d", [2, 3, 16, 64])
def test_orthogonal_blocks_have_orthogonal_columns_of_free_length(d):
    W = frequencies(Gaussian(0.5), d, 3 * d - 1, "orthogonal", 1)
    for start in range(0, 3 * d - 1, d):
        block = W[:, start : start + d]
        G = block.T @ block
        assert np.allclose(G, np.diag(np.diag(G)), atol=1e-12 * np.trace(G))
        assert len(G) == 1 or np.ptp(np.diag(G)) > 1e-3
    assert not np.allclose(W[:, :d], W[:, d : 2 * d])


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_hadamard_frequencies_are_hardly_biased_in_few_dimensions(d):
    kernel = Gaussian(0.5 / d)
    X = laws.rows(kernel, d)
    stack = laws.grams(RandomFourier(kernel, 8192, frequencies="hadamard"), d, X, 20)
    assert np.abs(stack.mean(axis=0) - kernel.gram(X)).max() < 4e-3


@pytest.mark.parametrize("d", [1, 3, 16])
def test_fastfood_frequencies_are_normal_one_by_one(d):
    recipe = features.Fastfood(Gaussian(0.5), 8)
    W = np.array([recipe.draw(d, seed).frequencies._project(np.eye(d))[:, -1] for seed in range(1500)])
    for column in W.T[:3]:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    assert stats.kstest(np.linalg.norm(W, axis=1), stats.chi(d).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Matern(0.5, 1.5), Cauchy(0.4)], ids=str)
def test_fastfood_of_radial_kernels(kernel):
    X = laws.rows(kernel, 5)
    laws.unbiased(laws.grams(features.Fastfood(kernel, 64), 5, X, 300), kernel.gram(X))
    with pytest.raises(MapError, match="no radial spectrum"):
        features.Fastfood(Laplacian(0.3), 64).draw(5)


# ---- forms
@pytest.mark.parametrize("law", LAWS)
def test_pairs_have_an_exact_diagonal(law):
    X = laws.rows(Gaussian(0.5), 5)
    drawn = RandomFourier(3.0 * Gaussian(0.5), 31, frequencies=law).draw(5)
    assert drawn.width == 30
    assert np.allclose(np.square(drawn(X)).sum(axis=1), 3.0, rtol=1e-12)


def test_the_phase_form_is_root_two_over_d_cosines():
    X = laws.rows(Gaussian(0.5), 3)
    drawn = RandomFourier(Gaussian(0.5), 33, form="phase").draw(3, seed=2)
    W = drawn.frequencies._project(np.eye(3))
    assert W.shape == (3, 33)
    laws.close(drawn(X), np.sqrt(2.0 / 33) * np.cos(X @ W + drawn.offsets), 1e-12)
    offsets = RandomFourier(Gaussian(0.5), 4000, form="phase").draw(3).offsets
    assert stats.kstest(offsets / (2.0 * np.pi), "uniform").pvalue > 1e-3


# ---- float32
@pytest.mark.parametrize("d", [1, 64])
@pytest.mark.parametrize(
    "kernel", [Laplacian(0.05), SkewedIntersection(0.5), Matern(0.5, 8.0), Laplacian(0.1) * Gaussian(0.01)], ids=str
)
def test_heavy_tails_keep_their_digits_in_float32(kernel, d):
    """Cauchy frequencies reach 1e6 here: a float32 phase of that size is off by a tenth."""
    X = laws.rows(kernel, d)
    drawn = RandomFourier(kernel, 20_000).draw(d, seed=1)
    W = drawn.frequencies._project(np.eye(drawn.frequencies.spectrum.width(d)))
    assert np.abs(W).max() > 500.0
    laws.single_precision(drawn, X)


def test_the_log_of_a_skewed_kernel_is_finite_at_zero():
    for kernel in (SkewedChi2(1e-3), SkewedIntersection(1e-3)):
        drawn = features.SkewedFourier(kernel, 64).draw(3)
        X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -0.9e-3]])
        assert np.isfinite(drawn(X)).all()
        assert np.isfinite(drawn(X.astype(np.float32))).all()


def test_skewed_fourier_is_for_skewed_kernels():
    for kernel in (Gaussian(0.5), Polynomial(2)):
        with pytest.raises(MapError, match="SkewedFourier is for skewed kernels"):
            features.SkewedFourier(kernel, 64).draw(3)


def test_a_drawn_map_can_be_shared_by_threads():
    """Its float32 frequencies are made at the first call."""
    X = laws.rows(Gaussian(0.3), 5, n=40).astype(np.float32)
    wanted = RandomFourier(Gaussian(0.3), 512).draw(5)(X)
    for _ in range(20):
        drawn = RandomFourier(Gaussian(0.3), 512).draw(5)
        with ThreadPoolExecutor(8) as pool:
            assert all(np.array_equal(Z, wanted) for Z in pool.map(drawn, [X] * 8))


# ---- sizes
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [1, 2, 255, 256, 257])
def test_any_number_of_frequencies(law, count):
    W = frequencies(Gaussian(0.5), 3, count, law, 0)
    assert W.shape == (3, count)
    assert np.isfinite(W).all()


@pytest.mark.parametrize(
    ("kernel", "law"),
    [(kernel, law) for kernel in (Gaussian(0.5), Matern(1.5, 1.0)) for law in LAWS if law != "latin"]
    + [(SkewedChi2(0.5), "orthogonal"), (Laplacian(0.5), "extremes")],
    ids=str,
)
def test_frequencies_are_prefix_stable(kernel, law):
    wide = frequencies(kernel, 5, 600, law, 4)
    for count in (1, 7, 256, 300, 511):
        laws.close(frequencies(kernel, 5, count, law, 4), wide[:, :count], 1e-10)


def test_latin_frequencies_do_not_claim_a_prefix():
    assert not RandomFourier(Gaussian(0.5), 64, frequencies="latin").prefix_stable
    assert not features.FourierExponential(Exponential(), 64, "latin").prefix_stable
