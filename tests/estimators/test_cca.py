"""KernelCCA: a regularised CCA of materialised features, of two arrays, two sources or the columns of one table."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from bochner import KernelCCA, features, kernels, scan
from bochner.errors import DataError, SolverError
from bochner.sources import MemorySource
from bochner.sources.views import Joined, Selected

N = 600
rng = np.random.default_rng(0)
ANGLE = rng.uniform(0.0, 2.0 * np.pi, N)
X = np.column_stack([np.cos(ANGLE), np.sin(ANGLE), rng.normal(size=N)]) + 0.1 * rng.normal(size=(N, 3))
Y = np.column_stack([np.cos(3.0 * ANGLE), rng.normal(size=N)]) + 0.1 * rng.normal(size=(N, 2))
W = rng.uniform(0.2, 3.0, N)
MAPS = (
    features.RandomFourier(kernels.Gaussian(0.8), 30).draw(3, seed=1),
    features.RandomFourier(kernels.Gaussian(0.8), 20).draw(2, seed=2),
)
Z = [drawn(rows) for drawn, rows in zip(MAPS, (X, Y), strict=True)]
for array in (X, Y, W, *Z):
    array.flags.writeable = False


def cca(**options):
    return KernelCCA(**{"map": MAPS, "alpha": 0.5, "random_state": 0, **options})


def test_it_is_the_generalised_eigenproblem_of_the_features():
    model = cca(n_components=4, alpha=(0.5, 2.0)).fit(X, Y)
    S = np.cov(np.hstack(Z).T) * (N - 1)
    own, cross = np.zeros_like(S), np.zeros_like(S)
    own[:30, :30], own[30:, 30:] = S[:30, :30] + 0.5 * np.eye(30), S[30:, 30:] + 2.0 * np.eye(20)
    cross[:30, 30:], cross[30:, :30] = S[:30, 30:], S[30:, :30]
    vectors = eigh(cross, own)[1][:, ::-1][:, :4]
    for weights, wanted in ((model.x_weights_, vectors[:30]), (model.y_weights_, vectors[30:])):
        unit = weights / np.linalg.norm(weights, axis=0)
        np.testing.assert_allclose(
            np.abs(np.sum(unit * wanted, axis=0) / np.linalg.norm(wanted, axis=0)), 1.0, atol=1e-9
        )
    x, y = model.transform(X, Y)
    np.testing.assert_allclose(x, (Z[0] - Z[0].mean(axis=0)) @ model.x_weights_, atol=1e-9)
    found = [np.corrcoef(x[:, r], y[:, r])[0, 1] for r in range(4)]
    np.testing.assert_allclose(model.canonical_correlations_, found, atol=1e-9)
    np.testing.assert_array_equal(model.transform(X), x)
    assert model.score(X, Y) == pytest.approx(np.mean(found))


def test_of_linear_kernels_it_is_scikit_learns():
    model = KernelCCA("linear", 2, n_features=8, alpha=0.0, scaling="none", random_state=0).fit(X, Y)
    reference = CCA(2, scale=False, max_iter=10_000, tol=1e-14).fit(X, Y)
    for mine, wanted in zip(model.transform(X, Y), reference.transform(X, Y), strict=True):
        for r in range(2):
            assert abs(np.corrcoef(mine[:, r], wanted[:, r])[0, 1]) == pytest.approx(1.0, abs=1e-6)


def test_it_finds_what_linear_cca_cannot():
    half = slice(None, None, 2), slice(1, None, 2)
    linear = CCA(1).fit(X[half[0]], Y[half[0]])
    x, y = linear.transform(X[half[1]], Y[half[1]])
    assert abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1]) < 0.2
    model = KernelCCA("gaussian(gamma=1)", 1, random_state=0).fit(X[half[0]], Y[half[0]])
    assert model.score(X[half[1]], Y[half[1]]) > 0.85
    assert abs(model.held_out_correlations_[0] - model.score(X[half[1]], Y[half[1]])) < 0.06
    assert model.canonical_correlations_[0] > model.held_out_correlations_[0]


def test_the_penalty_is_the_best_of_refitting():
    model = cca(alpha="cv", folds=3).fit(X, Y)
    scores = []
    for i in range(8):
        penalties = tuple(10.0 ** (i - 7) * z.var(axis=0).sum() * N for z in Z)
        fold = model._folds.assign(0, N)
        held = [
            cca(alpha=penalties).fit(X[fold != k], Y[fold != k]).transform(X[fold == k], Y[fold == k]) for k in range(3)
        ]
        each = [np.corrcoef(x[:, r], y[:, r])[0, 1] for x, y in held for r in range(2)]
        scores.append(np.average(np.reshape(each, (3, 2)), axis=0, weights=np.bincount(fold)).mean())
        if penalties == pytest.approx(model.alpha_):
            np.testing.assert_allclose(model.held_out_correlations_.mean(), scores[-1], rtol=1e-4)
            chosen = i
    assert np.argmax(scores) == chosen
    assert "of 8 by exact cross-validation over 3 folds" in str(model.report_)


def test_two_arrays_two_sources_and_columns_of_one_table_give_the_same():
    model = cca().fit(X, Y, W)
    sources = MemorySource(X, None, W), MemorySource(Y)
    np.testing.assert_array_equal(cca().fit(*sources).x_weights_, model.x_weights_)
    np.testing.assert_array_equal(model.transform(*sources)[1], model.transform(X, Y)[1])
    table = pd.DataFrame(np.hstack([Y, X]), columns=["p", "q", "a", "b", "c"])
    one = cca(views=(["a", "b", "c"], "p:q")).fit(table, sample_weight=W)
    np.testing.assert_allclose(one.x_weights_, model.x_weights_, atol=1e-8)
    side = one.set_output(transform="pandas").transform(table)
    np.testing.assert_allclose(side.to_numpy(), np.hstack(model.transform(X, Y)), atol=1e-8)
    assert list(side.columns) == [f"kernelcca{i}" for i in range(4)]
    assert one.score(table) == pytest.approx(model.score(X, Y))
    for part in (cca(views=([2, 3, 4], [0, 1])), cca(views=(slice(2, 5), slice(0, 2)))):
        np.testing.assert_allclose(part.fit(np.hstack([Y, X]), None, W).x_weights_, model.x_weights_, atol=1e-8)


def test_sparse_rows_and_precisions():
    left = sp.random_array((300, 12), density=0.3, random_state=1, format="csr")
    right = sp.csr_array(left[:, :5] * 2.0)
    options = {"map": None, "kernel": "gaussian(gamma=1)", "n_features": 32, "alpha": 1.0}
    found = cca(**options).fit(left, right)
    wanted = cca(**options).fit(left.toarray(), right.toarray())
    np.testing.assert_allclose(found.canonical_correlations_, wanted.canonical_correlations_, atol=1e-9)
    np.testing.assert_allclose(found.transform(left), wanted.transform(left.toarray()), atol=1e-7)
    model = cca().fit(X, Y)
    x, y = model.transform(X.astype(np.float32), Y.astype(np.float32))
    assert x.dtype == y.dtype == np.float32
    np.testing.assert_allclose(x, model.transform(X), atol=1e-4)


def test_rows_that_come_later_count_as_if_they_had_been_there():
    whole, pieces = cca(alpha="cv").fit(X, Y, W), cca(alpha="cv")
    for part in np.array_split(np.arange(N), [100, 350]):
        pieces.partial_fit(X[part], Y[part], W[part])
    assert pieces.alpha_ == pytest.approx(whole.alpha_)
    np.testing.assert_allclose(pieces.x_weights_, whole.x_weights_, atol=1e-6)


def test_each_view_may_have_its_own_options():
    model = KernelCCA(
        ("gaussian(gamma=1)", "laplacian(gamma=median)"),
        1,
        n_features=(64, 32),
        scaling=("none", "standard"),
        alpha=1.0,
    ).fit(X, Y)
    assert [drawn.width for drawn in model._maps] == [64, 32]
    assert [scaling.kind for scaling in model._scalings] == ["none", "standard"]
    for word in ("gaussian(gamma=1.0)", "laplacian", "64 features", "32 features", "as given", "trained"):
        assert word in str(model.report_)


def test_it_works_in_pipelines_and_searches():
    labels = (np.cos(3.0 * ANGLE) > 0.0).astype(int)
    pipe = make_pipeline(KernelCCA("gaussian(gamma=1)", 1, alpha=1.0, random_state=0), LogisticRegression())
    assert cross_val_score(pipe, X, labels, cv=3).mean() > 0.85
    search = GridSearchCV(cca(map=None, n_features=64), {"kernel": ["linear", "gaussian(gamma=1)"]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"kernel": "gaussian(gamma=1)"}
    assert clone(search.best_estimator_).kernel == "gaussian(gamma=1)"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_components": 21}, "from 1 to the 20 features"),
        ({"n_components": 0}, "from 1 to the 20"),
        ({"alpha": "gcv"}, 'alpha is "cv"'),
        ({"alpha": (1.0, 2.0, 3.0)}, "a pair"),
        ({"alpha": -1.0}, "≥ 0"),
        ({"views": ([0], [1])}, "leave out the second"),
        ({"kernel": ("linear",)}, "kernel is a pair"),
        ({"alpha": "cv", "folds": 1}, "at least 2 folds"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        cca(**options).fit(X, Y)


def test_views_must_belong_together():
    with pytest.raises(DataError, match="one view has 600 rows, the other 10"):
        cca().fit(X, Y[:10])
    with pytest.raises(DataError, match="had 2 columns, these rows have 1"):
        cca().fit(X, Y).transform(X, Y[:, :1])
    with pytest.raises(DataError, match="pass the second view"):
        cca().fit(X)
    with pytest.raises(SolverError, match="does not vary"):
        cca(map=None, kernel="linear", scaling="none", n_components=1).fit(X, np.ones((N, 1)))
    unknown = [Selected(MemorySource(rows), [0]) for rows in (X, Y[:10])]
    for source in unknown:
        source.n_rows = None
    with pytest.raises(DataError, match="ends at row 10"):
        list(Joined(*unknown).chunks())


def test_a_selection_keeps_names_targets_and_order():
    source = Selected(MemorySource(pd.DataFrame(X, columns=list("abc")), Y[:, 0]), [2, 0])
    assert source.schema.names == ("c", "a")
    chunk = next(source.chunks(100, 200))
    np.testing.assert_array_equal(chunk.X, X[200:300][:, [2, 0]])
    np.testing.assert_array_equal(chunk.y, Y[200:300, 0])
    named = pd.DataFrame(X[:, ::-1], columns=list("cba"))
    other = Selected(scan(named), [2, 0]).with_schema(scan(pd.DataFrame(X, columns=list("abc"))).settle().schema)
    np.testing.assert_array_equal(next(other.chunks()).X, X[:, [2, 0]])
    assert source.fingerprint() != Selected(MemorySource(X), [0, 2]).fingerprint()
