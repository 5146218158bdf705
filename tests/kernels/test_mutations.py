"""Each law is able to fail: kernels with the mistakes that peers have shipped do not pass."""

from dataclasses import dataclass, replace

import kernel_laws as laws
import numpy as np
import pytest
from scipy import special

from bochner import kernels as k
from bochner.kernels.laplace import Levy
from bochner.kernels.spectrum import Independent, Radial


def fails(law, *arguments):
    with pytest.raises(AssertionError):
        law(*arguments)


class WideGaussian(k.Gaussian):
    """γ off by a factor of two."""

    def of_squared(self, squared):
        return np.exp(-2.0 * squared)


class NarrowSpectrum(k.Gaussian):
    """Frequencies without their √2."""

    def spectrum(self):
        return Radial(float(np.sqrt(self.gamma)))


@dataclass(frozen=True)
class Coordinatewise(Radial):
    """A one-dimensional Matérn law for each coordinate: the right law of t only in one dimension."""

    def dims(self, d):
        return 2 * d

    def quantile(self, uniforms, d):
        mix = np.sqrt(self.shape / special.gammaincinv(self.shape, uniforms[:, :d].T))
        return self.columns(d) * special.ndtri(uniforms[:, d:]).T * mix


class CoordinatewiseMatern(k.Matern):
    def spectrum(self):
        return Coordinatewise(self.factors(), mixing="inverse", shape=self.nu)


class ConstantNorms(Radial):
    def radii(self, uniforms, degrees):
        return np.full(len(uniforms), np.sqrt(degrees))


class ConstantNormGaussian(k.Gaussian):
    def spectrum(self):
        return ConstantNorms(super().spectrum().scale)


class NormalLaplacian(k.Laplacian):
    """The frequencies of another kernel."""

    def spectrum(self):
        return Radial(float(np.sqrt(2.0 * self.gamma)))


class UnscaledIntersection(k.SkewedIntersection):
    """Cauchy frequencies of scale 1: the kernel without its square roots."""

    def spectrum(self):
        return Independent(1.0, law="cauchy", shift=self.skew)


class ForgetfulSum(k.Sum):
    """(a + b) · c computed as a · b · c."""

    def _gram(self, X, Y):
        return k.Product(self.parts)._gram(X, Y)


class Chi2WithoutTwo(k.Chi2):
    @staticmethod
    def pair(x, y):
        return k.Chi2.pair(x, y) / 2.0


class Chi2WithoutPi(k.Chi2):
    @staticmethod
    def density(w):
        return 1.0 / np.cosh(w)


class LostDegree(k.Intersection):
    def _pair(self, x, y):
        return self.pair(x, y)


class HalvedExpChi2(k.ExpChi2):
    def _gram(self, X, Y):
        return np.sqrt(super()._gram(X, Y))


class OneTermMore(k.VovkReal):
    def function(self, t):
        return super().function(t) + t**self.degree


class ExtraFactorial(k.Exponential):
    """Coefficients divided by n! once more."""

    def series(self):
        inner = super().series()
        return replace(inner, terms=lambda n, r: inner.terms(n, r) / special.factorial(np.arange(n)))


class IndefiniteTanh(k.Linear):
    def function(self, t):
        return np.tanh(3.0 * t - 1.0)


class ForgottenDiagonal(k.Polynomial):
    def _diag(self, X):
        return np.ones(len(X))


class Lopsided(k.Linear):
    def _gram(self, X, Y):
        return X @ (np.arange(1, 1 + X.shape[1]) * np.roll(Y, 1, axis=1)).T


class Careless(k.Linear):
    def _gram(self, X, Y):
        X -= X.mean(axis=0)
        return X @ Y.T


class BatchDependent(k.Linear):
    def _gram(self, X, Y):
        return X @ Y.T / len(Y)


class UnhalvedLevy(Levy):
    def quantile(self, uniforms):
        return 2.0 * super().quantile(uniforms)


class UntiltedLevy(Levy):
    def tilted(self, theta, *uniforms):
        return self.quantile(uniforms[0])


class PrintedLemma(Levy):
    """The second moment as the paper prints it."""

    def gradient2(self, least):
        root = np.sqrt(least)
        return 0.25 * self.parameter * (self.parameter * root + 1) / least**1.5 * np.exp(-self.parameter * root)


def semigroup(measure):
    class Mutant(k.ExponentialSemigroup):
        def laplace(self):
            return measure(self.beta)

    return Mutant(0.6)


@pytest.mark.parametrize(
    "mutant",
    [
        WideGaussian(0.5),
        ForgetfulSum((k.Gaussian(0.5), k.Linear())),
        ForgetfulSum((k.Gaussian(0.5), k.Linear())) * k.Polynomial(2),
        Chi2WithoutTwo(),
        LostDegree(degree=0.5),
        HalvedExpChi2(0.7),
        OneTermMore(3),
        ForgottenDiagonal(2),
    ],
    ids=lambda mutant: type(mutant).__name__,
)
def test_the_closed_form_law_rejects(mutant):
    fails(laws.closed_form, mutant, laws.rows(mutant, 3))


@pytest.mark.parametrize("d", [3, 10])
@pytest.mark.parametrize(
    "mutant",
    [NarrowSpectrum(0.5), CoordinatewiseMatern(1.5, 1.0), NormalLaplacian(0.5), UnscaledIntersection(0.5)],
    ids=lambda mutant: type(mutant).__name__,
)
def test_the_spectral_law_rejects(mutant, d):
    fails(laws.spectral, mutant, laws.rows(mutant, d))


def test_coordinatewise_frequencies_are_right_in_one_dimension_only():
    mutant = CoordinatewiseMatern(1.5, 1.0)
    laws.spectral(mutant, laws.rows(mutant, 1))


def test_the_radial_law_rejects_constant_norms():
    laws.radial(k.Gaussian(0.5), 3)
    fails(laws.radial, ConstantNormGaussian(0.5), 3)
    assert ConstantNorms(1.0).radii(np.full((1, 1), 0.5), 4) == 2.0


def test_the_gram_laws_reject():
    X = laws.rows(k.Linear(), 3)
    fails(laws.positive, IndefiniteTanh(), X)
    fails(laws.diagonal, ForgottenDiagonal(2), X)
    fails(laws.symmetric, Lopsided(), X)
    fails(laws.blocks, BatchDependent(), X)
    fails(laws.keeps_input, Careless(), X)


def test_the_series_law_rejects():
    fails(laws.series, ExtraFactorial())
    fails(laws.series, OneTermMore(3))


@pytest.mark.parametrize("measure", [UnhalvedLevy, UntiltedLevy, PrintedLemma])
def test_the_laplace_law_rejects(measure):
    laws.laplace(semigroup(Levy))
    fails(laws.laplace, semigroup(measure))


@pytest.mark.parametrize("mutant", [Chi2WithoutTwo(), Chi2WithoutPi(), LostDegree(degree=0.5)], ids=str)
def test_the_profile_law_rejects(mutant):
    fails(laws.profile, mutant)
