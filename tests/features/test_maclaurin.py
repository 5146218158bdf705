"""Traps of the maps of dot-product kernels: the law of the degrees, exact columns, strata, sketches."""

import itertools
import json
import math

import feature_laws as laws
import numpy as np
import pytest

from bochner import features
from bochner.arrays import Rows
from bochner.errors import DomainError, MapError
from bochner.features.maclaurin import apportion, draw_products, geometric_law
from bochner.features.monomials import Monomials, monomial_count
from bochner.features.optimal import allocate, column_variances, strata
from bochner.features.products import ComplexSketch, HadamardProducts, RademacherProducts
from bochner.kernels import (
    Chi2,
    DotProduct,
    Exponential,
    Gaussian,
    Hellinger,
    Homogeneous,
    Linear,
    Polynomial,
    VovkInfinite,
    VovkReal,
    compose,
)
from bochner.seeds import Seed

KERNELS = [
    Linear(),
    Homogeneous(2),
    Polynomial(3, offset=0.0),
    VovkReal(4),
    VovkInfinite(6.0),
    DotProduct([0.5, 0.0, 1.0, 0.25]),
    0.5 * Exponential() + Polynomial(2),
    Polynomial(2) * VovkReal(3),
]


def mean_law(recipe, d, seeds=200, X=None, finest=0.3):
    X = laws.data(recipe, d) if X is None else X
    prepared = laws.fitted(recipe, d)
    laws.unbiased(laws.grams(prepared, d, X, seeds), prepared.kernel.gram(X), finest=finest)


# ---- the paper's map
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("p", [1.5, 3.0, 10.0])
def test_every_p_has_the_right_mean(p, exact):
    mean_law(features.RandomMaclaurin(Exponential(), 256, p=p, exact_low_orders=exact), 3, seeds=600)


@pytest.mark.parametrize("p", [1.2, 2.0, 7.0])
def test_degrees_follow_the_geometric_law(p):
    degrees, signs = draw_products(20_000, 2, p, Seed(0))
    assert signs.shape == (degrees.sum(), 2)
    assert set(np.unique(signs)) == {-1, 1}
    n = np.arange(4)
    law = geometric_law(n, p)
    assert np.isclose(geometric_law(np.arange(2000), p).sum(), 1.0)
    share = np.array([(degrees == k).mean() for k in n])
    assert (np.abs(share - law) <= 4.0 * np.sqrt(law * (1 - law) / len(degrees))).all()


def test_columns_are_weighted_products_of_sign_projections():
    kernel, d, p, D = Exponential(0.9), 4, 2.5, 300
    X = laws.rows(kernel, d)
    degrees, signs = draw_products(D, d, p, Seed(3))
    wanted, start = np.empty((len(X), D)), 0
    for j, n in enumerate(degrees):
        a = 0.9 ** (-2 * n) / math.factorial(n)
        wanted[:, j] = np.sqrt(a * p ** (n + 1) / ((p - 1) * D)) * np.prod(X @ signs[start : start + n].T, axis=1)
        start += n
    laws.close(features.RandomMaclaurin(kernel, D, p=p).draw(d, seed=3)(X), wanted, 1e-12)


def test_exact_low_orders_are_exact():
    for kernel, d in ((Polynomial(1), 3), (Polynomial(1, offset=0.0), 1), (DotProduct([2.0]), 5), (Linear(), 64)):
        X = laws.rows(kernel, d)
        drawn = features.RandomMaclaurin(kernel, 8, exact_low_orders=True).draw(d)
        assert drawn.width == 1 + d + 8
        laws.close(drawn.gram(X), kernel.gram(X), 1e-14)
    Z = features.RandomMaclaurin(Polynomial(3), 8, exact_low_orders=True).draw(3)(np.eye(3))
    assert np.allclose(Z[:, 0], 1.0)
    assert np.allclose(Z[:, 1:4], np.sqrt(3.0) * np.eye(3))


def test_a_missing_degree_gives_zero_columns():
    drawn = features.RandomMaclaurin(Homogeneous(2), 400).draw(3)
    zero = ~drawn(np.ones((1, 3))).any(axis=0) & ~drawn(np.array([[1.0, 0.0, 0.0]])).any(axis=0)
    assert 0.6 < zero.mean() < 0.95  # P[n ≠ 2] = 7/8


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("cls", [features.RandomMaclaurin, features.OptimalMaclaurin, features.TensorSketch])
def test_every_series_has_the_right_mean(cls, kernel):
    mean_law(cls(kernel, 256), 5, seeds=300)


@pytest.mark.parametrize("cls", [features.RandomMaclaurin, features.OptimalMaclaurin, features.TensorSketch])
def test_a_function_is_drawn_through_its_coefficients(cls):
    X, kernel = laws.rows(Linear(), 3), DotProduct(function=np.cosh)
    drawn = cls(kernel, 64).draw(3, sample=X)
    again = features.from_recipe(json.loads(json.dumps(drawn.recipe())))
    assert np.array_equal(again(X), drawn(X))
    wanted = cls(DotProduct([1, 0, 1 / 2, 0, 1 / 24, 0, 1 / 720, 0, 1 / 40320]), 64).draw(3, sample=X)
    if cls is features.RandomMaclaurin:
        laws.close(drawn(X), wanted(X), 1e-5)
    mean_law(cls(kernel, 256), 3, seeds=30, finest=0.5)


def test_truncation_states_its_bias():
    kernel, X = Exponential(0.8), laws.rows(Exponential(0.8), 4)
    recipe = features.TruncatedMaclaurin(kernel, 64, degree=3)
    prepared = recipe.prepared(4, Seed(0), Rows(X))
    stack = laws.grams(prepared, 4, X, 300)
    a = 0.8 ** (-2.0 * np.arange(3)) / [1.0, 1.0, 2.0]
    laws.unbiased(stack, DotProduct(a).gram(X))
    reach = np.square(X).sum(axis=1).max()
    assert prepared._draw(4, Seed(0)).bias == pytest.approx(np.exp(reach / 0.64) - np.polyval(a[::-1], reach))
    with pytest.raises(AssertionError, match="biased"):
        laws.unbiased(stack, kernel.gram(X))
    assert features.TruncatedMaclaurin(Polynomial(3), 64, degree=4).draw(4).bias == 0.0


# ---- composition
@pytest.mark.parametrize(
    "inner",
    [
        features.RandomFourier(Gaussian(0.2), 1, form="phase"),
        features.RandomMaclaurin(Polynomial(2), 1),
        features.Compositional(compose(Exponential(1.5), Gaussian(0.2)), 1),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_composition_over_independent_columns(inner):
    kernel = compose(Polynomial(2, offset=0.5), inner.kernel)
    mean_law(features.Compositional(kernel, 512, inner=inner), 3, seeds=400)


@pytest.mark.parametrize(
    ("kernel", "inner", "unbiased"),
    [
        (Gaussian(0.2), features.RandomFourier(Gaussian(0.2), 64), False),
        (Polynomial(2), features.OptimalMaclaurin(Polynomial(2), 10), False),
        (Hellinger(), None, True),
        (Hellinger(), features.SampledSignature(Hellinger(), 3), True),
        (Chi2(), None, False),
        (Chi2(), features.Mercer1D(Chi2(), 15), False),
    ],
    ids=str,
)
def test_composition_takes_random_combinations_of_any_other_map(kernel, inner, unbiased):
    """The factors are fresh combinations of one draw, so that the mean is the series of its Gram."""
    X = np.abs(np.random.default_rng(0).normal(size=(12, 3))) / 2
    recipe = features.Compositional(compose(Polynomial(2), kernel), 256, inner=inner).prepared(3, Seed(0), Rows(X))
    assert recipe.unbiased is unbiased
    assert isinstance(recipe.inner, features.Projected)
    # Every seed with the same inner draw: the mean is (1 + ⟨φ, φ⟩)², whatever φ is.
    phi = recipe.inner.inner._draw(3, Seed(5))
    G = phi.gram(X)
    grams = []
    for seed in range(400):
        drawn = recipe._draw(3, Seed(seed))
        drawn.inner.inner = phi
        Z = drawn(X)
        grams.append(Z @ Z.T)
    error = np.std(grams, axis=0) / np.sqrt(len(grams)) + 1e-9
    assert np.abs((np.mean(grams, axis=0) - (1 + G) ** 2) / error).max() < 5


# ---- exact monomials
@pytest.mark.parametrize("d", [1, 2, 5])
def test_monomials_are_the_feature_space_of_a_power(d):
    X = np.random.default_rng(0).normal(size=(6, d))
    for degrees in ((0,), (3,), (0, 1, 2, 5), (2, 4, 6)):
        a = {n: 0.5 + n for n in degrees}
        block = Monomials(d, a)
        assert block.width == sum(math.comb(d + n - 1, n) for n in degrees)
        out = np.empty((6, block.width))
        block.fill(X, out)
        laws.close(out @ out.T, sum(c * (X @ X.T) ** n for n, c in a.items()), 1e-13)
    products = {tuple(sorted(c)) for c in itertools.product(range(d), repeat=3)}
    assert monomial_count(d, 3) == len(products)


@pytest.mark.parametrize(
    ("kernel", "d", "size"),
    [(Polynomial(3), 6, 84), (Homogeneous(3), 6, 56), (Linear(), 64, 64), (Exponential(), 1, 40)],
    ids=str,
)
def test_what_fits_is_exact(kernel, d, size):
    X = laws.rows(kernel, d)
    drawn = features.OptimalMaclaurin(kernel, size).draw(d, sample=X)
    assert drawn.width <= size
    laws.close(drawn.gram(X), kernel.gram(X), 1e-12)


# ---- strata
def test_apportion_is_fair():
    rng = np.random.default_rng(0)
    for _ in range(50):
        mass, total = rng.random(rng.integers(1, 9)) ** 4, int(rng.integers(1, 100))
        shares = apportion(mass, total)
        assert shares.sum() == total
        assert (np.abs(shares - mass / mass.sum() * total) < 1.0).all()


def test_strata_keep_the_weight_of_every_degree():
    """Σ of squared weights over the columns of degree n is aₙ on average, pooled or not."""
    a, shares = np.array([0.0, 2.0, 1.0, 0.5, 0.25, 0.1]), np.array([0.0, 6.0, 3.0, 0.8, 0.15, 0.05])
    total = np.zeros(6)
    for seed in range(4000):
        degrees, weights = strata(a, shares, 10, Seed(seed))
        assert len(degrees) == 10
        total += np.bincount(degrees, weights**2, minlength=6)
    assert np.allclose(total / 4000, a, rtol=0.1)


@pytest.mark.parametrize("sketch", ["hadamard", "rademacher"])
def test_column_variances_are_those_of_the_sketches(sketch):
    d, n, count = 8, 3, 64
    X = np.random.default_rng(0).normal(size=(10, d)) / np.sqrt(d)
    recipe = features.OptimalMaclaurin(
        Homogeneous(n), count, sketch, exact=(), shares=(0, 0, 0, 1.0), coefficients=(0, 0, 0, 1.0)
    )
    stack = laws.grams(recipe, d, X, 800)
    stated = column_variances(X, n + 1, sketch)[n] / count
    # Rows of one Hadamard block are dependent, which lowers the variance; independent ones state it exactly.
    measured = stack.var(axis=0).mean()
    assert 0.5 * stated < measured < 1.15 * stated
    if sketch == "rademacher":
        assert 0.85 * stated < measured


def test_allocation_gives_each_degree_its_share():
    a, spreads = np.array([1.0, 1.0, 0.5, 0.2]), np.array([0.0, 1.0, 0.6, 0.2])
    exact, shares = allocate(a, spreads, 10, 111)
    assert exact == (0, 1, 2)  # 66 columns, and the rest is least
    assert shares == (0.0, 0.0, 0.0, 45.0)
    exact, shares = allocate(a, spreads, 100, 50)
    assert exact == (0,)
    assert np.allclose(shares, np.array([0.0, 1.0, 0.6, 0.2]) / 1.8 * 49)


@pytest.mark.parametrize("sketch", ["hadamard", "rademacher"])
def test_rows_far_outside_the_sample_are_unbiased_too(sketch):
    kernel, d = Exponential(), 6
    X = laws.rows(kernel, d)
    prepared = features.OptimalMaclaurin(kernel, 512, sketch).prepared(d, Seed(0), Rows(0.5 * X))
    laws.unbiased(laws.grams(prepared, d, X, 300), kernel.gram(X))
    unsampled = features.OptimalMaclaurin(kernel, 512, sketch).prepared(d, Seed(0), None)
    laws.unbiased(laws.grams(unsampled, d, 1.6 * X, 600), kernel.gram(1.6 * X))


def test_a_series_near_its_radius_of_convergence():
    kernel, d = VovkInfinite(1.0), 5
    X = laws.rows(Polynomial(2), d) * (0.97 / 1.1)
    drawn = features.OptimalMaclaurin(kernel, 1024).draw(d, sample=X)
    assert len(drawn.map.coefficients) == 64
    assert np.isfinite(drawn(X)).all()
    assert features.OptimalMaclaurin(kernel, 64).draw(d).width <= 64
    prepared = features.OptimalMaclaurin(kernel, 512).prepared(d, Seed(0), Rows(0.6 * X))
    laws.unbiased(laws.grams(prepared, d, 0.6 * X, 200), kernel.gram(0.6 * X))
    with pytest.raises(DomainError, match="converges only"):
        features.OptimalMaclaurin(kernel, 64).draw(d, sample=X / 0.9)


def test_long_rows_do_not_overflow():
    d = 10
    X = 30.0 * laws.rows(Polynomial(5), d)
    kernel = Polynomial(5)
    drawn = features.OptimalMaclaurin(kernel, 2048).draw(d, sample=X)
    assert np.isfinite(drawn(X)).all()
    with pytest.raises(DomainError, match="overflows float64 at row"):
        features.OptimalMaclaurin(Exponential(), 256).draw(d, sample=1e5 * X)


def test_a_fitted_recipe_can_be_resized():
    kernel, d = Exponential(), 5
    X = laws.rows(kernel, d)
    fitted = features.OptimalMaclaurin(kernel, 256).draw(d, sample=X).map
    assert fitted.sized(512).draw(d).width <= 512
    with pytest.raises(MapError, match="too few"):
        fitted.sized(8).draw(d)


# ---- sketches
@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_complex_sketches_have_the_right_moments(d):
    """E u(x) conj(u(y)) = ⟨x, y⟩ and E u(x) u(y) = 0, for the sketch of any one column."""
    x, y = np.random.default_rng(d).normal(size=(2, d))
    draws = np.concatenate([ComplexSketch(d, 5, Seed(s))(np.stack([x, y])) for s in range(3000)], axis=1)
    scale = 5.0 * np.linalg.norm(x) * np.linalg.norm(y) / np.sqrt(3000)
    assert abs((draws[0] * draws[1].conj()).mean() - x @ y) < scale
    if d > 1:
        assert abs((draws[0] * draws[1]).mean()) < scale


@pytest.mark.parametrize("cls", [RademacherProducts, HadamardProducts])
def test_products_keep_weight_and_degree_of_every_column(cls):
    """Scaling a row by c scales a column of degree n by cⁿ, whatever the order of the columns inside."""
    degrees, d = np.array([2, 0, 5, 1, 0, 3, 2]), 6
    weights = np.linspace(0.5, 2.0, 7)
    signs = Seed(0).stream("s").signs(int(degrees.sum()), d)
    made = cls(degrees, weights, signs) if cls is RademacherProducts else cls(degrees, weights, d, Seed(0))
    step = made.width // len(degrees)
    X = np.random.default_rng(0).normal(size=(3, d))
    one, two = np.empty((3, made.width)), np.empty((3, made.width))
    made.fill(X, one)
    made.fill(2.0 * X, two)
    laws.close(two, one * np.repeat(2.0**degrees, step), 1e-12)
    constant = one.reshape(3, 7, step)[:, degrees == 0]
    assert np.allclose(np.linalg.norm(constant, axis=2), weights[degrees == 0])


@pytest.mark.parametrize(("offset", "finest"), [(0.0, 0.3), (1e-6, 0.3), (100.0, 0.05)])
def test_tensor_sketch_takes_any_offset(offset, finest):
    recipe = features.TensorSketch(Polynomial(3, offset=offset), 257)
    mean_law(recipe, 4, seeds=300, finest=finest)
    assert np.isfinite(recipe.draw(4)(np.zeros((1, 4)))).all()


def test_tensor_sketch_is_the_count_sketch_of_the_tensor_product():
    d, D = 3, 11
    x = np.random.default_rng(0).normal(size=d)
    drawn = features.TensorSketch(Homogeneous(2), D).draw(d)
    ((_, _, _, hashes),) = drawn.parts
    (h1, s1), (h2, s2) = hashes
    wanted = np.zeros(D)
    for i, j in itertools.product(range(d), repeat=2):
        wanted[(h1[i] + h2[j]) % D] += s1[i] * s2[j] * x[i] * x[j]
    laws.close(drawn(x[None])[0], wanted, 1e-13)


def test_tensor_sketch_says_when_there_are_too_few_columns():
    with pytest.raises(MapError, match="3 features are too few for"):
        features.TensorSketch(Exponential(), 3).draw(2)


@pytest.mark.parametrize("kernel", [Homogeneous(64), Homogeneous(100), DotProduct([0.0] * 70 + [1.0])], ids=str)
@pytest.mark.parametrize("cls", [features.OptimalMaclaurin, features.TensorSketch])
def test_high_degrees_are_not_lost(cls, kernel):
    X = np.array([[0.6, 0.8], [0.8, 0.6]])
    drawn = cls(kernel, 512).draw(2, 0, sample=X)
    assert 0 < drawn.width <= 512
    if cls is features.OptimalMaclaurin:  # all monomials fit
        np.testing.assert_allclose(drawn.gram(X), kernel.gram(X), rtol=1e-10)


def test_the_variance_of_high_degrees_is_counted():
    drawn = features.RandomMaclaurin(Homogeneous(300), 64).draw(2)
    X = np.array([[0.6, 0.8]])
    assert drawn.variance(X)[0, 0] > 1.0
    assert np.isfinite(drawn.variance(X)).all()


def test_a_truncation_that_leaves_nothing_is_refused():
    with pytest.raises(MapError, match="no degree below 8"):
        features.TruncatedMaclaurin(Homogeneous(20), 64, degree=8).draw(2)
