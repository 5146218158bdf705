"""Measured errors: what they are of, and whether their interval holds what it promises."""

import numpy as np
import pytest

from bochner import features, kernels
from bochner.errors import DataError, MapError
from bochner.features.error import jackknife


def test_the_error_is_the_relative_error_of_pairs_of_different_rows():
    X = np.random.default_rng(0).normal(size=(30, 3))
    kernel = kernels.Gaussian(0.5)
    drawn = features.RandomFourier(kernel, 64, form="phase").draw(3, seed=1)
    found = features.error(drawn, kernel, X)
    K, off = kernel.gram(X), ~np.eye(30, dtype=bool)
    wrong = drawn.gram(X) - K
    assert found.relative == pytest.approx(np.linalg.norm(wrong[off]) / np.linalg.norm(K[off]))
    assert found.frobenius == pytest.approx(np.linalg.norm(wrong) / np.linalg.norm(K))
    assert found.mean == pytest.approx(np.abs(wrong[off]).mean())
    assert found.max == pytest.approx(np.abs(wrong[off]).max())
    assert found.low < found.relative < found.high
    assert (found.rows, found.n_features, found.confidence) == (30, 64, 0.9)
    assert features.error(drawn, X) == found
    assert "relative error" in str(found)


def test_another_kernel_may_be_asked_for():
    X = np.random.default_rng(0).normal(size=(40, 3))
    drawn = features.RandomFourier(kernels.Gaussian(0.5), 4096).draw(3, seed=1)
    assert features.error(drawn, kernels.Gaussian(0.1), X).relative > 5 * features.error(drawn, X).relative


def test_an_exact_map_has_no_error():
    X = np.random.default_rng(0).normal(size=(20, 3))
    found = features.error(features.OptimalMaclaurin(kernels.Linear(), 3).draw(3), X)
    assert found.relative < 1e-15


def test_at_most_max_rows_are_measured():
    X = np.random.default_rng(0).normal(size=(300, 3))
    drawn = features.RandomFourier(kernels.Gaussian(0.5), 64).draw(3)
    assert features.error(drawn, X, max_rows=50).rows == 50
    assert features.error(drawn, X, max_rows=50) == features.error(drawn, X, max_rows=50)
    assert features.error(drawn, X, max_rows=50, seed=1) != features.error(drawn, X, max_rows=50)


def test_wrong_calls_are_refused():
    X = np.random.default_rng(0).normal(size=(10, 3))
    drawn = features.RandomFourier(kernels.Gaussian(0.5), 64).draw(3)
    with pytest.raises(DataError, match="at least 3"):
        features.error(drawn, X[:2])
    with pytest.raises(MapError, match="confidence"):
        features.error(drawn, X, confidence=90)
    with pytest.raises(MapError, match="takes a kernel"):
        features.error(drawn, "gaussian", X)


POPULATIONS = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "clusters": lambda rng, n, d: (
        3 * np.random.default_rng(5).standard_normal((8, d))[rng.integers(8, size=n)]
        + 0.5 * rng.standard_normal((n, d))
    ),
    "histograms": lambda rng, n, d: rng.dirichlet(np.ones(d), n),
}
CASES = [
    ("normal", 5, features.RandomFourier(kernels.Gaussian(0.1), 256)),
    ("clusters", 5, features.RandomFourier(kernels.Gaussian(0.02), 256, frequencies="orthogonal")),
    ("normal", 5, features.RandomFourier(kernels.Laplacian(0.3), 512, frequencies="sobol")),
    ("histograms", 20, features.RandomLaplace(kernels.ExponentialSemigroup(0.5), 256)),
    ("clusters", 5, features.Nystroem(kernels.Gaussian(0.05), 40)),
]


def coverage(case, rows, maps, samples, shrink=1.0):
    """The share of intervals that hold the error over the whole population (3,000 rows, all pairs)."""
    name, d, recipe = case
    rng = np.random.default_rng(1)
    population, fit = POPULATIONS[name](rng, 3000, d), POPULATIONS[name](rng, 300, d)
    off, hits = ~np.eye(len(population), dtype=bool), []
    for seed in range(maps):
        drawn = recipe.draw(d, seed, sample=fit)
        K = drawn.kernel.gram(population)
        wrong, size = np.square(drawn.gram(population) - K), np.square(K)
        target = np.sqrt(wrong[off].sum() / size[off].sum())
        for _ in range(samples):
            picks = np.ix_(*2 * [rng.choice(len(population), rows, replace=False)])
            low, centre, high = jackknife(wrong[picks], size[picks], 0.9)
            hits.append(centre * (low / centre) ** shrink <= target <= centre * (high / centre) ** shrink)
    return float(np.mean(hits)), len(hits)


def test_the_interval_covers_about_nine_times_in_ten():
    # 120 trials: a standard error of 0.027; the slow test below is the tight one.
    share, trials = coverage(CASES[0], rows=60, maps=2, samples=60)
    assert trials == 120
    assert 0.82 <= share <= 0.97


def test_the_law_of_coverage_rejects_intervals_that_are_too_short():
    share, _ = coverage(CASES[0], rows=60, maps=2, samples=60, shrink=0.5)
    assert share < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("rows", [60, 200])
def test_coverage_is_what_it_says(rows):
    """Nominal 90 %: within 87–93 % over 1,500 trials of five maps (a standard error of 0.008)."""
    shares = [coverage(case, rows, maps=10, samples=30) for case in CASES]
    assert sum(trials for _, trials in shares) == 1500
    assert 0.87 <= np.mean([share for share, _ in shares]) <= 0.93, shares


def test_a_kernel_that_is_zero_everywhere_has_no_error():
    drawn = features.OptimalMaclaurin(kernels.Linear(), 3).draw(3)
    found = features.error(drawn, np.zeros((10, 3)))
    assert (found.relative, found.high, found.frobenius) == (0.0, 0.0, 0.0)
