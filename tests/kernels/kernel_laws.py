"""What must hold for every kernel: plain functions that raise AssertionError.

The register's examples go through them in test_laws.py and test_facts.py, and broken kernels go through
the same functions in test_mutations.py, which shows that each law is able to fail.
"""

import json
import pickle

import kernel_reference as reference
import numpy as np
import scipy.sparse as sp
from scipy import stats
from scipy.integrate import quad

from bochner import kernels
from bochner.errors import DomainError
from bochner.seeds import Stream


def rows(kernel, d, n=12, seed=0):
    """Rows in the kernel's domain, with zeros, a copy and a near copy, and norms below 1.3; read-only."""
    rng = np.random.default_rng([seed, d])
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) / 1.3)
    X[n // 2] = X[0]
    X[n // 3] = X[1] * (1.0 + 1e-7)
    try:
        kernel.diag(X)
    except DomainError:
        X = np.abs(X)
    X.flags.writeable = False
    return X


def close(actual, wanted, tolerance=1e-12):
    """Equal up to the size of the largest value."""
    actual, wanted = np.asarray(actual, dtype=float), np.asarray(wanted, dtype=float)
    assert actual.shape == wanted.shape
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    error = float(np.abs(actual - wanted).max(initial=0.0))
    assert error <= tolerance * scale, f"off by {error:.3g} at scale {scale:.3g}"


# ---- the Gram
def symmetric(kernel, X):
    G = kernel.gram(X)
    assert G.dtype == np.float64
    assert G.shape == (len(X), len(X))
    close(G, G.T, 1e-14)


def positive(kernel, X):
    G = kernel.gram(X)
    assert np.linalg.eigvalsh(G).min() >= -1e-10 * np.trace(G)


def diagonal(kernel, X):
    close(kernel.diag(X), np.diagonal(kernel.gram(X)))


def blocks(kernel, X):
    G, cut = kernel.gram(X), len(X) // 3
    close(kernel.gram(X[:cut], X[cut:]), G[:cut, cut:])
    close(kernel.gram(X[cut:], X[:cut]), G[cut:, :cut])
    close(kernel.gram(X[:cut], X), G[:cut])
    close(kernel.gram(X[:1]), G[:1, :1])


def single_precision(kernel, X):
    single = X.astype(np.float32)
    G = kernel.gram(single)
    assert G.dtype == kernel.diag(single).dtype == np.float32
    wanted = kernel.gram(single.astype(np.float64))
    close(G, wanted, 1e-7)
    assert kernel.gram(single, X).dtype == np.float64


def whole_numbers(kernel, d):
    """Counts are computed in floating point; norms of one keep them where every kernel converges."""
    X = np.zeros((6, d), dtype=np.int64)
    X[np.arange(5), np.arange(5) % d] = 1
    for integral in (X, X.astype(np.uint8), X.astype(bool)):
        G = kernel.gram(integral)
        assert G.dtype == np.float64
        assert np.array_equal(G, kernel.gram(X.astype(float)))


def sparse(kernel, X):
    G, cut = kernel.gram(X), len(X) // 3
    for form in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array):
        close(kernel.gram(form(X)), G)
    S = sp.csr_array(X)
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    close(kernel.diag(S), kernel.diag(X))
    close(kernel.gram(S[:cut], S), G[:cut])
    close(kernel.gram(S[:cut], X), G[:cut])
    close(kernel.gram(X, S[:cut]), G[:, :cut])


def keeps_input(kernel, X):
    writeable = np.array(X)
    kernel.gram(writeable)
    kernel.diag(writeable)
    assert np.array_equal(writeable, X)
    assert not X.flags.writeable
    kernel.gram(X, X[::-1])


def edges(kernel, d):
    """No rows, no columns, one row."""
    empty, few = np.zeros((0, d)), np.zeros((2, d))
    for none in (empty, sp.csr_array(empty)):
        assert kernel.gram(none).shape == (0, 0)
        assert kernel.gram(none, few).shape == (0, 2)
        assert kernel.gram(few, none).shape == (2, 0)
        assert kernel.diag(none).shape == (0,)
    close(kernel.gram(few[:1])[0], kernel.diag(few[:1]))


# ---- the object
def same(first, second):
    assert first == second
    assert hash(first) == hash(second)


def survives_json(kernel):
    same(kernels.from_json(json.loads(json.dumps(kernel.to_json(), allow_nan=False))), kernel)


def survives_text(kernel):
    same(kernels.parse(str(kernel)), kernel)
    if "function=" not in repr(kernel):
        same(kernels.parse(repr(kernel)), kernel)


def survives_pickle(kernel):
    same(pickle.loads(pickle.dumps(kernel)), kernel)


# ---- the values
def closed_form(kernel, X, tolerance=1e-9):
    """The Gram against the slow definition."""
    X = X[:7]
    close(kernel.gram(X), [[reference.value(kernel, x.tolist(), y.tolist()) for y in X] for x in X], tolerance)
    close(kernel.diag(X), [reference.value(kernel, x.tolist(), x.tolist()) for x in X], tolerance)


# ---- the facts
def spectral(kernel, X, draws=20_000, seed=0):
    """mass · mean cos(wᵀ(e(x) − e(y))) is the kernel, jointly over the coordinates, within four standard errors."""
    # Without the copies: one of 20,000 waves of heavy tails may carry their whole distance.
    spectrum, X = kernel.spectrum(), X[[0, 1, 2, 3, 5]]
    d = X.shape[1]
    W = spectrum.quantile(Stream(seed).uniform(draws, spectrum.dims(d)), d)
    assert W.shape == (spectrum.width(d), draws)
    E = np.asarray(spectrum.embed(X))
    assert E.shape == (len(X), spectrum.width(d))
    waves = spectrum.mass * np.cos((E[:, None, :] - E[None, :, :]) @ W)
    error = np.abs(waves.mean(axis=-1) - kernel.gram(X))
    worst = float((error / (waves.std(axis=-1) / np.sqrt(draws) + 1e-9)).max())
    assert worst < 4.0, f"{worst:.1f} standard errors from the kernel in d = {d}"


def radial(kernel, d, draws=4_000, seed=0):
    """‖w/scale‖ has the law that orthogonal frequencies draw their norms from."""
    spectrum = kernel.spectrum()
    W = spectrum.quantile(Stream(seed, (1,)).uniform(draws, spectrum.dims(d)), d) / spectrum.columns(d)
    norms = spectrum.radii(Stream(seed, (2,)).uniform(draws, spectrum.radius_dims), spectrum.width(d))
    assert stats.ks_2samp(np.linalg.norm(W, axis=0), norms).pvalue > 1e-3


def series(kernel, count=12):
    """The coefficients are the known ones, and they sum to the function, which is the kernel's."""
    found = kernel.series()
    wanted = np.array([reference.coefficient(kernel, n) for n in range(count)])
    assert found.radius == reference.reach(kernel)
    np.testing.assert_allclose(found.coefficients(count), wanted, rtol=1e-12, atol=0)
    t = np.linspace(-0.9, 0.9, 7)
    for function in (found.function, kernel.function):
        close(function(t), [reference.of_product(kernel, float(u)) for u in t])
    a = found.significant(0.9)
    assert (a >= 0).all()
    close(sum(c * t**n for n, c in enumerate(a)), found.function(t), 1e-11)


def laplace(kernel, draws=200_000, seed=0):
    """E exp(−ws) is φ(s); tilted laws carry the weight e^{−θw}/φ(θ); the second moment is φ″."""
    measure, stream = kernel.laplace(), Stream(seed)
    sums = np.array([0.05, 0.5, 2.0, 7.0])
    wanted = [reference.value(kernel, [s / 2], [s / 2]) for s in sums]
    close(np.exp(measure.log_phi(sums[:, None])), wanted)
    close(np.exp(measure.log_phi(sums)), np.prod(wanted))
    w = measure.quantile(stream.uniform(draws))
    assert (w >= 0).all()
    _mean_is(np.exp(-np.multiply.outer(sums, w)), wanted)
    for theta in (0.0, 1e-300, 1e-3, 0.4, 3.0):
        tilted = measure.tilted(np.full(draws, theta), *(stream.uniform(draws) for _ in range(measure.tilt_dims)))
        assert (tilted >= 0).all()
        phi = float(np.exp(measure.log_phi(np.array([theta]))))
        beyond = sums[sums > theta]
        _mean_is(phi * np.exp(-np.multiply.outer(beyond - theta, tilted)), np.array(wanted)[sums > theta])
    for least in (0.2, 1.0, 4.0):
        h = 1e-3 * least
        phi = np.exp(measure.log_phi(2 * np.array([[least - h], [least], [least + h]])))
        np.testing.assert_allclose(measure.gradient2(least), (phi[0] - 2 * phi[1] + phi[2]) / (2 * h) ** 2, rtol=1e-4)


def _mean_is(samples, wanted):
    error = np.abs(samples.mean(axis=-1) - wanted)
    worst = float((error / (samples.std(axis=-1) / np.sqrt(samples.shape[-1]) + 1e-12)).max())
    assert worst < 4.0, f"{worst:.1f} standard errors"


def profile(kernel):
    """pair, signature, density and degree tell the same kernel."""
    p, degree = kernel.profile(), kernel.degree
    x, y = np.meshgrid([0.0, 1e-100, 1e-3, 0.2, 1.0, 30.0], [0.0, 1e-100, 1e-3, 0.3, 1.0, 7.0])
    value = p.pair(x, y)
    close(value, np.vectorize(lambda a, b: reference.value(kernel, [a], [b]))(x, y))
    assert (value[(x == 0) | (y == 0)] == 0).all()
    assert (value[(x > 0) & (y > 0)] > 0).all()
    np.testing.assert_allclose(p.pair(3.0 * x, 3.0 * y), 3.0**degree * value, rtol=1e-12)
    assert p.degree == degree
    inside = (x > 0) & (y > 0)
    shown = (x * y)[inside] ** (degree / 2) * p.signature(np.log(y[inside]) - np.log(x[inside]))
    close(shown, value[inside])
    t = np.array([-3.0, -0.4, 0.0, 0.7, 6.0])
    close(p.signature(t), [reference.signature(kernel, float(u)) for u in t])
    close(kernel.diag(np.array([[4.0]])), [p.mass * 4.0**degree])
    if p.name != "root":  # whose spectrum is a point
        for u in t:
            close(_cosine_transform(p.density, abs(float(u))), p.signature(np.array(u)), 1e-7)


def _cosine_transform(density, t):
    """∫ density(w) cos(wt) dw over the line."""
    if t == 0.0:
        return 2.0 * quad(density, 0.0, np.inf)[0]
    return 2.0 * quad(density, 0.0, np.inf, weight="cos", wvar=t, limlst=200)[0]
