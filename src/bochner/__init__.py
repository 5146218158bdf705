"""Kernel machines at the cost of linear models."""

__version__ = "0.1.0"
