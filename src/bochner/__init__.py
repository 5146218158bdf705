"""Kernel machines at the cost of linear models."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "kernels": "bochner.kernels",
    "features": "bochner.features",
    "KernelCCA": "bochner.estimators",
    "KernelClassifier": "bochner.estimators",
    "KernelFeatures": "bochner.estimators",
    "KernelKMeans": "bochner.estimators",
    "KernelPCA": "bochner.estimators",
    "KernelRegressor": "bochner.estimators",
    "Reduction": "bochner.estimators",
    "load": "bochner.saved",
    "scan": "bochner.sources.scan",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: ``import bochner`` itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'bochner' has no attribute {name!r}")
    module = import_module(_HOMES[name])
    return module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
