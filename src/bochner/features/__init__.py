"""Feature maps: how a kernel is approximated."""

from bochner.features.algebra import Chain, Concatenate, NormalizedMap, OnColumns, ProductSketch, Scaled
from bochner.features.base import Drawn, FeatureMap, from_recipe, registered
from bochner.features.chebyshev import ChebyshevChi2, ElementaryChi2
from bochner.features.fourier import RandomFourier
from bochner.features.gaussian import FourierExponential, TaylorGaussian
from bochner.features.laplace import RandomLaplace
from bochner.features.maclaurin import Compositional, RandomMaclaurin, TruncatedMaclaurin
from bochner.features.mercer import Mercer1D
from bochner.features.nystroem import Nystroem
from bochner.features.optimal import OptimalMaclaurin
from bochner.features.pca import PCAFeatures
from bochner.features.sampled import SampledSignature
from bochner.features.sketch import Fastfood, TensorSketch
