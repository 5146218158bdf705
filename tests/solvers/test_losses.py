"""Losses: slopes are derivatives, curvatures stay below their bounds, constants are best, margins may be huge."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bochner.errors import SolverError
from bochner.solvers.losses import LOSSES, Logistic, SmoothedHinge, Squared, SquaredHinge

CASES = [(loss, classes) for loss in (*LOSSES.values(), SmoothedHinge(1.0), SmoothedHinge(0.1)) for classes in (2, 4)]


def some(loss, classes, rows=60, spread=2.0):
    rng = np.random.default_rng(classes)
    outputs = spread * rng.standard_normal((rows, loss.outputs(classes)))
    return outputs, rng.integers(0, classes, rows)


def test_the_register_goes_by_name():
    assert list(LOSSES) == ["squared", "logistic", "squared_hinge", "smoothed_hinge"]
    assert [loss.outputs(2) for loss in LOSSES.values()] == [2, 1, 1, 1]
    assert [loss.outputs(5) for loss in LOSSES.values()] == [5, 5, 5, 5]
    assert LOSSES["logistic"] == Logistic()


@pytest.mark.parametrize(("loss", "classes"), CASES, ids=str)
def test_slopes_are_derivatives(loss, classes):
    outputs, codes = some(loss, classes)
    _, slope = loss.value_and_slope(outputs, codes)
    for j in range(outputs.shape[1]):
        step = np.zeros(outputs.shape[1])
        step[j] = 1e-6
        ahead, behind = (loss.value_and_slope(outputs + sign * step, codes)[0] for sign in (1, -1))
        np.testing.assert_allclose(slope[:, j], (ahead - behind) / 2e-6, atol=1e-7)


@pytest.mark.parametrize(("loss", "classes"), CASES, ids=str)
def test_curvatures_are_second_derivatives_where_these_exist(loss, classes):
    outputs, codes = some(loss, classes)
    weight = np.linspace(0.5, 2.0, len(codes))
    _, slope = loss.value_and_slope(outputs, codes)
    step = 1e-6
    shifted = [loss.value_and_slope(outputs + step * unit, codes)[1] for unit in np.eye(outputs.shape[1])]
    by_row = np.stack([(s - slope) / step for s in shifted], axis=1)
    if isinstance(loss, SmoothedHinge):
        gap = 1.0 + np.sign(slope) * outputs
        beyond = np.abs(slope) == 1.0
        by_row = np.where(beyond, 1.0 / gap, np.einsum("ijj->ij", by_row))
        expected = np.diag(weight @ by_row)
    else:
        expected = np.einsum("i,ijk->jk", weight, by_row)
    np.testing.assert_allclose(loss.curvature(outputs, slope, weight), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("loss", "classes"), CASES, ids=str)
def test_no_row_is_more_curved_than_the_bound(loss, classes):
    outputs, codes = some(loss, classes)
    for spread in (0.01, 1.0, 30.0):
        _, slope = loss.value_and_slope(spread * outputs, codes)
        for i in range(len(codes)):
            one = slice(i, i + 1)
            excess = loss.bound(outputs.shape[1]) - loss.curvature(spread * outputs[one], slope[one], np.ones(1))
            assert np.linalg.eigvalsh(excess).min() >= -1e-12


@pytest.mark.parametrize(("loss", "classes"), CASES, ids=str)
def test_the_constant_is_the_best_of_all_constants(loss, classes):
    for seed in range(5):
        prior = np.random.default_rng(seed).dirichlet(np.ones(classes))

        def mean(b, prior=prior):
            return prior @ loss.value_and_slope(np.tile(b, (classes, 1)), np.arange(classes))[0]

        constant = loss.constant(prior)
        found = minimize(mean, np.zeros(len(constant)), method="BFGS", options={"gtol": 1e-9})
        assert mean(constant) <= found.fun + 1e-12


def test_margins_may_be_huge():
    outputs, codes = np.array([[-1e4], [1e4], [-1e300]]), np.array([1, 1, 0])
    value, slope = Logistic().value_and_slope(outputs, codes)
    assert value.tolist() == [1e4, 0.0, 0.0]
    assert slope.ravel().tolist() == [-1.0, -0.0, 0.0]
    value, slope = Logistic().value_and_slope(np.array([[1e4, 0.0, -1e4]] * 2), np.array([0, 2]))
    assert value.tolist() == [0.0, 2e4]
    assert slope.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, -1.0]]
    np.testing.assert_array_equal(Logistic().probabilities(outputs), [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert Logistic().value_and_slope(np.array([[40.0]]), np.array([1]))[0][0] == pytest.approx(
        np.exp(-40.0), rel=1e-12
    )


def test_known_values():
    margins = np.array([[2.0], [1.0], [0.75], [0.5], [0.0], [-1.0]])
    ones = np.ones(len(margins), dtype=int)
    assert SmoothedHinge(0.5).value_and_slope(margins, ones)[0].tolist() == [0.0, 0.0, 0.0625, 0.25, 0.75, 1.75]
    assert SquaredHinge().value_and_slope(-margins, 1 - ones)[0].tolist() == [0.0, 0.0, 0.0625, 0.25, 1.0, 4.0]
    assert Squared().value_and_slope(np.array([[0.5, 1.0]]), np.array([0]))[0].tolist() == [0.625]


def test_probabilities_are_given_where_they_are_meant():
    outputs = np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(Logistic().probabilities(outputs).sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(Logistic().probabilities(np.array([[np.log(3.0)]])), [[0.25, 0.75]], rtol=1e-15)
    for name in ("squared", "squared_hinge", "smoothed_hinge"):
        with pytest.raises(SolverError, match="calibrate its outputs, or use loss='logistic'"):
            LOSSES[name].probabilities(outputs)


def test_predicted_codes():
    assert Logistic().codes(np.array([[-1.0], [0.0], [1.0]])).tolist() == [0, 0, 1]
    assert SquaredHinge().codes(np.array([[0.0, 2.0, 1.0]])).tolist() == [1]


@pytest.mark.parametrize("width", [0.0, -1.0, 1.5, np.nan])
def test_a_wrong_width_is_refused(width):
    with pytest.raises(SolverError, match=r"width of a smoothed hinge lies in \(0, 1\]"):
        SmoothedHinge(width)
