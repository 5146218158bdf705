"""Convergent series of the χ² kernel: Chebyshev (Li, Lebanon & Sminchisescu 2012) and elementary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bochner.arrays import Float, Rows, dense
from bochner.errors import MapError
from bochner.features.base import FeatureMap, register, who_lacks
from bochner.features.sampled import ADVICE, DrawnScalar, columns_each, positive_log
from bochner.kernels import Chi2
from bochner.seeds import Seed


@dataclass(frozen=True, eq=False, repr=False)
class _Chi2Series(FeatureMap):
    """c(τx)/√τ: exact homogeneity moves the data to where the series is short.

    ``scale`` τ: a number, or "data": exp(−Σ x ln x / Σ x) over a sample (1 without one); the paper has 1.
    """

    scale: float | str = "data"
    unbiased: ClassVar[bool] = False
    deterministic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale != "data" and (isinstance(self.scale, str) or not 0.0 < self.scale < np.inf):
            raise MapError(f'scale must be a number > 0 or "data", got {self.scale!r}')

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        profile = self.kernel.profile()
        if profile is None or profile.name != "chi2" or profile.degree != 1.0:
            raise who_lacks(self.kernel, "χ² profile", ADVICE)
        if self.scale != "data":
            return self
        x = np.zeros(0) if sample is None else dense(sample.values).astype(np.float64)
        total = float(x.sum())
        tau = float(np.exp(-(x * positive_log(x)).sum() / total)) if total > 0 else 1.0
        return replace(self, scale=tau)


@register
@dataclass(frozen=True, eq=False, repr=False)
class ChebyshevChi2(_Chi2Series):
    """c₀ = 2x/(x+1), c₁ = −(√2 ln x/π) c₀, c_k = [(−1)^k (2 ln x/π) c_{k−1} + (k−2) c_{k−2}]/k."""

    def _draw(self, d: int, seed: Seed) -> DrawnChebyshev:
        return DrawnChebyshev(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Chi2(), 5 * d)
        yield cls(Chi2(), 5 * d, scale=1.0)


@register
@dataclass(frozen=True, eq=False, repr=False)
class ElementaryChi2(_Chi2Series):
    """(2x/(x+1)) ρ^k with ρ = (x−1)/(x+1), k = 0 … m−1."""

    def _draw(self, d: int, seed: Seed) -> DrawnElementary:
        return DrawnElementary(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(Chi2(), 5 * d)
        yield cls(Chi2(), 5 * d, scale=1.0)


class _DrawnSeries(DrawnScalar):
    def __init__(self, recipe: _Chi2Series, d: int, seed: Seed):
        super().__init__(recipe, d, seed, columns_each(recipe.n_features, d))
        profile = recipe.kernel.profile()
        assert profile is not None
        self.tau = float(recipe.settled("scale"))
        self.amplitude = float(np.sqrt(profile.mass / self.tau))


class DrawnChebyshev(_DrawnSeries):
    """The forward recurrence, which is stable."""

    def _scalar(self, x: Float, out: Float) -> None:
        scaled = x * x.dtype.type(self.tau)
        log = positive_log(scaled) * x.dtype.type(2.0 / np.pi)
        out[..., 0] = 2 * scaled / (scaled + 1)
        out[..., 0] *= x.dtype.type(self.amplitude)
        if self.m > 1:
            out[..., 1] = -log * x.dtype.type(np.sqrt(0.5)) * out[..., 0]
        for k in range(2, self.m):
            sign = 1 if k % 2 == 0 else -1
            # c₀ enters c₂ with the factor k − 2 = 0, so that its halved weight never matters.
            out[..., k] = (sign * log * out[..., k - 1] + (k - 2) * out[..., k - 2]) / k


class DrawnElementary(_DrawnSeries):
    """A geometric series."""

    def _scalar(self, x: Float, out: Float) -> None:
        scaled = x * x.dtype.type(self.tau)
        ratio = (scaled - 1) / (scaled + 1)
        out[..., 0] = 2 * scaled / (scaled + 1) * x.dtype.type(self.amplitude)
        for k in range(1, self.m):
            np.multiply(out[..., k - 1], ratio, out=out[..., k])
