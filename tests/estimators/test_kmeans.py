"""KernelKMeans: scikit-learn's KMeans on materialised features, however the rows come."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bochner import KernelKMeans, KernelRegressor, features, kernels
from bochner.errors import DataError, SolverError
from bochner.run import Flow, Local
from bochner.seeds import Seed
from bochner.solvers.kmeans import plusplus
from bochner.sources import MemorySource

N, D, K = 900, 40, 5
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3)) + 1.5 * rng.integers(0, 3, (N, 3))
w = rng.uniform(0.2, 3.0, N)
DRAWN = features.RandomFourier(kernels.Gaussian(0.1), D).draw(3, seed=5)
Z = DRAWN(X)
INIT = Z[:K].copy()
for array in (X, w, Z, INIT):
    array.flags.writeable = False


def kmeans(**options):
    return KernelKMeans(**{"n_clusters": K, "map": DRAWN, "init": INIT, "random_state": 0, **options})


@pytest.mark.parametrize("weight", [None, w, 1e8 * w], ids=["none", "some", "large"])
def test_it_is_k_means_on_the_features(weight):
    reference = KMeans(K, init=INIT, n_init=1, tol=0.0, algorithm="lloyd").fit(Z, sample_weight=weight)
    model = kmeans(sweep_tol=0.0).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    assert model.inertia_ == pytest.approx(reference.inertia_, rel=1e-12)
    assert model.n_iter_ == reference.n_iter_
    np.testing.assert_allclose(model.cluster_centers_, reference.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), reference.predict(Z))
    np.testing.assert_allclose(model.transform(X), reference.transform(Z), atol=1e-7)
    assert model.score(X, sample_weight=weight) == pytest.approx(reference.score(Z, sample_weight=weight), rel=1e-12)
    centred = Z - np.average(Z, axis=0, weights=weight)
    variance = np.average(np.square(centred).sum(axis=1), weights=weight) * (N if weight is None else weight.sum())
    assert model.report_.explained == pytest.approx(1.0 - model.inertia_ / variance)


def test_empty_clusters_are_filled_as_in_scikit_learn():
    far = np.vstack([INIT[:3], 100.0 + INIT[:2]])
    reference = KMeans(K, init=far, n_init=1, tol=0.0).fit(Z)
    model = kmeans(init=far, sweep_tol=0.0).fit(X)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    assert model.inertia_ == pytest.approx(reference.inertia_)
    assert (model.report_.weights > 0.0).all()


def test_chunks_and_threads_make_no_difference(monkeypatch):
    whole = kmeans(n_jobs=1).fit(X, sample_weight=w)
    monkeypatch.setattr(Flow, "chunk", 64)
    monkeypatch.setattr(Flow, "group", 2)
    one, two = (kmeans(n_jobs=jobs).fit(X, sample_weight=w) for jobs in (1, 2))
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, whole.labels_)
    np.testing.assert_allclose(one.cluster_centers_, whole.cluster_centers_, rtol=1e-10)
    assert one.inertia_ == pytest.approx(whole.inertia_, rel=1e-12)


def test_arrays_and_sources_give_the_same_model():
    source = MemorySource(X, np.arange(N), w)
    left, right = kmeans(init="k-means++").fit(X, sample_weight=w), kmeans(init="k-means++").fit(source)
    np.testing.assert_array_equal(left.cluster_centers_, right.cluster_centers_)
    np.testing.assert_array_equal(right.predict(source), left.labels_)
    np.testing.assert_array_equal(right.transform(source), left.transform(X))
    np.testing.assert_array_equal(kmeans(init="k-means++").fit_predict(source), left.labels_)
    assert right.score(source) == pytest.approx(-left.inertia_)
    with pytest.raises(AttributeError, match="not kept; use predict"):
        _ = right.labels_
    with pytest.raises(AttributeError, match="after fit"):
        _ = kmeans().labels_
    with pytest.raises(DataError, match="brings its own"):
        kmeans().fit(source, sample_weight=w)


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csc_matrix, np.asfortranarray])
def test_how_rows_are_stored_makes_no_difference(convert):
    found = kmeans().fit(convert(X))
    np.testing.assert_array_equal(found.labels_, kmeans().fit(X).labels_)
    np.testing.assert_array_equal(found.predict(convert(X)), found.labels_)


def test_the_precision_is_kept_and_single_is_enough():
    double, single = kmeans().fit(X), kmeans(precision="float32").fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert double.transform(X).dtype == np.float64
    assert single.inertia_ == pytest.approx(double.inertia_, rel=1e-4)
    assert (single.labels_ == double.labels_).mean() > 0.99
    np.testing.assert_array_equal(single.predict(X.astype(np.float32)), single.labels_)


def test_the_start_on_a_sample_is_as_good_as_scikit_learn_s():
    found = [kmeans(init="k-means++", random_state=seed).fit(X).inertia_ for seed in range(5)]
    wanted = [KMeans(K, n_init=3, random_state=seed).fit(Z).inertia_ for seed in range(5)]
    assert np.mean(found) < 1.02 * np.mean(wanted)


def test_more_starts_are_never_worse_on_the_sample():
    few, many = (kmeans(init="k-means++", n_init=n).fit(X).inertia_ for n in (1, 8))
    assert many <= few * (1.0 + 1e-12)


def test_first_centres_are_drawn_by_distance_and_weight():
    rows = np.zeros((60, 2))
    rows[20:40, 0], rows[40:, 1] = 50.0, 50.0
    rows += 0.1 * np.random.default_rng(1).normal(size=rows.shape)
    for seed in range(20):
        centres = plusplus(rows, None, 3, Seed(seed), rows.mean(axis=0))
        assert sorted(np.round(centres).astype(int).tolist()) == [[0, 0], [0, 50], [50, 0]]
    only = np.where(np.arange(60) < 20, 0.0, 1.0)
    for seed in range(20):
        assert plusplus(rows, only, 2, Seed(seed), rows.mean(axis=0)).max(axis=1).min() > 40.0
    # More clusters than different rows.
    assert plusplus(np.ones((4, 2)), None, 3, Seed(0), np.ones(2)).tolist() == [[1.0, 1.0]] * 3


def test_one_approximate_pass_says_so_and_comes_close():
    large = np.random.default_rng(1).normal(size=(30_000, 3)) + 1.5 * rng.integers(0, 3, (30_000, 3))
    options = {"init": "k-means++", "n_jobs": 1, "n_init": 1}
    exact = kmeans(**options).fit(large)
    quick = kmeans(**options, batch_size=256).fit(large)
    assert quick.n_iter_ == 1
    assert quick.inertia_ < 1.03 * exact.inertia_
    assert "one approximate pass" in str(quick.report_)
    again = kmeans(**{**options, "n_jobs": 2}, batch_size=256).fit(large)
    np.testing.assert_array_equal(again.cluster_centers_, quick.cluster_centers_)


def test_a_nonlinear_kernel_finds_what_means_of_rows_cannot():
    angle = rng.uniform(0, 2 * np.pi, 600)
    ring = np.repeat([0.3, 3.0], 300)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    truth = np.repeat([0, 1], 300)
    rows = ring + 0.05 * rng.normal(size=ring.shape)
    model = KernelKMeans(2, kernels.Gaussian(1.0), 128, scaling="none", random_state=0).fit(rows)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert adjusted_rand_score(truth, KMeans(2, n_init=3, random_state=0).fit(rows).labels_) < 0.5


@pytest.mark.parametrize("batch_size", [None, 64])
def test_a_fit_that_was_killed_goes_on_to_the_same_bits(tmp_path, monkeypatch, batch_size):
    whole = kmeans(batch_size=batch_size).fit(X, sample_weight=w)
    monkeypatch.setattr(Local, "sweep", failing(Local.sweep, 1))
    with pytest.raises(KeyboardInterrupt):
        kmeans(batch_size=batch_size).fit(X, sample_weight=w, checkpoint=tmp_path)
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 1
    again = kmeans(batch_size=batch_size).fit(X, sample_weight=w, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert again.inertia_ == whole.inertia_
    # All sweeps are kept: another fit makes none.
    monkeypatch.setattr(Local, "sweep", failing(Local.sweep, 0))
    once_more = kmeans(batch_size=batch_size).fit(X, sample_weight=w, checkpoint=tmp_path)
    np.testing.assert_array_equal(once_more.labels_, whole.labels_)


def failing(sweep, after):
    """A way to sweep that is killed after some sweeps."""
    done = []

    def killed(*given):
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(1)
        return sweep(*given)

    return killed


def test_sweeps_end_where_one_changes_little():
    exact, default = kmeans(sweep_tol=0.0).fit(X), kmeans().fit(X)
    assert default.n_iter_ < exact.n_iter_
    assert exact.inertia_ <= default.inertia_ < 1.01 * exact.inertia_
    # The inertia, the labels and the centres belong together.
    distances = np.square(Z[:, None] - default.cluster_centers_).sum(axis=2)
    np.testing.assert_array_equal(distances.argmin(axis=1), default.labels_)
    assert default.inertia_ == pytest.approx(distances.min(axis=1).sum(), rel=1e-12)


def test_sweeps_that_did_not_suffice_are_told():
    with pytest.warns(ConvergenceWarning, match="2 sweeps have not brought the centres to rest"):
        model = kmeans(max_sweeps=2).fit(X)
    assert "stopped before it converged" in str(model.report_)
    assert model.n_iter_ == 2


def test_tables_names_pipelines_and_pages():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = kmeans().set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == [f"kernelkmeans{j}" for j in range(K)]
    assert list(model.get_feature_names_out()) == [f"kernelkmeans{j}" for j in range(K)]
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert "KernelKMeans" in model._repr_html_()
    assert model.report_._repr_html_().startswith("<pre>data")
    piped = make_pipeline(StandardScaler(), KernelKMeans(3, n_features=32, random_state=0))
    assert set(piped.fit_predict(X)) == {0, 1, 2}
    stacked = make_pipeline(KernelKMeans(20, n_features=64, random_state=0), KernelRegressor("linear()", 20))
    assert stacked.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.8
    assert clone(model).get_params()["n_clusters"] == K


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters is a whole number"),
        ({"n_clusters": 2.0}, "n_clusters is a whole number"),
        ({"n_init": 0}, "n_init is a whole number"),
        ({"max_sweeps": 0}, "max_sweeps is a whole number"),
        ({"batch_size": 0}, "batch_size is None or a whole number"),
        ({"sweep_tol": -1.0}, "sweep_tol is a number"),
        ({"precision": "half"}, "precision is"),
        ({"init": "random"}, 'init is "k-means\\+\\+" or an array'),
        ({"init": INIT[:2]}, r"finite centres of shape \(5, 40\)"),
        ({"n_clusters": N + 1, "init": "k-means++"}, "901 clusters need as many rows or more, there are 900"),
        ({"n_features": [8, 16]}, "give one as n_features"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(SolverError, match=message):
        kmeans(**options).fit(X)


def test_automatic_kernels_and_weights_of_nothing_are_refused():
    with pytest.raises(DataError, match="name a kernel"):
        KernelKMeans(3, "auto").fit(X)
    with pytest.raises(SolverError, match="all weights are 0"):
        kmeans(init="k-means++").fit(MemorySource(X, weight=np.zeros(N)))
