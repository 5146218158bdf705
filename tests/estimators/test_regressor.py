"""KernelRegressor: equal to scikit-learn on materialised features, exact under updates, honest about what it chose."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from bochner import KernelRegressor, features, kernels
from bochner.errors import DataError, SolverError
from bochner.sources import MemorySource
from bochner.stats import Folds

N, D = 900, 48
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
w = rng.uniform(0.2, 3.0, N)
RECIPE = features.RandomFourier(kernels.Gaussian(0.4), D)
DRAWN = RECIPE.draw(3, seed=5)
Z = DRAWN(X)
for array in (X, y, w, Z):
    array.flags.writeable = False


def regressor(**options):
    return KernelRegressor(**{"map": DRAWN, "alpha": 0.3, "random_state": 0, **options})


def relative(a, b):
    return np.abs(np.asarray(a) - b).max() / np.abs(b).max()


@pytest.mark.parametrize("weight", [None, w, 1e8 * w, 1e-8 * w], ids=["none", "some", "large", "small"])
@pytest.mark.parametrize("targets", [y, np.column_stack([y, X[:, 2] ** 2]), 1e6 + y], ids=["one", "two", "far"])
def test_it_is_ridge_regression_on_the_features(weight, targets):
    alpha = 0.3 * (1.0 if weight is None else weight.mean())
    model = regressor(alpha=alpha).fit(X, targets, weight)
    centre = np.average(Z, axis=0, weights=weight)
    root = np.ones(N) if weight is None else np.sqrt(weight)
    moved = targets - np.average(targets, axis=0, weights=weight)
    reference = Ridge(alpha, fit_intercept=False, solver="cholesky")
    reference.fit((Z - centre) * root[:, None], (moved.T * root).T)
    assert relative(model.coef_, np.atleast_2d(reference.coef_)) < 1e-8
    predicted = (Z - centre) @ reference.coef_.T + np.average(targets, axis=0, weights=weight)
    np.testing.assert_allclose(model.predict(X), predicted, atol=1e-9 * np.abs(predicted).max())


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csc_matrix, np.asfortranarray, lambda a: a.astype(object)])
def test_how_rows_are_stored_makes_no_difference(convert):
    assert relative(regressor().fit(convert(X), y).coef_, regressor().fit(X, y).coef_) < 1e-10


def test_whole_numbers_are_computed_in_floating_point():
    counts = rng.integers(-3, 4, (N, 3))
    left, right = regressor().fit(counts, y), regressor().fit(counts.astype(float), y)
    np.testing.assert_array_equal(left.coef_, right.coef_)


def test_the_penalty_is_that_of_refitting_without_each_fold():
    path = np.geomspace(1e-4, 1e2, 13)
    model = regressor(alpha=path, folds=4).fit(X, y)
    fold = Folds(4, 0).assign(0, N)
    errors, baseline = np.zeros(len(path)), 0.0
    for k in range(4):
        train, held = fold != k, fold == k
        baseline += np.square(y[held] - y[train].mean()).sum() / N
        for i, penalty in enumerate(path):
            refit = Ridge(penalty, solver="cholesky").fit(Z[train], y[train])
            errors[i] += np.square(y[held] - refit.predict(Z[held])).sum() / N
    np.testing.assert_allclose(model.report_.surface.mean[-1], errors, rtol=1e-10)
    assert model.alpha_ == path[np.argmin(errors)]
    assert model.report_.error == pytest.approx(errors.min() / baseline)


@pytest.mark.parametrize("alpha", ["cv", "gcv", "evidence"])
def test_every_way_to_choose_a_penalty_comes_close_to_the_best_one(alpha):
    fresh = np.random.default_rng(1)
    Xt = fresh.normal(size=(2000, 3))
    truth = np.sin(2.0 * Xt[:, 0]) + 0.5 * Xt[:, 1]
    wide = {"map": features.RandomFourier(kernels.Gaussian(2.0), 400), "n_jobs": 1}
    best = min(
        np.square(regressor(alpha=p, **wide).fit(X, y).predict(Xt) - truth).mean() for p in np.geomspace(1e-3, 10, 9)
    )
    model = regressor(alpha=alpha, **wide).fit(X, y)
    assert np.square(model.predict(Xt) - truth).mean() < 1.5 * best
    assert {"cv": "cross-validation over 5", "gcv": "generalised", "evidence": "likelihood"}[alpha] in str(
        model.report_
    )


def test_a_list_of_numbers_of_features_is_decided_by_cross_validation():
    simple = X[:, :1]
    noisy = np.sin(2.0 * simple[:, 0]) + 1.0 * np.random.default_rng(3).normal(size=N)
    wide = features.RandomFourier(kernels.Gaussian(8.0), 256)
    model = KernelRegressor(map=wide, n_features=[4, 16, 64, 256], alpha="cv", random_state=0).fit(simple, noisy)
    surface = model.report_.surface
    assert surface.sizes == (4, 16, 64, 256)
    size = surface.best()[0]
    assert model.drawn_.width == model.coef_.shape[1] == model.moments_.width == size
    # The model is the one of a fit with that number of features.
    again = KernelRegressor(map=wide.sized(size), alpha=model.alpha_, random_state=0).fit(simple, noisy)
    np.testing.assert_allclose(model.predict(simple), again.predict(simple), atol=1e-8)


def test_numbers_of_features_cannot_be_compared_where_draws_differ():
    with pytest.raises(SolverError, match="draws other features at each size"):
        KernelRegressor("polynomial(degree=3)", [8, 64], random_state=0).fit(X, y)
    with pytest.raises(DataError, match="empty list"):
        KernelRegressor("gaussian(gamma=1)", []).fit(X, y)


def test_arrays_and_sources_give_the_same_model():
    for options in ({}, {"alpha": "cv"}, {"map": None, "kernel": "laplacian(gamma=median)", "n_features": 64}):
        left = regressor(**options).fit(X, y, w)
        right = regressor(**options).fit(MemorySource(X, y, w))
        np.testing.assert_array_equal(left.coef_, right.coef_)
        np.testing.assert_array_equal(left.predict(X), right.predict(MemorySource(X)))


def test_threads_give_the_same_bits():
    large = np.random.default_rng(2).normal(size=(70_000, 3))
    target = np.sin(large[:, 0])
    one, two = (regressor(n_jobs=jobs).fit(large, target) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


# ---- updates
def test_rows_that_come_later_count_as_if_they_had_been_there():
    whole = regressor(alpha="cv").fit(X, y, w)
    piecewise = regressor(alpha="cv")
    for part in np.array_split(np.arange(N), [100, 101, 500]):
        piecewise.partial_fit(X[part], y[part], w[part])
    assert piecewise.rows_seen_ == N
    assert piecewise.alpha_ == pytest.approx(whole.alpha_, rel=1e-9)
    assert relative(piecewise.coef_, whole.coef_) < 1e-8


def test_rows_that_are_forgotten_never_were():
    gone = np.sort(np.random.default_rng(4).permutation(N)[:200])
    kept = np.setdiff1d(np.arange(N), gone)
    model = regressor().fit(X, y, w).forget(X[gone], y[gone], w[gone], rows=gone)
    assert relative(model.coef_, regressor().fit(X[kept], y[kept], w[kept]).coef_) < 1e-8
    assert model.report_.rows == len(kept)
    with pytest.raises(DataError, match="all rows"):
        model.forget(X[kept], y[kept], w[kept], rows=kept)
    with pytest.raises(DataError, match="cannot be taken"):
        regressor().fit(X[:50], y[:50]).forget(X, y, rows=np.arange(N))


def test_moments_from_elsewhere_merge_into_a_model_without_their_rows():
    here = regressor().fit(X[:400], y[:400])
    arrays = here.collect(X[400:], y[400:], first=400).to_arrays()
    moments = type(here.moments_).from_arrays({name: array.copy() for name, array in arrays.items()})
    assert relative(here.absorb(moments).coef_, regressor().fit(X, y).coef_) < 1e-9


# ---- unlabelled rows, groups
def test_rows_without_a_target_are_counted_and_change_nothing():
    some = y.copy()
    some[::3] = np.nan
    known = ~np.isnan(some)
    model = regressor().fit(X, some)
    assert relative(model.coef_, regressor().fit(X[known], y[known]).coef_) < 1e-9
    assert (model.report_.rows, model.report_.unlabelled) == (known.sum(), N - known.sum())
    with pytest.raises(DataError, match="no row has a target"):
        regressor().fit(X, np.full(N, np.nan))


def test_groups_stay_together():
    group = np.arange(N) // 3  # three copies of each row in one group: without groups copies leak
    copies, targets = X[group], y[group] + np.random.default_rng(5).normal(size=N)[group]
    wide = {"map": features.RandomFourier(kernels.Gaussian(20.0), 256), "alpha": "cv"}
    leaking = regressor(**wide).fit(copies, targets).report_.error
    honest = regressor(**wide).fit(copies, targets, groups=group).report_.error
    assert honest > 1.2 * leaking
    assert next(KFold(2).split(copies))[0].size  # the folds of scikit-learn would leak as well


# ---- uncertainty
def test_the_standard_deviation_is_the_posterior_of_the_materialised_features():
    model = regressor().fit(X, y)
    fresh = rng.normal(size=(50, 3))
    mean, std = model.predict(fresh, return_std=True)
    centre = Z.mean(axis=0)
    S = (Z - centre).T @ (Z - centre)
    inverse = np.linalg.inv(S + 0.3 * np.eye(D))
    away = DRAWN(fresh) - centre
    residual = np.square(y - model.predict(X)).sum()
    sigma2 = residual / (N - 1.0 - np.trace(S @ inverse))
    wanted = np.sqrt(sigma2 * (1.0 + 1.0 / N + np.einsum("ij,jk,ik->i", away, inverse, away)))
    np.testing.assert_allclose(std, wanted, rtol=1e-8)
    np.testing.assert_array_equal(mean, model.predict(fresh))
    with pytest.raises(SolverError, match="penalty > 0"):
        regressor(alpha=0.0).fit(X, y).predict(X, return_std=True)


def test_nine_of_ten_new_targets_lie_within_their_interval():
    model = KernelRegressor("gaussian(gamma=1)", 256, random_state=0).fit(X[:600], y[:600])
    mean, std = model.predict(X[600:], return_std=True)
    assert 0.85 < (np.abs(y[600:] - mean) < 1.645 * std).mean() < 0.95


# ---- what it says
def test_the_report_tells_every_choice():
    model = KernelRegressor(random_state=0).fit(X, y)
    text = str(model.report_)
    for word in ("kernel", "map", "penalty", "held out", "tried on a sample", "seconds", f"{N} rows", model.map_.why):
        assert word in text
    assert model.report_._repr_html_().startswith("<pre>")
    assert model.score(X, y) > 0.95


def test_a_penalty_below_the_precision_is_put_right():
    far = features.RandomFourier(kernels.Gaussian(1e-3), 64)
    options = {"map": far, "alpha": 1e-9, "random_state": 0}
    model = KernelRegressor(**options, precision="float32").fit(X, y)
    assert "float64" in str(model.report_)
    exact = KernelRegressor(**options, precision="float64").fit(X, y)
    assert model.score(X, y) == pytest.approx(exact.score(X, y), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": "best"}, "alpha is one of cv, gcv, evidence"),
        ({"alpha": -1.0}, "finite numbers ≥ 0"),
        ({"solver": "magic"}, "solver is one of auto, moments"),
        ({"precision": "half"}, 'precision is "auto"'),
        ({"folds": 1}, "at least 2 folds"),
        ({"scaling": "unit"}, "scaling is one of"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        regressor(**options).fit(X, y)


def test_sources_bring_their_own_targets():
    with pytest.raises(DataError, match="brings its own target"):
        regressor().fit(MemorySource(X, y), y)
    with pytest.raises(DataError, match="no target"):
        regressor().fit(MemorySource(X))
