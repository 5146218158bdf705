"""All monomials of a degree: the exact feature space of ⟨x, y⟩ⁿ while it is small."""

from __future__ import annotations

from math import comb

import numpy as np

from bochner.arrays import Float, frozen


def monomial_count(d: int, degree: int) -> int:
    """C(d + degree − 1, degree)."""
    return comb(d + degree - 1, degree)


class Monomials:
    """√(n!/∏αᵢ!) x^α for all |α| = n, built from those of degree n − 1 by one more variable."""

    def __init__(self, d: int, degree: int):
        self.degree, self.width = degree, monomial_count(d, degree)
        self.steps: list[tuple[np.ndarray, np.ndarray]] = []
        last = np.zeros(1, dtype=np.int64)  # the largest variable of each monomial so far
        run = np.zeros(1, dtype=np.int64)  # how often that one has been taken
        square = np.ones(1)  # n! / ∏ αᵢ!
        for n in range(1, degree + 1):
            parent = np.repeat(np.arange(len(last)), d - last)
            starts = np.cumsum(d - last) - (d - last)
            variable = last[parent] + np.arange(len(parent)) - starts[parent]
            run = np.where((variable == last[parent]) & (n > 1), run[parent] + 1, 1)
            square = square[parent] * n / run
            last = variable
            self.steps.append((frozen(parent), frozen(variable)))
        self.roots = frozen(np.sqrt(square))

    def fill(self, X: Float, out: Float, factor: float) -> None:
        """factor · monomials of dense rows."""
        value = np.ones((X.shape[0], 1), dtype=out.dtype)
        for parent, variable in self.steps:
            value = value[:, parent] * X[:, variable]
        np.multiply(value, (self.roots * factor).astype(out.dtype), out=out)
