"""A thin scikit-learn shell: tables, parameters and names outside, maps and statistics inside."""

from bochner.estimators.features import KernelFeatures

__all__ = ["KernelFeatures"]
