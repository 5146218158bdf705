"""Waves of logarithms, products of projections and count sketches: compiled where ``fourier`` says so.

Arrays are feature by row, but those of count sketches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bochner.hot import reference
from bochner.hot.fourier import flat, into, loops_for, padded, room
from bochner.hot.reference import Float


def signature(columns: Float, degree: float, step: float, weights: Float, out: Float) -> None:
    """See ``reference.signature``."""
    loops = loops_for(out.dtype, len(out))
    if loops is None or degree != 1.0:
        reference.signature(columns, degree, step, weights, out)
        return
    wide = room(out, loops.LANES)
    turns = step * np.log(2.0) / (2.0 * np.pi)
    loops.signature(padded(columns, wide.shape[1]), turns, weights.astype(np.float32), *flat(wide))
    into(out, wide)


def products(factors: Float, start: NDArray[np.int64], constant: Float, out: Float) -> None:
    """See ``reference.products``."""
    loops = loops_for(out.dtype, len(out))
    if loops is None:
        reference.products(factors, start, constant, out)
        return
    wide = room(out, 1)
    loops.products(padded(factors, wide.shape[1]), start, constant.astype(np.float32), *flat(wide))
    into(out, wide)


def count_sketch(X: Float, bucket: NDArray[np.int64], sign: NDArray[np.int8], width: int) -> Float:
    """See ``reference.count_sketch``."""
    loops = loops_for(X.dtype, width)
    if loops is None:
        return reference.count_sketch(X, bucket, sign, width)
    out = np.zeros((len(X), width), dtype=np.float32)
    loops.count_sketch(np.ascontiguousarray(X), bucket, sign.astype(np.float32), out)
    return out
