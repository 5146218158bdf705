"""Maclaurin coefficients of functions, found by Cauchy's integral."""

import math
from math import comb, factorial

import numpy as np
import pytest

from bochner import kernels as k
from bochner.errors import DomainError, KernelError
from bochner.kernels.series import taylor


def relative_error(function, exact, reach, radius=math.inf, count=160):
    """The worst relative error among coefficients that carry more than 1e-12 of f(reach)."""
    found = taylor(function, count, reach, radius)
    wanted = np.array([exact(n) for n in range(count)], dtype=float)
    mass = wanted * reach ** np.arange(count)
    seen = mass > 1e-12 * mass.sum()
    assert (found[wanted == 0] == 0).all()
    return float((np.abs(found - wanted)[seen] / wanted[seen]).max())


@pytest.mark.parametrize("reach", [0.1, 0.3, 1.0, 5.0, 40.0])
def test_entire_functions(reach):
    assert relative_error(np.exp, lambda n: 1 / factorial(n), reach) < 1e-12
    assert relative_error(np.cosh, lambda n: (n % 2 == 0) / factorial(n), reach) < 1e-12
    assert relative_error(lambda t: (1 + t) ** 3, lambda n: comb(3, n), reach) < 1e-12
    assert (
        relative_error(lambda t: np.exp(t / 4) + 3 * t**2, lambda n: 0.25**n / factorial(n) + 3 * (n == 2), reach)
        < 1e-12
    )


@pytest.mark.parametrize("reach", [0.01, 0.3, 0.6, 0.9])
def test_geometric_series(reach):
    assert relative_error(lambda t: 1 / (1 - t), lambda n: 1.0, reach, radius=1.0) < 1e-12
    assert relative_error(lambda t: 3 / (3 - t), lambda n: 3.0**-n, 3 * reach, radius=3.0) < 1e-12


def test_near_the_radius():
    assert relative_error(lambda t: 1 / (1 - t), lambda n: 1.0, 0.999, radius=1.0) < 1e-10
    with pytest.raises(KernelError, match="too close to the radius"):
        taylor(lambda t: 1 / (1 - t), 10, 1 - 1e-9, radius=1.0)
    with pytest.raises(KernelError, match=r"converges for \|<x,y>\| < 1"):
        taylor(lambda t: 1 / (1 - t), 10, 1.0, radius=1.0)


def test_zero_data_still_have_a_series():
    np.testing.assert_allclose(taylor(np.exp, 4, 0.0), [1, 1, 1 / 2, 1 / 6], rtol=1e-12)


def test_more_coefficients_than_samples():
    found = taylor(np.exp, 5000, 1.0)
    assert len(found) == 5000
    assert found[3000:].sum() == 0


@pytest.mark.parametrize(
    ("function", "degree"),
    [
        (np.sin, 3),
        (np.cos, 2),
        (lambda t: np.exp(t) - t**2, 2),
        (lambda t: np.exp(t) - 1e-3 * t**7, 7),
        (lambda t: np.cosh(t) - 1.5, 0),
        (lambda t: np.exp(-t), 1),
        (np.tanh, 3),
    ],
)
def test_negative_coefficients_are_refused_by_degree(function, degree):
    with pytest.raises(KernelError, match=rf"coefficient of degree {degree} is -"):
        k.DotProduct(function=function)


@pytest.mark.parametrize("function", [lambda t: math.exp(t), lambda t: np.asarray(t, dtype=float) ** 2, "exp"])
def test_functions_of_reals_only_are_refused_with_advice(function):
    with pytest.raises(KernelError, match=r"coefficients=\[…\]|must be callable"):
        k.DotProduct(function=function)


@pytest.mark.parametrize("function", [lambda t: t**1.5, np.abs, lambda t: t.real, np.sqrt, lambda t: 1 / (0.9 - t)])
def test_functions_without_a_series_are_refused(function):
    with pytest.raises(KernelError, match="does not sum to its value"):
        k.DotProduct(function=function)


def test_functions_that_do_not_act_entrywise_are_refused():
    with pytest.raises(KernelError, match="must act on every entry"):
        k.DotProduct(function=lambda t: 1.0)
    with pytest.raises(KernelError, match="at least one positive coefficient"):
        k.DotProduct(function=lambda t: 0.0 * t)


def test_a_pole_on_the_circle_asks_for_the_radius():
    with pytest.raises(KernelError, match=r"give its radius of convergence \(radius=…\)"):
        k.DotProduct(function=lambda t: 1 / (1 - t))


def geometric(t):
    return 1 / (1 - t)


def test_finite_radius():
    kernel = k.DotProduct(function=geometric, radius=1.0)
    np.testing.assert_allclose(kernel.series().coefficients(30, 0.5), np.ones(30), rtol=1e-12)
    kernel.gram([[0.999]])
    with pytest.raises(DomainError, match=r"row 1 has <x, x> = 1.21") as caught:
        kernel.gram([[0.5], [1.1]])
    assert (caught.value.row, caught.value.column) == (1, None)
    halved = k.DotProduct(function=geometric, radius=1.0, scale=2.0)
    np.testing.assert_allclose(halved.gram([[1.2]]), [[1 / (1 - 0.72)]])
    np.testing.assert_allclose(halved.series().coefficients(10, 1.0), 0.5 ** np.arange(10), rtol=1e-12)
    assert halved.series().radius == 2.0


def test_the_text_of_a_function_is_its_coefficients_within_what_they_are_trusted_for():
    kernel = k.DotProduct(function=np.cosh).resolve([[2.0]])
    again = k.parse(str(kernel))
    assert again == kernel
    np.testing.assert_allclose(again.gram([[2.0]]), np.cosh([[4.0]]), rtol=1e-12)
    with pytest.raises(DomainError, match="row 0 has <x, x> = 9"):
        again.gram([[3.0]])
    assert again.resolve([[1.0]]) == again


def test_given_coefficients_hold_everywhere():
    kernel = k.DotProduct([0.0, 1.0, 2.0, 0.0])
    assert kernel.coefficients == (0.0, 1.0, 2.0)
    resolved = kernel.resolve([[100.0]])
    assert resolved == kernel
    assert k.parse(str(resolved)) == resolved
    np.testing.assert_allclose(kernel.gram([[100.0]]), [[1e4 + 2e8]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coefficients": [1.0, -0.5]}, "degree 1 must be"),
        ({"coefficients": [1.0, np.nan]}, "degree 1 must be"),
        ({"coefficients": [1.0, "x"]}, "degree 1 must be"),
        ({"coefficients": "1"}, "coefficients are a list"),
        ({"coefficients": 3}, "coefficients are a list"),
        ({"coefficients": []}, "at least one positive"),
        ({"coefficients": [0, 0]}, "at least one positive"),
        ({}, "either coefficients"),
        ({"coefficients": [1], "function": np.exp}, "either coefficients"),
        ({"coefficients": [1], "radius": 0}, "radius must be"),
        ({"coefficients": [1], "scale": "median"}, "scale must be"),
        ({"coefficients": [1], "trusted": -1, "truncated": True}, "trusted must be"),
    ],
)
def test_bad_dot_products(arguments, message):
    with pytest.raises(KernelError, match=message):
        k.DotProduct(**arguments)


def test_significant_degrees():
    a = k.Exponential().series().significant(1.0, tolerance=1e-3)
    assert 4 <= len(a) <= 8
    assert len(k.VovkReal(4).series().significant(1.0)) == 4
    assert len(k.Exponential(sigma=1e-3).series().significant(1e-6)) > 10
    assert len(k.DotProduct([1.0, 2.0], scale=1e-3).series().significant(1e-3)) == 2
    with pytest.raises(KernelError, match="the data reach 2"):
        k.VovkInfinite(2.0).series().significant(2.0)


def test_sums_products_and_compositions_of_series():
    t = np.array([-0.4, 0.0, 0.3])
    cases = [
        (2.0 * k.Exponential() + k.Polynomial(2), lambda t: 2 * np.exp(t) + (1 + t) ** 2, math.inf),
        (k.Exponential() * k.VovkInfinite(2.0), lambda t: np.exp(t) / (1 - t / 2), 2.0),
        (k.compose(k.Exponential(), k.Polynomial(2)), lambda t: np.exp((1 + t) ** 2), math.inf),
        (k.compose(k.VovkInfinite(4.0), k.Polynomial(2)), lambda t: 1 / (1 - (1 + t) ** 2 / 4), 1.0),
        (k.compose(k.VovkInfinite(4.0), k.VovkInfinite(2.0)), lambda t: 1 / (1 - 1 / (1 - t / 2) / 4), 1.5),
    ]
    for kernel, function, radius in cases:
        series = kernel.series()
        assert series.radius == pytest.approx(radius)
        np.testing.assert_allclose(series.function(t), function(t))
        a = series.significant(0.5)
        assert (a >= 0).all()
        np.testing.assert_allclose(sum(c * t**n for n, c in enumerate(a)), function(t), rtol=1e-11)


def test_composition_outside_the_radius_names_the_row():
    kernel = k.compose(k.VovkInfinite(4.0), k.Polynomial(2))
    with pytest.raises(DomainError, match=r"row 1 has K\(x, x\) = 4 under polynomial\(degree=2\)") as caught:
        kernel.gram([[0.5], [1.0]])
    assert caught.value.row == 1
    with pytest.raises(KernelError, match="must be a dot-product kernel"):
        k.compose(k.Gaussian(1.0), k.Linear())


@pytest.mark.parametrize(
    ("kernel", "reach"),
    [
        (k.Homogeneous(600), 1.0),
        (k.Polynomial(300), 0.9),
        (k.Polynomial(5000), 0.01),
        (k.VovkReal(700), 1.0),
        (k.DotProduct([0.0] * 600 + [1.0]), 1.0),
        (3.0 * k.Homogeneous(600) + k.Linear(), 1.0),
        (k.Homogeneous(300) * k.Homogeneous(400), 1.0),
        (k.compose(k.Homogeneous(20), k.Homogeneous(40)), 1.0),
    ],
    ids=str,
)
def test_polynomials_of_high_degree_keep_all_their_coefficients(kernel, reach):
    series = kernel.series()
    a = series.significant(reach, tolerance=1e-10, most=64)
    assert np.polynomial.polynomial.polyval(reach, a) == pytest.approx(series.at(reach), rel=1e-8)


def test_a_power_that_overflows_at_zero_is_refused():
    with pytest.raises(KernelError, match="overflows"):
        k.Polynomial(2000, offset=2.0)


def test_the_spectrum_of_a_high_power_has_all_its_mass():
    spectrum = k.compose(k.Homogeneous(300), k.Gaussian(0.01)).spectrum()
    assert spectrum.law[300] == pytest.approx(1.0)
    assert k.compose(k.VovkInfinite(1.0001), k.Gaussian(1.0)).spectrum() is None  # too long a series
