"""Parameters left to the data become numbers, once, from a sample."""

import numpy as np
import pytest
import scipy.sparse as sp

from bochner import kernels as k
from bochner.errors import DataError, KernelError

RULES = [
    *(kind(rule) for kind in (k.Gaussian, k.Laplacian, k.Cauchy) for rule in ("median", "mean", "scale")),
    *(k.Matern(1.5, rule) for rule in ("median", "mean", "scale")),
    *(k.RationalQuadratic(2.0, rule) for rule in ("median", "mean", "scale")),
    *(k.ExpChi2(rule) for rule in ("median", "mean")),
    *(kind(rule) for kind in (k.ExponentialSemigroup, k.ReciprocalSemigroup) for rule in ("median", "mean")),
    k.SkewedChi2("median"),
    k.SkewedIntersection("median"),
    k.VovkInfinite("norm"),
    k.DotProduct([1.0, 2.0], scale="norm"),
    k.DotProduct(function=np.cosh, scale="norm"),
]


def sample(n=40, d=3, seed=0):
    return np.random.default_rng(seed).random((n, d))


def pairs(X):
    """Every pair of different rows."""
    i, j = np.triu_indices(len(X), 1)
    return X[i], X[j]


@pytest.mark.parametrize("kernel", RULES, ids=str)
def test_strings_become_numbers(kernel):
    X = sample()
    before = kernel.to_json()
    resolved = kernel.resolve(X)
    assert kernel.to_json() == before
    assert len(kernel.unresolved()) == 1
    assert resolved.unresolved() == []
    assert resolved.resolve(0.5 * X) == resolved
    assert np.isfinite(resolved.gram(X)).all()
    assert k.parse(str(resolved)) == resolved
    np.testing.assert_allclose(kernel.resolve(sp.csr_array(X)).gram(X), resolved.gram(X), rtol=1e-6)


@pytest.mark.parametrize("kernel", RULES, ids=str)
def test_inside_other_kernels(kernel):
    X = sample()
    for wrap in (lambda r: 2.0 * r + k.Linear(), lambda r: r * r, lambda r: r.normalized()):
        assert wrap(kernel).resolve(X) == wrap(kernel.resolve(X))
    assert kernel.on([0, 2]).resolve(X) == kernel.resolve(X[:, [0, 2]]).on([0, 2])


def test_the_rules_are_what_they_say():
    X = sample()
    x, y = pairs(X)
    squared, absolute = ((x - y) ** 2).sum(axis=1), np.abs(x - y).sum(axis=1)
    total = X.shape[1] * X.var()
    chi2 = ((x - y) ** 2 / (x + y)).sum(axis=1)
    expected = {
        k.Gaussian("median"): 1 / (2 * np.median(squared)),
        k.Gaussian("mean"): 1 / squared.mean(),
        k.Gaussian("scale"): 1 / total,
        k.Cauchy("median"): 1 / np.median(squared),
        k.Cauchy("scale"): 1 / total,
        k.Laplacian("median"): 1 / np.median(absolute),
        k.Laplacian("mean"): 1 / absolute.mean(),
        k.Laplacian("scale"): 1 / np.sqrt(total),
        k.ExpChi2("median"): 1 / (2 * np.median(chi2)),
        k.ExpChi2("mean"): 1 / chi2.mean(),
    }
    for kernel, wanted in expected.items():
        assert kernel.resolve(X).gamma == pytest.approx(wanted), kernel
    for kind in (lambda rule: k.Matern(1.5, rule), lambda rule: k.RationalQuadratic(2.0, rule)):
        assert kind("median").resolve(X).lengthscale == pytest.approx(np.sqrt(np.median(squared)))
        assert kind("mean").resolve(X).lengthscale == pytest.approx(np.sqrt(squared.mean()))
        assert kind("scale").resolve(X).lengthscale == pytest.approx(np.sqrt(total))


@pytest.mark.parametrize("kind", [k.ExponentialSemigroup, k.ReciprocalSemigroup])
def test_semigroup_rules_put_the_typical_logarithm_at_one(kind):
    X = sample()
    off = np.triu_indices(len(X), 1)
    assert np.median(-np.log(kind("median").resolve(X).gram(X)[off])) == pytest.approx(1.0, rel=1e-5)
    assert np.mean(-np.log(kind("mean").resolve(X).gram(X)[off])) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("kind", [k.SkewedChi2, k.SkewedIntersection])
@pytest.mark.parametrize("d", [3, 64])
def test_the_skew_keeps_the_median_kernel_value(kind, d):
    X = sample(d=d) ** 8
    G = kind("median").resolve(X).gram(X)
    assert np.median(G[np.triu_indices(len(X), 1)]) == pytest.approx(np.exp(-0.5), rel=1e-5)


def test_the_scale_of_the_norm_reaches_every_row():
    X = 10.0 * sample()
    kernel = k.VovkInfinite("norm").resolve(X)
    assert kernel.scale == pytest.approx(2.5 * (X**2).sum(axis=1).max())
    bounded = k.DotProduct(function=lambda t: 1 / (2 - t), radius=2.0, scale="norm").resolve(X)
    assert bounded.scale == pytest.approx(1.25 * (X**2).sum(axis=1).max())
    assert np.isfinite(bounded.gram(X)).all()
    assert k.VovkInfinite("norm").resolve(np.zeros((2, 2))).scale == 1.0


def test_over_and_compose_resolve_in_their_own_space():
    X = sample()
    chi2 = ((pairs(X)[0] - pairs(X)[1]) ** 2 / (pairs(X)[0] + pairs(X)[1])).sum(axis=1)
    resolved = k.Gaussian("median").over(k.Chi2()).resolve(X)
    assert resolved.outer.gamma == pytest.approx(1 / (2 * np.median(chi2)))
    assert resolved == k.Gaussian(resolved.outer.gamma).over(k.Chi2())
    with pytest.raises(KernelError, match="no rule 'scale'"):
        k.Gaussian("scale").over(k.Chi2()).resolve(X)
    composed = k.compose(k.VovkInfinite("norm"), k.Polynomial(2)).resolve(X)
    assert composed.outer.scale == pytest.approx(2.5 * k.Polynomial(2).diag(X).max())
    assert k.compose(k.VovkInfinite(4.0), k.ExponentialSemigroup()).resolve(X).unresolved() == []


def test_large_samples_are_thinned_evenly():
    X = sample(n=5_000)
    gamma = k.Gaussian("median").resolve(X).gamma
    assert gamma == k.Gaussian("median").resolve(X[np.linspace(0, 4_999, 1_000).astype(int)]).gamma
    X = sample(n=5_000, d=20)
    assert k.SkewedChi2().resolve(X).skew == pytest.approx(k.SkewedChi2().resolve(X[:150]).skew, rel=0.2)


def test_a_skew_that_cannot_bring_values_down_is_small_against_the_data():
    X = 100.0 * (1.0 + sample(d=2))
    for kind in (k.SkewedChi2, k.SkewedIntersection):
        assert kind("median").resolve(X).skew == pytest.approx(1e-3 * X.mean())


def test_offsets_do_not_spoil_the_rules():
    X = sample()
    for rule in ("scale", "median", "mean"):
        assert k.Gaussian(rule).resolve(X + 1e8).gamma == pytest.approx(k.Gaussian(rule).resolve(X).gamma, rel=1e-6)


@pytest.mark.parametrize("kernel", [r for r in RULES if not isinstance(r, (k.VovkInfinite, k.DotProduct))], ids=str)
def test_samples_that_say_nothing(kernel):
    with pytest.raises(DataError):
        kernel.resolve(np.zeros((3, 2)))
    with pytest.raises(DataError):
        kernel.resolve(np.zeros((0, 2)))


def test_a_median_of_zero_falls_back_to_the_mean():
    X = np.zeros((10, 1))
    X[0] = 1.0
    assert k.Gaussian("median").resolve(X).gamma == pytest.approx(1 / (2 * 0.2))
