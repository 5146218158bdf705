"""Traps of additive maps: the factor √L, the Chebyshev recurrence, zeros, homogeneity, table look-up."""

import feature_laws as laws
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad

from bochner import features
from bochner.arrays import Rows
from bochner.errors import MapError
from bochner.features.mercer import log_grid
from bochner.features.sampled import sample_weights
from bochner.kernels import Chi2, Exponential, Gaussian, Hellinger, Intersection, JensenShannon
from bochner.seeds import Seed

ADDITIVE = [Chi2(), Intersection(), JensenShannon(), Chi2(degree=0.5), Chi2(degree=2.0), Intersection(degree=1.5)]
SUMS = [
    0.5 * Chi2(),
    Chi2() + Intersection(),
    2.0 * Intersection() + Chi2(degree=0.5),
    Hellinger() + 0.1 * JensenShannon(),
]
each_kernel = pytest.mark.parametrize("kernel", ADDITIVE, ids=str)
HISTOGRAMS = laws.rows(Chi2(), 6, n=50)
ENTRIES = np.concatenate([[0.0], np.geomspace(1e-12, 1e9, 400)])[:, None]


# ---- sampled signatures
@each_kernel
def test_columns_are_those_of_the_paper(kernel):
    """√(Lκ(0)x), √(2Lκ(jL)x) cos(jL log x), √(2Lκ(jL)x) sin(jL log x), to the power degree/2 of x."""
    period, x = 9.0, HISTOGRAMS
    L, profile = 2.0 * np.pi / period, kernel.profile()
    log, power = np.log(np.where(x > 0, x, 1.0)), x ** (0.5 * kernel.degree)
    wanted = [power * np.sqrt(L * profile.density(np.zeros(1)))]
    for j in (1, 2):
        root = np.sqrt(2.0 * L * profile.density(np.array([j * L])))
        wanted += [power * root * np.cos(j * L * log), power * root * np.sin(j * L * log)]
    drawn = features.SampledSignature(kernel, 30, period=period).draw(6)
    laws.close(drawn(x), np.stack(wanted, axis=2).reshape(len(x), -1), 1e-13)


@each_kernel
def test_weights_of_a_long_period_sum_to_the_diagonal(kernel):
    """h₀ + 2Σhⱼ is the signature at zero, which is one: without L the sum grows with the period."""
    profile = kernel.profile()
    for window in ("uniform", "rect"):
        h = sample_weights(profile, 600, 40.0, window)
        assert h[0] + 2.0 * h[1:].sum() == pytest.approx(1.0, abs=0.01)


@each_kernel
@pytest.mark.parametrize(("r", "period"), [(0, 3.0), (2, 9.0), (40, 30.0), (1, 300.0)])
def test_weights_of_the_rectangle_are_fourier_coefficients(kernel, r, period):
    signature, L = kernel.profile().signature, 2.0 * np.pi / period
    wanted = [
        quad(lambda t, j=j: signature(np.array(t)) * np.cos(j * L * t), 0, period / 2, limit=500)[0]
        for j in range(r + 1)
    ]
    assert np.allclose(
        sample_weights(kernel.profile(), r, period, "rect"), np.maximum(wanted, 0.0) * 2 / period, atol=1e-9
    )


def test_published_periods():
    for kernel, window, r, period in [
        (Chi2(), "uniform", 1, 5.86 + 3.65),
        (Chi2(), "rect", 2, 8.80 * np.sqrt(6.44) - 12.6),
        (JensenShannon(), "uniform", 4, 6.64 * 2 + 7.24),
        (JensenShannon(), "rect", 3, 9.63 * 2 - 2.93),
        (Intersection(), "uniform", 2, 2.38 * np.log(2.8) + 5.6),
        (Intersection(), "rect", 1, 2.0 * np.log(1.99) + 3.52),
    ]:
        recipe = features.SampledSignature(kernel, (2 * r + 1) * 4, window=window)
        assert recipe.draw(4).map.period == pytest.approx(period)


@pytest.mark.parametrize("columns", [1, 3, 5])
def test_a_tuned_period_beats_every_other(columns):
    kernel, X = Chi2(), HISTOGRAMS
    recipe = features.SampledSignature(kernel, 6 * columns, period="tuned")
    K = np.array([kernel.gram(X[:, [j]]) for j in range(6)])

    def error(drawn):  # of single entries, as it is tuned
        Z = drawn(X).reshape(len(X), 6, columns)
        return np.square(np.einsum("ajm,bjm->jab", Z, Z) - K).mean()

    best = error(recipe.draw(6, sample=X))
    for period in np.geomspace(1.5, 50.0, 40):
        assert best < 1.02 * error(features.SampledSignature(kernel, 6 * columns, period=period).draw(6))


def test_hellinger_is_exact():
    for kernel in (Hellinger(), 3.0 * Hellinger(degree=0.5)):
        laws.close(features.SampledSignature(kernel, 6).draw(6).gram(HISTOGRAMS), kernel.gram(HISTOGRAMS), 1e-13)
        mercer = features.Mercer1D(kernel, 12).draw(6, sample=HISTOGRAMS)
        assert mercer.width == 6  # of rank one
        laws.close(mercer.gram(HISTOGRAMS), kernel.gram(HISTOGRAMS), 1e-6)


# ---- series of χ²
def chebyshev(x, m):
    """The paper's integral: cₖ(x) = ∫ over the Fourier–Chebyshev basis, by the corrected recurrence in exact steps."""
    c = [2 * x / (x + 1)]
    c.append(-np.sqrt(2.0) * np.log(x) / np.pi * c[0])
    for k in range(2, m):
        c.append(((-1) ** k * 2 * np.log(x) / np.pi * c[k - 1] + (k - 2) * c[k - 2]) / k)
    return np.stack(c, axis=-1)


def test_chebyshev_columns_and_their_deficit():
    x = np.geomspace(1e-6, 1e3, 50)
    drawn = features.ChebyshevChi2(Chi2(), 4000, scale=1.0).draw(1)
    Z = drawn(x[:, None])
    laws.close(Z, chebyshev(x, 4000), 1e-9)
    # c₁ has no 1/x: the full series sums to x, up to x (2/π²)|ln x| tanh(|ln x|/2)/m.
    deficit = x - np.square(Z).sum(axis=1)
    log = np.abs(np.log(x))
    assert (np.abs(deficit - x * 2 / np.pi**2 * log * np.tanh(log / 2) / 4000) < 0.1 * x * (log + 0.1) / 4000).all()


def test_the_chebyshev_recurrence_is_stable():
    x = np.concatenate([np.geomspace(1e-30, 1e30, 61), [1.0, np.nextafter(1.0, 2.0)]])
    drawn = features.ChebyshevChi2(Chi2(), 3000, scale=1.0).draw(1)
    Z = drawn(x[:, None])
    assert np.isfinite(Z).all()
    assert (np.square(Z).sum(axis=1) <= x * (1 + 1e-9)).all()


def test_elementary_columns_and_their_error():
    x = np.geomspace(0.05, 20.0, 30)
    m = 12
    Z = features.ElementaryChi2(Chi2(), m, scale=1.0).draw(1)(x[:, None])
    rho = (x - 1) / (x + 1)
    laws.close(Z, (2 * x / (x + 1))[:, None] * rho[:, None] ** np.arange(m), 1e-12)
    K = Chi2().gram(x[:, None])
    laws.close(Z @ Z.T, K * (1.0 - np.outer(rho, rho) ** m), 1e-12)


@pytest.mark.parametrize("cls", [features.ChebyshevChi2, features.ElementaryChi2])
def test_rescaling_by_exact_homogeneity(cls):
    """τ = exp(−Σ x ln x / Σ x); c(τx)/√τ has the same limit, and scaling the data changes nothing."""
    x = HISTOGRAMS[HISTOGRAMS > 0]
    fitted = cls(Chi2(), 30).draw(6, sample=HISTOGRAMS)
    assert fitted.map.scale == pytest.approx(np.exp(-(x * np.log(x)).sum() / x.sum()))
    tau = fitted.map.scale
    plain = cls(Chi2(), 30, scale=1.0).draw(6)
    laws.close(fitted(HISTOGRAMS), plain(tau * HISTOGRAMS) / np.sqrt(tau), 1e-12)
    other = cls(Chi2(), 30).draw(6, sample=1e-4 * HISTOGRAMS)
    laws.close(other.gram(1e-4 * HISTOGRAMS), 1e-4 * fitted.gram(HISTOGRAMS), 1e-10)
    laws.close(cls(3.0 * Chi2(), 30).draw(6).gram(HISTOGRAMS), 3.0 * plain.gram(HISTOGRAMS), 1e-12)


@pytest.mark.parametrize("kernel", [Intersection(), Chi2(degree=0.5), JensenShannon(), Gaussian(0.5)], ids=str)
@pytest.mark.parametrize("cls", [features.ChebyshevChi2, features.ElementaryChi2])
def test_the_series_are_for_chi2(cls, kernel):
    with pytest.raises(MapError, match="no χ² profile"):
        cls(kernel, 64).draw(4)


# ---- one-dimensional Mercer maps
@pytest.mark.parametrize("kernel", ADDITIVE + SUMS, ids=str)
def test_the_look_up_is_the_formula(kernel):
    """k(x, g) S U Λ^{−½} from the grid and the weights, without the table."""
    drawn = features.Mercer1D(kernel, 24).draw(6, sample=HISTOGRAMS)
    grid, root = drawn.map.grid, np.sqrt(drawn.map.weights)
    pair = kernel.profile().pair
    values, vectors = np.linalg.eigh(root[:, None] * pair(grid[:, None], grid[None, :]) * root)
    keep = slice(None, -1 - drawn.m, -1)
    one = features.Mercer1D(kernel, drawn.m, grid=grid, weights=drawn.map.weights).draw(1)
    x = ENTRIES if one.smooth else np.concatenate([ENTRIES, grid[:, None]])
    wanted = (pair(x, grid[None, :]) * root) @ vectors[:, keep] / np.sqrt(values[keep])
    wanted *= np.sign((one(x[-200:]) * wanted[-200:]).sum(axis=0))
    # Relative to x^{degree/2}, the size of the features there.
    scale = np.sqrt(np.maximum(pair(x, x), 1e-300))
    assert np.abs((one(x) - wanted) / scale).max() < 1e-7
    assert not one(np.zeros((1, 1))).any()


def test_entries_beyond_the_table_are_evaluated_directly():
    drawn = features.Mercer1D(Chi2(), 4).draw(1, sample=np.geomspace(0.1, 10.0, 60)[:, None])
    inside = np.array([[2.0**drawn.first], [2.0 ** np.nextafter(drawn.last, 0)]])
    outside = np.array([[2.0 ** np.nextafter(drawn.first, -100)], [2.0**drawn.last], [1e-30], [1e30]])
    for x in (inside, outside):
        laws.close(drawn(x) / np.sqrt(x), drawn._exact(x.ravel()) / np.sqrt(x), 1e-7)
    laws.close(drawn(outside), drawn._exact(outside.ravel()), 1e-15)
    Z = drawn(np.array([[0.0], [5e-324], [1e-320]]))
    assert np.isfinite(Z).all()


def test_single_precision_look_up():
    x = np.geomspace(1e-30, 1e30, 300)[:, None]
    for kernel in (Chi2(), Intersection(), Chi2() + Intersection()):
        drawn = features.Mercer1D(kernel, 5).draw(1, sample=np.geomspace(0.1, 10.0, 60)[:, None])
        single = drawn(x.astype(np.float32))
        wanted = drawn(x.astype(np.float32).astype(np.float64))
        assert (np.abs(single - wanted) <= 1e-6 * np.sqrt(x)).all()


def test_the_grid_covers_the_positive_entries():
    x = np.random.default_rng(0).gamma(0.5, 1.0, 3000)
    grid, weights = log_grid(x)
    assert x.min() <= grid[0] < grid[-1] <= x.max()
    assert (np.diff(grid) > 0).all()
    assert weights.sum() == pytest.approx(1.0)
    assert (weights @ grid) == pytest.approx(x.mean())
    assert len(log_grid(np.full(10, 0.3))[0]) == 1
    single = features.Mercer1D(Chi2(), 12).draw(4, sample=np.full((3, 4), 0.3))
    assert single.width == 4
    laws.close(single.gram(np.full((2, 4), 0.3)), np.full((2, 2), 1.2), 1e-9)


def test_mercer_maps_are_exact_on_the_sample_with_enough_columns():
    X = np.array([[0.1, 0.0], [0.5, 2.0], [2.0, 0.1], [0.0, 0.0]])
    for kernel in ADDITIVE:
        drawn = features.Mercer1D(kernel, 40).draw(2, sample=X)
        assert drawn.width <= 6
        laws.close(drawn.gram(X), kernel.gram(X), 1e-7)


def test_zeros_of_sparse_samples_do_not_count():
    X = HISTOGRAMS * (np.random.default_rng(1).random(HISTOGRAMS.shape) < 0.3)
    dense, sparse = (features.Mercer1D(Chi2(), 18).draw(6, sample=S).map for S in (X, sp.csr_array(X)))
    assert np.array_equal(dense.grid, sparse.grid)
    assert np.allclose(dense.weights, sparse.weights)


# ---- all
@pytest.mark.parametrize(
    "recipe",
    [features.SampledSignature(Chi2(), 24), features.Mercer1D(Chi2(), 24), features.ChebyshevChi2(Chi2(), 24)],
    ids=lambda recipe: type(recipe).__name__,
)
def test_zero_entries_have_zero_columns(recipe):
    drawn = recipe.draw(6, sample=HISTOGRAMS)
    X = HISTOGRAMS[:5].copy()
    X[:, 2] = 0.0
    Z = drawn(X).reshape(5, 6, -1)
    assert not Z[:, 2].any()
    assert Z[:, 3].any()


def test_who_lacks_what():
    sample = np.ones((3, 4))
    for cls in (features.SampledSignature, features.Mercer1D):
        with pytest.raises(MapError, match=r"exponential\(\) has no additive profile"):
            cls(Exponential(), 64).draw(4, sample=sample)
        with pytest.raises(MapError, match="3 features are too few for 4 columns"):
            cls(Chi2(), 3).draw(4, sample=sample)
    with pytest.raises(MapError, match="no signature of one degree"):
        features.SampledSignature(Chi2() + Chi2(degree=0.5), 64).draw(4)
    with pytest.raises(MapError, match="no signature of one degree"):
        features.SampledSignature(Chi2() + Chi2(degree=0.5), 64, period=9.0).draw(4)
    with pytest.raises(MapError, match="no positive entry"):
        features.Mercer1D(Chi2(), 64).draw(4, sample=0.0 * sample)
    with pytest.raises(MapError, match="positive entries"):
        features.SampledSignature(Chi2(), 64, period="tuned").draw(4, sample=0.0 * sample)
    for options in ({"period": "best"}, {"period": 0.0}, {"period": np.nan}, {"period": -1.0}, {"window": "hann"}):
        with pytest.raises(MapError):
            features.SampledSignature(Chi2(), 64, **options)
    for scale in ("best", 0.0, -1.0, np.inf, np.nan):
        with pytest.raises(MapError, match="scale must be"):
            features.ChebyshevChi2(Chi2(), 64, scale=scale)
    assert features.SampledSignature(Chi2(), 64).prepared(4, Seed(0), Rows(sample)).period > 0
