"""The default map of every kernel: it exists, it is right, it is better than the papers' plain one, and says why."""

import numpy as np
import pytest

from bochner import features, kernels
from bochner.arrays import Rows
from bochner.errors import DataError, DomainError, KernelError, MapError
from bochner.features.deciding import split
from bochner.features.error import sized_for


def unit_ball(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(n, d)))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)


TEXTS = [
    "gaussian(gamma=median)",
    "0.5*gaussian(gamma=median) + exp_chi2().on(0:3)",
    "chi2() * gaussian(gamma=1)",
    "exponential_semigroup()",
    "reciprocal_semigroup() + chi2()",
    "compose(exponential(), chi2())",
    "compose(exponential(), matern(nu=1.5))",
    "compose(exponential(), exponential_semigroup(beta=0.1))",
    "skewed_chi2()",
    "matern(nu=0.5).over(intersection())",
    "vovk_infinite(scale=norm)",
    "gaussian(gamma=2).on(0:2) * laplacian(gamma=.3).on(2:4)",
    "chi2().normalized()",
    "2*(polynomial(degree=2) + gaussian(gamma=1)) + 1",
]
ALL = [*kernels.examples(), *map(kernels.parse, TEXTS)]


@pytest.mark.parametrize("d", [1, 4, 40])
@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_every_kernel_has_a_default_that_approximates_it(kernel, d):
    try:
        kernel.bound(None, d)
    except ValueError:
        pytest.skip("the kernel is on columns that these rows do not have")
    X = unit_ball(200, d)
    sample, held_out = X[:120], X[120:]
    narrow = features.choose(kernel, 64 + 5 * d, d).draw(d, seed=1, sample=sample)
    wide = features.choose(kernel, 16 * (64 + 5 * d), d).draw(d, seed=1, sample=sample)
    assert narrow.width <= 64 + 5 * d
    assert wide.map.why
    few, many = features.error(narrow, held_out), features.error(wide, held_out)
    assert few.frobenius < 0.75
    assert many.frobenius < 0.4
    assert many.relative < max(0.7 * few.relative, 1e-3)


@pytest.mark.parametrize("kernel", [k for k in ALL if not k.unresolved()], ids=str)
def test_a_default_needs_no_sample(kernel):
    d = 4
    X = unit_ball(60, d)
    drawn = features.choose(kernel, 512, d).draw(d, seed=2)
    assert features.error(drawn, X).relative < 0.35


@pytest.mark.parametrize(
    ("kernel", "plain"),
    [
        (kernels.Gaussian(0.5), features.RandomFourier),
        (kernels.Gaussian(4.0), features.RandomFourier),
        (kernels.Matern(1.5, 1.0), features.RandomFourier),
        (kernels.Laplacian(0.5), features.RandomFourier),
        (kernels.SkewedChi2(0.3), features.RandomFourier),
        (kernels.Exponential(), features.RandomMaclaurin),
        (kernels.Polynomial(5), features.RandomMaclaurin),
        (kernels.Homogeneous(3), features.RandomMaclaurin),
        (kernels.ExponentialSemigroup(1.0), features.RandomLaplace),
        (kernels.ReciprocalSemigroup(1.0), features.RandomLaplace),
        (kernels.Chi2(), features.SampledSignature),
        (kernels.Intersection(), features.SampledSignature),
    ],
    ids=str,
)
def test_the_default_beats_the_plain_map(kernel, plain):
    d, D = 8, 512
    X = unit_ball(300, d)
    sample, held_out = X[:200], X[200:]
    options = {"form": "phase"} if plain is features.RandomFourier else {}

    def rms(make):
        return np.sqrt(np.mean([features.error(make(s), held_out).frobenius ** 2 for s in range(4)]))

    ours = rms(lambda s: features.choose(kernel, D, d).draw(d, s, sample=sample))
    theirs = rms(lambda s: plain(kernel, D, **options).draw(d, s))
    assert ours < 0.85 * theirs


def test_small_feature_spaces_are_exact():
    X = unit_ball(50, 3)
    for kernel, width in (
        (kernels.Linear(), 3),
        (kernels.Polynomial(2), 10),
        (kernels.Homogeneous(3), 10),
        (kernels.Hellinger(), 3),
    ):
        drawn = features.choose(kernel, 200, 3).draw(3, seed=0)
        assert drawn.width == width
        np.testing.assert_allclose(drawn.gram(X), kernel.gram(X), rtol=1e-12, atol=1e-14)


def test_a_sum_spends_its_budget_where_the_error_is():
    X = unit_ball(300, 6)
    kernel = 0.001 * kernels.Laplacian(1.0) + kernels.Laplacian(2.0)
    drawn = features.choose(kernel, 512, 6).draw(6, seed=0, sample=X)
    small, large = (part.n_features for part in drawn.map.parts)
    assert small < 0.1 * large
    assert small + large <= 512


def test_the_split_of_a_budget_follows_neyman():
    # errors v/n: widths in proportion to √v
    curves = [[(n, v / n) for n in range(1, 2001)] for v in (1.0, 4.0, 9.0)]
    sizes = split(curves, 1200)
    assert sum(sizes) <= 1200
    np.testing.assert_allclose(sizes, [200, 400, 600], atol=3)


def test_the_split_of_a_budget_stops_where_a_part_is_exact():
    curves = [[(10, 1.0), (30, 0.0), (500, 0.0)], [(n, 1.0 / n) for n in range(1, 501)]]
    assert split(curves, 300) == [30, 270]


def test_dot_products_of_a_sum_join_into_one_series():
    kernel = kernels.Polynomial(2) + kernels.Exponential()
    drawn = features.choose(kernel, 100, 5).draw(5)
    assert isinstance(drawn.map, features.OptimalMaclaurin)


def test_without_rows_or_columns_the_choice_is_refused():
    with pytest.raises(MapError, match="number of columns"):
        features.choose(kernels.Linear(), 10)
    with pytest.raises(MapError, match="auto"):
        features.choose(kernels.Linear(), "auto", 3)
    with pytest.raises(MapError, match="many"):
        features.choose(kernels.Linear(), "many", 3)
    with pytest.raises(KernelError, match="left to the data"):
        features.choose(kernels.Gaussian("median"), 16, 3).draw(3)


def test_fewer_features_than_columns_fall_back_to_landmarks():
    X = unit_ball(100, 20)
    drawn = features.choose(kernels.Chi2(), 10, 20).draw(20, seed=0, sample=X)
    assert isinstance(drawn.map, features.Nystroem)


def test_the_choice_warns_when_landmarks_on_all_rows_would_do():
    assert "Nyström" in features.choose(kernels.Laplacian(1.0), 100, 3, n_rows=50).why
    assert "Nyström" not in features.choose(kernels.Laplacian(1.0), 100, 3, n_rows=500).why


def test_names_of_columns_reach_the_kernel():
    X = unit_ball(80, 4)
    kernel = kernels.parse("gaussian(gamma=median).on(b:c)")
    rows = Rows(X, ("a", "b", "c", "d"))
    drawn = features.choose(kernel, 64, sample=rows).draw(4, seed=0, sample=rows)
    np.testing.assert_allclose(drawn.kernel.gram(X), kernels.Gaussian("median").resolve(X[:, 1:3]).gram(X[:, 1:3]))


def test_a_decided_recipe_is_drawn_again_from_json():
    import json

    X = unit_ball(150, 5)
    for text in TEXTS[:3]:
        drawn = features.choose(kernels.parse(text), 200, 5).draw(5, seed=3, sample=X)
        again = features.from_recipe(json.loads(json.dumps(drawn.recipe())))
        assert np.array_equal(again(X), drawn(X))
        assert again.map.why == drawn.map.why


@pytest.mark.parametrize(
    "kernel",
    [kernels.Gaussian("median"), kernels.Laplacian("median"), kernels.Chi2(), kernels.Polynomial(3)],
    ids=str,
)
def test_auto_keeps_its_promise_on_fresh_rows(kernel):
    X = unit_ball(1400, 6)
    recipe = features.choose(kernel, "auto", tol=0.05, sample=X[:400])
    assert "promised a relative error ≤ 0.05" in recipe.why
    assert "measured" in recipe.why
    drawn = recipe.draw(6, seed=0)
    assert features.error(drawn, X[400:]).relative < 0.055
    # ... and it is not far wider than it has to be
    if not drawn.map.deterministic and drawn.width > 200:
        narrow = features.choose(kernel, drawn.width // 3, 6).draw(6, seed=0, sample=X[:400])
        assert features.error(narrow, X[400:]).relative > 0.05


def test_auto_says_when_a_target_is_out_of_reach():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(MapError, match="zero between all rows"):
        sized_for(lambda D: features.RandomFourier(kernels.Gaussian(1e9), D), 0.1, Rows(X))
    with pytest.raises(MapError, match="not approximated to"):
        sized_for(lambda D: features.RandomFourier(kernels.Gaussian(1.0), D), 0.001, Rows(X), most=512)


def test_columns_in_another_order_are_refused():
    import json

    X = unit_ball(40, 3)
    drawn = features.choose(kernels.Gaussian(1.0).on("b"), 16, 3, sample=Rows(X, ("a", "b", "c"))).draw(
        3, sample=Rows(X, ("a", "b", "c"))
    )
    again = features.from_recipe(json.loads(json.dumps(drawn.recipe())))
    for known in (drawn, again):
        np.testing.assert_array_equal(known(Rows(X, ("a", "b", "c"))), known(X))
        with pytest.raises(DataError, match="column 0 is 'c', and the map was drawn for 'a' there"):
            known(Rows(X[:, ::-1], ("c", "b", "a")))


@pytest.mark.parametrize(
    "text",
    [
        "gaussian(gamma=median).over(gaussian(gamma=median) + chi2())",
        "cauchy().over(2*gaussian(gamma=median) + matern(nu=1.5))",
        "matern(nu=1.5).over(gaussian(gamma=scale) * laplacian(gamma=mean))",
        "(gaussian(gamma=median) + laplacian(gamma=mean)).normalized().on(0:3)",
        "compose(polynomial(degree=2), gaussian(gamma=median) + vovk_infinite(scale=norm) + linear())",
        "gaussian(gamma=median) + (vovk_infinite(scale=norm) + linear())",
    ],
)
def test_parameters_left_to_the_data_are_the_same_inside_and_outside(text):
    """Numbers that only stand in while a map is chosen must not stay in its parts."""
    d = 3
    X = 10.0 * unit_ball(300, d)
    kernel = kernels.parse(text)
    drawn = features.choose(kernel, 512, d).draw(d, seed=0, sample=X[:200])
    assert drawn.kernel == kernel.resolve(X[:200])
    assert features.error(drawn, X[200:]).frobenius < 0.2


def test_sums_of_a_small_budget_fall_back_to_landmarks():
    d = 7
    X = unit_ball(100, d)
    kernel = kernels.parse("chi2() + gaussian(gamma=1) + polynomial(degree=2) + 0.5")
    recipe = features.choose(kernel, 16, d)
    assert isinstance(recipe, features.Nystroem)
    assert "fewer" in recipe.why
    assert recipe.draw(d, 0, sample=X).width == 16
    over = kernels.parse("gaussian(gamma=1).over(chi2() + gaussian(gamma=1))")
    assert features.choose(over, 16, d).draw(d, 0, sample=X).width <= 16


@pytest.mark.parametrize("text", ["vovk_real(degree=200)", "vovk_infinite(scale=1.02)", "polynomial(degree=60)"])
def test_where_random_maps_fail_landmarks_are_chosen(text):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    X *= rng.uniform(0.3, 1.0, (400, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    kernel = kernels.parse(text)
    drawn = features.choose(kernel, 128, 2).draw(2, 0, sample=X[:300])
    assert isinstance(drawn.map, features.Nystroem)
    assert "more than a quarter" in drawn.map.why
    assert features.error(drawn, X[300:]).frobenius < 0.3
    few = features.choose(kernels.VovkInfinite(8.0), 128, 2).draw(2, 0, sample=X[:300])
    assert isinstance(few.map, features.OptimalMaclaurin)


def test_rows_at_which_the_kernel_overflows_are_refused():
    X = np.array([[0.1, 0.1], [3.0, 3.0]])
    with pytest.raises(DomainError, match="overflows float64 at row 1"):
        features.choose(kernels.Exponential(0.01), 64, 2).draw(2, 0, sample=X)


@pytest.mark.parametrize("kernel", [kernels.Hellinger(), kernels.Chi2(), 2.0 * kernels.JensenShannon()], ids=str)
@pytest.mark.parametrize("with_sample", [True, False])
def test_fewer_features_than_columns_stay_within_the_budget(kernel, with_sample):
    d = 20
    X = unit_ball(100, d)
    drawn = features.choose(kernel, 12, d).draw(d, seed=0, sample=X[:60] if with_sample else None)
    assert drawn.width <= 12
    assert features.error(drawn, X[60:]).frobenius < (0.3 if with_sample else 1.2)  # √(2/12), give or take


def test_kernels_over_the_intersection_get_columns_enough():
    """Its Mercer functions fall off slowly: with 9 columns an entry the error stays above 0.04."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(4), 500)
    kernel = kernels.parse("gaussian(gamma=median).over(intersection())")
    drawn = features.choose(kernel, 1024, 4).draw(4, 0, sample=X[:400])
    assert features.error(drawn, X[400:]).frobenius < 0.025
