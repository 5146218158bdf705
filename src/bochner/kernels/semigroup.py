"""Semigroup kernels K(x, y) = φ(x + y) on x ≥ 0."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bochner.arrays import NON_NEGATIVE, Domain, Float64, Matrix, dense, spread
from bochner.kernels.base import Kernel, bandwidth, number
from bochner.kernels.laplace import ExponentialLaw, Levy, Measure
from bochner.kernels.pairwise import sum_over_columns, upper
from bochner.kernels.register import register
from bochner.kernels.stationary import threshold, typical


class Semigroup(Kernel):
    """What the two share; the rules put the typical −log K of a sample at 1."""

    domain: ClassVar[Domain] = NON_NEGATIVE
    parameter: ClassVar[str]

    def __post_init__(self) -> None:
        value = bandwidth(self.parameter, getattr(self, self.parameter), ("median", "mean"))
        object.__setattr__(self, self.parameter, value if isinstance(value, str) else number(self.parameter, value))

    @abstractmethod
    def laplace(self) -> Measure: ...

    @abstractmethod
    def _pair(self) -> Callable[[Float64, Float64], Float64]:
        """−log K of one column."""

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return np.exp(-sum_over_columns(self._pair(), X, Y))

    def _diag(self, X: Matrix) -> Float64:
        return np.exp(self.laplace().log_phi(2.0 * dense(X)))


@register
@dataclass(frozen=True, repr=False)
class ExponentialSemigroup(Semigroup):
    """exp(−beta Σ √(x + y))."""

    beta: float | str = "median"
    parameter: ClassVar[str] = "beta"

    def laplace(self) -> Measure:
        return Levy(self.settled("beta"))

    def _pair(self) -> Callable[[Float64, Float64], Float64]:
        beta = self.settled("beta")
        return lambda x, y: beta * np.sqrt(x + y)

    def _resolved(self, X: Matrix) -> Kernel:
        if not isinstance(self.beta, str):
            return self
        sums = upper(sum_over_columns(lambda x, y: np.sqrt(x + y), X, X))
        return replace(self, beta=1.0 / typical(sums, self.beta))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(0.6)


@register
@dataclass(frozen=True, repr=False)
class ReciprocalSemigroup(Semigroup):
    """∏ lam / (lam + x + y)."""

    lam: float | str = "median"
    parameter: ClassVar[str] = "lam"

    def laplace(self) -> Measure:
        return ExponentialLaw(self.settled("lam"))

    def _pair(self) -> Callable[[Float64, Float64], Float64]:
        lam = self.settled("lam")
        return lambda x, y: np.log1p((x + y) / lam)

    def _resolved(self, X: Matrix) -> Kernel:
        if not isinstance(self.lam, str):
            return self
        rule, few = self.lam, spread(X, 150)

        def large(log_lam: float) -> bool:  # −log K falls as lam grows
            kernel = replace(self, lam=math.exp(log_lam))
            return typical(upper(sum_over_columns(kernel._pair(), few, few)), rule) > 1.0

        return replace(self, lam=math.exp(threshold(large)))

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield cls(2.0)
