"""A thin scikit-learn shell: tables, parameters and names outside, maps and statistics inside."""

from bochner.estimators.classifier import KernelClassifier
from bochner.estimators.features import KernelFeatures
from bochner.estimators.kmeans import KernelKMeans
from bochner.estimators.regressor import KernelRegressor

__all__ = ["KernelClassifier", "KernelFeatures", "KernelKMeans", "KernelRegressor"]
