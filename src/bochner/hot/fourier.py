"""Cosines and sines of many rows, by the compiled loops where Numba is installed, else by NumPy.

Arrays are feature by row.  Both ways agree to the rounding of single precision.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bochner.hot import reference
from bochner.hot.reference import Float

#: features from which on compiled loops are worth the third of a second that it takes to load them
WIDE = 512


@cache
def compiled() -> Any:
    """The module of compiled loops, or None where Numba is not installed."""
    try:
        from bochner.hot import vectors
    except (ImportError, RuntimeError):  # Numba is missing, or finds no folder to keep compiled code in
        return None
    return vectors


def cos_sin(phases: Float, factor: float, amplitude: float, out: Float) -> None:
    """See ``reference.cos_sin``."""
    loops = loops_for(out.dtype, len(out))
    if loops is None:
        reference.cos_sin(phases, factor, amplitude, out)
        return
    wide = room(out, loops.LANES)
    loops.cos_sin(padded(phases, wide.shape[1]), np.float32(factor), np.float32(amplitude), *flat(wide))
    into(out, wide)


def cos(phases: Float, factor: float, offsets: Float, amplitude: float, out: Float) -> None:
    """See ``reference.cos``."""
    loops = loops_for(out.dtype, len(out))
    if loops is None:
        reference.cos(phases, factor, offsets, amplitude, out)
        return
    wide = room(out, loops.LANES)
    columns = padded(phases, wide.shape[1])
    loops.cos(columns, np.float32(factor), offsets.astype(np.float32), np.float32(amplitude), *flat(wide))
    into(out, wide)


def structured(rows: Float, signs: Float, factors: Float, amplitude: float, out: Float) -> None:
    """See ``reference.structured``."""
    loops = loops_for(out.dtype, len(out))
    if loops is None:
        reference.structured(rows, signs, factors, amplitude, out)
        return
    wide = room(out, loops.LANES)
    loops.structured(padded(rows, wide.shape[1]), signs, factors, np.float32(amplitude), *flat(wide))
    into(out, wide)


def loops_for(dtype: Any, width: int) -> Any:
    """The compiled loops where precision and width say so: bits do not depend on what ran before."""
    return compiled() if dtype == np.float32 and width >= WIDE else None


def room(out: Float, lanes: int) -> Float:
    """``out`` itself where loops can write into it, else room for as many rows, at least a vector of them."""
    rows = out.shape[1]
    if rows >= lanes and out.strides[1] == out.itemsize and out.strides[0] >= rows * out.itemsize:
        return out
    return np.empty((len(out), max(rows, lanes)), out.dtype)


def flat(out: Float) -> tuple[Float, int]:
    """The stretch of memory that ``out`` lies in, and how far apart its features are there."""
    if out.flags.c_contiguous:
        return out.reshape(-1), out.shape[1]
    step = out.strides[0] // out.itemsize
    return np.lib.stride_tricks.as_strided(out, ((len(out) - 1) * step + out.shape[1],), (out.itemsize,)), step


def into(out: Float, wide: Float) -> None:
    """What was written into ``room``, where it belongs."""
    if wide is not out:
        out[...] = wide[:, : out.shape[1]]


def padded(columns: Float, rows: int) -> Float:
    """Columns as contiguous float32, with zeros for rows that are not there."""
    if columns.shape[1] == rows:
        return np.ascontiguousarray(columns, dtype=np.float32)
    wide = np.zeros((len(columns), rows), dtype=np.float32)
    wide[:, : columns.shape[1]] = columns
    return wide
