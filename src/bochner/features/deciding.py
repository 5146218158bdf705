"""Recipes that decide when they see a sample: the best of some candidates, the best split of a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bochner.arrays import Float64, Rows, dense
from bochner.errors import MapError
from bochner.features.algebra import Concatenate
from bochner.features.base import Drawn, FeatureMap, register
from bochner.kernels import Scale, Sum
from bochner.seeds import Seed

_TRIAL_ROWS = 192
_TRIALS = 3
_SIZES = 5
_ROUNDING = 1e-20
#: mean squared errors, as shares of the kernel's: from here on landmarks are tried, and up to here they count
_POOR, _GOOD = 1 / 16, 1 / 2


def halves(sample: Rows) -> tuple[Rows, Float64]:
    """Every second row to fit on, and evenly spread others to measure on."""
    values = sample.values
    if values.shape[0] < 8:
        return sample, dense(values).astype(np.float64)
    others = np.arange(1, values.shape[0], 2)
    picks = others[np.linspace(0, len(others) - 1, min(len(others), _TRIAL_ROWS)).astype(int)]
    return Rows(values[::2], sample.names), dense(values[picks]).astype(np.float64)


def trial_error(recipe: FeatureMap, rows: Float64, exact: Float64, d: int, trials: int = _TRIALS) -> tuple[float, int]:
    """Mean squared error of the Gram over a few draws, and the width that was drawn."""
    total, width = 0.0, 0
    for trial in range(trials):
        drawn = recipe._draw(d, Seed(trial, (2,)))
        Z, width = drawn._features(rows), drawn.width
        with np.errstate(over="ignore", invalid="ignore"):
            error = float(np.square(Z @ Z.T - exact).mean())
        total += error / trials if np.isfinite(error) else np.inf
        if recipe.deterministic:
            return total * trials, width
    return total, width


def label(recipe: FeatureMap) -> str:
    """The name of a map, with the option that tells it from others."""
    option = getattr(recipe, "frequencies", "") or getattr(recipe, "points", "")
    return type(recipe).__name__ + (f"({option})" if option else "")


@register
@dataclass(frozen=True, eq=False, repr=False)
class Best(FeatureMap):
    """Candidates, the likeliest first.

    With a sample they are fitted on one half of it and measured on the other; without one the first
    that needs none is taken.
    """

    candidates: tuple[FeatureMap, ...] = ()
    #: one more where every candidate is off by more than a quarter of the kernel
    resort: FeatureMap | None = None

    def sized(self, n_features: int) -> Any:
        resort = None if self.resort is None else self.resort.sized(n_features)
        candidates = tuple(c.sized(n_features) for c in self.candidates)
        return replace(self, n_features=n_features, candidates=candidates, resort=resort)

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        able = [replace(c, kernel=self.kernel) for c in self.candidates if sample is not None or not c.needs_sample]
        if not able:
            raise MapError(f"every map of {self.kernel} is made from data: pass draw(d, seed, sample=rows)")
        if sample is None or (len(able) == 1 and self.resort is None):
            return able[0].prepared(d, seed, sample)
        fit, rows = halves(sample)
        exact = self.kernel._gram(rows, rows)
        with np.errstate(over="ignore"):
            scale = float(np.square(exact).mean())
        trials = [self._trial(c, d, seed, fit, rows, exact) for c in able]
        if self.resort is not None and min(error for error, _ in trials) > _POOR * scale:
            most = min(self.n_features, fit.values.shape[0])
            resort = replace(self.resort, kernel=self.kernel).sized(most)
            trial = self._trial(resort, d, seed, fit, rows, exact)
            if trial[0] <= _GOOD * scale:  # an error of about one may be luck against heavy tails
                able.append(resort)
                trials.append(trial)
        errors = [max(error, _ROUNDING * scale) for error, _ in trials]  # of exact maps, the first
        best = int(np.argmin(errors))
        refusal = trials[best][1]
        if refusal is not None:
            raise refusal
        shown = ", ".join(f"{label(c)} {np.sqrt(e / scale):.2g}" for c, e in zip(able, errors, strict=True))
        return replace(able[best].prepared(d, seed, sample), why=f"{able[best].why} (error in a trial: {shown})")

    @staticmethod
    def _trial(
        recipe: FeatureMap, d: int, seed: Seed, fit: Rows, rows: Float64, exact: Float64
    ) -> tuple[float, MapError | None]:
        """The error of a candidate; infinite, with the reason, where it cannot be drawn."""
        try:
            return trial_error(recipe.prepared(d, seed, fit), rows, exact, d)[0], None
        except MapError as refusal:
            return np.inf, refusal

    def _draw(self, d: int, seed: Seed) -> Drawn:
        raise MapError("a Best recipe is drawn by draw(), which decides first")


@register
@dataclass(frozen=True, eq=False, repr=False)
class Stacked(FeatureMap):
    """One recipe for each part of a sum, whose widths are settled when a sample is there.

    Each part is measured at several sizes, and the widths minimise the sum of the mean squared errors
    (for errors that fall as 1/width, Neyman's shares).  Without a sample the shares follow the factors.
    """

    parts: tuple[FeatureMap, ...] = ()
    least: tuple[int, ...] = ()
    #: which terms of the sum each part stands for
    places: tuple[tuple[int, ...], ...] = ()

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        assert isinstance(self.kernel, Sum)
        room = self.n_features - sum(self.least)
        if room < 0:
            raise MapError(
                f"{self.n_features} features are too few for {self.kernel}: it needs at least {sum(self.least)}"
            )
        # The terms of the whole kernel: what the data decide is decided once, on the whole sample.
        kernels = [self.kernel.joined(place) for place in self.places]
        parts = [replace(p, kernel=k) for p, k in zip(self.parts, kernels, strict=True)]
        if sample is None:
            factors = np.array([k.factor if isinstance(k, Scale) else 1.0 for k in kernels])
            factors[np.array(self.least) == 1] = 0.0  # constants need no more
            sizes = [
                low + int(room * share)
                for low, share in zip(self.least, factors / max(factors.sum(), 1e-300), strict=True)
            ]
        else:
            fit, rows = halves(sample)
            curves = [self._curve(p, low, d, seed, fit, rows) for p, low in zip(parts, self.least, strict=True)]
            sizes = split(curves, self.n_features)
        # A part that gave fewer columns than the least it can be asked for is asked for that again.
        asked = [max(low, size) for low, size in zip(self.least, sizes, strict=True)]
        made = tuple(
            p.sized(size).prepared(d, seed.child(i), sample)
            for i, (p, size) in enumerate(zip(parts, asked, strict=True))
        )
        shown = ", ".join(f"{part.n_features} for {part.kernel}" for part in made)
        return Concatenate(self.kernel, self.n_features, made, why=f"stacked maps: {shown}")

    def _curve(
        self, part: FeatureMap, low: int, d: int, seed: Seed, fit: Rows, rows: Float64
    ) -> list[tuple[int, float]]:
        """(width, mean squared error) at sizes from the least to the whole budget, each as small as it gets."""
        exact = part.kernel._gram(rows, rows)
        curve: list[tuple[int, float]] = []
        for size in np.unique(np.geomspace(low, max(self.n_features, low), _SIZES).round().astype(int)):
            try:
                error, width = trial_error(part.sized(int(size)).prepared(d, seed, fit), rows, exact, d, 1)
            except MapError:
                continue
            curve.append((min(int(size), width), error))
        return curve

    def _draw(self, d: int, seed: Seed) -> Drawn:
        raise MapError("a Stacked recipe is drawn by draw(), which splits the budget first")


def split(curves: list[list[tuple[int, float]]], total: int) -> list[int]:
    """Sizes with Σ size ≤ total and least Σ error, on the lower convex hull of each curve.

    Columns go where an added one lowers the error most, hull edge by hull edge; an edge may be cut.
    """
    hulls = [_hull(curve) for curve in curves]
    sizes = [hull[0][0] for hull in hulls]
    edges = sorted(
        ((b[1] - a[1]) / (b[0] - a[0]), which, a[0], b[0])
        for which, hull in enumerate(hulls)
        for a, b in pairwise(hull)
    )
    for _, which, start, stop in edges:
        if sizes[which] == start:
            sizes[which] += min(stop - start, total - sum(sizes))
    return sizes


def _hull(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    hull: list[tuple[int, float]] = []
    for point in sorted(dict(curve).items()):
        if hull and point[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and _slope(hull[-2], point) <= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(point)
    return hull


def _slope(a: tuple[int, float], b: tuple[int, float]) -> float:
    return (b[1] - a[1]) / (b[0] - a[0])
