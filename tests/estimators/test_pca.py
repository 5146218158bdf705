"""KernelPCA: scikit-learn's PCA on materialised features, and its KernelPCA where the map is exact."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from bochner import KernelClassifier, KernelPCA, features, kernels
from bochner.errors import DataError, SolverError
from bochner.sources import MemorySource

N, D = 500, 48
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3)) * [3.0, 1.5, 1.0]
w = rng.uniform(0.2, 3.0, N)
DRAWN = features.RandomFourier(kernels.Gaussian(0.1), D).draw(3, seed=5)
Z = DRAWN(X)
SUM = kernels.Gaussian(0.1).on([0, 1]) + kernels.Laplacian(0.3)
BOTH = features.Concatenate(
    SUM, 80, tuple(features.RandomFourier(part, n) for part, n in zip(SUM.parts, (50, 30), strict=True))
).draw(3, seed=2)
for array in (X, w, Z):
    array.flags.writeable = False


def pca(**options):
    return KernelPCA(**{"map": DRAWN, "n_components": 8, "random_state": 0, **options})


def assert_same_up_to_signs(left, right, atol=1e-8):
    signs = np.sign(np.sum(left * right, axis=0))
    np.testing.assert_allclose(left, right * signs, atol=atol)


@pytest.mark.parametrize("whiten", [False, True])
def test_it_is_pca_of_the_features(whiten):
    model, reference = pca(whiten=whiten).fit(X), PCA(8, whiten=whiten, svd_solver="full").fit(Z)
    assert_same_up_to_signs(model.transform(X), reference.transform(Z))
    assert_same_up_to_signs(model.components_.T, reference.components_.T)
    np.testing.assert_allclose(model.mean_, reference.mean_, atol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, reference.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=1e-9)
    fresh = rng.normal(size=(20, 3))
    assert_same_up_to_signs(model.transform(fresh), reference.transform(DRAWN(fresh)))


@pytest.mark.parametrize("degree", [2, 3])
def test_it_is_exact_kernel_pca_where_the_map_is_exact(degree):
    rows = X[:200]
    model = KernelPCA(kernels.Polynomial(degree), 6, n_features=64, scaling="none", random_state=0).fit(rows)
    np.testing.assert_allclose(model.drawn_.gram(rows), (1.0 + rows @ rows.T) ** degree, rtol=1e-9, atol=1e-9)
    exact = ExactKernelPCA(6, kernel="poly", degree=degree, gamma=1.0, coef0=1.0, eigen_solver="dense").fit(rows)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    scale = np.abs(exact.transform(rows)).max()
    assert_same_up_to_signs(model.transform(X) / scale, exact.transform(X) / scale)


def test_all_components_that_are_not_rounding_are_kept_without_a_number():
    few = X[:20]
    model = pca(n_components=None).fit(few)
    assert model.n_components_ == 19  # centred
    assert model.transform(few).shape == (20, 19)
    assert pca(n_components=0.9).fit(X).n_components_ == PCA(0.9).fit(Z).n_components_
    with pytest.raises(SolverError, match="n_components is a whole number"):
        pca(n_components=0).fit(X)
    with pytest.raises(SolverError, match="more than there are: 48"):
        pca(n_components=49).fit(X)
    with pytest.raises(DataError, match="name a kernel"):
        KernelPCA("auto").fit(X)
    with pytest.raises(SolverError, match="give one as n_features"):
        pca(map=None, n_features=[8, 16]).fit(X)
    with pytest.raises(SolverError, match='precision is "auto"'):
        pca(precision="half").fit(X)


def test_rows_that_come_later_count_as_if_they_had_been_there():
    whole, pieces = pca().fit(X, sample_weight=w), pca()
    for part in np.array_split(np.arange(N), [100, 101, 300]):
        pieces.partial_fit(X[part], sample_weight=w[part])
    assert pieces.rows_seen_ == N
    assert_same_up_to_signs(pieces.transform(X), whole.transform(X))
    np.testing.assert_allclose(pieces.explained_variance_, np.linalg.eigvalsh(np.cov(Z.T, aweights=w))[::-1][:8])


def test_arrays_and_sources_and_storage_give_the_same():
    model = pca().fit(X, sample_weight=w)
    source = MemorySource(X, X[:, 0], w)
    np.testing.assert_array_equal(pca().fit(source).components_, model.components_)
    np.testing.assert_array_equal(model.transform(source), model.transform(X))
    whole = sp.random_array((300, 6), density=0.3, random_state=1, format="csr")
    options = {"map": None, "kernel": "gaussian(gamma=1)", "n_features": 64}
    left, right = pca(**options).fit(whole), pca(**options).fit(whole.toarray())
    np.testing.assert_allclose(left.transform(whole), right.transform(whole.toarray()), atol=1e-9)


def test_float32_is_kept_and_close():
    model = pca().fit(X)
    found = model.transform(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, model.transform(X), atol=1e-5)
    low = pca(precision="float32", n_components=3).fit(X)
    np.testing.assert_allclose(low.explained_variance_, model.explained_variance_[:3], rtol=1e-5)


def test_threads_give_the_same_bits():
    large = np.random.default_rng(2).normal(size=(70_000, 3))
    one, two = (pca(n_jobs=jobs).fit(large) for jobs in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)


@pytest.mark.parametrize("memory", [2 << 30, 1000], ids=["one pass", "two passes"])
def test_several_kernels_in_two_stages(memory):
    ZZ = BOTH(X)
    model = pca(map=BOTH, each=[12, 9], memory=memory).fit(X)
    first = [PCA(n, svd_solver="full").fit_transform(b) for n, b in zip((12, 9), (ZZ[:, :50], ZZ[:, 50:]), strict=True)]
    reference = PCA(8, svd_solver="full").fit(np.hstack(first))
    assert_same_up_to_signs(model.transform(X), reference.transform(np.hstack(first)))
    np.testing.assert_allclose(model.explained_variance_, reference.explained_variance_, rtol=1e-9)
    share = reference.explained_variance_.sum() / ZZ.var(axis=0, ddof=1).sum()
    assert model.explained_variance_ratio_.sum() == pytest.approx(share)
    passes = "one pass" if memory > 1000 else "two passes"
    assert re.search(rf"8 of 21 components, .*first 12 \+ 9 of 50 \+ 30: {passes}, since", str(model.report_))
    pieces = clone(model)
    for part in np.array_split(np.arange(N), 3):
        pieces.partial_fit(X[part])
    if memory > 1000:  # in two passes the first stage stays that of the first call
        assert_same_up_to_signs(pieces.transform(X), model.transform(X))


def test_names_tables_pipelines_and_reports():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = pca(map=None, kernel="gaussian(gamma=1).on(a:b)", n_features=64, n_components=3)
    out = model.set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == [f"kernelpca{i}" for i in range(3)]
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    other = clone(model).set_output(transform="default").fit_transform(pl.DataFrame(X, schema=list("abc")))
    np.testing.assert_array_equal(other, out.to_numpy())
    labels = (np.abs(X[:, 1]) < 1.0).astype(int)
    pipe = make_pipeline(KernelPCA(n_components=40, random_state=0), RidgeClassifier(1e-3)).fit(X, labels)
    assert pipe.score(X, labels) > 0.9
    through = make_pipeline(pca(n_components=20), KernelClassifier("linear", loss="logistic", random_state=0))
    assert through.fit(X, labels).score(X, labels) > 0.9
    text = str(pipe[0].report_)
    for word in ("data", "kernel", "map", "40 of", "of the variance", "seconds"):
        assert word in text
    assert pipe[0].report_._repr_html_().startswith("<pre>")
