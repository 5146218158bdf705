"""What a solver gives: coefficients, and how it went, with advice."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from bochner.arrays import Float, Float64


class Outcome(Enum):
    """How a solver ended; ``advice`` says what to do about it."""

    CONVERGED = "converged"
    STOPPED = "stopped before it converged"
    EARLY = "stopped where the held-out error no longer fell"
    APPROXIMATE = "one approximate pass, not a minimum"
    BELOW_PRECISION = "the penalty is below the precision of the statistics"
    SINGULAR = "the features are linearly dependent and nothing penalises them"

    @property
    def advice(self) -> str:
        return _ADVICE[self]


_ADVICE = {
    Outcome.CONVERGED: "",
    Outcome.STOPPED: "allow more sweeps, a larger tolerance or a larger penalty",
    Outcome.EARLY: "",
    Outcome.APPROXIMATE: "use solver='auto' for the minimum",
    Outcome.BELOW_PRECISION: "raise the penalty, accumulate in float64, or refine with float64 residuals",
    Outcome.SINGULAR: "use a penalty > 0 or fewer features",
}


@dataclass(frozen=True)
class Solution:
    """f(x) = z(x) @ coef + intercept, one column for each output."""

    coef: Float64
    intercept: Float64
    outcome: Outcome = Outcome.CONVERGED
    #: what the solver found on the way: penalties, sweeps, objective …
    info: dict[str, Any] = field(default_factory=dict)

    def decision(self, Z: Float) -> Float64:
        """Outputs for rows of features, in float64."""
        return np.asarray(Z @ self.coef.astype(Z.dtype) + self.intercept)

    def rescaled(self, factor: float) -> Solution:
        """The same function of features that are ``factor`` times as large."""
        return Solution(self.coef / factor, self.intercept, self.outcome, self.info)
