"""Grams against scikit-learn, and at the ends of the number line."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from bochner import kernels as k
from bochner.errors import DomainError, KernelError

X = np.random.default_rng(0).normal(size=(9, 5))
Y = np.random.default_rng(1).normal(size=(7, 5))
H, J = np.abs(X), np.abs(Y)

SCIKIT = [
    (k.Linear(), pairwise.linear_kernel(X, Y)),
    (k.Gaussian(0.3), pairwise.rbf_kernel(X, Y, gamma=0.3)),
    (k.Laplacian(0.3), pairwise.laplacian_kernel(X, Y, gamma=0.3)),
    (k.Polynomial(3, offset=0.5), pairwise.polynomial_kernel(X, Y, degree=3, gamma=1.0, coef0=0.5)),
    (k.Homogeneous(2), pairwise.polynomial_kernel(X, Y, degree=2, gamma=1.0, coef0=0.0)),
    (k.Linear().normalized(), pairwise.cosine_similarity(X, Y)),
    *((k.Matern(nu, 1.7), gp.Matern(1.7, nu=nu)(X, Y)) for nu in (0.5, 1.5, 2.5, 0.8, 3.2, 20.0)),
    (k.Gaussian(0.5 / 1.7**2), gp.RBF(1.7)(X, Y)),
    (k.Gaussian([0.5, 2.0, 8.0, 1.0, 1.0]), gp.RBF([1.0, 0.5, 0.25, 0.5**0.5, 0.5**0.5])(X, Y)),
    (k.RationalQuadratic(0.7, 1.7), gp.RationalQuadratic(1.7, alpha=0.7)(X, Y)),
    (k.Cauchy(0.3), gp.RationalQuadratic(np.sqrt(0.5 / 0.3), alpha=1.0)(X, Y)),
]
SCIKIT_HISTOGRAMS = [
    (k.ExpChi2(0.3), pairwise.chi2_kernel(H, J, gamma=0.3)),
    # −Σ(x − y)²/(x + y) = 2 Σ 2xy/(x + y) − Σ(x + y)
    (k.Chi2(), 0.5 * (pairwise.additive_chi2_kernel(H, J) + H.sum(axis=1)[:, None] + J.sum(axis=1)[None, :])),
]


@pytest.mark.parametrize(("kernel", "wanted"), SCIKIT, ids=lambda item: str(item) if isinstance(item, k.Kernel) else "")
def test_scikit_learn(kernel, wanted):
    np.testing.assert_allclose(kernel.gram(X, Y), wanted, rtol=1e-10)


@pytest.mark.parametrize(("kernel", "wanted"), SCIKIT_HISTOGRAMS, ids=["exp_chi2", "chi2"])
def test_scikit_learn_histograms(kernel, wanted):
    np.testing.assert_allclose(kernel.gram(H, J), wanted, rtol=1e-10)


def test_chi2_of_normalised_histograms():
    P, Q = H / H.sum(axis=1, keepdims=True), J / J.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(k.Chi2().gram(P, Q), 1.0 + 0.5 * pairwise.additive_chi2_kernel(P, Q))


def test_the_limits_of_matern_and_rational_quadratic():
    np.testing.assert_allclose(k.Matern(100.0, 1.0).gram(X, Y), k.Gaussian(0.5).gram(X, Y), atol=0.01)
    np.testing.assert_allclose(k.RationalQuadratic(1e6, 1.0).gram(X, Y), k.Gaussian(0.5).gram(X, Y), atol=1e-5)
    np.testing.assert_allclose(k.Matern(0.5, 2.0).gram(X[:, :1]), k.Laplacian(0.5).gram(X[:, :1]))


STATIONARY = [
    k.Gaussian(1.0),
    k.Laplacian(1.0),
    k.Cauchy(1.0),
    k.RationalQuadratic(2.0, 1.0),
    *(k.Matern(nu, 1.0) for nu in (0.5, 0.7, 1.5, 2.5, 3.2, 60.0, 100.0)),
]


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
def test_a_common_offset_changes_nothing(kernel):
    Z = np.round(X * 64) / 64  # exact after adding the offset
    np.testing.assert_allclose(kernel.gram(Z + 2.0**30), kernel.gram(Z), rtol=1e-12)
    np.testing.assert_allclose(kernel.gram(Z + 2.0**30, Z[:3] + 2.0**30), kernel.gram(Z, Z[:3]), rtol=1e-12)


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
def test_distant_clusters_keep_their_digits(kernel):
    Z = np.round(X * 64) / 64
    both = np.concatenate([Z - 2.0**25, Z + 2.0**25])
    G = kernel.gram(both)
    np.testing.assert_allclose(G[:9, :9], kernel.gram(Z), rtol=1e-12)
    np.testing.assert_allclose(G[9:, 9:], kernel.gram(Z), rtol=1e-12)


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
def test_equal_rows_of_two_matrices_have_kernel_one(kernel):
    assert (np.diagonal(kernel.gram(X, X.copy())) == 1.0).all()
    assert (np.diagonal(kernel.gram(X)) == 1.0).all()


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
def test_from_the_same_to_infinitely_far(kernel):
    r = np.array([[0.0, 1e-300, 1e-160, 1e-20, 1e-8, 1e-3, 1.0, 30.0, 1e5, 1e20, 1e150, 1e200]])
    values = kernel.gram(r.T, [[0.0]])[:, 0]
    assert (np.diff(values) <= 1e-13).all()
    assert values[0] == values[1] == 1.0
    assert 0.0 <= values[-1] < 1e-100
    near = 1.0 - kernel.gram([[1e-3]], [[0.0]])[0, 0]
    assert 0.0 < near < 0.02


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 7.3, 60.0, 100.0])
def test_matern_is_smooth_down_to_zero(nu):
    r = np.geomspace(1e-4, 1.0, 400)
    values = k.Matern(nu, 1.0).gram(r[:, None], [[0.0]])[:, 0]
    assert (np.diff(values) < 1e-13).all()
    if nu > 2:  # 1 − K = (ν / (ν − 1)) r²/2 + …
        np.testing.assert_allclose((1 - values[:200]) / r[:200] ** 2, 0.5 * nu / (nu - 1), rtol=1e-3, atol=1e-5)


def test_huge_parameters():
    for kernel in (k.Gaussian(1e300), k.Laplacian(1e300), k.Matern(1.5, 1e-200), k.Cauchy(1e300)):
        np.testing.assert_allclose(kernel.gram(X), np.eye(len(X)), atol=1e-100)
    for kernel in (k.Gaussian(1e-300), k.Laplacian(1e-300), k.Matern(3.2, 1e200)):
        np.testing.assert_allclose(kernel.gram(X), np.ones((len(X), len(X))))
    np.testing.assert_allclose(k.ExpChi2(1e300).gram(H), np.eye(len(H)))
    np.testing.assert_allclose(k.SkewedChi2(1e-300).gram([[0.0], [1.0]]), np.eye(2), atol=1e-100)
    np.testing.assert_allclose(k.ExponentialSemigroup(1e9).gram([[0.0], [1.0]]), [[1.0, 0.0], [0.0, 0.0]])


ADDITIVE = [
    kind(degree=degree) for kind in (k.Hellinger, k.Chi2, k.Intersection, k.JensenShannon) for degree in (1.0, 0.5)
]


@pytest.mark.parametrize("kernel", ADDITIVE, ids=str)
def test_denormal_and_huge_counts(kernel):
    x = np.array([[5e-324], [1e-310], [1e-200], [1.0], [1e200], [1e300]])
    G = kernel.gram(x)
    np.testing.assert_allclose(np.diagonal(G), x[:, 0] ** kernel.degree, rtol=1e-12)
    assert np.isfinite(G).all()
    assert (G[1:, 1:] > 0).all()
    assert (kernel.gram(x, [[0.0]]) == 0).all()
    bound = np.sqrt(np.diagonal(G)[:, None]) * np.sqrt(np.diagonal(G)[None, :])
    assert (bound * (1 + 1e-6) >= G).all()  # denormal numbers have few digits


def test_wide_and_long_rows_are_tiled():
    rng = np.random.default_rng(0)
    A, B = rng.random((3, 9_000)), rng.random((600, 9_000))
    wanted = np.array([[np.minimum(a, b).sum() for b in B] for a in A])
    np.testing.assert_allclose(k.Intersection().gram(A, B), wanted)
    np.testing.assert_allclose(k.Intersection().gram(B, A), wanted.T)
    C = rng.normal(size=(2_000, 3))
    squared = ((C[:, None] - C[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(k.Gaussian(1.0).gram(C), np.exp(-squared), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(
        k.Laplacian(1.0).gram(C, C[:300]), np.exp(-np.abs(C[:, None] - C[None, :300]).sum(axis=-1))
    )


def test_vovk_at_one_is_its_degree():
    assert k.VovkReal(5).gram([[1.0]])[0, 0] == 5.0


def test_normalised_rows_of_zeros_give_zero():
    kernel = k.Linear().normalized()
    G = kernel.gram([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_array_equal(G, [[0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(kernel.diag([[0.0, 0.0], [3.0, 4.0]]), [0.0, 1.0])


def test_combinations_that_are_refused():
    for combine in (
        lambda: k.Linear() + "x",
        lambda: -1.0 * k.Linear(),
        lambda: k.Linear() * None,
        lambda: k.Linear() + 0.0,
    ):
        with pytest.raises(KernelError):
            combine()
    with pytest.raises(KernelError):
        np.array([1.0, 2.0]) * k.Linear()


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (k.Polynomial(5000), np.float64),
        (k.Homogeneous(10_000), np.float64),
        (k.Exponential(0.01), np.float64),
        (k.Exponential(0.1), np.float32),
        (k.Linear().on([0]) + k.Exponential(0.01), np.float64),
    ],
    ids=str,
)
def test_values_that_overflow_are_refused_by_row(kernel, dtype):
    X = np.array([[0.1], [2.0]], dtype=dtype)
    for value in (lambda: kernel.gram(X), lambda: kernel.diag(X)):
        with pytest.raises(DomainError, match=f"overflows {np.dtype(dtype)} at row 1") as caught:
            value()
        assert caught.value.row == 1
    assert np.isfinite(kernel.gram(X[:1])).all()
