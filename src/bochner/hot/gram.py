"""Gram matrices by the rank-k update of BLAS: one triangle, promoted once for each tile of rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from bochner.hot.reference import Float

#: rows of the sums that are added to at once, so that hardly more than the triangle is touched
_STRIP = 256


def add_gram(R: Float, total: Float) -> None:
    """The upper triangle of total += RᵀR, in the precision of R; what lies below the diagonal has no meaning.

    >>> total = np.zeros((2, 2))
    >>> add_gram(np.array([[1.0, 2.0], [0.0, 1.0]]), total)
    >>> mirror(total)
    >>> total.tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    syrk = ssyrk if R.dtype == np.float32 else dsyrk
    # BLAS counts by columns: its lower triangle is our upper one.
    lower = syrk(1.0, R, trans=1, lower=1) if R.flags.f_contiguous else syrk(1.0, R.T, lower=1)
    for start in range(0, len(total), _STRIP):
        strip = slice(start, start + _STRIP)
        total[strip, start:] += lower.T[strip, start:]


def mirror(total: Float) -> None:
    """Copies the upper triangle to the lower one."""
    for start in range(0, len(total), _STRIP):
        strip = slice(start, start + _STRIP)
        total[strip, :start] = total[:start, strip].T
        corner = total[strip, strip]
        below = np.tril_indices(len(corner), -1)
        corner[below] = corner.T[below]
