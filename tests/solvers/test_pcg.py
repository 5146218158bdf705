"""Ridge by sweeps: equal to moments and to scikit-learn on materialised features, with a gap that bounds the truth."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from bochner import features, kernels
from bochner.errors import SolverError
from bochner.run import Flow, Local
from bochner.seeds import Seed
from bochner.solvers import pcg, ridge
from bochner.solvers.base import Outcome
from bochner.solvers.sketched import Preconditioner, spectrum
from bochner.sources import MemorySource
from bochner.stats import Classes, Folds, Moments, Numbers
from bochner.stats.products import Products

rng = np.random.default_rng(0)
N, D = 1500, 160
X = rng.normal(size=(N, 3))
NUMBERS = np.column_stack([np.sin(2 * X[:, 0]) + 3.0, X[:, 1] * X[:, 2] - 7.0]) + 0.1 * rng.normal(size=(N, 2))
CODES = (X[:, 0] + 0.3 * rng.normal(size=N) > X[:, 1]).astype(int)
MANY = np.digitize(X[:, 0] + X[:, 1], [-1.0, 0.5, 1.0])
WEIGHT = rng.uniform(0.0, 3.0, N)
DRAWN = features.RandomFourier(kernels.Gaussian(0.6), D, frequencies="orthogonal").draw(3, seed=0)
Z = DRAWN(X)
for array in (X, NUMBERS, CODES, MANY, WEIGHT, Z):
    array.flags.writeable = False


class Sweeps:
    """Counts."""

    def __init__(self, y, weight=None, threads=1, **options):
        targets = Classes(np.unique(y[~np.isnan(y)])) if y.ndim == 1 else Numbers(y.shape[1])
        options = {"targets": targets, "dtype": "float64", **options}
        self.flow, self.threads, self.count = Flow(MemorySource(X, y, weight), DRAWN, **options), threads, 0

    def __call__(self, statistic):
        self.count += 1
        return Local(self.threads).sweep(self.flow, statistic)

    @property
    def outputs(self):
        return self.flow.targets.outputs


def begin(sweeps, rows=512, **options):
    options = {"dtype": sweeps.flow.dtype, **options}
    return pcg.begin(sweeps, D, sweeps.outputs, N, rows, **options)


def solved(sweeps, penalties, tol=1e-22, rows=512, max_sweeps=200, **options):
    begun = begin(sweeps, rows)
    return pcg.fit(sweeps, begun.side, begun.precondition, penalties, tol, max_sweeps, **options)


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


TARGETS = {"numbers": NUMBERS, "two classes": CODES, "classes": MANY}


@pytest.mark.parametrize("weight", [None, WEIGHT, 1e8 * WEIGHT, 1e-8 * WEIGHT], ids=["plain", "weighted", "e8", "e-8"])
@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("rows", [512, 128])
def test_coefficients_are_those_of_scikit_learn(y, weight, rows):
    penalties = (1.0 if weight is None else weight.mean()) * np.array([10.0, 1e-2])
    found = solved(Sweeps(y, weight), penalties, rows=rows)
    for penalty, solution in zip(penalties, found, strict=True):
        reference = Ridge(penalty, solver="cholesky")
        reference.fit(Z, np.eye(y.max() + 1)[y] if y.ndim == 1 else y, sample_weight=weight)
        assert solution.outcome is Outcome.CONVERGED
        assert relative(solution.coef, reference.coef_.T) < 1e-8
        assert relative(solution.intercept, reference.intercept_) < 1e-8


def test_single_precision_threads_and_moments_agree():
    penalty = 0.1
    part = Local(1).sweep(Sweeps(MANY).flow, Moments(D, 4)).total()
    exact = ridge.solved(part, penalty)
    for threads in (1, 3):
        (found,) = solved(Sweeps(MANY, threads=threads, dtype="float32"), [penalty], 1e-12)
        assert found.outcome is Outcome.CONVERGED
        assert relative(found.coef, exact.coef) < 1e-4
        assert np.abs(found.decision(Z) - exact.decision(Z)).max() < 1e-5


def test_unlabelled_rows_make_no_difference():
    y = NUMBERS.copy()
    y[::4, 0] = np.nan
    (found,) = solved(Sweeps(y), [0.1])
    kept = np.arange(N) % 4 != 0
    reference = Ridge(0.1, solver="cholesky").fit(Z[kept], NUMBERS[kept])
    assert relative(found.coef, reference.coef_.T) < 1e-8
    assert found.info["rows"] == kept.sum()


def objective(coef, intercept, y, penalty):
    T = np.eye(y.max() + 1)[y] if y.ndim == 1 else y
    return np.square(T - Z @ coef - intercept).sum() + penalty * np.square(coef).sum()


@pytest.mark.parametrize("penalty", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("rows", [512, 128])
@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_the_gap_bounds_the_truth(y, rows, penalty):
    exact = ridge.solved(Local(1).sweep(Sweeps(y).flow, Moments(D, 4 if y is MANY else 2)).total(), penalty)
    least = objective(exact.coef, exact.intercept, y, penalty)
    factor = 0.5 if y is CODES else 1.0  # two classes are solved as one output
    for tol in (1e-1, 1e-3, 1e-5):
        (found,) = solved(Sweeps(y), [penalty], tol, rows)
        here = objective(found.coef, found.intercept, y, penalty)
        hard = rows < D and penalty < 1e-3  # the sketch says nothing of such directions, and steps are many
        assert (found.outcome is Outcome.CONVERGED) == (found.info["gap"] <= tol)
        assert hard or found.outcome is Outcome.CONVERGED
        assert found.info["objective"] == pytest.approx(factor * here, rel=1e-9)
        assert (here - least) / here <= 1.05 * found.info["gap"] + 1e-12


def test_a_sketch_saves_sweeps():
    class Nothing:
        def __call__(self, residual, penalty):
            return residual

    sweeps = Sweeps(NUMBERS)
    begun = begin(sweeps)
    counts = []
    for precondition in (begun.precondition, Nothing()):
        (found,) = pcg.fit(sweeps, begun.side, precondition, [1e-2], 1e-4, 80)
        counts.append(found.info["sweeps"])
    assert counts[0] <= 20
    assert counts[1] > 2 * counts[0]


def test_penalties_share_sweeps_and_each_is_as_if_alone():
    penalties = [1e-3, 1.0, 1e2]
    sweeps = Sweeps(NUMBERS)
    together = solved(sweeps, penalties, 1e-10)
    assert sweeps.count == 1 + max(solution.info["sweeps"] for solution in together)
    for penalty, solution in zip(penalties, together, strict=True):
        alone = Ridge(penalty, solver="cholesky").fit(Z, NUMBERS)
        assert relative(solution.coef, alone.coef_.T) < 1e-4


def test_it_goes_on_from_where_another_ended():
    sweeps = Sweeps(MANY)
    begun = begin(sweeps)
    (rough,) = pcg.fit(sweeps, begun.side, begun.precondition, [0.1], 1e-3)
    (fine,) = pcg.fit(sweeps, begun.side, begun.precondition, [0.1], 1e-3, start=[rough])
    assert fine.info["sweeps"] <= 3 < rough.info["sweeps"]
    (more,) = pcg.fit(sweeps, begun.side, begun.precondition, [0.1], 1e-20, start=[rough], max_sweeps=200)
    reference = Ridge(0.1, solver="cholesky").fit(Z, np.eye(4)[MANY])
    assert relative(more.coef, reference.coef_.T) < 1e-8


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_the_held_out_fold_is_left_out_and_judged(y):
    folds = Folds(4)
    held = folds.assign(0, N) == 2
    sweeps = Sweeps(y, folds=folds)
    begun = begin(sweeps, held=2)
    found = pcg.fit(sweeps, begun.side, begun.precondition, [1e-3, 1.0], 1e-18, 200, held=2)
    T = np.eye(y.max() + 1)[y] if y.ndim == 1 else y
    assert (begun.side.count, begun.whole.count) == ((~held).sum(), N)
    for penalty, solution in zip([1e-3, 1.0], found, strict=True):
        reference = Ridge(penalty, solver="cholesky").fit(Z[~held], T[~held])
        assert relative(solution.coef, reference.coef_.T) < 1e-6
        predicted = reference.predict(Z[held])
        error = np.square(predicted - T[held]).sum() / held.sum()
        assert solution.info["held_error"] == pytest.approx(error, rel=1e-6)
        if y.ndim == 1:
            assert solution.info["held_wrong"] == pytest.approx((predicted.argmax(1) != y[held]).mean(), abs=1e-12)


def test_it_ends_early_where_the_held_out_error_no_longer_falls():
    sweeps = Sweeps(MANY, folds=Folds(4))
    begun = begin(sweeps, held=1)
    (found,) = pcg.fit(sweeps, begun.side, begun.precondition, [1e-3], 1e-18, 200, held=1, early=True)
    (whole,) = pcg.fit(sweeps, begun.side, begun.precondition, [1e-3], 1e-18, 200, held=1)
    assert found.outcome is Outcome.EARLY
    assert found.info["sweeps"] < 0.5 * whole.info["sweeps"]
    assert found.info["held_error"] < 1.01 * whole.info["held_error"]


def test_too_few_sweeps_are_told():
    (found,) = solved(Sweeps(NUMBERS), [1e-6], 1e-12, 128, max_sweeps=2)
    assert found.outcome is Outcome.STOPPED
    assert found.info["gap"] > 1e-12
    assert found.outcome.advice


def test_what_single_precision_cannot_reach_is_not_called_converged():
    """Sums of squares of float32 features have rounding that hides penalties below it."""
    sweeps = Sweeps(NUMBERS, dtype="float32")
    begun = begin(sweeps)
    (found,) = pcg.fit(sweeps, begun.side, begun.precondition, [1e-9], 1e-16, 60)
    assert found.outcome is not Outcome.CONVERGED
    exact = ridge.solved(Local(1).sweep(Sweeps(NUMBERS).flow, Moments(D, 2)).total(), 1e-9)
    assert np.square(found.decision(Z) - exact.decision(Z)).mean() < 1e-3


def test_the_same_seed_gives_the_same_bits():
    first, second = (solved(Sweeps(MANY, threads=t), [0.1], 1e-6)[0] for t in (1, 4))
    np.testing.assert_array_equal(first.coef, second.coef)


def test_options_are_checked():
    sweeps = Sweeps(NUMBERS)
    begun = begin(sweeps)
    for options, message in (
        ({"tol": 0.0}, "a tolerance > 0"),
        ({"max_sweeps": 0}, "at least 1 sweep"),
        ({"early": True}, "held-out fold"),
    ):
        with pytest.raises(SolverError, match=message):
            pcg.fit(sweeps, begun.side, begun.precondition, [1.0], **options)
    with pytest.raises(SolverError, match="no labelled rows"):
        begin(Sweeps(NUMBERS, np.zeros(N)))


@pytest.mark.parametrize("rows", [40, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_preconditioner_is_the_inverse_of_the_sketched_scatter(rows, dtype):
    S = rng.normal(size=(rows, 90)).astype(dtype) * np.geomspace(1.0, 1e-2, 90)
    r = rng.normal(size=(90, 3)) * np.array([1e-30, 1.0, 1e30])
    precondition = Preconditioner(S.astype(dtype))
    shift = np.maximum([1e-6, 1.0, 1e3], precondition.least)
    found = precondition(r, np.array([1e-6, 1.0, 1e3]))
    for j in range(3):
        expected = np.linalg.solve(S.T.astype(float) @ S + shift[j] * np.eye(90), r[:, j])
        error = np.abs(found[:, j] - expected).max() / np.abs(expected).max()
        assert error < (1e-9 if dtype == np.float64 else 1e-2)
    values = np.linalg.eigvalsh(S.astype(float) @ S.T)
    if rows < 90:
        assert (values / (values + precondition.least)).sum() == pytest.approx(0.5 * rows, rel=0.25)


def test_a_sketch_of_rows_that_do_not_vary_is_no_failure():
    precondition = Preconditioner(np.zeros((10, 20), np.float32))
    np.testing.assert_allclose(precondition(np.ones((20, 1)), np.ones(1)), 1.0)


def test_the_quadrature_knows_the_spectrum():
    values = np.geomspace(1e-3, 1e3, 400)
    Q = np.linalg.qr(rng.normal(size=(400, 400)))[0]
    nodes, shares = spectrum(Q * values @ Q.T, Seed(0))
    assert shares.sum() == pytest.approx(1.0)
    for shift in (1e-1, 1.0, 1e2):
        exact = (values / (values + shift)).mean()
        assert (shares * nodes / (nodes + shift)).sum() == pytest.approx(exact, abs=0.05)


def test_the_size_of_a_sketch_goes_by_what_it_costs_and_memory():
    assert pcg.sketch_rows(10**5, 16384) <= pcg.sketch_rows(10**7, 16384)
    assert pcg.sketch_rows(10**6, 65536, 1 << 30) < pcg.sketch_rows(10**6, 65536)
    for memory in (1 << 26, 1 << 30, 1 << 33):
        m = pcg.sketch_rows(10**6, 65536, memory)
        assert pcg.sketch_bytes(m, 65536) <= memory or m == 128
    assert pcg.sketch_rows(100, 4096) <= 50


def test_no_product_is_ever_square():
    """Nothing of D × D crosses a sweep."""
    seen = []
    sweeps = Sweeps(NUMBERS)

    def watched(statistic):
        found = sweeps(statistic)
        if isinstance(found, Products):
            seen.append(found.value.shape)
        return found

    begun = begin(sweeps)
    pcg.fit(watched, begun.side, begun.precondition, [1.0], 1e-6)
    assert seen
    assert all(shape == (D, 2) for shape in seen)
