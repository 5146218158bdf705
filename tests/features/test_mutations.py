"""Each law must be able to fail: broken maps go through the same functions as the maps of the register."""

import feature_laws as laws
import numpy as np
import pytest
from broken_maps import broken, mean, put, rejects
from scipy import special

from bochner import features
from bochner.arrays import frozen
from bochner.features import frequencies, gaussian, maclaurin, optimal, products
from bochner.features.points import POINTS, directions
from bochner.kernels import Exponential, Gaussian, Laplacian, Matern, Polynomial, SkewedChi2, compose
from bochner.kernels.spectrum import Independent, Radial
from bochner.seeds import Seed


# ---- scale
@pytest.mark.parametrize("factor", [np.sqrt(0.5), np.sqrt(2.0), 1.05, 0.97])
@pytest.mark.parametrize("form", ["pairs", "phase"])
def test_a_wrong_amplitude(form, factor):
    recipe = features.RandomFourier(Gaussian(0.1), 256, form)
    mean(recipe, 5)
    with rejects:
        mean(broken(recipe, lambda drawn: put(drawn, amplitude=factor * drawn.amplitude)), 5)


def test_a_bandwidth_that_is_off_by_two():
    """RBFSampler had its γ off by a factor of two behind a loose test."""
    for d in (1, 10, 64):
        right, half = Gaussian(0.5 / d), Gaussian(0.25 / d)
        with rejects:
            mean(features.RandomFourier(half, 64), d, kernel=right)
        with rejects:
            mean(features.OptimalMaclaurin(Exponential(2.0**0.5), 64), d, kernel=Exponential())


def test_frequencies_without_the_two_in_two_gamma(monkeypatch):
    monkeypatch.setattr(Gaussian, "spectrum", lambda self: Radial(float(np.sqrt(self.gamma))))
    for law in frequencies.LAWS:
        with rejects:
            mean(features.RandomFourier(Gaussian(0.1), 64, frequencies=law), 5)
    with rejects:
        mean(features.Fastfood(Gaussian(0.1), 64), 5)


# ---- Maclaurin
@pytest.mark.parametrize(("p", "factor"), [(1.5, 0.5), (3.0, 2.0), (10.0, 9.0)])
def test_the_printed_law_of_the_degrees(monkeypatch, p, factor):
    """1/p^(n+1) sums to 1/(p − 1): as printed, the mean is (p − 1) K."""
    monkeypatch.setattr(maclaurin, "geometric_law", lambda degrees, p: p ** -(degrees + 1.0))
    recipe = features.RandomMaclaurin(Exponential(), 256, p=p)
    with rejects:
        mean(recipe, 3)
    with rejects:
        mean(features.RandomMaclaurin(Exponential(), 256, p=p, exact_low_orders=True), 3)
    X = laws.rows(Exponential(), 3)
    stack = laws.grams(recipe, 3, X, 600)
    assert np.median(stack.mean(axis=0) / Exponential().gram(X)) == pytest.approx(factor, rel=0.2)


def test_a_degree_that_is_lost(monkeypatch):
    """min(n, 2): what a clipped degree does."""
    draw = maclaurin.draw_products

    def clipped(count, d, p, seed):
        degrees, signs = draw(count, d, p, seed)
        start = np.cumsum(degrees) - degrees
        kept = np.minimum(degrees, 2)
        rows = np.concatenate([np.arange(s, s + k) for s, k in zip(start, kept, strict=True)]).astype(int)
        return kept, signs[rows]

    mean(features.RandomMaclaurin(Polynomial(3), 256), 3)
    monkeypatch.setattr(maclaurin, "draw_products", clipped)
    with rejects:
        mean(features.RandomMaclaurin(Polynomial(3), 256), 3)


def test_exact_low_orders_without_the_root_of_a1():
    """33 % error on (1 + t)³."""
    recipe = features.RandomMaclaurin(Polynomial(3), 256, exact_low_orders=True)
    with rejects:
        mean(broken(recipe, lambda drawn: put(drawn, low=np.array([drawn.low[0], 1.0]))), 3)


def test_an_extra_factorial(monkeypatch):
    """pyrfm divides by n!; tests at t ≈ 0.02 do not see it."""
    series = maclaurin.series_of

    class Wrong:
        def __init__(self, right):
            self.right = right

        def coefficients(self, count, reach=1.0):
            return self.right.coefficients(count, reach) / np.cumprod(np.maximum(np.arange(count), 1.0))

    monkeypatch.setattr(maclaurin, "series_of", lambda kernel: Wrong(series(kernel)))
    with rejects:
        mean(features.RandomMaclaurin(Polynomial(3), 256), 3)


def test_one_projection_used_twice_within_a_product():
    """E W(x)²W(y)² is not K²."""

    def change(drawn):
        source = np.arange(drawn.inner.width)
        for level, count in enumerate(drawn.levels):
            source[drawn.start[:count] + level] = drawn.start[:count]
        W = drawn.inner.frequencies.matrix[np.dtype(np.float64)]
        drawn.inner.frequencies.matrix = {W.dtype: W[:, source]}
        drawn.inner.offsets = drawn.inner.offsets[source]

    inner = features.RandomFourier(Gaussian(0.3), 1, form="phase")
    recipe = features.Compositional(compose(Polynomial(2), Gaussian(0.3)), 256, inner=inner)
    mean(recipe, 3)
    with rejects:
        mean(broken(recipe, change), 3)


def test_signs_that_are_not_independent_between_factors(monkeypatch):
    fill = products.RademacherProducts.fill

    def same(self, X, out):
        degrees = np.diff(self.start)
        self.signs = frozen(self.signs[np.repeat(self.start[:-1], degrees)])
        fill(self, X, out)

    monkeypatch.setattr(products.RademacherProducts, "fill", same)
    with rejects:
        mean(features.RandomMaclaurin(Polynomial(3), 256), 3)


def test_a_pool_of_degrees_without_its_weights(monkeypatch):
    strata = optimal.strata

    def unweighted(a, shares, columns, seed):
        degrees, _ = strata(a, shares, columns, seed)
        return degrees, np.sqrt(a[degrees] / len(degrees))

    monkeypatch.setattr(optimal, "strata", unweighted)
    with rejects:
        mean(features.OptimalMaclaurin(Exponential(0.8), 64, "rademacher"), 10)


def test_hadamard_sketches_without_signs_and_permutations(monkeypatch):
    """Every factor of a column would be the same: signs or permutations have to differ."""
    init = products.ComplexSketch.__init__

    def shared(self, d, count, seed):
        init(self, d, count, seed)
        signs = np.stack([np.ones(self.size), np.zeros(self.size)])
        self.parts = frozen(np.repeat(signs[None], len(self.parts), axis=0), np.int8)
        self.places = frozen(np.arange(count))

    recipe = features.OptimalMaclaurin(
        Polynomial(2, offset=0.0), 32, exact=(), shares=(0.0, 0.0, 1.0), coefficients=(0.0, 0.0, 1.0)
    )
    mean(recipe, 10)
    monkeypatch.setattr(products.ComplexSketch, "__init__", shared)
    with rejects:
        mean(recipe, 10)


def test_sketches_that_share_their_permutation_only(monkeypatch):
    """With fresh signs and the same rows of H the mean is right, and the variance is what it is."""
    init = products.ComplexSketch.__init__

    def ordered(self, d, count, seed):
        init(self, d, count, seed)
        self.places = frozen(np.arange(count))

    monkeypatch.setattr(products.ComplexSketch, "__init__", ordered)
    mean(features.OptimalMaclaurin(Polynomial(2), 64), 10)


def test_tensor_sketch_without_the_root_of_the_offset():
    def change(drawn):
        ((offset, weight, width, hashes),) = drawn.parts
        drawn.parts = [(offset**2, weight, width, hashes)]

    with rejects:
        mean(broken(features.TensorSketch(Polynomial(2, offset=0.5), 128, reach=1.0), change), 4)


def test_tensor_sketch_with_one_hash_for_all_factors():
    def change(drawn):
        ((offset, weight, width, hashes),) = drawn.parts
        drawn.parts = [(offset, weight, width, [hashes[0]] * len(hashes))]

    with rejects:
        mean(broken(features.TensorSketch(Polynomial(2), 128, reach=1.0), change), 4)


# ---- frequencies
def test_matern_frequencies_coordinate_by_coordinate(monkeypatch):
    """GPJax drew a mixing variable for each coordinate: right at d = 1, wrong above."""

    def quantile(self, uniforms, d):
        stream = Seed(int(uniforms[0, 0] * 2**40)).stream("mixing")
        mix = self._root_mix(stream.uniform(*uniforms[:, 1:].shape))
        return self.columns(d) * (special.ndtri(uniforms[:, 1:]) * mix).T

    monkeypatch.setattr(Radial, "quantile", quantile)
    mean(features.RandomFourier(Matern(1.5, 1.0), 64), 1)
    for d in (3, 10):
        with rejects:
            mean(features.RandomFourier(Matern(1.5, d**0.5), 64), d)


def test_a_laplacian_of_the_wrong_scale(monkeypatch):
    """√(2γ) in place of γ: 62 % error at γ = ½."""
    monkeypatch.setattr(Laplacian, "spectrum", lambda self: Independent(float(np.sqrt(2.0 * self.gamma))))
    with rejects:
        mean(features.RandomFourier(Laplacian(0.2), 64), 3)


def test_orthogonal_frequencies_that_scale_rows():
    """rfflearn scales rows in place of columns."""

    def change(drawn):
        W = drawn.frequencies.matrix[np.dtype(np.float64)]
        lengths = np.linalg.norm(W, axis=0)
        directions = W / lengths
        rows = lengths[: len(W)]
        drawn.frequencies.matrix = {np.dtype(np.float64): directions * rows[:, None]}

    for d in (2, 4):
        recipe = features.RandomFourier(Gaussian(0.25), 2 * d, frequencies="orthogonal")
        mean(recipe, d, seeds=1000)
        with rejects:
            mean(broken(recipe, change), d, seeds=1000)


@pytest.mark.parametrize("how", ["constant length", "no distribution function"])
def test_orthogonal_points_that_are_not_uniform(monkeypatch, how):
    """Norms √d in place of the chi law bound the coordinates; a copula needs the right distribution function."""

    def wrong(seed, count, dims):
        normals = directions(dims, count, seed).T * np.sqrt(dims)
        if how == "constant length":
            return special.ndtr(normals)
        return 0.5 + np.arctan(POINTS["orthogonal"](seed, count, dims) - 0.5)

    recipe = features.RandomFourier(SkewedChi2(0.3), 64, frequencies="orthogonal")
    mean(recipe, 3)
    monkeypatch.setattr(frequencies, "POINTS", {**POINTS, "orthogonal": wrong})
    with rejects:
        mean(recipe, 3, seeds=400)


def test_hadamard_frequencies_of_constant_length():
    """With norms √p in place of the chi law the bias never averages out in few dimensions."""

    def change(drawn):
        frequency = drawn.frequencies
        frequency.norms = np.full_like(frequency.norms, np.sqrt(frequency.size) / frequency.size**1.5)
        frequency.size = frequency.size

    recipe = features.RandomFourier(Gaussian(0.3), 512, frequencies="hadamard")
    mean(recipe, 64)
    with rejects:
        mean(broken(recipe, change), 64, seeds=400)


@pytest.mark.parametrize("how", ["unsigned", "one factor"])
def test_hadamard_frequencies_that_are_hardly_mixed(how):
    def change(drawn):
        signs = drawn.frequencies.signs
        drawn.frequencies.signs = frozen(np.ones_like(signs) if how == "unsigned" else signs[:1])
        if how == "one factor":
            drawn.frequencies.norms = drawn.frequencies.norms * drawn.frequencies.size

    with rejects:
        mean(broken(features.RandomFourier(Gaussian(0.3), 128, frequencies="hadamard"), change), 3)


def test_fastfood_without_its_permutation_or_norms():
    recipe = features.Fastfood(Gaussian(0.3), 128)
    with rejects:
        mean(broken(recipe, lambda drawn: put(drawn.frequencies, S=np.abs(drawn.frequencies.G))), 5)
    with rejects:
        mean(broken(recipe, lambda drawn: put(drawn.frequencies, G=np.ones_like(drawn.frequencies.G))), 5)


def test_phases_in_single_precision(monkeypatch):
    kernel = Laplacian(0.5)
    X = laws.rows(kernel, 3)
    drawn = features.RandomFourier(kernel, 20_000).draw(3, seed=1)
    laws.single_precision(drawn, X)
    monkeypatch.setattr(frequencies.Frequencies, "project", lambda self, X: self._project(self.spectrum.embed(X)))
    with rejects:
        laws.single_precision(drawn, X)


def test_float32_that_becomes_float64(monkeypatch):
    drawn = features.RandomFourier(Gaussian(0.3), 64).draw(3)
    monkeypatch.setattr(type(drawn), "_checked", lambda self, X: np.asarray(X, dtype=np.float64))
    with rejects:
        laws.single_precision(drawn, laws.rows(Gaussian(0.3), 3))


def test_a_taylor_map_without_its_centre_or_decay(monkeypatch):
    recipe = features.TaylorGaussian(Gaussian(0.25), 64)
    mean(recipe, 3)
    monkeypatch.setattr(gaussian, "squared_norms", lambda X: 2.0 * np.einsum("ij,ij->i", X, X))
    with rejects:
        mean(recipe, 3)
