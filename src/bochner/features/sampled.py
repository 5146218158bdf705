"""Sampled signatures of homogeneous additive kernels (Vedaldi & Zisserman 2012)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from bochner.arrays import Float, Float64, Matrix, Rows, dense, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, option, register, who_lacks
from bochner.hot.columns import signature
from bochner.kernels import Chi2, Intersection, JensenShannon
from bochner.kernels.base import Kernel
from bochner.kernels.profile import Profile
from bochner.seeds import Seed

ADVICE = "this map needs an additive histogram kernel; features.choose picks a map for any kernel"

#: of a signature: the work to find its weights grows with it
_LARGEST_PERIOD = 1e5


def profile_of(kernel: Kernel) -> Profile:
    """The profile, or who lacks it."""
    profile = kernel.profile()
    if profile is None:
        raise who_lacks(kernel, "additive profile", ADVICE)
    return profile


def signature_of(kernel: Kernel) -> Profile:
    """A profile of one degree with its signature, or who lacks it."""
    profile = profile_of(kernel)
    if profile.signature is None or profile.density is None:
        raise who_lacks(kernel, "signature of one degree of homogeneity", "use Mercer1D")
    return profile


def columns_each(n_features: int, d: int, odd: bool = False) -> int:
    """How many columns each input column gets of a total."""
    m = n_features // d
    if m < 1:
        raise MapError(f"{n_features} features are too few for {d} columns: an additive map needs at least {d}")
    return m - 1 + m % 2 if odd else m


def positive_log(x: Float) -> Float:
    """log x, with 0 where x is zero."""
    return np.asarray(np.log(np.where(x > 0, x, 1)))


@register
@dataclass(frozen=True, eq=False, repr=False)
class SampledSignature(FeatureMap):
    """2r + 1 columns each: √(h₀x), √(2hⱼx) cos(jL log x), √(2hⱼx) sin(jL log x), hⱼ = L κ(jL).

    ``period`` is Λ = 2π/L: a number, "default" (the published formulas), or "tuned": the one that
    fits pairs of entries of a sample best.  ``window``: "uniform", or "rect", whose hⱼ are the Fourier
    coefficients of the signature cut to one period.
    """

    period: float | str = "default"
    window: str = "uniform"
    deterministic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        option("window", self.window, ("uniform", "rect"))
        named = self.period in ("default", "tuned")
        if not named and (isinstance(self.period, str) or not 0.0 < self.period <= _LARGEST_PERIOD):
            raise MapError(
                f'period must be a number > 0 and ≤ {_LARGEST_PERIOD:g}, "default" or "tuned"; got {self.period!r}'
            )

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        profile = self.kernel.profile()
        return profile is not None and profile.name == "root"

    @property
    def needs_sample(self) -> bool:  # type: ignore[override]
        return self.period == "tuned"

    def is_fitted(self) -> bool:
        return self.period != "tuned"

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        profile = signature_of(self.kernel)
        r = (columns_each(self.n_features, d, odd=True) - 1) // 2
        if self.period == "default":
            return replace(self, period=profile.periods[self.window](r) if profile.periods else 2.0 * np.pi)
        if self.period == "tuned" and sample is not None:
            return replace(self, period=tuned_period(profile, r, self.window, dense(sample.values)))
        return self

    def _draw(self, d: int, seed: Seed) -> DrawnSampled:
        return DrawnSampled(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        for kernel in (Chi2(), Intersection(), JensenShannon(), Chi2(degree=0.5)):
            yield cls(kernel, 5 * d)
        yield cls(JensenShannon(), 7 * d, window="rect")
        yield cls(Chi2(), 5 * d, period="tuned")


def sample_weights(profile: Profile, r: int, period: float, window: str) -> Float64:
    """h₀ … h_r."""
    L = 2.0 * np.pi / period
    j = np.arange(r + 1, dtype=np.float64)
    if profile.name == "root":
        return np.where(j == 0, profile.mass, 0.0)
    assert profile.density is not None and profile.signature is not None
    if window == "uniform":
        return np.asarray(L * profile.density(L * j))
    # (2/Λ) ∫₀^{Λ/2} S(t) cos(jLt) dt by Gauss–Legendre on panels of half a wave: S is smooth on t ≥ 0.
    nodes, quadrature = np.polynomial.legendre.leggauss(16)
    panels = max(4, r, int(period) // 8)
    t = ((np.arange(panels)[:, None] + 0.5 * (nodes + 1.0)) * (0.5 * period / panels)).ravel()
    values = profile.signature(t) * np.tile(quadrature, panels) * (0.25 * period / panels)
    integral = np.array([np.cos(L * k * t) @ values for k in j])
    return np.maximum(0.0, 2.0 / period * integral)


def tuned_period(profile: Profile, r: int, window: str, X: Float) -> float:
    """The period of least squared error over pairs of positive entries of the same column."""
    stream = Seed(0).stream("pairs")
    n, d = X.shape
    column = stream.integers(d, 200_000)
    x, y = X[stream.integers(n, 200_000), column], X[stream.integers(n, 200_000), column]
    both = (x > 0) & (y > 0)
    x, y = x[both][:20_000].astype(np.float64), y[both][:20_000].astype(np.float64)
    if len(x) < 2 or profile.signature is None:
        raise MapError("a tuned period needs positive entries in the sample and a kernel with a signature")
    t, amplitude = np.log(y) - np.log(x), np.power(x * y, 0.5 * (profile.degree or 1.0))
    exact = profile.signature(t)

    def error(log_period: float) -> float:
        period = float(np.exp(log_period))
        h = sample_weights(profile, r, period, window)
        waves = np.cos(2.0 * np.pi / period * np.arange(1, r + 1)[:, None] * t)
        return float((((h[0] + 2.0 * h[1:] @ waves - exact) * amplitude) ** 2).mean())

    grid = np.log(np.geomspace(1.0, 60.0, 60))
    best = int(np.argmin([error(g) for g in grid]))
    bracket = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    return float(np.exp(minimize_scalar(error, bounds=bracket, method="bounded").x))


class DrawnAdditive(Drawn):
    """m functions applied to every column, the m values of a column side by side."""

    layout = "F"

    def __init__(self, recipe: FeatureMap, d: int, seed: Seed, m: int):
        super().__init__(recipe, d, seed, m * d)
        self.m = m
        self.tile = max(16, (1 << 18) // self.width // 16 * 16)  # whole vectors of rows


class DrawnScalar(DrawnAdditive):
    """The m functions as one of arrays."""

    def _fill(self, X: Matrix, out: Float) -> None:
        rows = dense(X)
        by_row = out.strides[0] == out.itemsize
        self._scalar(np.asfortranarray(rows) if by_row else rows, _split(out, self.m))

    @abstractmethod
    def _scalar(self, x: Float, out: Float) -> None:
        """The m values of every entry, into the last axis of out."""


def _split(out: Float, m: int) -> Float:
    """A view (rows, columns, m) of the features, which may be a slice of a wider array."""
    rows, item = out.strides
    return np.lib.stride_tricks.as_strided(out, (out.shape[0], out.shape[1] // m, m), (rows, m * item, item))


class DrawnSampled(DrawnAdditive):
    """The weights hⱼ and the step L."""

    def __init__(self, recipe: SampledSignature, d: int, seed: Seed):
        m = columns_each(recipe.n_features, d, odd=True)
        super().__init__(recipe, d, seed, m)
        profile, period = signature_of(recipe.kernel), float(recipe.settled("period"))
        h = sample_weights(profile, (m - 1) // 2, period, recipe.window)
        self.root = frozen(np.sqrt(np.concatenate([h[:1], 2.0 * h[1:]])))
        self.step, self.degree = 2.0 * np.pi / period, float(profile.degree or 1.0)

    def _fill(self, X: Matrix, out: Float) -> None:
        signature(dense(X).T, self.degree, self.step, self.root, out.T)
