"""Calibration: probabilities that are probabilities, fitted on what the scores have not seen."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from bochner.errors import DataError
from bochner.solvers.base import Outcome, Solution
from bochner.solvers.calibrate import Calibration, HeldOut, calibrated
from bochner.stats.base import Batch

rng = np.random.default_rng(0)


def scores_and_codes(n=3000, classes=5, slope=6.0, seed=0):
    """Scores f with p(k | f) = softmax(slope · f + bias) by construction."""
    stream = np.random.default_rng(seed)
    scores = stream.normal(0.2, 0.3, size=(n, classes))
    bias = np.linspace(-1.0, 1.0, classes)
    p = np.exp(slope * scores + bias)
    p /= p.sum(axis=1, keepdims=True)
    codes = (p.cumsum(axis=1) < stream.random(n)[:, None]).sum(axis=1)
    return scores, codes, p


def test_what_made_the_classes_is_found_again():
    scores, codes, p = scores_and_codes(n=40_000)
    found = calibrated(scores, codes)
    assert found.outcome is Outcome.CONVERGED
    assert found.slope == pytest.approx(6.0, rel=0.03)
    np.testing.assert_allclose(found.bias - found.bias.mean(), np.linspace(-1, 1, 5), atol=0.06)
    assert np.abs(found.probabilities(scores) - p).mean() < 0.01


def test_log_loss_falls_and_probabilities_sum_to_one():
    scores, codes, _ = scores_and_codes()
    found = calibrated(scores[:1500], codes[:1500])
    p = found.probabilities(scores[1500:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p >= 0.0).all()
    raw = np.clip(scores[1500:], 1e-6, None)
    raw /= raw.sum(axis=1, keepdims=True)
    before = -np.log(raw[np.arange(1500), codes[1500:]]).mean()
    plain = Calibration(1.0, np.zeros(5)).log_loss(scores[1500:], codes[1500:])
    after = found.log_loss(scores[1500:], codes[1500:])
    assert after == pytest.approx(-np.log(p[np.arange(1500), codes[1500:]]).mean(), rel=1e-10)
    assert after < 0.8 * min(before, plain)


def test_a_larger_score_never_makes_a_class_less_probable():
    scores, codes, _ = scores_and_codes()
    found = calibrated(scores, codes)
    raised = scores.copy()
    raised[:, 2] += 0.1
    assert (found.probabilities(raised)[:, 2] > found.probabilities(scores)[:, 2]).all()
    # Scores that say nothing, or the opposite, make the slope 0 and not negative.
    assert calibrated(-scores, codes).slope == 0.0


def test_the_optimum_is_that_of_a_slow_definition():
    scores, codes, _ = scores_and_codes(n=400, classes=3)
    weight = rng.uniform(0.5, 2.0, 400)
    found = calibrated(scores, codes, weight)
    spread = (scores - scores.mean(axis=1, keepdims=True)).std()

    def objective(theta):
        f = theta[0] * scores / spread + theta[1:]
        loss = np.log(np.exp(f).sum(axis=1)) - f[np.arange(400), codes]
        scaled = weight * 400 / weight.sum()
        return scaled @ loss + 0.5 * (theta[0] / 10) ** 2 + 0.5 * theta[1:] @ theta[1:]

    slow = minimize(objective, np.array([1.0, 0, 0, 0]), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose([found.slope * spread, *found.bias], slow.x, atol=1e-4)


def test_two_classes_are_platts_sigmoid():
    scores, codes, _ = scores_and_codes(n=20_000, classes=2)
    found = calibrated(scores, codes)
    margin = (scores[:, 1] - scores[:, 0])[:, None]
    platt = LogisticRegression(C=1e6, tol=1e-10).fit(margin, codes)
    np.testing.assert_allclose(found.probabilities(scores), platt.predict_proba(margin), atol=1e-3)


def test_scores_that_separate_the_classes_keep_the_slope_finite():
    codes = np.repeat(np.arange(3), 50)
    found = calibrated(np.eye(3)[codes], codes)
    assert np.isfinite(found.slope)
    assert found.probabilities(np.eye(3)).diagonal().min() > 0.99


def test_a_class_that_the_sample_lacks_keeps_a_finite_bias():
    scores, codes, _ = scores_and_codes(n=500, classes=4)
    kept = codes != 3
    found = calibrated(scores[kept], codes[kept])
    assert found.outcome is Outcome.CONVERGED
    assert np.isfinite(found.bias).all()
    assert found.bias[3] < found.bias[:3].min()


def test_a_thousand_classes_at_once():
    stream = np.random.default_rng(1)
    codes = stream.integers(0, 1000, 4000)
    scores = 0.02 * stream.normal(size=(4000, 1000))
    scores[np.arange(4000), codes] += 0.08
    found = calibrated(scores.astype(np.float32), codes)
    assert found.outcome is Outcome.CONVERGED
    p = found.probabilities(scores)
    flat = Calibration(1.0, np.zeros(1000)).log_loss(scores, codes)
    assert found.log_loss(scores, codes) < 0.5 * flat
    # Calibrated: what is called likely in sum is what happens.
    top = p.max(axis=1)
    assert top.mean() == pytest.approx((p.argmax(axis=1) == codes).mean(), abs=0.05)


def test_json_brings_it_back():
    scores, codes, _ = scores_and_codes(n=300)
    found = calibrated(scores, codes)
    again = Calibration.from_json(json.loads(json.dumps(found.to_json())))
    np.testing.assert_array_equal(again.probabilities(scores), found.probabilities(scores))
    assert again.outcome is found.outcome


@pytest.mark.parametrize(
    "item",
    [
        None,
        {},
        {"slope": 1.0, "bias": [1.0, 2.0]},
        {"slope": -1.0, "bias": [1.0, 2.0], "outcome": "CONVERGED"},
        {"slope": 1.0, "bias": [1.0, float("nan")], "outcome": "CONVERGED"},
        {"slope": 1.0, "bias": 3.0, "outcome": "CONVERGED"},
        {"slope": 1.0, "bias": [0.0, 1.0], "outcome": "FINE"},
    ],
)
def test_other_json_is_refused(item):
    with pytest.raises(DataError, match="a calibration has"):
        Calibration.from_json(item)


def test_scores_of_a_wrong_shape_are_refused():
    with pytest.raises(DataError, match="scores of 2 classes are expected, got shape"):
        Calibration(1.0, np.zeros(2)).probabilities(np.zeros((4, 3)))
    with pytest.raises(DataError, match="a class code for each row"):
        calibrated(np.zeros((4, 3)), np.zeros(3, dtype=int))
    with pytest.raises(DataError, match="not finite"):
        calibrated(np.full((2, 2), np.nan), np.zeros(2, dtype=int))


def test_held_out_scores_come_from_the_solution_without_the_fold():
    solutions = {f: Solution(np.full((3, 2), float(f + 1)), np.zeros(2)) for f in (0, 1)}
    Z, codes = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    whole = HeldOut(solutions)
    parts = [HeldOut(solutions), HeldOut(solutions)]
    for half in (0, 1):
        rows = np.arange(20 * half, 20 * half + 20)
        for statistic in (whole, parts[half]):
            statistic.update(Batch(Z[rows].copy(), codes[rows], None, half, rows))
            statistic.update(Batch(Z[:5].copy(), None, None, 0, rows[:5]))  # unlabelled
    joined = whole.fresh() + parts[0] + parts[1] + whole.fresh()
    np.testing.assert_array_equal(joined.outputs, whole.outputs)
    np.testing.assert_array_equal(joined.codes, codes)
    np.testing.assert_allclose(joined.outputs[:20], np.repeat(Z[:20].sum(axis=1)[:, None], 2, axis=1))
    np.testing.assert_allclose(joined.outputs[20:], 2 * np.repeat(Z[20:].sum(axis=1)[:, None], 2, axis=1))
    np.testing.assert_array_equal(joined.weight, np.ones(40))


def test_a_sample_of_the_rows_does_not_depend_on_how_they_are_cut():
    solutions = {0: Solution(np.ones((1, 2)), np.zeros(2))}
    Z, codes, rows = np.arange(1000.0)[:, None], np.zeros(1000, dtype=int), np.arange(1000)
    once, twice = HeldOut(solutions, 0.25), HeldOut(solutions, 0.25)
    once.update(Batch(Z.copy(), codes, None, 0, rows))
    for part in (slice(0, 300), slice(300, None)):
        twice.update(Batch(Z[part].copy(), codes[part], None, 0, rows[part]))
    np.testing.assert_array_equal(once.outputs, twice.outputs)
    assert 200 < len(once.codes) < 300
    with pytest.raises(DataError, match="no labelled rows"):
        _ = HeldOut(solutions).codes
