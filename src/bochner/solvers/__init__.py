"""Solvers: coefficients from statistics; they never see rows."""

from bochner.solvers.base import Outcome, Solution
from bochner.solvers.ridge import Prepared, Surface, cross_validated, penalties_for

__all__ = ["Outcome", "Prepared", "Solution", "Surface", "cross_validated", "penalties_for"]
