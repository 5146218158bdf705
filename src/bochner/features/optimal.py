"""The default map of dot-product kernels: exact low degrees, and the best shares for the others.

After Wacker, Kanagawa & Filippone (2022): degree n gets columns in proportion to aₙ√V̄ₙ, where V̄ₙ is
the variance of one column over pairs of rows; every factor is a structured complex sketch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, Rows, dense, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, option, register
from bochner.features.maclaurin import apportion, series_of
from bochner.features.monomials import Monomials, monomial_count
from bochner.features.products import HadamardProducts, RademacherProducts
from bochner.kernels import Exponential, Homogeneous, Polynomial
from bochner.kernels.pairwise import products, squared_norms
from bochner.seeds import Seed

_PAIR_ROWS = 200
_MOST_DEGREES = 64


@register
@dataclass(frozen=True, eq=False, repr=False)
class OptimalMaclaurin(FeatureMap):
    """Monomials of the low degrees, and stratified products of random projections for the rest.

    ``sketch``: "hadamard" (complex-to-real structured) or "rademacher".  ``exact`` and ``shares`` (one
    entry for each degree) are found from a sample, or from random directions of unit norm without
    one; degrees with a share of less than one column are pooled and sampled, which keeps the map
    unbiased.
    """

    sketch: str = "hadamard"
    exact: tuple[int, ...] | None = None
    shares: tuple[float, ...] | None = None
    coefficients: tuple[float, ...] | None = None
    unbiased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        option("sketch", self.sketch, ("hadamard", "rademacher"))

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if self.shares is not None:
            return self
        rows = _some_rows(d, sample)
        reach = float(squared_norms(rows).max())
        a = series_of(self.kernel).significant(max(reach, 1e-12), most=_MOST_DEGREES)
        # Degrees that the sample happens to sketch without error still get a thousandth of their weight.
        floor = 1e-6 * np.power(squared_norms(rows).mean(), 2.0 * np.arange(len(a)))
        variances = np.maximum(column_variances(rows, len(a), self.sketch), floor)
        exact, shares = allocate(a, variances, d, self.n_features)
        return replace(self, exact=exact, shares=shares, coefficients=tuple(a.tolist()))

    def is_fitted(self) -> bool:
        return True

    def _draw(self, d: int, seed: Seed) -> DrawnOptimal:
        return DrawnOptimal(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Exponential(0.8), 64)
        yield cls(Polynomial(5), 64, sketch="rademacher")
        yield cls(Homogeneous(3), 64)


def _some_rows(d: int, sample: Rows | None) -> Float64:
    if sample is None:
        directions = Seed(0).stream("directions").normal(_PAIR_ROWS, d)
        return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))
    values = sample.values
    picks = np.linspace(0, values.shape[0] - 1, min(_PAIR_ROWS, values.shape[0])).astype(int)
    return dense(values[picks]).astype(np.float64)


def column_variances(rows: Float64, count: int, sketch: str) -> Float64:
    """V̄ₙ over all pairs of the rows, diagonal included as in a Gram."""
    t = products(rows, rows)
    norms = squared_norms(rows)
    squares = norms[:, None] * norms[None, :]
    S = products(rows**2, rows**2)
    n = np.arange(count)
    with np.errstate(over="ignore", invalid="ignore"):
        if sketch == "rademacher":
            values = [((squares + 2.0 * (t**2 - S)) ** k - t ** (2 * k)).mean() for k in n]
        else:
            values = [((squares + t**2 - S) ** k + (2.0 * t**2 - S) ** k - 2.0 * t ** (2 * k)).mean() for k in n]
    return np.maximum(np.nan_to_num(np.asarray(values), nan=np.inf, posinf=1e300), 0.0)


def allocate(a: Float64, variances: Float64, d: int, total: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Which degrees are exact, and the (fractional) columns of each other degree.

    Exact is every degree n ≤ k for the k that minimises (Σ_{n>k} aₙ√V̄ₙ)² / (columns left); degree 0
    is one column and always exact.
    """
    spread = a * np.sqrt(variances)
    best, best_objective, used = 0, np.inf, 0
    for k in range(len(a)):
        used += monomial_count(d, k) if a[k] > 0 else 0
        rest, left = float(spread[k + 1 :].sum()), total - used
        if k > 0 and (left < 0 or (left < 2 and rest > 0.0)):
            break
        objective = rest**2 / max(left, 1)
        if objective < best_objective:
            best, best_objective = k, objective
    exact = tuple(n for n in range(best + 1) if a[n] > 0)
    left = total - sum(monomial_count(d, n) for n in exact)
    rest_spread = np.where(np.arange(len(a)) > best, spread, 0.0)
    if rest_spread.sum() > 0 and left < 2:
        raise MapError(f"{total} features are too few for {np.count_nonzero(a)} degrees; give at least 4")
    shares = rest_spread / rest_spread.sum() * left if rest_spread.sum() > 0 else np.zeros(len(a))
    return exact, tuple(shares.tolist())


class DrawnOptimal(Drawn):
    """Exact blocks, then random columns by descending degree."""

    tile = 256

    def __init__(self, recipe: OptimalMaclaurin, d: int, seed: Seed):
        assert recipe.exact is not None and recipe.shares is not None and recipe.coefficients is not None
        a = np.asarray(recipe.coefficients)
        self.exact = [(float(np.sqrt(a[n])), Monomials(d, n)) for n in recipe.exact]
        shares = np.asarray(recipe.shares)
        step = 2 if recipe.sketch == "hadamard" else 1
        left = recipe.n_features - sum(block.width for _, block in self.exact)
        degrees, weights = strata(a, shares, left // step, seed) if shares.sum() > 0 else (np.zeros(0, int), np.zeros(0))
        self.products: HadamardProducts | RademacherProducts | None = None
        if len(degrees):
            inner = seed.child("columns")
            if recipe.sketch == "hadamard":
                self.products = HadamardProducts(degrees, weights, d, inner)
            else:
                signs = inner.stream("signs").signs(int(degrees.sum()), d)
                self.products = RademacherProducts(degrees, weights, signs)
        width = sum(block.width for _, block in self.exact) + step * len(degrees)
        super().__init__(recipe, d, seed, width)

    def _fill(self, X: Matrix, out: Float) -> None:
        start, rows = 0, dense(X)
        for root, block in self.exact:
            block.fill(rows, out[:, start : start + block.width], root)
            start += block.width
        if self.products is not None:
            self.products.fill(rows, out[:, start:])


def strata(a: Float64, shares: Float64, columns: int, seed: Seed) -> tuple[NDArray[np.int64], Float64]:
    """The degree and weight of every random column: whole strata, and one pool of the small ones."""
    exact = shares / shares.sum() * columns
    pooled = (exact > 0.0) & (exact < 1.5)
    pool = int(np.ceil(exact[pooled].sum() - 1e-9)) if pooled.any() else 0
    pool = min(max(pool, 1), columns) if pooled.any() else 0
    mass = np.where(pooled, 0.0, exact)
    counts = apportion(mass, columns - pool) if mass.sum() > 0 else np.zeros(len(a), dtype=np.int64)
    if mass.sum() == 0:
        pool = columns
    degrees = np.repeat(np.arange(len(a)), counts)
    weights = np.sqrt(a[degrees] / np.maximum(counts, 1)[degrees])
    if pool:
        law = np.where(pooled, exact, 0.0)
        law /= law.sum()
        # Evenly spaced points through the distribution: each degree comes up as often as it should.
        points = (np.arange(pool) + seed.stream("pool").uniform(1)[0]) / pool
        drawn = np.searchsorted(np.cumsum(law), points * np.cumsum(law)[-1], side="right").clip(max=len(a) - 1)
        degrees = np.concatenate([degrees, drawn])
        weights = np.concatenate([weights, np.sqrt(a[drawn] / (law[drawn] * pool))])
    return degrees.astype(np.int64), np.asarray(frozen(weights))
