"""Maps made of maps of maps, at several dimensions."""

import feature_laws as laws
import numpy as np
import pytest

from bochner import features
from bochner.arrays import Rows
from bochner.errors import MapError
from bochner.features import (
    Chain,
    Compositional,
    Concatenate,
    Mercer1D,
    Nystroem,
    OnColumns,
    OptimalMaclaurin,
    ProductSketch,
    RandomFourier,
    RandomLaplace,
    RandomMaclaurin,
    Scaled,
)
from bochner.kernels import (
    Cauchy,
    Chi2,
    ExpChi2,
    Exponential,
    ExponentialSemigroup,
    Gaussian,
    Homogeneous,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    ReciprocalSemigroup,
    compose,
)
from bochner.seeds import Seed

DIMENSIONS = [1, 3, 10, 64]


def fourier(kernel, size=64):
    return RandomFourier(kernel, size)


def nested(d):
    """Unbiased maps of nested kernels: (name, recipe)."""
    wide, poly, semi = Gaussian(0.5 / d), Polynomial(2, offset=0.5), ReciprocalSemigroup(4.0 * d)
    first = wide.on([0])
    yield (
        "sum of products",
        Concatenate(
            wide * poly + 0.5 * Matern(1.5, d**0.5),
            192,
            (
                ProductSketch(wide * poly, 128, (fourier(wide), OptimalMaclaurin(poly, 64))),
                Scaled(0.5 * Matern(1.5, d**0.5), 64, fourier(Matern(1.5, d**0.5))),
            ),
        ),
    )
    yield (
        "on columns within a sum",
        Concatenate(
            first + poly.on([d - 1]) + Linear(),
            192,
            (
                OnColumns(first, 64, fourier(wide)),
                OnColumns(poly.on([d - 1]), 64, OptimalMaclaurin(poly, 64)),
                OptimalMaclaurin(Linear(), max(d, 4)),
            ),
        ),
    )
    yield (
        "scaled sum on columns",
        Scaled(
            2.0 * (wide + poly).on([0, d - 1]),
            128,
            OnColumns(
                (wide + poly).on([0, d - 1]),
                128,
                Concatenate(wide + poly, 128, (fourier(wide), OptimalMaclaurin(poly, 64))),
            ),
        ),
    )
    yield (
        "normalised sum",
        features.NormalizedMap(
            (wide + poly).normalized(), 128, Concatenate(wide + poly, 128, (fourier(wide), OptimalMaclaurin(poly, 64)))
        ),
    )
    yield (
        "product of a normalised and a scaled kernel",
        ProductSketch(
            poly.normalized() * (3.0 * wide),
            128,
            (
                features.NormalizedMap(poly.normalized(), 64, OptimalMaclaurin(poly, 64)),
                Scaled(3.0 * wide, 64, fourier(wide)),
            ),
        ),
    )
    yield (
        "compose in compose in compose",
        Compositional(
            compose(Exponential(1.5), compose(Polynomial(2, offset=0.5), compose(Homogeneous(1), wide))), 512
        ),
    )
    yield "compose over a semigroup", Compositional(compose(Polynomial(2), semi), 256)
    yield "compose over a product of spectra", Compositional(compose(Polynomial(2), wide * Laplacian(0.3 / d)), 256)
    yield (
        "sum of a semigroup and a Gaussian",
        Concatenate(semi + wide, 128, (RandomLaplace(semi, 64, sampling="tilted"), fourier(wide))),
    )
    yield (
        "product of three",
        ProductSketch(wide * poly * semi, 256, (fourier(wide), OptimalMaclaurin(poly, 64), RandomLaplace(semi, 64))),
    )


NESTED = [(name, d, number) for d in DIMENSIONS for number, (name, _) in enumerate(nested(d))]


@pytest.mark.parametrize(("name", "d", "number"), NESTED, ids=[f"{name}-d{d}" for name, d, _ in NESTED])
def test_nested_maps_are_unbiased(name, d, number):
    recipe = list(nested(d))[number][1]
    X = laws.data(recipe, d)
    assert recipe.unbiased
    prepared = laws.fitted(recipe, d)
    stack, K = laws.grams(prepared, d, X, 200), recipe.kernel.gram(X)
    laws.unbiased(stack, K, finest=0.4)
    drawn = prepared._draw(d, Seed(1))
    law = laws.stated_variance if drawn.variance_is_exact else laws.estimated_variance
    law(stack, drawn.variance(X))
    laws.survives(drawn, X)
    laws.sparse(drawn, X)
    laws.into_out(drawn, X)


# ---- chains, which are as good as their inner map
def chains(d):
    """(name, recipe, kernel it must approximate)."""
    chi2 = Mercer1D(Chi2(), 7 * d)
    yield "exponentiated chi2", Chain(ExpChi2(1.0 / d), 64, chi2, fourier(Gaussian(1.0 / d)))
    yield "matern over chi2", Chain(Matern(2.5, d**0.5).over(Chi2()), 64, chi2, fourier(Matern(2.5, d**0.5)))
    yield (
        "gaussian over polynomial",
        Chain(
            Gaussian(0.5).over(Homogeneous(2)),
            64,
            OptimalMaclaurin(Homogeneous(2), d * (d + 1) // 2),
            fourier(Gaussian(0.5)),
        ),
    )
    inner = Gaussian(1.0 / d).over(Chi2())
    yield (
        "chain in a chain",
        Chain(
            compose(Polynomial(2), inner),
            64,
            Chain(inner, 512, chi2, RandomFourier(Gaussian(1.0 / d), 512, frequencies="orthogonal")),
            RandomMaclaurin(Polynomial(2), 64),
        ),
    )
    yield (
        "series over chi2",
        Chain(
            compose(Exponential((3.0 * d) ** 0.5), Chi2()),
            64,
            chi2,
            OptimalMaclaurin(Exponential((3.0 * d) ** 0.5), 64),
        ),
    )
    yield (
        "scaled chain",
        Scaled(2.0 * ExpChi2(1.0 / d), 64, Chain(ExpChi2(1.0 / d), 64, chi2, fourier(Gaussian(1.0 / d)))),
    )
    yield (
        "over a sum",
        Chain(
            Gaussian(1.0 / d).over(Chi2() + Linear()),
            64,
            Concatenate(Chi2() + Linear(), 8 * d, (chi2, OptimalMaclaurin(Linear(), d))),
            fourier(Gaussian(1.0 / d)),
        ),
    )


CHAINS = [(name, d, number) for d in (1, 3, 64) for number, (name, _) in enumerate(chains(d))]


@pytest.mark.parametrize(("name", "d", "number"), CHAINS, ids=[f"{name}-d{d}" for name, d, _ in CHAINS])
def test_chains_are_unbiased_up_to_their_inner_map(name, d, number):
    recipe = list(chains(d))[number][1]
    X = np.abs(laws.rows(Chi2(), d)) / 2.0
    prepared = recipe.prepared(d, Seed(0), Rows(np.abs(laws.rows(Chi2(), d, n=60, seed=1)) / 2.0))
    seeds = 25 if name == "chain in a chain" else 40
    slack = 0.15 if name == "chain in a chain" else 1e-2
    K = recipe.kernel.gram(X)
    laws.unbiased(laws.grams(prepared, d, X, seeds), K, slack=slack * np.abs(K).max(), finest=0.5)
    laws.survives(prepared._draw(d, Seed(1)), X)
    laws.single_precision(prepared._draw(d, Seed(1)), X, tolerance=1e-4)


@pytest.mark.parametrize("d", [3, 10])
def test_the_error_of_a_chain_falls_until_that_of_its_inner_map(d):
    X = np.abs(laws.rows(Chi2(), d)) / 2.0
    kernel, outer = ExpChi2(1.0 / d), Gaussian(1.0 / d)
    K = kernel.gram(X)

    def errors(m):
        recipes = [Chain(kernel, size, Mercer1D(Chi2(), m * d), fourier(outer, size)) for size in (32, 128, 512)]
        return [laws.rms(r.prepared(d, Seed(0), Rows(X)), d, X, K, 30) for r in recipes]

    laws.falling(errors(9), K, -0.67, -0.33)
    assert errors(1)[-1] > 1.3 * errors(9)[-1]


def test_a_chain_of_many_landmarks():
    d = 4
    X = laws.rows(Cauchy(0.3), d)
    kernel = Gaussian(0.7).over(Cauchy(0.3))
    recipe = Chain(kernel, 2048, Nystroem(Cauchy(0.3), 12, "uniform"), fourier(Gaussian(0.7), 2048))
    drawn = recipe.draw(d, sample=X)
    assert np.abs(drawn.gram(X) - kernel.gram(X)).max() < 0.12


def test_chains_of_every_additive_kernel():
    X = np.abs(laws.rows(Chi2(), 5)) / 2.0
    for inner in (Chi2(), Intersection(), 0.5 * Chi2() + Intersection()):
        kernel = Gaussian(0.3).over(inner)
        recipe = Chain(kernel, 2048, Mercer1D(inner, 100), fourier(Gaussian(0.3), 2048))
        assert np.abs(recipe.draw(5, sample=X).gram(X) - kernel.gram(X)).max() < 0.15


# ---- sizes and facts of composed recipes
def test_sizes_are_shared():
    wide, poly = Gaussian(0.3), Polynomial(2)
    stacked = Concatenate(wide + poly, 96, (fourier(wide, 64), OptimalMaclaurin(poly, 32))).sized(300)
    assert [part.n_features for part in stacked.parts] == [200, 100]
    assert stacked.draw(4).width <= 300
    product = ProductSketch(wide * poly, 64, (fourier(wide, 128), OptimalMaclaurin(poly, 32))).sized(256)
    assert [part.n_features for part in product.parts] == [512, 128]
    assert Scaled(2.0 * wide, 64, fourier(wide)).sized(10).inner.n_features == 10
    chain = Chain(ExpChi2(0.5), 64, Mercer1D(Chi2(), 20), fourier(Gaussian(0.5))).sized(128)
    assert (chain.inner.n_features, chain.outer.n_features, chain.n_features) == (20, 128, 128)


def test_small_products_are_whole():
    wide, poly = Gaussian(0.3), Polynomial(1)
    X = laws.rows(poly, 2)
    drawn = ProductSketch(wide * poly, 64, (fourier(wide, 16), OptimalMaclaurin(poly, 4))).draw(2)
    assert drawn.width == 48
    first, second = (part(X) for part in drawn.parts)
    laws.close(drawn(X), np.einsum("ni,nj->nij", first, second).reshape(len(X), -1), 1e-14)


def test_kernels_of_parts_are_those_of_the_whole():
    first, second = Gaussian("median"), Polynomial(2)
    X = laws.rows(Polynomial(2), 3, n=30)
    recipe = Concatenate(first + second, 96, (fourier(first), OptimalMaclaurin(second, 32)))
    drawn = recipe.draw(3, sample=X)
    assert drawn.map.parts[0].kernel == drawn.kernel.parts[0] == Gaussian("median").resolve(X)
    wrapped = Scaled(2.0 * first, 64, fourier(Gaussian(123.0))).draw(3, sample=X)
    assert wrapped.map.inner.kernel == wrapped.kernel.inner
    for parts in [(fourier(Gaussian(0.1)), OptimalMaclaurin(second, 32)), (OptimalMaclaurin(second, 32),), ()]:
        with pytest.raises(MapError, match=r"needs parts=|one map for each part"):
            Concatenate(first + second, 96, parts).draw(3, sample=X)
    with pytest.raises(MapError, match="one map for each part"):
        ProductSketch(first * second, 96, (fourier(first), OptimalMaclaurin(Polynomial(3), 32))).draw(3, sample=X)


def test_parts_may_be_sums_themselves():
    a, b, c = Gaussian(0.3), Polynomial(2), Exponential()
    X = laws.rows(b, 3)
    recipe = Concatenate(a + b + c, 128, (fourier(a), OptimalMaclaurin(c + b, 64)))
    stack = laws.grams(laws.fitted(recipe, 3), 3, X, 100)
    laws.unbiased(stack, (a + b + c).gram(X))


def test_facts_of_composed_recipes():
    wide, chi2 = Gaussian(0.3), Chi2()
    both = Concatenate(chi2 + wide, 96, (Mercer1D(chi2, 12), fourier(wide)))
    assert (both.unbiased, both.deterministic, both.needs_sample) == (False, False, True)
    additive = Concatenate(chi2 + chi2, 96, (Mercer1D(chi2, 12), features.SampledSignature(chi2, 12)))
    assert additive.deterministic
    assert not additive.draw(3, sample=np.ones((3, 3))).variance(np.eye(3)).any()
    assert Scaled(2.0 * chi2, 12, Mercer1D(chi2, 12)).deterministic
    assert not Chain(ExpChi2(1.0), 64, Mercer1D(chi2, 12), fourier(Gaussian(1.0))).unbiased
    tilted = RandomLaplace(ExponentialSemigroup(0.3), 1, sampling="tilted")
    over = Compositional(compose(Polynomial(2), ExponentialSemigroup(0.3)), 64, inner=tilted)
    assert over.needs_sample
    assert not over.is_fitted()
    X = np.abs(laws.rows(wide, 3))
    prepared = over.prepared(3, Seed(0), Rows(X))
    assert prepared.is_fitted()
    laws.unbiased(laws.grams(prepared.sized(256), 3, X, 200), over.kernel.gram(X))


@pytest.mark.parametrize("cls", [Scaled, OnColumns, features.NormalizedMap, Chain, Concatenate, ProductSketch])
def test_a_composed_recipe_says_what_it_is_for(cls):
    with pytest.raises(MapError, match=f"{cls.__name__} (needs|is for)"):
        cls(Gaussian(0.5), 64).draw(3)
    if cls in (Scaled, OnColumns, features.NormalizedMap):
        with pytest.raises(MapError, match=rf"{cls.__name__} is for .*, not for gaussian"):
            cls(Gaussian(0.5), 64, fourier(Gaussian(0.5))).draw(3)
    if cls is Chain:
        with pytest.raises(MapError, match="no inner kernel; Chain is for"):
            cls(Gaussian(0.5), 64, fourier(Gaussian(0.5)), fourier(Gaussian(0.5))).draw(3)
