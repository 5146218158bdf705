"""Plain NumPy loops: the oracle of every faster twin."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.linalg import hadamard as hadamard_matrix

Float = NDArray[Any]


def power_of_two(size: int) -> int:
    """The least power of two that is not below ``size``."""
    return 1 << max(0, (size - 1).bit_length())


@cache
def _matrix(size: int, dtype: str) -> Float:
    matrix = np.asarray(hadamard_matrix(size, dtype=np.dtype(dtype)))
    matrix.flags.writeable = False  # one for all threads
    return matrix


def hadamard(X: Float) -> Float:
    """The unnormalised Hadamard transform of the last axis, whose length is a power of two.

    H_ab = H_a ⊗ H_b: a product with a small matrix for each factor.

    >>> hadamard(np.array([[1.0, 2.0]])).tolist()
    [[3.0, -1.0]]
    """
    size = X.shape[-1]
    if size <= 64:
        return np.asarray(X @ _matrix(size, X.dtype.name))
    split = X.reshape(*X.shape[:-1], size // 64, 64) @ _matrix(64, X.dtype.name)
    outer = hadamard(np.ascontiguousarray(split.swapaxes(-1, -2)))
    return outer.swapaxes(-1, -2).reshape(X.shape)


#: −sin 2πu ≈ Σ TURNS[k] u^(2k+1) for |u| ≤ ¼, to 4e-9 (by minimax fit): single precision needs no more
TURNS = (-6.283185005187988, 41.34165573120117, -81.60100555419922, 76.5497817993164, -39.53670120239258)


#: log₂ (1 + s)/(1 − s) = s Σ LOGARITHM[k] s^(2k), the series; to 2e-9 where |s| ≤ 0.1716
LOGARITHM = tuple(2.0 / np.log(2.0) / (2 * k + 1) for k in range(6))


def cos_sin(phases: Float, factor: float, amplitude: float, out: Float) -> None:
    """out[2i], out[2i+1] = amplitude · (cos, sin) 2π factor · phases[i]: phases (count, n), out (2 count, n)."""
    angles = phases * phases.dtype.type(2.0 * np.pi * factor)
    np.cos(angles, out=out[0::2])
    np.sin(angles, out=out[1::2])
    out *= out.dtype.type(amplitude)


def cos(phases: Float, factor: float, offsets: Float, amplitude: float, out: Float) -> None:
    """out[i] = amplitude · cos 2π (factor · phases[i] + offsets[i]): phases and out (count, n), offsets in turns."""
    np.multiply(phases, phases.dtype.type(2.0 * np.pi * factor), out=out)
    out += (2.0 * np.pi * offsets).astype(out.dtype)[:, None]
    np.cos(out, out=out)
    out *= out.dtype.type(amplitude)


def structured(rows: Float, signs: Float, factors: Float, amplitude: float, out: Float) -> None:
    """Pairs at the frequencies H D₁ H D₂ H D₃: rows (size, n), signs (3, blocks · size), factors (count,).

    Factors make turns of transforms.
    """
    size, n = rows.shape
    parts = np.broadcast_to(rows.T[:, None], (n, signs.shape[1] // size, size))
    for sign in signs:
        parts = hadamard(parts * sign.reshape(-1, size))
    phases = parts.reshape(n, -1)[:, : len(factors)] * factors
    cos_sin(np.ascontiguousarray(phases.T), 1.0, amplitude, out)


def signature(columns: Float, degree: float, step: float, weights: Float, out: Float) -> None:
    """√(xᵈ) times w₀, wₖ cos(k step log x), wₖ sin(k step log x), side by side for every column: (columns, n)."""
    m, dtype = 2 * len(weights) - 1, out.dtype
    amplitude = np.power(columns, 0.5 * degree, dtype=dtype)
    log = np.log(np.where(columns > 0, columns, 1)).astype(dtype) * dtype.type(step)
    out[0::m] = amplitude * dtype.type(weights[0])
    for k in range(1, len(weights)):
        scaled, phase = amplitude * dtype.type(weights[k]), log * dtype.type(k)
        np.multiply(np.cos(phase), scaled, out=out[2 * k - 1 :: m])
        np.multiply(np.sin(phase), scaled, out=out[2 * k :: m])


def products(factors: Float, start: NDArray[np.int64], constant: Float, out: Float) -> None:
    """out[i] = constant[i] ∏ factors[start[i] : start[i + 1]]: factors (total, n), out (count, n)."""
    degrees = np.diff(start)
    out[...] = constant[:, None]
    for level in range(int(degrees.max(initial=0))):
        deep = np.flatnonzero(degrees > level)
        out[deep] *= factors[start[deep] + level]


def count_sketch(X: Float, bucket: NDArray[np.int64], sign: NDArray[np.int8], width: int) -> Float:
    """Columns of X, with signs, added into ``width`` buckets."""
    out = np.zeros((X.shape[0], width), dtype=X.dtype)
    np.add.at(out.T, bucket, (X * sign.astype(X.dtype)).T)
    return out


def circular_product(parts: list[Float]) -> Float:
    """Circular convolution of rows, by real FFTs."""
    width = parts[0].shape[1]
    spectrum = fft.rfft(parts[0], axis=1)
    for part in parts[1:]:
        spectrum *= fft.rfft(part, axis=1)
    return np.asarray(fft.irfft(spectrum, n=width, axis=1))


def add_gram(R: Float, total: Float) -> None:
    """total += RᵀR, with the product in the precision of R and the sum in that of ``total``."""
    total += R.T @ R
