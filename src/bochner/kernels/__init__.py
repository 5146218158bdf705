"""Kernels: what is approximated."""

from bochner.kernels.algebra import Normalized, On, Product, Scale, Sum
from bochner.kernels.base import Kernel
from bochner.kernels.dot import DotProduct, Exponential, Homogeneous, Linear, Polynomial, VovkInfinite, VovkReal
from bochner.kernels.histogram import (
    Chi2,
    ExpChi2,
    Hellinger,
    Intersection,
    JensenShannon,
    SkewedChi2,
    SkewedIntersection,
)
from bochner.kernels.nested import Compose, Over, compose
from bochner.kernels.register import examples, from_json, register, registered
from bochner.kernels.semigroup import ExponentialSemigroup, ReciprocalSemigroup
from bochner.kernels.stationary import Cauchy, Gaussian, Laplacian, Matern, RationalQuadratic
from bochner.kernels.text import parse

__all__ = [
    "Cauchy",
    "Chi2",
    "Compose",
    "DotProduct",
    "ExpChi2",
    "Exponential",
    "ExponentialSemigroup",
    "Gaussian",
    "Hellinger",
    "Homogeneous",
    "Intersection",
    "JensenShannon",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Normalized",
    "On",
    "Over",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "ReciprocalSemigroup",
    "Scale",
    "SkewedChi2",
    "SkewedIntersection",
    "Sum",
    "VovkInfinite",
    "VovkReal",
    "compose",
    "examples",
    "from_json",
    "parse",
    "register",
    "registered",
]
