"""Random Fourier features for every kernel with a spectrum (Bochner; Rahimi & Recht 2007)."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from bochner.arrays import Float, Float64, Matrix, frozen
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, option, register, who_lacks
from bochner.features.frequencies import LAWS, Frequencies, draw_frequencies, draw_offsets
from bochner.hot.fourier import cos
from bochner.kernels import Gaussian, Laplacian, Matern, SkewedChi2, SkewedIntersection
from bochner.kernels.spectrum import Spectrum
from bochner.seeds import Seed

#: features of a tile: with its phases it stays in the cache of a core
_TILE = 1 << 19
ADVICE = "random Fourier features need a shift-invariant or skewed kernel; features.choose picks a map for any kernel"


@register
@dataclass(frozen=True, eq=False, repr=False)
class RandomFourier(FeatureMap):
    """cos and sin of random projections.

    form="pairs": [cos wᵀx, sin wᵀx]/√s for s = n_features/2 frequencies, side by side, so that the
    diagonal is exact; form="phase": √(2/D) cos(wᵀx + b).  ``frequencies``: "iid"; "orthogonal" blocks;
    "hadamard" (SORF, O(D log d) a row); "sobol" (scrambled, through the quantiles); "latin"; "extremes"
    (for heavy tails: the coordinates that lie farthest out are stratified).
    """

    form: str = "pairs"
    frequencies: str = "iid"

    def __post_init__(self) -> None:
        super().__post_init__()
        option("form", self.form, ("pairs", "phase"))
        option("frequencies", self.frequencies, LAWS)
        if self.form == "pairs" and self.n_features < 2:
            raise MapError('a pair of features is two; use form="phase" for one')

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]
        return self.frequencies != "latin"

    @property
    def independent_columns(self) -> bool:
        return self.form == "phase" and self.frequencies == "iid"

    def _draw(self, d: int, seed: Seed) -> DrawnFourier:
        return DrawnFourier(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        for form in ("pairs", "phase"):
            yield cls(Gaussian(0.5 / d), 64, form=form)
        for frequencies in LAWS[1:]:
            yield cls(Gaussian(0.5 / d), 64, frequencies=frequencies)
        for frequencies in ("sobol", "extremes"):
            yield cls(Laplacian(0.5 / d), 64, frequencies=frequencies)
        yield cls(Matern(1.5, d**0.5), 64, frequencies="orthogonal")
        yield cls(SkewedChi2(1.0), 64)


@register
@dataclass(frozen=True, eq=False, repr=False)
class SkewedFourier(RandomFourier):
    """Fourier features of log(x + skew), for the skewed χ² and skewed intersection kernels.

    (Li, Ionescu & Sminchisescu 2010; form="phase" is theirs.)
    """

    def _draw(self, d: int, seed: Seed) -> DrawnFourier:
        spectrum = self.kernel.spectrum()
        if spectrum is None or spectrum.view[:1] != ("log",):
            raise who_lacks(self.kernel, "spectrum in log(x + skew)", "SkewedFourier is for skewed kernels")
        return super()._draw(d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        yield cls(SkewedChi2(1.0), 64, form="phase")
        yield cls(SkewedIntersection(1.0), 64, frequencies="sobol")


class DrawnFourier(Drawn):
    """Frequencies and, for the phase form, offsets."""

    layout = "F"

    def __init__(self, recipe: RandomFourier, d: int, seed: Seed):
        spectrum = recipe.kernel.spectrum()
        if spectrum is None:
            raise who_lacks(recipe.kernel, "spectrum", ADVICE)
        self.pairs = recipe.form == "pairs"
        count = recipe.n_features // 2 if self.pairs else recipe.n_features
        super().__init__(recipe, d, seed, 2 * count if self.pairs else count)
        self.tile = max(64, _TILE // self.width)
        self.frequencies: Frequencies = draw_frequencies(spectrum, d, count, recipe.frequencies, seed)
        self.offsets = None if self.pairs else frozen(draw_offsets(count, seed))
        self.amplitude = float(np.sqrt(spectrum.mass * (1.0 if self.pairs else 2.0) / count))
        self.variance_is_exact = recipe.frequencies == "iid" and _doubled(spectrum) is not None

    def part(self, start: int, stop: int) -> Drawn:
        each = 2 if self.pairs else 1
        few = self.frequencies.part(start // each, -(-stop // each))
        if few is None or start % each or stop % each:
            return super().part(start, stop)
        part = copy(self)
        part.width, part.frequencies = stop - start, few
        part.offsets = None if self.offsets is None else self.offsets[start:stop]
        return part

    def _fill(self, X: Matrix, out: Float) -> None:
        if self.offsets is None:
            self.frequencies.pairs(X, self.amplitude, out.T)
            return
        cos(self.frequencies.project(X).T, 0.5 / np.pi, self.offsets / (2.0 * np.pi), self.amplitude, out.T)

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        """Independent frequencies: (1 + k(2Δ) − 2k²)/D for pairs, (1 + k(2Δ)/2 − k²)/D for phases."""
        spectrum = self.frequencies.spectrum
        doubled = _doubled(spectrum)
        if not self.variance_is_exact or doubled is None:
            return super().variance(X, Y, replicates)
        left, right = self._both(X, Y)
        k = self.kernel._gram(left, right) / spectrum.mass
        twice = self.kernel._gram(doubled(left), doubled(right)) / spectrum.mass
        bracket = 1.0 + twice - 2.0 * k**2 if self.pairs else 1.0 + 0.5 * twice - k**2
        return np.asarray(spectrum.mass**2 * np.maximum(bracket, 0.0) / self.width)


def _doubled(spectrum: Spectrum) -> Any:
    """Rows whose embedding is twice that of x, where rows can say it."""
    if spectrum.view == ():
        return lambda X: 2.0 * X
    if spectrum.view[0] == "log":
        shift = spectrum.view[1]
        return lambda X: (X + shift) ** 2 - shift
    return None
