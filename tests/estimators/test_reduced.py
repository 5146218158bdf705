"""Learning after PCA: what explicit projection and refitting give, without projecting."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import GridSearchCV

from bochner import KernelClassifier, KernelRegressor, Reduction, features, kernels
from bochner.errors import SolverError
from bochner.stats import Folds

N, D = 600, 64
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
SOME = y.copy()
SOME[rng.permutation(N)[:250]] = np.nan
KNOWN = ~np.isnan(SOME)
LABELS = np.digitize(y, [-0.7, 0.5]).astype(object)
w = rng.uniform(0.2, 3.0, N)
DRAWN = features.RandomFourier(kernels.Gaussian(0.4), D).draw(3, seed=5)
Z = DRAWN(X)
PATH = np.geomspace(1e-4, 1e2, 9)
TWO = kernels.Gaussian(0.4).on([0, 1]) + kernels.Polynomial(2)
BOTH = features.Concatenate(
    TWO, 70, (features.RandomFourier(kernels.Gaussian(0.4).on([0, 1]), 40), features.OptimalMaclaurin(TWO.parts[1], 30))
).draw(3, seed=2)
ZZ = BOTH(X)
for array in (X, y, SOME, w, Z, PATH):
    array.flags.writeable = False


def regressor(**options):
    return KernelRegressor(**{"map": DRAWN, "alpha": 0.3, "pca": 20, "random_state": 0, **options})


def relative(a, b):
    return np.abs(np.asarray(a) - b).max() / np.abs(b).max()


def refitted(Z, target, rank, penalty, rows=None, weight=None):
    """Coefficients and intercept of ridge regression on explicit components of ``rows``."""
    rows = Z if rows is None else rows
    U = PCA(rank, svd_solver="full").fit(rows).components_.T
    model = Ridge(penalty, solver="cholesky").fit(Z @ U, target, sample_weight=weight)
    return U @ model.coef_, model.intercept_


# ---- folded weights
@pytest.mark.parametrize("rank", [1, 20, 50])
def test_folded_coefficients_are_those_of_explicit_projection(rank):
    model = regressor(pca=rank).fit(X, y)
    coef, intercept = refitted(Z, y, rank, 0.3)
    assert relative(model.coef_[0], coef) < 1e-8
    np.testing.assert_allclose(model.predict(X), Z @ coef + intercept, atol=1e-9)
    assert model.pca_.rank == rank
    assert model.model_.solution.coef.shape == (D, 1)  # of the features: nothing is projected


def test_rows_without_a_target_shape_the_components():
    model = regressor().fit(X, SOME)
    coef, intercept = refitted(Z[KNOWN], y[KNOWN], 20, 0.3, rows=Z)
    assert relative(model.coef_[0], coef) < 1e-8
    np.testing.assert_allclose(model.predict(X), Z @ coef + intercept, atol=1e-9)
    assert "from 350 rows with a target and 250 without" in str(model.report_)
    without = regressor(pca=Reduction(20, unlabelled=False)).fit(X, SOME)
    assert relative(without.coef_[0], refitted(Z[KNOWN], y[KNOWN], 20, 0.3)[0]) < 1e-8
    assert relative(without.coef_, model.coef_) > 1e-3


def test_several_targets_and_shares_of_the_variance():
    targets = np.column_stack([y, X[:, 2] ** 2])
    model = regressor(pca=0.9).fit(X, targets)
    rank = PCA(0.9).fit(Z).n_components_
    assert model.pca_.rank == rank
    for k in range(2):
        assert relative(model.coef_[k], refitted(Z, targets[:, k], rank, 0.3)[0]) < 1e-8


# ---- choosing
@pytest.mark.parametrize("target", [y, SOME], ids=["labelled", "semi-supervised"])
def test_rank_and_penalty_are_those_of_refitting_without_each_fold(target):
    ranks, labelled = [2, 8, 32, 60], np.flatnonzero(~np.isnan(target))
    model = regressor(alpha=PATH, pca=ranks, folds=4).fit(X, target)
    fold = Folds(4, 0).assign(0, N)[labelled]
    errors = np.zeros((len(ranks), len(PATH)))
    for k in range(4):
        train, held = labelled[fold != k], labelled[fold == k]
        rows = np.concatenate([train, np.flatnonzero(np.isnan(target))])
        for i, rank in enumerate(ranks):
            for j, penalty in enumerate(PATH):
                coef, intercept = refitted(Z[train], y[train], rank, penalty, rows=Z[rows])
                errors[i, j] += np.square(y[held] - Z[held] @ coef - intercept).sum() / len(labelled)
    np.testing.assert_allclose(model.report_.surface.mean, errors, rtol=1e-10)
    i, j = np.unravel_index(errors.argmin(), errors.shape)
    assert (model.pca_.rank, model.alpha_) == (ranks[i], PATH[j])
    assert f"{ranks[i]} of {D} components" in str(model.report_)
    assert model.report_.error == pytest.approx(errors.min() / model.report_.surface.baseline.sum())


def test_choosing_by_itself_helps_where_few_rows_have_noise():
    fresh = np.random.default_rng(1).normal(size=(2000, 3))
    truth = np.sin(2.0 * fresh[:, 0]) + 0.5 * fresh[:, 1]
    options = {"map": features.RandomFourier(kernels.Gaussian(0.3), 256), "alpha": "cv"}
    found = regressor(pca="cv", **options).fit(X, y)
    plain = regressor(pca=None, **options).fit(X, y)
    assert plain.pca_ is None
    assert np.square(found.predict(fresh) - truth).mean() < 1.1 * np.square(plain.predict(fresh) - truth).mean()
    assert 1 < found.pca_.rank <= 256


@pytest.mark.parametrize("alpha", ["gcv", "evidence"])
def test_criteria_choose_the_penalty_of_a_given_rank(alpha):
    U = PCA(20, svd_solver="full").fit(Z).components_.T
    explicit = Z @ U
    model = regressor(alpha=alpha).fit(X, y)
    if alpha == "evidence":
        bayes = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-9, max_iter=1000).fit(explicit, y)
        best = bayes.lambda_ / bayes.alpha_
        assert best / 4.0 < model.alpha_ < 4.0 * best
    assert relative(model.coef_[0], refitted(Z, y, 20, model.alpha_)[0]) < 1e-8
    with pytest.raises(SolverError, match="does not compare ranks"):
        regressor(alpha=alpha, pca="cv").fit(X, y)


# ---- several kernels
def two_stage(Z, target, each, rank, penalty):
    U = [
        PCA(n, svd_solver="full").fit(block).components_.T
        for n, block in zip(each, (Z[:, :40], Z[:, 40:]), strict=True)
    ]
    coef, intercept = refitted(np.hstack([Z[:, :40] @ U[0], Z[:, 40:] @ U[1]]), target, rank, penalty)
    return np.concatenate([U[0] @ coef[: each[0]], U[1] @ coef[each[0] :]]), intercept


@pytest.mark.parametrize("memory", [2 << 30, 1000], ids=["one pass", "two passes"])
def test_two_stages_are_pca_of_each_kernel_and_of_both(memory):
    model = regressor(map=BOTH, pca=Reduction(10, each=[12, 5], memory=memory)).fit(X, y)
    coef, intercept = two_stage(ZZ, y, (12, 5), 10, 0.3)
    assert relative(model.coef_[0], coef) < 1e-8
    np.testing.assert_allclose(model.predict(X), ZZ @ coef + intercept, atol=1e-9)
    told = "one pass, since" if memory > 1000 else "two passes, since"
    assert told in str(model.report_)
    assert f"first 12 + 5 of 40 + {BOTH.block_widths()[1]}" in str(model.report_)
    assert model.moments_.width == (BOTH.width if memory > 1000 else 17)
    mean, std = model.predict(X[:50], return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X[:50]))
    whole = regressor(map=BOTH, pca=Reduction(10, each=[12, 5])).fit(X, y)
    np.testing.assert_allclose(std, whole.predict(X[:50], return_std=True)[1], rtol=1e-9)
    np.testing.assert_allclose(model.pca_.ratio, whole.pca_.ratio, rtol=1e-9)


def test_two_passes_are_one_for_every_rank_and_update():
    options = {"map": BOTH, "alpha": PATH}
    twice = regressor(pca=Reduction("cv", each=0.9, memory=150_000), **options).fit(X, y)
    once = regressor(pca=Reduction("cv", each=0.9), **options).fit(X, y)
    assert twice.report_.surface.sizes == once.report_.surface.sizes
    assert (
        sum(map(int, re.search(r"among the first (\d+) \+ (\d+)", str(twice.report_)).groups())) == twice.moments_.width
    )
    # Each fold finds its components among those of all rows: close to its own, not equal.
    assert len(twice.pca_.basis) == BOTH.width > twice.moments_.width > twice.report_.surface.sizes[-1]
    assert twice.report_.error == pytest.approx(once.report_.error, rel=1e-3)
    model = regressor(map=BOTH, pca=Reduction(10, each=8, memory=1000)).fit(X, y)
    before = model.coef_
    model.partial_fit(X[:100] + 0.1, y[:100])
    assert relative(model.coef_, before) > 1e-6
    model.forget(X[:100] + 0.1, y[:100], rows=np.arange(N, N + 100))
    assert relative(model.coef_, before) < 1e-8


def test_both_passes_can_be_resumed(tmp_path):
    how = Reduction(10, each=8, memory=1000)
    model = regressor(map=BOTH, pca=how).fit(X, y, checkpoint=tmp_path)
    assert len(list(tmp_path.glob("*-done.checkpoint"))) == 2
    again = regressor(map=BOTH, pca=how).fit(X, y, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    with pytest.raises(ValueError, match="another folder"):  # other components in the second pass
        regressor(map=BOTH, pca=Reduction(10, each=7, memory=1000)).fit(X, y, checkpoint=tmp_path)


def test_stages_need_several_kernels():
    with pytest.raises(SolverError, match="sums of kernels"):
        regressor(pca=Reduction(10, each=8)).fit(X, y)
    with pytest.raises(SolverError, match="names 3 kernels, the sum has 2"):
        regressor(map=BOTH, pca=Reduction(10, each=[8, 8, 8])).fit(X, y)


# ---- the rest of the estimator
def test_classes_calibration_and_updates():
    options = {"map": DRAWN, "pca": "cv", "random_state": 0}
    whole = KernelClassifier(**options).fit(X, LABELS)
    assert whole.score(X, LABELS.astype(int)) > 0.8
    np.testing.assert_allclose(whole.predict_proba(X).sum(axis=1), 1.0)
    pieces = KernelClassifier(**options)
    for part in np.array_split(np.arange(N), [200, 400]):
        pieces.partial_fit(X[part], LABELS[part], classes=[0, 1, 2])
    assert pieces.pca_.rank == whole.pca_.rank
    assert relative(pieces.coef_, whole.coef_) < 1e-7
    some = LABELS.copy()
    some[:300] = None
    semi = KernelClassifier(**options).fit(X, some)
    assert semi.report_.unlabelled == 300
    assert semi.score(X[:300], LABELS[:300].astype(int)) > 0.7


def test_weights_count():
    counts = rng.integers(1, 4, N)
    many = np.repeat(np.arange(N), counts)
    left, right = regressor().fit(X, y, counts), regressor().fit(X[many], y[many])
    assert relative(left.coef_, right.coef_) < 1e-8
    assert relative(regressor(alpha=0.3e8).fit(X, y, 1e8 * w).coef_, regressor().fit(X, y, w).coef_) < 1e-8


def test_the_standard_deviation_is_that_of_explicit_components():
    model = regressor().fit(X, y)
    fresh = rng.normal(size=(40, 3))
    reducer = PCA(20, svd_solver="full").fit(Z)
    V, away = reducer.transform(Z), reducer.transform(DRAWN(fresh))
    S = V.T @ V
    inverse = np.linalg.inv(S + 0.3 * np.eye(20))
    sigma2 = np.square(y - model.predict(X)).sum() / (N - 1.0 - np.trace(S @ inverse))
    wanted = np.sqrt(sigma2 * (1.0 + 1.0 / N + np.einsum("ij,jk,ik->i", away, inverse, away)))
    np.testing.assert_allclose(model.predict(fresh, return_std=True)[1], wanted, rtol=1e-8)


def test_float32_is_not_warned_about_where_components_carry_it():
    model = regressor(precision="float32", alpha=1e-2, pca=8).fit(X, y)
    assert relative(model.coef_, regressor(alpha=1e-2, pca=8).fit(X, y).coef_) < 1e-3


def test_moments_are_gathered_again_where_float32_hides_the_best_penalty(monkeypatch):
    smooth = {"map": features.RandomFourier(kernels.Gaussian(0.01), D).draw(3, seed=1), "alpha": "cv", "pca": "cv"}
    target = np.sin(0.5 * X[:, 0]) + X[:, 1]
    sharp = regressor(**smooth, precision="float64").fit(X, target)
    monkeypatch.setattr("bochner.estimators.supervised.SMALL", 0)
    model = regressor(**smooth).fit(X, target)
    assert model.dtype_ == "float32"
    assert "gathered again in float64" in str(model.report_)
    # The features are still those of float32.
    assert np.square(model.predict(X) - target).mean() < 2.0 * np.square(sharp.predict(X) - target).mean() + 1e-10
    with pytest.warns(ConvergenceWarning, match="precision"):
        regressor(**{**smooth, "alpha": 1e-9, "pca": 60}, precision="float32").fit(X, target)


def test_it_is_a_parameter_like_others():
    search = GridSearchCV(regressor(), {"pca": [None, 5, Reduction(0.9)]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert clone(regressor(pca=Reduction(7))).pca == Reduction(7)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pca": "best"}, 'pca is None, "cv", a number'),
        ({"pca": []}, "empty list"),
        ({"pca": 0}, "pca is a whole number ≥ 1"),
        ({"pca": 65}, "more than there are: 64"),
        ({"pca": 5, "n_features": [8, 16]}, "give one number as n_features"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(SolverError, match=said):
        regressor(**options).fit(X, y)


def test_other_losses_are_sent_to_a_pipeline():
    with pytest.raises(SolverError, match="put KernelPCA in a pipeline"):
        KernelClassifier(loss="logistic", pca=5).fit(X, LABELS)
