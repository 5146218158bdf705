"""Blocks of features one after another come to what all at once give; and which way is taken when."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from bochner import features, kernels
from bochner.errors import SolverError
from bochner.run import Flow, Local
from bochner.solvers import blocks
from bochner.solvers.base import Outcome
from bochner.solvers.way import choose, moments_bytes
from bochner.sources import MemorySource
from bochner.stats import Classes, Numbers

rng = np.random.default_rng(0)
N, D = 800, 96
X = rng.normal(size=(N, 3))
NUMBERS = np.column_stack([np.sin(2 * X[:, 0]) + 300.0, X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(N, 2))
MANY = np.digitize(X[:, 0] + X[:, 1], [-1.0, 0.5])
WEIGHT = rng.uniform(0.0, 3.0, N)
DRAWN = features.RandomFourier(kernels.Gaussian(0.6), D, frequencies="orthogonal").draw(3, seed=0)
Z = DRAWN(X)
for array in (X, NUMBERS, MANY, WEIGHT, Z):
    array.flags.writeable = False


def solved(y, penalty, weight=None, size=32, threads=1, dtype="float64", **options):
    targets = Classes(np.unique(y)) if y.ndim == 1 else Numbers(y.shape[1])
    parts = [DRAWN.part(start, min(start + size, D)) for start in range(0, D, size)]
    flow = Flow(MemorySource(X, y, weight), DRAWN, targets=targets, dtype=dtype)

    def through(part):
        return lambda statistic: Local(threads).sweep(flow.with_drawn(part), statistic)

    widths = [part.width for part in parts]
    options = {"tol": 1e-15, "max_rounds": 400, **options}
    return blocks.fit([through(part) for part in parts], widths, N, targets.outputs, penalty, **options)


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


@pytest.mark.parametrize("weight", [None, WEIGHT, 1e8 * WEIGHT], ids=["plain", "weighted", "e8"])
@pytest.mark.parametrize("y", [NUMBERS, MANY], ids=["numbers", "classes"])
@pytest.mark.parametrize("size", [40, D])
def test_coefficients_are_those_of_scikit_learn(y, weight, size):
    penalty = 3.0 if weight is None else 3.0 * weight.mean()
    found = solved(y, penalty, weight, size)
    T = np.eye(3)[y] if y.ndim == 1 else y
    reference = Ridge(penalty, solver="cholesky").fit(Z, T, sample_weight=weight)
    assert found.outcome is Outcome.CONVERGED
    assert relative(found.coef, reference.coef_.T) < 1e-6
    assert relative(found.intercept, reference.intercept_) < 1e-8
    w = np.ones(N) if weight is None else weight
    least = w @ np.square(T - reference.predict(Z)).sum(axis=1) + penalty * np.square(reference.coef_).sum()
    assert found.info["objective"] == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("options", [{"keep": False}, {"threads": 3}], ids=str)
def test_what_is_kept_in_memory_and_threads_make_no_difference(options):
    plain, other = solved(MANY, 1.0, tol=1e-6), solved(MANY, 1.0, tol=1e-6, **options)
    np.testing.assert_allclose(other.coef, plain.coef, atol=1e-10)
    single = solved(MANY, 1.0, tol=1e-6, dtype="float32")
    assert relative(single.coef, plain.coef) < 1e-2


def test_unlabelled_rows_make_no_difference():
    y = NUMBERS.copy()
    y[::4, 0] = np.nan
    kept = np.arange(N) % 4 != 0
    reference = Ridge(1.0, solver="cholesky").fit(Z[kept], NUMBERS[kept])
    assert relative(solved(y, 1.0).coef, reference.coef_.T) < 1e-6


def test_too_few_rounds_are_told_and_the_gap_is_of_the_right_size():
    found = solved(NUMBERS, 1e-2, max_rounds=5, tol=1e-9)
    assert found.outcome is Outcome.STOPPED
    reference = Ridge(1e-2, solver="cholesky").fit(Z, NUMBERS)
    least = np.square(NUMBERS - reference.predict(Z)).sum() + 1e-2 * np.square(reference.coef_).sum()
    gap = found.info["objective"] / least - 1.0
    assert 0.2 < found.info["gap"] / gap < 10.0


def test_options_are_checked():
    for options in ({"penalty": 0.0}, {"tol": 0.0}, {"max_rounds": 0}):
        with pytest.raises(SolverError, match="blocks need a penalty > 0"):
            solved(NUMBERS, **{"penalty": 1.0, **options})
    with pytest.raises(SolverError, match="no labelled rows"):
        solved(NUMBERS, 1.0, np.zeros(N))


PARTS = {
    "pairs": features.RandomFourier(kernels.Gaussian(0.6), 256),
    "phase": features.RandomFourier(kernels.Gaussian(0.6), 256, form="phase"),
    "hadamard": features.RandomFourier(kernels.Gaussian(0.6), 300, frequencies="hadamard"),
    "other": features.RandomMaclaurin(kernels.Polynomial(3), 256),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("recipe", PARTS.values(), ids=PARTS)
def test_parts_of_a_map_are_columns_of_the_whole(recipe, dtype):
    drawn = recipe.draw(3, seed=1, sample=0.3 * X)
    rows = (0.3 * X).astype(dtype)
    whole = drawn(rows)
    for start, stop in ((0, 128), (128, drawn.width), (3, 17), (64, 90)):
        part = drawn.part(start, stop)
        assert part.width == stop - start
        np.testing.assert_allclose(part(rows), whole[:, start:stop], atol=1e-5 if dtype == np.float32 else 1e-12)


def test_the_way_goes_by_rows_width_outputs_and_memory():
    gigabyte = 1 << 30
    assert choose(1000, 1000, 1, gigabyte).solver == "moments"
    assert choose(350_000, 2048, 2, 8 * gigabyte).solver == "moments"
    assert choose(None, 2048, 2, 8 * gigabyte).solver == "moments"
    assert choose(350_000, 16_384, 2, 64 * gigabyte).solver == "sweeps"
    assert choose(350_000, 16_384, 2, 8 * gigabyte).solver == "sweeps"
    assert choose(350_000, 1 << 20, 2, gigabyte // 8).solver == "blocks"
    # Few rows: a pass is cheap even where features are many.
    assert choose(2000, 4096, 2, 8 * gigabyte).solver == "moments"


def test_the_way_changes_where_memory_ends():
    needed = moments_bytes(4096, 1, 5)
    assert choose(10_000, 4096, 1, needed).solver == "moments"
    less = choose(10_000, 4096, 1, needed - 1)
    assert less.solver == "sweeps"
    assert "memory" in less.why
    assert less.sketch > 0


def test_a_way_that_is_asked_for_is_taken():
    for asked in ("moments", "sweeps", "blocks"):
        way = choose(5000, 512, 1, 1 << 24, asked=asked)
        assert way.solver == asked
        assert way.why
    assert choose(5000, 512, 1, 1 << 22, asked="blocks").block < 512
    assert choose(5000, 500, 1, 1 << 33, asked="blocks").block == 500
    assert replace(way, why="") == replace(choose(5000, 512, 1, 1 << 24, asked="blocks"), why="")
