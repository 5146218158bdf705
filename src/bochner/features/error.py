"""How wrong a map is: measured against the exact kernel, with an interval; and how wide it must be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from bochner.arrays import Float64, Rows, as_rows
from bochner.errors import DataError, MapError
from bochner.features.base import Drawn, FeatureMap
from bochner.kernels.base import Kernel
from bochner.seeds import Seed


@dataclass(frozen=True)
class ErrorEstimate:
    """The error of a drawn map on rows that it has not seen.

    ``relative`` is √(Σ_{i≠j} (⟨zᵢ, zⱼ⟩ − Kᵢⱼ)² / Σ_{i≠j} Kᵢⱼ²): an estimate, from pairs of different
    rows, of the root mean squared error over new rows, with the interval [low, high] at ``confidence``.
    ``mean`` and ``max`` are of the absolute error over the same pairs; ``frobenius`` is relative, with
    the diagonal.
    """

    relative: float
    low: float
    high: float
    confidence: float
    mean: float
    max: float
    frobenius: float
    rows: int
    n_features: int

    def __str__(self) -> str:
        return (
            f"relative error {self.relative:.3g} [{self.low:.3g}, {self.high:.3g}] at {self.confidence:.0%} from "
            f"{self.rows} rows, {self.n_features} features; mean {self.mean:.3g}, max {self.max:.3g}"
        )


def error(
    drawn: Drawn, kernel: Any, X: Any = None, *, confidence: float = 0.9, max_rows: int = 1000, seed: int = 0
) -> ErrorEstimate:
    """Measure a drawn map on rows: ``error(drawn, kernel, X)``, or ``error(drawn, X)`` for its own kernel.

    Use rows that were not the sample of ``draw``: then pairs of different rows are unbiased.  At most
    ``max_rows`` rows are taken, at random.

    >>> from bochner import features, kernels
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> features.error(features.RandomFourier(kernels.Gaussian(0.5), 4096).draw(2), X).relative < 0.1
    True
    """
    if X is None:
        kernel, X = drawn.kernel, kernel
    if not isinstance(kernel, Kernel):
        raise MapError(f"error(drawn, kernel, X) takes a kernel, got {type(kernel).__name__}")
    if not 0.0 < confidence < 1.0:
        raise MapError(f"confidence lies between 0 and 1, got {confidence!r}")
    rows = as_rows(X)
    n = rows.values.shape[0]
    if n > max_rows:
        rows = Rows(rows.values[np.sort(Seed(seed).stream("rows").permutation(n)[:max_rows])], rows.names)
        n = max_rows
    if n < 3:
        raise DataError(f"an error is measured on pairs of rows and needs at least 3, got {n}")
    exact = np.asarray(kernel.resolve(rows).gram(rows) if kernel.unresolved() else kernel.gram(rows), dtype=np.float64)
    Z = np.asarray(drawn(rows), dtype=np.float64)
    wrong = Z @ Z.T - exact
    frobenius = _ratio(float(np.linalg.norm(wrong)), float(np.linalg.norm(exact)))
    off = ~np.eye(n, dtype=bool)
    low, centre, high = jackknife(np.square(wrong), np.square(exact), confidence)
    absolute = np.abs(wrong[off])
    return ErrorEstimate(
        centre, low, high, confidence, float(absolute.mean()), float(absolute.max()), frobenius, n, drawn.width
    )


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0.0 else math.inf if a > 0.0 else 0.0


def jackknife(numerator: Float64, denominator: Float64, confidence: float) -> tuple[float, float, float]:
    """√(Σ_{i≠j} a / Σ_{i≠j} b) and its interval, by leaving out one row at a time.

    The ratio of two U-statistics of pairs has row i in 2(n − 1) of its terms: the jackknife over rows
    knows that pairs are not independent.  On the logarithm, with Student's t.
    """
    n = len(numerator)
    sums = []
    for table in (numerator, denominator):
        rows = table.sum(axis=1) - np.diag(table)
        sums.append((rows.sum(), rows.sum() - 2.0 * rows))
    (a, a_less), (b, b_less) = sums
    if b <= 0.0 or a <= 0.0 or (a_less <= 0.0).any():
        value = math.sqrt(_ratio(max(a, 0.0), b))
        return 0.0, value, max(value, 0.0)
    left_out = 0.5 * np.log(a_less / b_less)
    spread = np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum())
    centre = 0.5 * np.log(a / b)
    reach = special.stdtrit(n - 1, 0.5 + 0.5 * confidence) * spread
    return float(np.exp(centre - reach)), float(np.exp(centre)), float(np.exp(centre + reach))


def sized_for(
    recipe: Callable[[int], FeatureMap],
    tol: float,
    sample: Rows,
    seed: int = 0,
    most: int = 32768,
    confidence: float = 0.9,
) -> FeatureMap:
    """The recipe at the least size found whose error on held-out rows is below ``tol`` with confidence.

    Half of the sample fits the map, the other half measures it.  The size is extrapolated by the rate
    of the last two measurements (−½ to begin with) until the upper end of the interval is below tol.
    """
    n, d = sample.values.shape
    if not 0.0 < tol < 1.0:
        raise MapError(f"tol is a relative error between 0 and 1, got {tol!r}")
    if n < 20:
        raise MapError(f'n_features="auto" needs a sample of at least 20 rows, got {n}')
    order = Seed(seed).stream("halves").permutation(n)
    fit = Rows(sample.values[np.sort(order[: n // 2])], sample.names)
    held_out = Rows(sample.values[np.sort(order[n // 2 :])], sample.names)
    kernel = recipe(most).kernel.resolve(fit)
    tried: list[tuple[int, ErrorEstimate, FeatureMap]] = []
    size = max(128, d)
    while True:
        prepared = replace(recipe(size), kernel=kernel).prepared(d, Seed(seed), fit)
        measured = error(prepared._draw(d, Seed(seed)), kernel, held_out, confidence=confidence, max_rows=500)
        if not np.isfinite(measured.high):
            raise MapError(f"{kernel} is zero between all rows of the sample; its parameter does not fit their scale")
        tried.append((size, measured, prepared))
        good = [item for item in tried if item[1].high <= tol]
        bad = max((item[0] for item in tried if item[1].high > tol), default=0)
        if good:
            best = min(good, key=lambda item: item[0])
            if bad == 0 and best[0] > max(16, d) and best[1].high < 0.5 * tol:
                size = max(16, d, best[0] // 4)  # far better than asked: a smaller one may do
                continue
            if best[0] <= 1.3 * bad or bad == 0 or len(tried) >= 9:
                break
        if bad >= most or (len(tried) >= 9 and not good):
            worst = max((item for item in tried if item[1].high > tol), key=lambda item: item[0])
            raise MapError(
                f"{kernel} is not approximated to {tol:g} with {worst[0]} features: measured {worst[1].relative:.3g}; "
                "allow a larger tol, or use Nystroem (it adapts to the data)"
            )
        wanted = _extrapolated(tried, tol)
        low, high = bad, min((item[0] for item in good), default=most)
        size = int(np.clip(wanted, low * 1.1 + 1, max(high * 0.9, low * 1.1 + 1)))
        size = min(size + size % 2, most)
    _, measured, prepared = best
    why = (
        f"{prepared.why}; promised a relative error ≤ {tol:g}, measured {measured.relative:.3g} "
        f"[{measured.low:.3g}, {measured.high:.3g}] at {confidence:.0%} on {measured.rows} held-out rows with "
        f"{measured.n_features} features"
    )
    return replace(prepared, why=why)


def _extrapolated(tried: list[tuple[int, ErrorEstimate, FeatureMap]], tol: float) -> float:
    """The size at which the line through the last two errors (in logarithms) meets the target."""
    points = sorted({size: measured for size, measured, _ in tried}.items())[-2:]
    rate = -0.5
    if len(points) == 2:
        (n0, e0), (n1, e1) = points
        rate = float(np.clip(np.log(e1.high / e0.high) / np.log(n1 / n0), -4.0, -0.25))
    size, last = points[-1]
    return float(size * (0.95 * tol / max(last.high, 1e-300)) ** (1.0 / rate))
