"""What a map refuses, and whether it says who lacks what."""

import json

import feature_laws as laws
import numpy as np
import pandas as pd
import pytest

from bochner import features
from bochner.arrays import Rows
from bochner.errors import DataError, DomainError, KernelError, MapError
from bochner.features.base import map_from_json
from bochner.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    Laplacian,
    Polynomial,
    ReciprocalSemigroup,
    SkewedChi2,
    compose,
)
from bochner.seeds import Seed


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (features.RandomFourier(Polynomial(2), 64), "polynomial(degree=2) has no spectrum"),
        (features.RandomFourier(Chi2(), 64), "chi2() has no spectrum"),
        (features.RandomMaclaurin(Gaussian(0.5), 64), "gaussian(gamma=0.5) has no Maclaurin series"),
        (features.TruncatedMaclaurin(Gaussian(0.5), 64), "gaussian(gamma=0.5) has no Maclaurin series"),
        (features.OptimalMaclaurin(Gaussian(0.5), 64), "gaussian(gamma=0.5) has no Maclaurin series"),
        (features.TensorSketch(Laplacian(0.5), 64), "laplacian(gamma=0.5) has no Maclaurin series"),
        (features.RandomLaplace(Chi2(), 64), "chi2() has no Laplace measure"),
        (features.SampledSignature(ReciprocalSemigroup(1.0), 64), "has no additive profile"),
        (features.Fastfood(SkewedChi2(1.0), 64), "skewed_chi2(skew=1.0) has no radial spectrum"),
        (features.TaylorGaussian(Laplacian(0.5), 64), "laplacian(gamma=0.5) has no Gaussian form"),
        (features.FourierExponential(Polynomial(2), 64), "polynomial(degree=2) has no exponential form"),
        (
            features.Compositional(compose(Polynomial(2), Gaussian(0.5).over(Chi2())), 64),
            "over(chi2()) has no map of its own for the factors",
        ),
        (features.ChebyshevChi2(Hellinger(), 64), "hellinger() has no χ² profile"),
        (features.RandomFourier(Gaussian(0.5).over(Chi2()), 64), "has no spectrum"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, features.FeatureMap) else "",
)
def test_a_kernel_that_lacks_a_fact_is_named(recipe, message):
    with pytest.raises(MapError) as caught:
        recipe.draw(3)
    assert message in str(caught.value)
    assert ";" in str(caught.value)  # and then what to do


@pytest.mark.parametrize("size", [0, -3, 2.5, True, "64", None, np.nan, np.inf])
def test_the_number_of_features_is_a_whole_number(size):
    with pytest.raises(MapError, match="n_features must be a whole number ≥ 1"):
        features.RandomMaclaurin(Polynomial(2), size)


def test_numbers_of_features_that_are_whole():
    for size in (64.0, np.int32(64), np.float32(64)):
        made = features.RandomMaclaurin(Polynomial(2), size)
        assert type(made.n_features) is int
        json.dumps(made.to_json())


@pytest.mark.parametrize(
    ("cls", "kernel", "options", "message"),
    [
        (features.RandomMaclaurin, Polynomial(2), {"p": 1.0}, "p must be a number > 1"),
        (features.RandomMaclaurin, Polynomial(2), {"p": 0.5}, "p must be a number > 1"),
        (features.RandomMaclaurin, Polynomial(2), {"p": np.nan}, "p must be a number > 1"),
        (features.RandomMaclaurin, Polynomial(2), {"p": np.inf}, "p must be a number > 1"),
        (features.Compositional, compose(Polynomial(2), Gaussian(0.5)), {"p": 1.0}, "p must be a number > 1"),
        (features.Compositional, Polynomial(2), {}, "needs kernels.compose"),
        (features.TruncatedMaclaurin, Polynomial(2), {"degree": 0}, "degree must be a whole number"),
        (features.TruncatedMaclaurin, Polynomial(2), {"degree": 2.5}, "degree must be a whole number"),
        (features.TruncatedMaclaurin, Polynomial(2), {"reach": 0.0}, "reach"),
        (features.TensorSketch, Polynomial(2), {"reach": np.nan}, "reach"),
        (
            features.OptimalMaclaurin,
            Polynomial(2),
            {"sketch": "gaussian"},
            "sketch must be one of hadamard, rademacher",
        ),
        (features.RandomFourier, Gaussian(0.5), {"form": "complex"}, "form must be one of pairs, phase"),
        (features.RandomFourier, Gaussian(0.5), {"frequencies": "halton"}, "frequencies must be one of iid"),
        (features.FourierExponential, Exponential(), {"frequencies": "halton"}, "frequencies must be one of iid"),
    ],
)
def test_options_are_checked_at_once(cls, kernel, options, message):
    with pytest.raises(MapError, match=message):
        cls(kernel, 64, **options)


def test_too_few_features_are_refused():
    for recipe, message in [
        (lambda: features.RandomFourier(Gaussian(0.5), 1), "a pair of features is two"),
        (lambda: features.Fastfood(Gaussian(0.5), 1), "at least 2"),
        (lambda: features.OptimalMaclaurin(Exponential(), 2).draw(50), "2 features are too few for"),
        (
            lambda: features.TruncatedMaclaurin(Exponential(), 3, degree=8).draw(3),
            "3 features are too few for 8 degrees",
        ),
        (lambda: features.Mercer1D(Chi2(), 2).draw(3, sample=np.ones((2, 3))), "2 features are too few for 3 columns"),
    ]:
        with pytest.raises(MapError, match=message):
            recipe()


def test_dimensions_are_checked():
    for d in (0, -1):
        with pytest.raises(MapError, match="d ≥ 1 columns"):
            features.RandomFourier(Gaussian(0.5), 64).draw(d)
    with pytest.raises(DataError, match="3 values of gamma"):
        features.RandomFourier(Gaussian([0.1, 0.2, 0.3]), 64).draw(2)(np.ones((1, 2)))


def test_rows_outside_the_domain_are_refused():
    X = np.ones((4, 3))
    X[2, 1] = -0.5
    for recipe in (
        features.SampledSignature(Intersection(), 9),
        features.RandomLaplace(ReciprocalSemigroup(1.0), 8),
        features.SkewedFourier(SkewedChi2(0.25), 8),
    ):
        drawn = recipe.draw(3)
        with pytest.raises(DomainError, match=r"row 2, column 1 is -0.5") as caught:
            drawn(X)
        assert (caught.value.row, caught.value.column) == (2, 1)
        with pytest.raises(DomainError, match="row 2, column 1"):
            drawn.variance(X)
        with pytest.raises(DomainError, match="row 2, column 1"):
            recipe.draw(3, sample=X)


def test_columns_are_named_as_in_the_table():
    table = pd.DataFrame({"age": [1.0, 2.0, 4.0], "size": [0.5, -1.0, 2.0]})
    drawn = features.RandomFourier(Gaussian("median").on(["size"]), 64).draw(2, sample=table)
    assert drawn.kernel.columns == (1,)
    assert np.array_equal(drawn(table), drawn(table.to_numpy()))
    with pytest.raises(DomainError, match="row 1, column 'size' is -1"):
        features.SampledSignature(Chi2(), 6).draw(2)(table)
    with pytest.raises(DataError, match="weight"):
        features.RandomFourier(Gaussian(0.5).on(["weight"]), 64).draw(2, sample=table)


def test_what_is_left_to_the_data_needs_a_sample():
    for recipe in (
        features.RandomFourier(Gaussian("median"), 64),
        features.RandomMaclaurin(compose(Exponential(), Polynomial(2)) + Gaussian("scale").normalized(), 64),
    ):
        with pytest.raises(KernelError, match="is left to the data: pass a sample of rows"):
            recipe.draw(3)
    sample = laws.rows(Gaussian(0.5), 3)
    drawn = features.RandomFourier(Gaussian("median"), 64).draw(3, sample=sample)
    assert drawn.kernel == Gaussian("median").resolve(sample)


# ---- recipes from JSON
def test_broken_recipes_are_refused():
    good = features.RandomFourier(Gaussian(0.5), 8).draw(2).recipe()
    for change, message in [
        ({"map": "Nothing"}, "there is no map 'Nothing' .*known: .*RandomFourier"),
        ({"map": None}, "there is no map None"),
        ({"form": "complex"}, "form must be one of"),
        ({"colour": 1}, "RandomFourier has no option colour"),
        ({"n_features": "many"}, "n_features must be"),
        ({"seed": -1}, "d, seed and path"),
        ({"seed": "x"}, "d, seed and path"),
        ({"path": None}, "d, seed and path"),
        ({"kernel": {"anything": 1}}, "unknown kind"),
        ({"kernel": Gaussian("median").to_json()}, "leaves gamma='median' to the data"),
    ]:
        with pytest.raises(MapError, match=message):
            features.from_recipe({**good, **change})
    for missing in ("d", "seed", "path"):
        with pytest.raises(MapError, match=missing):
            features.from_recipe({name: value for name, value in good.items() if name != missing})
    for missing in ("kernel", "n_features"):
        with pytest.raises(MapError, match=missing):
            features.from_recipe({name: value for name, value in good.items() if name != missing})
    for nonsense in (None, 3, "RandomFourier", []):
        with pytest.raises(MapError, match=r"a recipe is an object|there is no map"):
            features.from_recipe(nonsense)
    with pytest.raises(MapError, match="there is no map"):
        map_from_json([])
    with pytest.raises(KernelError, match="there is no kernel"):
        features.from_recipe({**good, "kernel": {"kernel": "Nothing"}})


@pytest.mark.parametrize(
    "recipe",
    [recipe for name, recipe, d in laws.examples() if d == 3 and not isinstance(recipe, features.Nystroem)],
    ids=[name for name, recipe, d in laws.examples() if d == 3 and not isinstance(recipe, features.Nystroem)],
)
def test_a_recipe_that_was_never_prepared_is_refused_or_complete(recipe):
    """JSON of what a user wrote, instead of what ``Drawn.recipe`` said."""
    body = {**json.loads(json.dumps(recipe.to_json())), "d": 3, "seed": 0, "path": []}
    if recipe.to_json() == recipe.prepared(3, Seed(0), Rows(laws.data(recipe, 3, n=60))).to_json():
        X = laws.data(recipe, 3)
        assert np.array_equal(features.from_recipe(body)(X), recipe.draw(3)(X))
    else:
        with pytest.raises(MapError, match=r"draw\(d, seed, sample=rows\)"):
            features.from_recipe(body)
