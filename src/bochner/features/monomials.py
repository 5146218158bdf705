"""All monomials of some degrees: the exact feature space of Σ aₙ⟨x, y⟩ⁿ while it is small."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

import numpy as np

from bochner.arrays import Float, frozen


def monomial_count(d: int, degree: int) -> int:
    """C(d + degree − 1, degree)."""
    return comb(d + degree - 1, degree)


class Monomials:
    """√(aₙ n!/∏αᵢ!) x^α for all |α| = n and each given n, built from those of degree n − 1 by one more variable."""

    def __init__(self, d: int, coefficients: Mapping[int, float]):
        self.width = sum(monomial_count(d, n) for n in coefficients)
        self.steps: list[tuple[np.ndarray, np.ndarray]] = []
        self.roots: dict[int, np.ndarray] = {}
        last = np.zeros(1, dtype=np.int64)  # the largest variable of each monomial so far
        run = np.zeros(1, dtype=np.int64)  # how often that one has been taken
        square = np.ones(1)  # n! / ∏ αᵢ!
        for n in range(max(coefficients, default=-1) + 1):
            if n > 0:
                parent = np.repeat(np.arange(len(last)), d - last)
                starts = np.cumsum(d - last) - (d - last)
                variable = last[parent] + np.arange(len(parent)) - starts[parent]
                run = np.where((variable == last[parent]) & (n > 1), run[parent] + 1, 1)
                square = square[parent] * n / run
                last = variable
                self.steps.append((frozen(parent), frozen(variable)))
            if n in coefficients:
                self.roots[n] = frozen(np.sqrt(coefficients[n] * square))

    def fill(self, X: Float, out: Float) -> None:
        """The monomials of dense rows, by ascending degree."""
        value, start = np.ones((X.shape[0], 1), dtype=out.dtype), 0
        for n in range(len(self.steps) + 1):
            if n > 0:
                parent, variable = self.steps[n - 1]
                value = value[:, parent] * X[:, variable]
            if n in self.roots:
                stop = start + len(self.roots[n])
                np.multiply(value, self.roots[n].astype(out.dtype), out=out[:, start:stop])
                start = stop
