"""Losses by sweeps: equal to scikit-learn and SciPy on materialised features, in few sweeps; outcomes are honest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge

from bochner import features, kernels
from bochner.errors import SolverError
from bochner.run import Flow, Local
from bochner.solvers.base import Outcome
from bochner.solvers.lbfgs import fit
from bochner.solvers.losses import Logistic, SmoothedHinge, Squared, SquaredHinge
from bochner.sources import MemorySource
from bochner.stats import Classes, Folds, Moments

D = 96
X, digit = load_digits(return_X_y=True)
X = X / 16.0
drawn = features.RandomFourier(kernels.Gaussian(0.2), D).draw(64, seed=0)
Z = drawn(X)
labels = {2: (digit >= 5).astype(int), 10: digit}
weight = np.random.default_rng(0).uniform(0.1, 3.0, len(X))
for array in (X, Z, weight, *labels.values()):
    array.flags.writeable = False


class Counted:
    """Sweeps over the digits, counted."""

    def __init__(self, classes, weight=None, dtype="float64", folds=None):
        source = MemorySource(X, labels[classes], weight)
        self.flow = Flow(source, drawn, targets=Classes(np.arange(classes)), folds=folds, dtype=dtype)
        self.moments = Local(1).sweep(self.flow, Moments(D, classes))
        self.part = self.moments.total()
        self.count = 0

    def __call__(self, statistic):
        self.count += 1
        return Local(1).sweep(self.flow, statistic)


def objective(loss, codes, penalty, coef, intercept, weight=None):
    value, slope = loss.value_and_slope(Z @ coef + intercept, codes)
    w = np.ones(len(Z)) if weight is None else weight
    gradient = np.vstack([Z.T @ (slope * w[:, None]) + penalty * coef, (slope * w[:, None]).sum(axis=0)])
    return w @ value + 0.5 * penalty * np.square(coef).sum(), gradient


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_regression_is_that_of_scikit_learn(classes, weighted):
    w = weight if weighted else None
    sweep = Counted(classes, w)
    for penalty, solution in zip((0.5, 20.0), fit(sweep, sweep.part, Logistic(), [0.5, 20.0], tol=1e-10), strict=True):
        assert solution.outcome is Outcome.CONVERGED
        solver = LogisticRegression(C=1.0 / penalty, tol=1e-12, max_iter=10_000, solver="newton-cg")
        model = solver.fit(Z, labels[classes], sample_weight=w)
        coef, intercept = model.coef_.T, model.intercept_
        np.testing.assert_allclose(solution.coef, coef, rtol=0, atol=1e-6 * np.abs(coef).max())
        # Of softmax only differences of intercepts matter.
        np.testing.assert_allclose(
            solution.intercept - (classes > 2) * solution.intercept.mean(),
            intercept - (classes > 2) * intercept.mean(),
            rtol=0,
            atol=1e-6 * np.abs(coef).max(),
        )
        np.testing.assert_allclose(Logistic().probabilities(solution.decision(Z)), model.predict_proba(Z), atol=1e-6)


@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothedHinge(0.5)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_hinges_are_at_the_minimum_that_scipy_finds(loss, weighted):
    w = weight if weighted else None
    sweep = Counted(2, w)
    (solution,) = fit(sweep, sweep.part, loss, [2.0], tol=1e-9, max_sweeps=300)
    assert solution.outcome is Outcome.CONVERGED

    def flat(x):
        value, gradient = objective(loss, labels[2], 2.0, x[:-1, None], x[-1:], w)
        return value, gradient.ravel()

    found = minimize(
        flat,
        np.zeros(D + 1),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 20_000, "gtol": 1e-7, "ftol": 0.0},
    )
    np.testing.assert_allclose(np.append(solution.coef, solution.intercept), found.x, atol=1e-5 * np.abs(found.x).max())
    assert solution.info["objective"] == pytest.approx(found.fun, rel=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), SmoothedHinge(0.5)], ids=str)
def test_of_many_classes_the_gradient_vanishes(loss):
    sweep = Counted(10, weight)
    (solution,) = fit(sweep, sweep.part, loss, [2.0], tol=1e-8, max_sweeps=300)
    value, gradient = objective(loss, labels[10], 2.0, solution.coef, solution.intercept, weight)
    at_zero = objective(loss, labels[10], 2.0, np.zeros((D, 10)), loss.constant(sweep.part.target_mean), weight)[1]
    assert np.linalg.norm(gradient) <= 1.1e-8 * np.linalg.norm(at_zero)
    assert solution.info["gradient"] == pytest.approx(np.linalg.norm(gradient) / np.linalg.norm(at_zero), rel=0.1)
    assert solution.info["objective"] == pytest.approx(value, rel=1e-12)


def test_squared_loss_is_ridge_regression_in_two_sweeps():
    sweep = Counted(10)
    (solution,) = fit(sweep, sweep.part, Squared(), [3.0], tol=1e-10)
    ridge = Ridge(alpha=3.0).fit(Z, np.eye(10)[digit])
    np.testing.assert_allclose(solution.coef, ridge.coef_.T, atol=1e-9)
    np.testing.assert_allclose(solution.intercept, ridge.intercept_, atol=1e-9)
    assert sweep.count <= 2


@pytest.mark.parametrize(
    ("loss", "classes", "most"), [(Logistic(), 2, 7), (Logistic(), 10, 12), (SquaredHinge(), 2, 12)]
)
def test_few_sweeps_suffice_in_single_precision(loss, classes, most):
    sweep = Counted(classes, dtype="float32")
    (solution,) = fit(sweep, sweep.part, loss, [1.0], tol=1e-3)
    assert solution.outcome is Outcome.CONVERGED
    assert solution.info["sweeps"] == sweep.count <= most
    value, _ = objective(loss, labels[classes], 1.0, solution.coef, solution.intercept)
    (best,) = fit(Counted(classes), sweep.part, loss, [1.0], tol=1e-8, max_sweeps=400)
    assert value <= best.info["objective"] * (1.0 + 1e-4)


def test_penalties_share_their_sweeps_and_come_back_in_order():
    penalties = [0.1, 100.0, 1.0, 10.0]
    sweep = Counted(2)
    path = fit(sweep, sweep.part, Logistic(), penalties, tol=1e-8)
    together = sweep.count
    alone = 0
    for penalty, solution in zip(penalties, path, strict=True):
        single = Counted(2)
        (other,) = fit(single, single.part, Logistic(), [penalty], tol=1e-8)
        np.testing.assert_allclose(solution.coef, other.coef, atol=1e-6 * np.abs(other.coef).max())
        assert solution.info["penalty"] == penalty
        alone += single.count
    assert together == max(solution.info["sweeps"] for solution in path)
    assert together < alone / 2


def test_a_path_of_many_outputs_is_warm_started():
    penalties = [30.0, 20.0, 15.0, 10.0]
    sweep = Counted(10)
    path = fit(sweep, sweep.part, Logistic(), penalties, tol=1e-6)
    single = Counted(10)
    fit(single, single.part, Logistic(), penalties[-1:], tol=1e-6)
    assert path[-1].info["sweeps"] < single.count


def test_the_held_fold_is_not_learnt_from_but_judges():
    folds = Folds(4)
    sweep = Counted(10, weight, folds=folds)
    held = folds.assign(0, len(X)) == 2
    part = sweep.part - sweep.moments.parts[2]
    for solution in fit(sweep, part, Logistic(), [1.0, 50.0], tol=1e-9, held=2):
        model = LogisticRegression(C=1.0 / solution.info["penalty"], tol=1e-12, max_iter=10_000, solver="newton-cg")
        model.fit(Z[~held], digit[~held], sample_weight=weight[~held])
        np.testing.assert_allclose(solution.coef, model.coef_.T, atol=1e-6 * np.abs(model.coef_).max())
        p = model.predict_proba(Z[held])[np.arange(held.sum()), digit[held]]
        assert solution.info["held_loss"] == pytest.approx(np.average(-np.log(p), weights=weight[held]), rel=1e-6)
        wrong = model.predict(Z[held]) != digit[held]
        assert solution.info["held_errors"] == pytest.approx(np.average(wrong, weights=weight[held]), rel=1e-9)


def test_too_few_sweeps_are_told():
    sweep = Counted(10)
    (solution,) = fit(sweep, sweep.part, Logistic(), [1.0], tol=1e-8, max_sweeps=3)
    assert solution.outcome is Outcome.STOPPED
    assert solution.info["reason"] == "too few sweeps"
    assert sweep.count == 3
    assert "sweeps" in solution.outcome.advice


def test_a_tolerance_below_rounding_is_told():
    sweep = Counted(2, dtype="float32")
    (solution,) = fit(sweep, sweep.part, Logistic(), [1.0], tol=1e-12, max_sweeps=100)
    assert solution.outcome is Outcome.STOPPED
    assert solution.info["reason"] == "no step descends: rounding hides the gradient"
    assert solution.info["gradient"] < 1e-5


def test_every_sweep_lowers_the_objective_even_with_wrong_moments():
    sweep = Counted(10)
    part = replace(sweep.part, scatter=1e-3 * sweep.part.scatter)  # all steps are too long
    objectives = []
    for sweeps in range(1, 12):
        (solution,) = fit(Counted(10), part, Logistic(), [1e-3], tol=1e-12, max_sweeps=sweeps)
        objectives.append(solution.info["objective"])
    assert (np.diff(objectives) <= 0.0).all()
    assert objectives[-1] < 0.5 * objectives[0]


def test_features_that_say_nothing_need_no_sweep():
    sweep = Counted(2)
    part = Moments(3, 2).total()
    with pytest.raises(SolverError, match="rows with a weight"):
        fit(sweep, part, Logistic(), [1.0])


@pytest.mark.parametrize("options", [{"tol": 0.0}, {"tol": np.nan}, {"max_sweeps": 0}])
def test_impossible_options_are_refused(options):
    sweep = Counted(2)
    with pytest.raises(SolverError, match="a tolerance > 0"):
        fit(sweep, sweep.part, Logistic(), [1.0], **options)
    with pytest.raises(SolverError, match="penalties are finite"):
        fit(sweep, sweep.part, Logistic(), [-1.0])


def test_the_same_bits_twice():
    runs = [fit(Counted(10, dtype="float32"), Counted(10).part, Logistic(), [1.0], tol=1e-4)[0] for _ in range(2)]
    np.testing.assert_array_equal(runs[0].coef, runs[1].coef)
