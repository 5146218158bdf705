"""Scrambled Sobol' points, Latin hypercubes, stratified extremes, orthogonal normals and independent uniforms."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from bochner.errors import MapError
from bochner.features.points import POINTS
from bochner.seeds import Seed

sobol, latin, extremes = POINTS["sobol"], POINTS["latin"], POINTS["extremes"]
orthogonal, mirrored = POINTS["orthogonal"], POINTS["mirrored"]
each_kind = pytest.mark.parametrize("kind", list(POINTS))


@each_kind
@pytest.mark.parametrize(("count", "dims"), [(1, 1), (2, 5), (255, 3), (256, 3), (257, 3), (1000, 7)])
def test_points_lie_inside_the_cube(kind, count, dims):
    points = POINTS[kind](Seed(0), count, dims)
    assert points.shape == (count, dims)
    assert points.dtype == np.float64
    assert points.min() > 0.0
    assert points.max() < 1.0
    assert np.array_equal(points, POINTS[kind](Seed(0), count, dims))
    assert not np.array_equal(points, POINTS[kind](Seed(1), count, dims))


@each_kind
@pytest.mark.parametrize("place", [0, 1, 5])
def test_each_point_is_uniform(kind, place):
    points = np.array([POINTS[kind](Seed(s), 6, 4)[place] for s in range(1500)])
    for column in points.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    pairs = np.corrcoef(points.T) - np.eye(4)
    assert np.abs(pairs).max() < 4.0 / np.sqrt(1500)


@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_projections_of_two_to_the_k_points_are_stratified(k):
    for seed in range(3):
        points = sobol(Seed(seed), 1 << k, 21)
        cells = np.sort(np.floor(points * (1 << k)).astype(int), axis=0)
        assert np.array_equal(cells, np.arange(1 << k)[:, None].repeat(21, axis=1))


def test_latin_hypercubes_are_stratified_for_any_count():
    for count in (1, 7, 100):
        cells = np.sort(np.floor(latin(Seed(0), count, 5) * count).astype(int), axis=0)
        assert np.array_equal(cells, np.arange(count)[:, None].repeat(5, axis=1))


def test_the_first_two_dimensions_are_a_net():
    """Every elementary interval of area 2⁻ᵏ holds one of 2ᵏ points: scrambling keeps the (0, k, 2)-net."""
    k = 8
    points = sobol(Seed(3), 1 << k, 2)
    for a in range(k + 1):
        cells = np.floor(points * [1 << a, 1 << (k - a)]).astype(int)
        assert len(np.unique(cells[:, 0] * (1 << (k - a)) + cells[:, 1])) == 1 << k


@pytest.mark.parametrize("kind", [kind for kind in POINTS if kind != "latin"])
def test_fewer_points_are_the_first_of_more(kind):
    many = POINTS[kind](Seed(2), 700, 6)
    for count in (1, 3, 64, 255, 300, 511):
        np.testing.assert_allclose(POINTS[kind](Seed(2), count, 6), many[:count], rtol=0.0, atol=1e-13)


@pytest.mark.parametrize(("kind", "gain"), [("sobol", 0.05), ("latin", 0.1)])
def test_smooth_functions_are_integrated_better(kind, gain):
    def error(kind):
        means = [np.sin(POINTS[kind](Seed(s), 1024, 4) @ [3.0, 2.0, 1.0, 0.5]).mean() for s in range(50)]
        return np.std(means)

    assert error(kind) < gain * error("iid") * (1.0 if kind == "sobol" else 6.0)


def test_extremes_have_the_joint_law_of_independent_uniforms():
    """Sorted deviations, places and sides of one point over many seeds, against their exact laws."""
    dims, seeds = 12, 2000
    points = np.array([extremes(Seed(s), 4, dims)[3] for s in range(seeds)])
    deviations = np.sort(np.abs(2.0 * points - 1.0), axis=1)
    for k in range(dims):  # the k-th of n uniforms is Beta(k+1, n−k), across the seam of drawn and bounded ones too
        assert stats.kstest(deviations[:, k], stats.beta(k + 1, dims - k).cdf).pvalue > 1e-4
    farthest = np.abs(2.0 * points - 1.0).argmax(axis=1)
    assert stats.chisquare(np.bincount(farthest, minlength=dims)).pvalue > 1e-4
    pairs = np.corrcoef(np.abs(2.0 * points - 1.0).T) - np.eye(dims)
    assert np.abs(pairs).max() < 4.5 / np.sqrt(seeds)


def test_the_farthest_coordinate_is_stratified():
    dims, count = 40, 256
    largest = np.abs(2.0 * extremes(Seed(1), count, dims) - 1.0).max(axis=1)
    cells = np.sort(np.floor(largest**dims * count).astype(int))
    assert np.array_equal(cells, np.arange(count))


def test_orthogonal_points_are_orthogonal_normals_of_free_length():
    dims = 5
    normals = special.ndtri(orthogonal(Seed(3), 600 * dims, dims)).reshape(600, dims, dims)
    norms = np.linalg.norm(normals, axis=2)
    cosines = normals @ normals.swapaxes(1, 2) / (norms[:, :, None] * norms[:, None, :])
    np.testing.assert_allclose(cosines, np.broadcast_to(np.eye(dims), cosines.shape), atol=1e-9)
    assert stats.kstest(norms.ravel(), stats.chi(dims).cdf).statistic < 0.01


def test_mirrored_points_come_in_pairs():
    points = mirrored(Seed(1), 40, 7)
    np.testing.assert_allclose(points[0::2] + points[1::2], 1.0, rtol=0.0, atol=1e-15)
    assert np.array_equal(points[0::2], orthogonal(Seed(1), 20, 7))


def test_second_moments_of_orthogonal_points_hardly_vary():
    """Σ (aᵀ(u − ½))² over whole blocks, and for the mirrored ones linear functions too."""
    dims, count, a = 32, 64, np.random.default_rng(0).normal(size=32)

    def spread(kind, power):
        return np.std([np.mean(((POINTS[kind](Seed(s), count, dims) - 0.5) @ a) ** power) for s in range(200)])

    for kind in ("orthogonal", "mirrored"):
        assert spread(kind, 2) < 0.5 * spread("iid", 2)
    assert spread("mirrored", 1) < 1e-12 * spread("iid", 1)
    assert spread("mirrored", 3) < 1e-12 * spread("iid", 3)


def test_scrambles_differ_between_dimensions():
    points = sobol(Seed(0), 128, 50)
    assert all(not np.array_equal(points[:, i], points[:, j]) for i, j in itertools.combinations(range(50), 2))
    assert len(np.unique(points)) > 128 * 40


def test_too_many_dimensions_are_refused():
    with pytest.raises(MapError, match="at most 21201 dimensions"):
        sobol(Seed(0), 2, 30_000)
