"""The loops of hot.reference against dense matrices and direct sums."""

import numpy as np
import pytest
from scipy.linalg import hadamard as hadamard_matrix

from bochner.hot.reference import circular_product, count_sketch, hadamard, power_of_two


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1 << k for k in range(13)])
def test_hadamard_is_a_product_with_the_hadamard_matrix(size, dtype):
    X = np.random.default_rng(size).normal(size=(3, 2, size)).astype(dtype)
    X.flags.writeable = False
    found = hadamard(X)
    assert found.dtype == dtype
    assert found.shape == X.shape
    wanted = X.astype(np.float64) @ hadamard_matrix(size)
    assert np.abs(found - wanted).max() <= 100 * np.finfo(dtype).eps * np.sqrt(size) * np.abs(wanted).max()


def test_hadamard_of_shapes_and_strides():
    X = np.random.default_rng(0).normal(size=(8, 5, 256))
    wanted = hadamard(X)
    assert np.allclose(hadamard(X[3, 2]), wanted[3, 2])
    assert np.allclose(hadamard(X[::2, ::-1]), wanted[::2, ::-1])
    assert np.allclose(hadamard(np.asfortranarray(X)), wanted)
    assert hadamard(X[:0]).shape == (0, 5, 256)
    assert np.allclose(hadamard(wanted) / 256, X)
    with pytest.raises(ValueError, match="power of 2"):
        hadamard(np.ones((2, 12)))


def test_power_of_two():
    assert [power_of_two(n) for n in (1, 2, 3, 4, 5, 64, 65, 1000)] == [1, 2, 4, 4, 8, 64, 128, 1024]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "width"), [(1, 1), (7, 3), (100, 16), (5, 64)])
def test_count_sketch_is_a_product_with_a_sparse_matrix(d, width, dtype):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(6, d)).astype(dtype)
    bucket, sign = rng.integers(0, width, d), rng.choice(np.array([-1, 1], dtype=np.int8), d)
    S = np.zeros((d, width))
    S[np.arange(d), bucket] = sign
    found = count_sketch(X, bucket, sign, width)
    assert found.dtype == dtype
    assert np.allclose(found, X @ S, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-5)
    assert count_sketch(X[:0], bucket, sign, width).shape == (0, width)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 7, 64, 101])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_circular_product_is_a_circular_convolution(count, width, dtype):
    parts = [np.random.default_rng(i).normal(size=(3, width)).astype(dtype) for i in range(count)]
    wanted = parts[0].astype(np.float64)
    shift = (np.arange(width)[:, None] - np.arange(width)) % width
    for part in parts[1:]:
        wanted = np.einsum("nj,nij->ni", part.astype(np.float64), wanted[:, shift])
    found = circular_product(parts)
    assert found.dtype == dtype
    assert np.abs(found - wanted).max() <= 1000 * np.finfo(dtype).eps * np.abs(wanted).max()
    assert all(
        np.array_equal(p, np.random.default_rng(i).normal(size=(3, width)).astype(dtype)) for i, p in enumerate(parts)
    )
