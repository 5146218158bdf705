"""Spectra, series, Laplace measures and profiles: each fact alone gives the kernel back."""

import kernel_laws as laws
import numpy as np
import pytest

from bochner import kernels as k
from bochner.kernels.spectrum import Radial

EXAMPLES = list(k.examples())
SPECTRAL = [
    *(kernel for kernel in EXAMPLES if kernel.spectrum() is not None),
    k.Matern(0.5, 1.0) * k.Cauchy(0.2),
    2.0 * k.Gaussian(0.5) * (0.5 * k.Laplacian(0.3)),
    k.SkewedChi2(0.5) * k.SkewedChi2(0.5),
    k.SkewedChi2(0.5) * k.SkewedIntersection(1.5),
    k.Gaussian(0.4) * k.SkewedChi2(0.3),
    k.Gaussian(0.5).over(k.Linear()),
    (3.0 * k.Matern(1.5, 1.0)).on([0]),
    k.compose(k.VovkInfinite(5.0), 2.0 * k.Gaussian(0.4)),
    k.compose(k.Polynomial(3, offset=0.5), k.Matern(1.5, 1.0)),
    k.compose(k.Exponential(), k.SkewedChi2(0.5)),
    2.0 * k.compose(k.Polynomial(2), k.Laplacian(0.3)) * k.Gaussian(0.2),
]
ON_COLUMNS = [
    k.Gaussian(0.5).on([0, 2]) * k.Laplacian(0.4).on([1]),
    k.Gaussian(0.5).on([0, 2]) * k.Gaussian(0.7).on([0, 2]) * k.Matern(0.5, 2.0),
    (k.SkewedChi2(0.4).on([1, 2]) * k.Gaussian(0.3)).on([2, 1, 0]),
    (2.0 * k.Gaussian(0.3)).on([2]) * k.SkewedIntersection(0.4),
    k.Gaussian((0.1, 0.6, 2.0)),
    k.Laplacian([0.1, 0.6, 2.0]),
    k.Matern(2.5, [3.0, 1.0, 0.5]),
    k.Gaussian([0.1, 0.6, 2.0]) * k.Gaussian(0.3),
]


@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("kernel", SPECTRAL, ids=str)
def test_spectrum(kernel, d):
    laws.spectral(kernel, laws.rows(kernel, d))


@pytest.mark.parametrize("kernel", ON_COLUMNS, ids=str)
def test_spectrum_on_columns(kernel):
    laws.spectral(kernel, laws.rows(kernel, 3))


@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("kernel", [kernel for kernel in SPECTRAL if kernel.spectrum().radius_dims], ids=str)
def test_radii(kernel, d):
    laws.radial(kernel, d)


def test_radii_with_a_scale_for_each_column():
    laws.radial(k.Matern(1.5, [3.0, 1.0, 0.5]), 3)
    laws.radial(k.Cauchy(0.5).on([0, 2]), 3)


def test_a_product_of_gaussians_is_gaussian():
    product = (k.Gaussian(0.5) * (3.0 * k.Gaussian([1.0, 2.0]))).spectrum()
    assert isinstance(product, Radial)
    assert product.mass == 3.0
    np.testing.assert_allclose(product.scale, [np.sqrt(3.0), np.sqrt(5.0)])


def test_coordinates_that_cannot_be_added_stand_side_by_side():
    spectrum = (k.Gaussian(0.5).on([0, 1]) * k.Gaussian(0.5).on([1, 2])).spectrum()
    assert spectrum.width(3) == 4
    assert spectrum.radius_dims == 0
    assert (k.Gaussian(0.5) * k.Matern(1.5, 1.0)).spectrum().width(3) == 3


@pytest.mark.parametrize(
    ("kernel", "heavy"),
    [
        (k.Laplacian(1.0), True),
        (k.Matern(0.5, 1.0), True),
        (k.Gaussian(1.0), False),
        (k.SkewedChi2(1.0), False),
        (k.Gaussian(1.0) * k.Laplacian(1.0), True),
        (k.Laplacian(1.0).on([0]), True),
    ],
    ids=str,
)
def test_heavy_tails_are_told(kernel, heavy):
    assert kernel.spectrum().heavy is heavy


DOT = [kernel for kernel in EXAMPLES if isinstance(kernel, (k.Linear, k.Homogeneous, k.Polynomial, k.VovkReal))] + [
    kernel for kernel in EXAMPLES if isinstance(kernel, (k.VovkInfinite, k.Exponential, k.DotProduct))
]


@pytest.mark.parametrize("kernel", [*DOT, k.Polynomial(10), k.Polynomial(4, offset=0.0), k.VovkInfinite(1.0)], ids=str)
def test_series(kernel):
    laws.series(kernel)


@pytest.mark.parametrize("kernel", [kernel for kernel in EXAMPLES if kernel.laplace() is not None], ids=str)
def test_laplace(kernel):
    laws.laplace(kernel)


def test_no_second_moment_at_zero():
    assert k.ExponentialSemigroup(1.0).laplace().gradient2(0.0) == np.inf
    assert k.ReciprocalSemigroup(2.0).laplace().gradient2(0.0) == pytest.approx(0.5)


ADDITIVE = (k.Hellinger, k.Chi2, k.Intersection, k.JensenShannon)


@pytest.mark.parametrize("degree", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("kind", ADDITIVE, ids=lambda kind: kind.__name__)
def test_profile(kind, degree):
    laws.profile(kind(degree=degree))


def test_signatures_do_not_overflow():
    for kind in ADDITIVE:
        S = kind().profile().signature(np.array([-1e4, 1e4]))
        assert np.isfinite(S).all()
        assert S[0] == S[1]


def test_profiles_of_scaled_and_summed_kernels():
    x, y = np.array([0.0, 0.3, 2.0]), np.array([1.0, 0.3, 0.1])
    chi2, root = k.Chi2().profile(), k.Hellinger(degree=2.0).profile()
    both = (3.0 * k.Chi2() + k.Hellinger(degree=2.0)).profile()
    np.testing.assert_allclose(both.pair(x, y), 3.0 * chi2.pair(x, y) + root.pair(x, y))
    assert (both.degree, both.signature, both.mass) == (None, None, 4.0)
    assert (k.Chi2() + k.JensenShannon()).profile().degree == 1.0
    scaled = (3.0 * k.Chi2()).profile()
    np.testing.assert_allclose(scaled.signature(x), 3.0 * chi2.signature(x))
    np.testing.assert_allclose(scaled.density(x), 3.0 * chi2.density(x))
    assert (k.Intersection() + k.Chi2()).profile().kinked


FACTS = ("spectrum", "series", "laplace", "profile", "radial")


@pytest.mark.parametrize(
    ("kernel", "facts"),
    [
        (k.Gaussian(1.0), {"spectrum"}),
        (k.Polynomial(2), {"series"}),
        (k.Chi2(), {"profile"}),
        (k.ExpChi2(1.0), {"radial"}),
        (k.ReciprocalSemigroup(1.0), {"laplace"}),
        (k.Gaussian(1.0) + k.Polynomial(2), set()),
        (k.Polynomial(2) + k.Linear(), {"series"}),
        (k.Polynomial(2) * k.Linear(), {"series"}),
        (k.Chi2() + k.Intersection(), {"profile"}),
        (k.Chi2() * k.Chi2(), set()),
        (k.Gaussian(1.0) * k.Polynomial(2), set()),
        (k.Gaussian(1.0).over(k.Chi2()), {"radial"}),
        (k.Polynomial(2).normalized(), set()),
        (k.compose(k.Exponential(), k.Polynomial(2)), {"series"}),
        (2.0 * k.ExponentialSemigroup(1.0), set()),
    ],
    ids=str,
)
def test_a_missing_fact_is_none(kernel, facts):
    assert {name for name in FACTS if getattr(kernel, name)() is not None} == facts


def test_radial_kernels_tell_what_they_stand_on():
    assert k.ExpChi2(0.7).radial() == (k.Gaussian(0.7), k.Chi2())
    assert k.Matern(1.5, 1.0).over(k.Chi2()).radial() == (k.Matern(1.5, 1.0), k.Chi2())
    X = laws.rows(k.Chi2(), 10)
    outer, inner = k.ExpChi2(0.7).radial()
    laws.close(outer.over(inner).gram(X), k.ExpChi2(0.7).gram(X))
