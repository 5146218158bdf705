"""Feature maps: how a kernel is approximated."""

from bochner.features.algebra import Chain, Concatenate, NormalizedMap, OnColumns, ProductSketch, Scaled
from bochner.features.base import Drawn, FeatureMap, from_recipe, registered
from bochner.features.bound import Bound, bound, lemma_7_shift
from bochner.features.chebyshev import ChebyshevChi2, ElementaryChi2
from bochner.features.choose import choose
from bochner.features.deciding import Best, Stacked
from bochner.features.diagonal import ExactDiagonal
from bochner.features.error import ErrorEstimate, error
from bochner.features.fourier import RandomFourier, SkewedFourier
from bochner.features.gaussian import FourierExponential, TaylorExponential, TaylorGaussian
from bochner.features.laplace import RandomLaplace
from bochner.features.maclaurin import Compositional, RandomMaclaurin, TruncatedMaclaurin
from bochner.features.mercer import Mercer1D
from bochner.features.nystroem import Nystroem
from bochner.features.optimal import OptimalMaclaurin
from bochner.features.pca import PCAFeatures
from bochner.features.projected import Projected
from bochner.features.sampled import SampledSignature
from bochner.features.sketch import Fastfood, TensorSketch

__all__ = [
    "Best",
    "Bound",
    "Chain",
    "ChebyshevChi2",
    "Compositional",
    "Concatenate",
    "Drawn",
    "ElementaryChi2",
    "ErrorEstimate",
    "ExactDiagonal",
    "Fastfood",
    "FeatureMap",
    "FourierExponential",
    "Mercer1D",
    "NormalizedMap",
    "Nystroem",
    "OnColumns",
    "OptimalMaclaurin",
    "PCAFeatures",
    "ProductSketch",
    "Projected",
    "RandomFourier",
    "RandomLaplace",
    "RandomMaclaurin",
    "SampledSignature",
    "Scaled",
    "SkewedFourier",
    "Stacked",
    "TaylorExponential",
    "TaylorGaussian",
    "TensorSketch",
    "TruncatedMaclaurin",
    "bound",
    "choose",
    "error",
    "from_recipe",
    "lemma_7_shift",
    "registered",
]
