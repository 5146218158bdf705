"""KernelClassifier: every loss equals scikit-learn's on materialised features; labels, weights and scores mean it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import set_config
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from bochner import KernelClassifier, features, kernels
from bochner.errors import DataError, SolverError
from bochner.solvers import Outcome
from bochner.sources import MemorySource

X, digit = load_digits(return_X_y=True)
X = X / 16.0
D = 96
DRAWN = features.RandomFourier(kernels.Gaussian(0.2), D).draw(64, seed=0)
Z = DRAWN(X)
two = digit >= 5
weight = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
for array in (X, Z, digit, two, weight):
    array.flags.writeable = False
LOSSES = ["squared", "logistic", "squared_hinge", "smoothed_hinge"]


def classifier(**options):
    return KernelClassifier(**{"map": DRAWN, "alpha": 1.0, "random_state": 0, "n_jobs": 1, **options})


def relative(a, b):
    return np.abs(np.asarray(a) - b).max() / np.abs(b).max()


def log_loss(model, rows, labels):
    p = model.predict_proba(rows)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    return -np.log(p[np.arange(len(labels)), np.searchsorted(model.classes_, labels)]).mean()


# ---- equal to what scikit-learn makes of the features
@pytest.mark.parametrize("labels", [digit, two], ids=["ten", "two"])
@pytest.mark.parametrize("w", [None, weight], ids=["plain", "weighted"])
def test_least_squares_is_ridge_regression_on_indicators(labels, w):
    model = classifier(calibrate=False).fit(X, labels, w)
    indicators = (labels[:, None] == np.unique(labels)).astype(float)
    reference = Ridge(1.0, solver="cholesky").fit(Z, indicators, w)
    assert relative(model.coef_, reference.coef_) < 1e-8
    np.testing.assert_array_equal(model.predict(X), np.unique(labels)[reference.predict(Z).argmax(axis=1)])


@pytest.mark.parametrize("labels", [digit, two], ids=["ten", "two"])
def test_the_logistic_loss_is_that_of_scikit_learn(labels):
    model = classifier(loss="logistic", alpha=2.0, sweep_tol=1e-10).fit(X, labels, weight)
    reference = LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(Z, labels, weight)
    assert relative(model.coef_, reference.coef_) < 1e-6
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(Z), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), reference.predict(Z))


@pytest.mark.parametrize("labels", [digit, two], ids=["ten", "two"])
def test_the_squared_hinge_has_the_objective_of_linearsvc_or_less(labels):
    """liblinear penalises the intercept too, so only the predictions of nearly all rows agree."""
    model = classifier(loss="squared_hinge", alpha=1.0, calibrate=False, sweep_tol=1e-8).fit(X, labels)
    reference = LinearSVC(C=0.5, intercept_scaling=100.0, tol=1e-8, max_iter=50_000).fit(Z, labels)

    def objective(coef, intercept):
        sign = np.where(labels[:, None] == np.unique(labels)[-len(coef) :], 1.0, -1.0)
        gap = np.maximum(1.0 - sign * (Z @ coef.T + intercept), 0.0)
        return np.square(gap).sum() + 0.5 * np.square(coef).sum()

    ours = objective(model.coef_, model.intercept_)
    assert ours <= objective(reference.coef_, reference.intercept_) * (1 + 1e-9)
    assert (model.predict(X) == reference.predict(Z)).mean() > 0.995


# ---- how well it does
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_classifies_digits_and_knows_how_sure_it_is(loss):
    Xa, Xb, ya, yb = train_test_split(X, digit, random_state=0)
    model = KernelClassifier("gaussian(gamma=median)", 256, loss=loss, random_state=0).fit(Xa, ya)
    assert model.score(Xb, yb) > 0.96
    assert log_loss(model, Xb, yb) < 0.25
    assert model.decision_function(Xb).shape == (len(Xb), 10)
    assert f"{loss} loss" in str(model.report_)
    assert model.alpha_ == model.report_.penalty


@pytest.mark.parametrize("loss", LOSSES)
def test_the_penalty_of_a_loss_is_near_the_best_one(loss):
    rows, labels = make_moons(600, noise=0.35, random_state=0)
    fresh, truth = make_moons(4000, noise=0.35, random_state=1)
    options = {"map": features.RandomFourier(kernels.Gaussian(4.0), 200), "loss": loss, "random_state": 0}
    chosen = KernelClassifier(**options).fit(rows, labels)
    found = [KernelClassifier(alpha=a, **options).fit(rows, labels) for a in np.geomspace(1e-3, 1e2, 6)]
    assert log_loss(chosen, fresh, truth) < 0.03 + min(log_loss(model, fresh, truth) for model in found)


def test_calibration_makes_probabilities_of_scores():
    rows, labels = make_moons(1500, noise=0.4, random_state=0)
    model = KernelClassifier("gaussian(gamma=2)", 128, random_state=0).fit(rows[:1000], labels[:1000])
    p = model.predict_proba(rows[1000:])[:, 1]
    for low, high in ((0.0, 0.25), (0.25, 0.75), (0.75, 1.0)):
        here = (p >= low) & (p <= high)
        assert abs(labels[1000:][here].mean() - p[here].mean()) < 0.1
    plain = KernelClassifier("gaussian(gamma=2)", 128, random_state=0, calibrate=False).fit(rows, labels)
    assert not hasattr(plain, "predict_proba")


@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge"])
def test_one_approximate_pass_says_so_and_improves_on_the_sample(loss, monkeypatch):
    monkeypatch.setattr("bochner.estimators.base.SAMPLE", 1000)
    rows, labels = make_moons(40_000, noise=0.4, random_state=0)
    fresh, truth = make_moons(10_000, noise=0.4, random_state=1)
    options = {"map": features.RandomFourier(kernels.Gaussian(2.0), 100), "loss": loss, "random_state": 0}
    model = KernelClassifier(solver="stochastic", **options).fit(rows, labels)
    assert model.model_.solution.outcome is Outcome.APPROXIMATE
    assert "one approximate pass" in str(model.report_)
    exact = KernelClassifier(**options).fit(rows, labels)
    few = KernelClassifier(**options).fit(rows[:1000], labels[:1000])
    assert model.score(fresh, truth) > few.score(fresh, truth) - 0.002
    assert model.score(fresh, truth) > exact.score(fresh, truth) - 0.005
    again = KernelClassifier(solver="stochastic", n_jobs=1, **options).fit(rows, labels)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert not hasattr(model, "partial_fit")


def test_too_few_sweeps_are_told():
    with pytest.warns(ConvergenceWarning, match="stopped before it converged"):
        model = classifier(loss="logistic", alpha=1e-4, max_sweeps=1, sweep_tol=1e-9).fit(X, digit)
    assert model.report_.outcome is Outcome.STOPPED
    assert "allow more sweeps" in str(model.report_)


# ---- labels
@pytest.mark.parametrize(
    "names",
    [
        np.array(["zero", "one", "two"]),
        np.array([b"a", b"b", b"c"]).astype(str),
        np.array([2**60, -(2**61), 7]),
        np.array([1.0, -1.0, 7.0]),
        np.array([True, False]),
        np.array(["x", "y", "z"], dtype=object),
    ],
    ids=["text", "bytes", "large", "floats", "truth", "objects"],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_labels_of_any_type_come_back(names, loss):
    labels = names[digit % len(names)]
    model = classifier(loss=loss).fit(X, labels)
    assert model.predict(X).dtype.kind == {"O": "U"}.get(labels.dtype.kind, labels.dtype.kind)
    assert (model.predict(X) == labels).mean() > 0.8
    np.testing.assert_array_equal(model.classes_, np.unique(labels))


def test_rows_without_a_label_are_left_out():
    labels = digit.astype(object)
    labels[::4] = None
    known = np.arange(len(X)) % 4 != 0
    model = classifier(calibrate=False).fit(X, labels)
    assert relative(model.coef_, classifier(calibrate=False).fit(X[known], digit[known]).coef_) < 1e-9
    assert model.report_.unlabelled == (~known).sum()


def test_thousands_of_classes():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2000, 20))
    labels = np.repeat(np.arange(2000), 4)
    rows = centres[labels] + 0.1 * rng.normal(size=(8000, 20))
    model = KernelClassifier("gaussian(gamma=0.05)", 256, alpha=1e-3, random_state=0).fit(rows, labels)
    assert model.score(rows, labels) > 0.9
    assert model.predict_proba(rows[:5]).shape == (5, 2000)


# ---- weights, storage, updates
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_count_as_copies(loss):
    counts = np.random.default_rng(1).integers(1, 3, len(X))
    copies = np.repeat(np.arange(len(X)), counts)
    left = classifier(loss=loss, calibrate=False, sweep_tol=1e-6).fit(X, digit, counts)
    right = classifier(loss=loss, calibrate=False, sweep_tol=1e-6).fit(X[copies], digit[copies])
    assert relative(left.coef_, right.coef_) < 1e-3


def test_sparse_rows_and_sources_are_the_same_rows():
    for loss in ("squared", "logistic"):
        model = classifier(loss=loss).fit(X, digit)
        assert relative(classifier(loss=loss).fit(sp.csr_array(X), digit).coef_, model.coef_) < 1e-8
        source = classifier(loss=loss).fit(MemorySource(X, digit))
        np.testing.assert_array_equal(source.coef_, model.coef_)
        np.testing.assert_array_equal(source.predict(MemorySource(X)), model.predict(X))
        np.testing.assert_array_equal(source.predict_proba(X), model.predict_proba(X))


def test_updates_are_exact_and_know_all_classes():
    whole = classifier(calibrate=False).fit(X, digit)
    part = classifier(calibrate=False).partial_fit(X[:5], digit[:5], classes=np.arange(10))
    part.partial_fit(X[5:], digit[5:])
    assert relative(part.coef_, whole.coef_) < 1e-9
    with pytest.raises(DataError, match="none of the 10 known classes"):
        part.partial_fit(X[:2], [10, 11])
    gone = np.arange(100, 400)
    kept = np.delete(np.arange(len(X)), gone)
    part.forget(X[gone], digit[gone], rows=gone)
    assert relative(part.coef_, classifier(calibrate=False).fit(X[kept], digit[kept]).coef_) < 1e-9
    assert not hasattr(classifier(loss="logistic"), "partial_fit")


# ---- inside scikit-learn
def test_pipelines_searches_and_scores():
    pipe = make_pipeline(StandardScaler(), KernelClassifier("gaussian(gamma=0.01)", 256, random_state=0))
    assert cross_val_score(pipe, X, digit, cv=3).mean() > 0.85
    grid = {"kernelclassifier__kernel": [kernels.Linear(), "gaussian(gamma=0.01)"], "kernelclassifier__alpha": [1.0]}
    search = GridSearchCV(pipe, grid, cv=3).fit(X, digit)
    assert search.best_params_["kernelclassifier__kernel"] == "gaussian(gamma=0.01)"


def test_weights_are_routed():
    set_config(enable_metadata_routing=True)
    try:
        model = KernelClassifier(map=DRAWN, alpha=1.0, random_state=0).set_fit_request(sample_weight=True)
        grid = {"alpha": [1.0]}
        search = GridSearchCV(model.set_score_request(sample_weight=False), grid, cv=2)
        search.fit(X, two, sample_weight=weight)
        direct = classifier().fit(X, two, weight)
        assert relative(search.best_estimator_.coef_, direct.coef_) < 1e-9
        assert relative(search.best_estimator_.coef_, classifier().fit(X, two).coef_) > 1e-6
    finally:
        set_config(enable_metadata_routing=False)


def test_progress_goes_to_standard_error(capsys):
    classifier().fit(X, digit, progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert "1,797 of 1,797 rows (100 %)" in said.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "hinge"}, "loss is one of squared, logistic"),
        ({"loss": "logistic", "solver": "moments"}, "only the squared loss is solved from moments"),
        ({"solver": "stochastic"}, "for other losses than the squared one"),
        ({"loss": "logistic", "n_features": [4, 8]}, "for the squared loss only"),
        ({"loss": "logistic", "sweep_tol": 0.0}, "a tolerance > 0"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(SolverError, match=said):
        classifier(**options).fit(X, digit)
