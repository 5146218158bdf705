"""Compiled loops over columns against their plain twins in float64."""

import numpy as np
import pytest

from bochner.hot import columns, fourier, reference

rng = np.random.default_rng(0)
pytest.importorskip("bochner.hot.vectors")
WIDE = fourier.WIDE
TINY = float(np.finfo(np.float32).smallest_subnormal)


def outs(width, rows):
    """Places that features are written to: by feature, by row, and as a part of more rows; all are NaN before."""
    wide = np.full((width + 3, rows + 21), np.nan, np.float32)
    yield np.full((width, rows), np.nan, np.float32)
    yield np.full((rows, width), np.nan, np.float32).T
    yield wide[2:-1, 5 : 5 + rows]
    assert np.isnan(wide[:2]).all()
    assert np.isnan(wide[-1]).all()
    assert np.isnan(wide[:, :5]).all()
    assert np.isnan(wide[:, 5 + rows :]).all()


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 100])
def test_phases_with_offsets(rows):
    phases = rng.normal(size=(WIDE, rows)).astype(np.float32)
    offsets, exact = rng.random(WIDE), np.empty((WIDE, rows))
    reference.cos(phases.astype(np.float64), 0.2, offsets, 0.7, exact)
    for out in outs(WIDE, rows):
        fourier.cos(phases, 0.2, offsets, 0.7, out)
        np.testing.assert_allclose(out, exact, atol=7e-7)


def test_cosines_to_the_rounding_of_single_precision():
    turns = np.linspace(-0.5, 0.5, WIDE * 64, dtype=np.float32).reshape(WIDE, 64)
    out = np.empty_like(turns)
    fourier.cos(turns, 1.0, np.zeros(WIDE), 1.0, out)
    assert np.abs(out - np.cos(2.0 * np.pi * turns.astype(np.float64))).max() <= 2e-7


def test_phases_that_are_no_numbers_or_hardly_any():
    phases = np.tile(np.array([np.nan, np.inf, -np.inf, TINY, -TINY, 0.0, 1e30, -0.5], np.float32), (WIDE, 3))
    out = np.empty_like(phases)
    fourier.cos(phases, 1.0, np.zeros(WIDE), 1.0, out)
    assert np.isnan(out[:, [0, 1, 2]]).all()
    np.testing.assert_allclose(out[:, 3:8], np.broadcast_to([1.0, 1.0, 1.0, 1.0, -1.0], (WIDE, 5)), atol=2e-7)


@pytest.mark.parametrize("harmonics", [1, 2, 4])
@pytest.mark.parametrize("rows", [1, 16, 17, 50])
def test_signatures(harmonics, rows):
    m = 2 * harmonics - 1
    d = -(-WIDE // m)
    x = np.exp(rng.uniform(-80.0, 80.0, (d, rows))).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = 0.0
    x[0, 0], x[1, 0] = TINY, 1e-40
    weights, exact = rng.uniform(0.1, 1.0, harmonics), np.empty((m * d, rows))
    reference.signature(x.astype(np.float64), 1.0, 0.3, weights, exact)
    size = np.repeat(np.sqrt(x.astype(np.float64)), m, axis=0)
    for out in outs(m * d, rows):
        columns.signature(x, 1.0, 0.3, weights, out)
        # A phase of 300 rounded to float32 is 2e-5 off.
        assert (np.abs(out - exact) <= 6e-5 * size).all()


def test_signatures_near_one_are_exact_to_rounding():
    x = np.linspace(0.4, 2.5, WIDE * 64, dtype=np.float32).reshape(WIDE, 64)
    exact, out = np.empty((3 * WIDE, 64)), np.empty((3 * WIDE, 64), np.float32)
    reference.signature(x.astype(np.float64), 1.0, 0.5, np.ones(2), exact)
    columns.signature(x, 1.0, 0.5, np.ones(2), out)
    assert np.abs(out - exact).max() <= 5e-7


def test_signatures_of_what_is_no_number():
    x = np.tile(np.array([np.nan, np.inf, 0.0, 1.0], np.float32), (WIDE, 4))
    out = np.empty((3 * WIDE, 16), np.float32)
    columns.signature(x, 1.0, 0.5, np.ones(2), out)
    assert np.isnan(out[1::3, :2]).all()
    assert np.isnan(out[2::3, :2]).all()
    np.testing.assert_allclose(out[:3, 2:4], [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]], atol=2e-7)


@pytest.mark.parametrize("rows", [1, 16, 33])
def test_products_of_factors(rows):
    degrees = rng.geometric(0.5, WIDE) - 1
    start = np.concatenate([[0], np.cumsum(degrees)])
    factors = rng.normal(size=(start[-1], rows)).astype(np.float32)
    constant = rng.uniform(0.5, 2.0, WIDE)
    exact = np.empty((WIDE, rows))
    reference.products(factors.astype(np.float64), start, constant, exact)
    direct = [constant[i] * factors[start[i] : start[i + 1]].astype(np.float64).prod(axis=0) for i in range(WIDE)]
    np.testing.assert_allclose(exact, direct, rtol=1e-12)
    for out in outs(WIDE, rows):
        columns.products(factors, start, constant, out)
        np.testing.assert_allclose(out, exact, rtol=2e-6)


def test_count_sketches():
    X = rng.normal(size=(5, 2 * WIDE)).astype(np.float32)[:, ::2]
    bucket, sign = rng.integers(0, WIDE, WIDE), rng.choice(np.array([-1, 1], np.int8), WIDE)
    exact = reference.count_sketch(X.astype(np.float64), bucket, sign, WIDE)
    found = columns.count_sketch(X, bucket, sign, WIDE)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, atol=2e-6)
