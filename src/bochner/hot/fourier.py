"""Pairs of cosines and sines of many rows, by the compiled loops where Numba is installed, else by NumPy.

Arrays are feature by row.  Both ways agree to the rounding of single precision.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bochner.hot import reference
from bochner.hot.reference import Float

#: features from which on compiled loops are worth the half second that it takes to load them
WIDE = 2048


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
    loops = _loops(out)
    if loops is None:
        reference.cos_sin(phases, factor, amplitude, out)
        return
    wide = _room(out, loops.LANES)
    loops.cos_sin(_padded(phases, wide.shape[1]), np.float32(factor), np.float32(amplitude), wide)
    _into(out, wide)


def structured(rows: Float, signs: Float, factors: Float, amplitude: float, out: Float) -> None:
    """See ``reference.structured``."""
    loops = _loops(out)
    if loops is None:
        reference.structured(rows, signs, factors, amplitude, out)
        return
    wide = _room(out, loops.LANES)
    loops.structured(_padded(rows, wide.shape[1]), signs, factors, np.float32(amplitude), wide)
    _into(out, wide)


def _loops(out: Float) -> Any:
    return compiled() if out.dtype == np.float32 and len(out) >= WIDE else None


def _room(out: Float, lanes: int) -> Float:
    """``out`` itself where loops can write into it, else room for its rows in whole vectors."""
    rows = -(-out.shape[1] // lanes) * lanes
    return out if rows == out.shape[1] and out.flags.c_contiguous else np.empty((len(out), rows), out.dtype)


def _into(out: Float, wide: Float) -> None:
    if wide is not out:
        out[...] = wide[:, : out.shape[1]]


def _padded(columns: Float, rows: int) -> Float:
    """Columns as contiguous float32, with zeros for rows that are not there."""
    if columns.shape[1] == rows:
        return np.ascontiguousarray(columns, dtype=np.float32)
    wide = np.zeros((len(columns), rows), dtype=np.float32)
    wide[:, : columns.shape[1]] = columns
    return wide
