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

from bochner.arrays import Float, Float64, Matrix, Rows, dense, frozen, spread
from bochner.errors import KernelError, MapError
from bochner.features.base import Drawn, FeatureMap, option, register
from bochner.features.maclaurin import apportion, reach_of, series_of
from bochner.features.monomials import Monomials, monomial_count
from bochner.features.products import HadamardProducts, RademacherProducts
from bochner.kernels import Exponential, Homogeneous, Polynomial
from bochner.kernels.pairwise import products, squared_norms
from bochner.kernels.series import Series
from bochner.seeds import Seed

_PAIR_ROWS = 200
#: columns of higher degrees would cost a transform for each factor, and their variance is out of proportion
_DEGREES = 64


@register
@dataclass(frozen=True, eq=False, repr=False)
class OptimalMaclaurin(FeatureMap):
    """Monomials of the low degrees, and stratified products of random projections for the rest.

    ``sketch``: "hadamard" (complex-to-real structured) or "rademacher".  ``exact`` and ``shares`` (one
    entry for each degree) are found from a sample, or from random directions of unit norm without
    one; degrees with a share of less than 1.5 columns are pooled and sampled, which keeps the map
    unbiased.  Left out are only degrees whose tail is negligible for rows twice as long as any of those, and
    degrees from 64 on (which matter next to the radius of convergence).
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
        series = series_of(self.kernel)
        reach = reach_of(sample) if sample is not None else min(1.0, 0.5 * series.radius)
        a = _coefficients(series, reach)
        # In units of the longest row, so that powers of norms do not overflow.
        rows = _directions(d) if sample is None else dense(spread(sample.values, _PAIR_ROWS)) / np.float64(reach**0.5)
        degrees = np.arange(len(a))
        # Degrees that the sample happens to sketch without error still get a thousandth of their weight.
        floor = 1e-6 * np.power(squared_norms(rows).mean(), 2.0 * degrees)
        variances = np.maximum(column_variances(rows, len(a), self.sketch), floor)
        with np.errstate(over="ignore"):
            spreads = a * np.power(reach, degrees) * np.sqrt(variances)
        if not (spreads < 1e150).all():  # squared below
            raise MapError(f"{self.kernel} overflows at ‖x‖² = {reach:g}; scale the rows down")
        exact, shares = allocate(a, spreads, d, self.n_features)
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


def _coefficients(series: Series, reach: float) -> Float64:
    try:
        return series.significant(min(4.0 * reach, float(np.sqrt(reach * series.radius))), most=_DEGREES)
    except KernelError:  # a function whose radius of convergence nobody has told
        return series.significant(reach, most=_DEGREES)


def _directions(d: int) -> Float64:
    directions = Seed(0).stream("directions").normal(_PAIR_ROWS, d)
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


def column_variances(rows: Float64, count: int, sketch: str) -> Float64:
    """V̄ₙ over all pairs of the rows, diagonal included as in a Gram."""
    square = products(rows, rows) ** 2
    norms = squared_norms(rows)
    S = products(rows**2, rows**2)
    whole = norms[:, None] * norms[None, :]
    if sketch == "rademacher":  # Mⁿ − t²ⁿ
        terms = [(1.0, whole + 2.0 * (square - S)), (-1.0, square)]
    else:  # of a real column, half of a complex one
        terms = [(1.0, whole + square - S), (1.0, 2.0 * square - S), (-2.0, square)]
    values, powers = np.zeros(count), [np.ones_like(square) for _ in terms]
    for n in range(count):
        for i, (sign, base) in enumerate(terms):
            values[n] += sign * powers[i].mean()
            powers[i] *= base
    return np.maximum(values, 0.0)


def allocate(a: Float64, spreads: Float64, d: int, total: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Which degrees are exact, and the (fractional) columns of each other degree, from aₙ√V̄ₙ.

    Exact is every degree n ≤ k for the k that minimises (Σ_{n>k} aₙ√V̄ₙ)² / (columns left); degree 0
    is one column and always exact.
    """
    best, best_objective, used = 0, np.inf, 0
    for k in range(len(a)):
        used += monomial_count(d, k) if a[k] > 0 else 0
        rest, left = float(spreads[k + 1 :].sum()), total - used
        if left < 0 and k > 0:
            break
        if left < 2 and rest > 0.0 and k > 0:
            continue  # no room for even one random column of the degrees above
        objective = rest**2 / max(left, 1)
        if objective < best_objective:
            best, best_objective = k, objective
    exact = tuple(n for n in range(best + 1) if a[n] > 0)
    left = total - sum(monomial_count(d, n) for n in exact)
    above = np.where(np.arange(len(a)) > best, spreads, 0.0)
    if above.any() and left < 2:
        raise MapError(f"{total} features are too few for {np.count_nonzero(a)} degrees; give at least 4")
    shares = above / above.sum() * left if above.any() else np.zeros(len(a))
    return exact, tuple(shares.tolist())


class DrawnOptimal(Drawn):
    """Exact blocks, then random columns by descending degree."""

    tile = 256

    def __init__(self, recipe: OptimalMaclaurin, d: int, seed: Seed):
        a, shares = np.asarray(recipe.settled("coefficients")), np.asarray(recipe.settled("shares"))
        self.exact = Monomials(d, {n: float(a[n]) for n in recipe.settled("exact")})
        step = 2 if recipe.sketch == "hadamard" else 1
        left = recipe.n_features - self.exact.width
        if left < 0 or (shares.any() and left < step):
            raise MapError(f"{recipe.n_features} features are too few for exact degrees {recipe.exact}; fit it anew")
        degrees = np.zeros(0, dtype=np.int64)
        self.products: HadamardProducts | RademacherProducts | None = None
        if shares.any():
            degrees, weights = strata(a, shares, left // step, seed)
            inner = seed.child("columns")
            if recipe.sketch == "hadamard":
                self.products = HadamardProducts(degrees, weights, d, inner)
            else:
                signs = inner.stream("signs").signs(int(degrees.sum()), d)
                self.products = RademacherProducts(degrees, weights, signs)
        super().__init__(recipe, d, seed, self.exact.width + step * len(degrees))

    def _fill(self, X: Matrix, out: Float) -> None:
        rows, cut = dense(X), self.exact.width
        self.exact.fill(rows, out[:, :cut])
        if self.products is not None:
            self.products.fill(rows, out[:, cut:])


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
