"""A thin scikit-learn shell: tables, parameters and names outside, maps and statistics inside."""

from bochner.estimators.cca import KernelCCA
from bochner.estimators.classifier import KernelClassifier
from bochner.estimators.features import KernelFeatures
from bochner.estimators.kmeans import KernelKMeans
from bochner.estimators.pca import KernelPCA
from bochner.estimators.reduced import Reduction
from bochner.estimators.regressor import KernelRegressor

__all__ = [
    "KernelCCA",
    "KernelClassifier",
    "KernelFeatures",
    "KernelKMeans",
    "KernelPCA",
    "KernelRegressor",
    "Reduction",
]
