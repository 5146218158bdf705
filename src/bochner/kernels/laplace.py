"""Laplace measures: K(x, y) = φ(x + y) = E exp(−wᵀ(x + y)) with w ≥ 0 (semigroup kernels)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import special

from bochner.arrays import Float64


@dataclass(frozen=True)
class Measure(ABC):
    """The law of w, its coordinates independent and alike; all by quantiles."""

    parameter: float
    #: uniforms needed by one coordinate of a tilted frequency
    tilt_dims = 1

    @abstractmethod
    def log_phi(self, sums: Float64) -> Float64:
        """log φ of rows of sums x + y, along the last axis."""

    @abstractmethod
    def quantile(self, uniforms: Float64) -> Float64:
        """Plain frequencies from uniforms of any shape."""

    @abstractmethod
    def tilted(self, theta: Float64, *uniforms: Float64) -> Float64:
        """Frequencies of density p(w) e^{−θw} / φ(θ), coordinate by coordinate."""

    @abstractmethod
    def gradient2(self, least: float) -> float:
        """E w² e^{−2w·least} of one coordinate: Lemma 6 of the random Laplace paper, corrected."""


@dataclass(frozen=True)
class Levy(Measure):
    """exp(−β√s): w = (β²/2) / g² with g normal."""

    tilt_dims = 2

    def log_phi(self, sums: Float64) -> Float64:
        return np.asarray(-self.parameter * np.sqrt(sums).sum(axis=-1))

    def quantile(self, uniforms: Float64) -> Float64:
        return np.asarray(0.5 * self.parameter**2 / special.ndtri(0.5 * uniforms) ** 2)

    def tilted(self, theta: Float64, *uniforms: Float64) -> Float64:
        # An inverse Gaussian of mean β/(2√θ) and shape β²/2, by the transformation of Michael,
        # Schucany and Haas in the form that does not cancel; θ = 0 is the Lévy law again.
        shape = 0.5 * self.parameter**2
        squared = special.ndtri(uniforms[0]) ** 2
        zero = theta * shape <= 1e-200  # there e^{−θw} is 1 for any w that is ever drawn
        mean = 0.5 * self.parameter / np.sqrt(np.where(zero, 1.0, theta))
        a = mean * squared / (2.0 * shape)
        root = 1.0 + a + np.sqrt(a) * np.sqrt(a + 2.0)
        small = mean / root
        result = np.where(uniforms[1] <= mean / (mean + small), small, mean * root)
        return np.asarray(np.where(zero, shape / np.maximum(squared, 1e-100), result))

    def gradient2(self, least: float) -> float:
        theta, beta = 2.0 * float(least), float(self.parameter)
        if theta <= 0.0:
            return math.inf
        root = math.sqrt(theta)
        return 0.25 * beta * (beta * root + 1.0) / root**3 * math.exp(-beta * root)


@dataclass(frozen=True)
class ExponentialLaw(Measure):
    """λ/(λ + s): w exponential of rate λ."""

    def log_phi(self, sums: Float64) -> Float64:
        return np.asarray(-np.log1p(sums / self.parameter).sum(axis=-1))

    def quantile(self, uniforms: Float64) -> Float64:
        return -np.log1p(-uniforms) / self.parameter

    def tilted(self, theta: Float64, *uniforms: Float64) -> Float64:
        return -np.log1p(-uniforms[0]) / (self.parameter + theta)

    def gradient2(self, least: float) -> float:
        return float(2.0 * self.parameter / (self.parameter + 2.0 * least) ** 3)
