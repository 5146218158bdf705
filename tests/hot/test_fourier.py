"""Compiled loops against their plain twins, and the features that they make against the direct formula."""

import numpy as np
import pytest

from bochner import features, kernels
from bochner.hot import fourier, reference

rng = np.random.default_rng(0)
vectors = pytest.importorskip("bochner.hot.vectors")
WIDE = fourier.WIDE


@pytest.mark.parametrize("rows", [1, 16, 17, 64])
def test_cosines_and_sines_are_those_of_numpy(rows):
    phases = rng.normal(size=(WIDE // 2, rows)).astype(np.float32) * np.geomspace(1e-3, 30.0, rows, dtype=np.float32)
    exact, found = np.empty((WIDE, rows)), np.empty((WIDE, rows), np.float32)
    reference.cos_sin(phases.astype(np.float64), 0.25, 0.7, exact)
    fourier.cos_sin(phases, 0.25, 0.7, found)
    np.testing.assert_allclose(found, exact, atol=3e-5 * 0.7)
    few = np.abs(phases) < 1.0
    np.testing.assert_allclose(found[0::2][few], exact[0::2][few], atol=5e-7)


def test_no_phase_is_too_large_to_stay_on_the_circle():
    phases = np.array([[0.0, 0.5, -0.5, 1e9, -1e20, 3e38, 8388609.0, 0.25] * 2] * (WIDE // 2), dtype=np.float32)
    found = np.empty((WIDE, 16), np.float32)
    fourier.cos_sin(phases, 1.0, 1.0, found)
    np.testing.assert_allclose(np.hypot(found[0::2], found[1::2]), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "count"), [(64, WIDE // 2), (64, WIDE // 2 + 5), (128, 1100), (256, 1030), (512, 1024)]
)
@pytest.mark.parametrize("rows", [3, 32])
def test_structured_frequencies_are_those_of_the_plain_transform(size, count, rows):
    blocks = -(-count // size)
    X = np.zeros((size, rows), np.float32)
    X[: size - 10] = rng.normal(size=(size - 10, rows))
    signs = rng.choice([-1.0, 1.0], (3, blocks * size)).astype(np.float32)
    factors = (rng.uniform(0.1, 1.0, count) / size**1.5).astype(np.float32)
    exact, found = np.empty((2 * count, rows)), np.empty((2 * count, rows), np.float32)
    reference.structured(*(a.astype(np.float64) for a in (X, signs, factors)), 0.5, exact)
    fourier.structured(X, signs, factors, 0.5, found)
    np.testing.assert_allclose(found, exact, atol=2e-5)


@pytest.mark.parametrize("law", ["orthogonal", "hadamard", "iid"])
@pytest.mark.parametrize("rows", [1, 50, 64])
def test_wide_maps_are_the_same_in_every_layout_and_without_compiled_loops(law, rows, monkeypatch):
    drawn = features.RandomFourier(kernels.Gaussian(0.1), WIDE, frequencies=law).draw(10, seed=0)
    X = rng.normal(size=(rows, 10)).astype(np.float32)
    exact = drawn(X.astype(np.float64))
    phases = drawn.frequencies.project(X.astype(np.float64))
    np.testing.assert_allclose(exact[:, 0::2], np.cos(phases) * drawn.amplitude, atol=1e-12)
    np.testing.assert_allclose(exact[:, 1::2], np.sin(phases) * drawn.amplitude, atol=1e-12)
    room = np.full(rows * WIDE + 7, np.nan, np.float32)
    made = [drawn(X), drawn.laid(X), drawn.laid(X, room), drawn(X, out=np.empty((rows, WIDE), np.float32, order="F"))]
    monkeypatch.setattr(fourier, "compiled", lambda: None)
    made += [drawn(X), drawn.laid(X)]
    for Z in made:
        assert Z.shape == (rows, WIDE)
        np.testing.assert_allclose(Z, exact, atol=1e-5 * drawn.amplitude * 10)


def test_narrow_maps_do_not_load_numba(monkeypatch):
    monkeypatch.setattr(fourier, "compiled", lambda: pytest.fail("numba was asked for"))
    drawn = features.RandomFourier(kernels.Gaussian(0.1), WIDE // 2).draw(10, seed=0)
    assert drawn(np.ones((2, 10), np.float32)).shape == (2, WIDE // 2)
    wide = features.RandomFourier(kernels.Gaussian(0.1), WIDE).draw(10, seed=0)
    assert wide(np.ones((2, 10))).shape == (2, WIDE)
