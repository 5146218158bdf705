"""Profiles: the one-dimensional kernel of an additive kernel Σⱼ k(xⱼ, yⱼ) on x ≥ 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bochner.arrays import Float64

Function = Callable[[Float64], Float64]


@dataclass(frozen=True)
class Profile:
    """k(x, y), homogeneous of some degree: k = (xy)^{degree/2} · signature(log y − log x).

    ``density`` is the spectrum of the signature (it integrates to k(1, 1)); ``periods`` gives the
    default sampling period of Vedaldi and Zisserman for r frequencies, by window ("uniform" or
    "rect"); ``kinked`` kernels have a corner at x = y, so that tables must interpolate linearly.
    A profile without signature (a sum of different degrees) still has its Mercer map.
    """

    pair: Callable[[Float64, Float64], Float64]
    degree: float | None = None
    signature: Function | None = None
    density: Function | None = None
    periods: dict[str, Callable[[int], float]] | None = None
    kinked: bool = False
    #: "chi2" where the Chebyshev and elementary series apply, "root" where x^{degree/2} is the exact map
    name: str = ""
    mass: float = 1.0

    def scaled(self, factor: float) -> Profile:
        """The profile of factor · k."""
        signature, density = self.signature, self.density
        return Profile(
            lambda x, y: factor * self.pair(x, y),
            self.degree,
            None if signature is None else lambda t: factor * signature(t),
            None if density is None else lambda w: factor * density(w),
            self.periods,
            self.kinked,
            self.name,
            self.mass * factor,
        )

    def __add__(self, other: Profile) -> Profile:
        return Profile(
            lambda x, y: self.pair(x, y) + other.pair(x, y),
            degree=self.degree if self.degree == other.degree else None,
            kinked=self.kinked or other.kinked,
            mass=self.mass + other.mass,
        )
