"""What must hold for every feature map: plain functions that raise AssertionError.

Every example of every registered map goes through them in test_laws.py and test_statistics.py, and
broken maps go through the same functions in test_mutations.py, which shows that each law is able to fail.
Seeds are fixed, so that a law that holds once holds always.
"""

import itertools
import json
import pickle
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from bochner import features, kernels
from bochner.arrays import Rows
from bochner.errors import DomainError
from bochner.features.base import from_recipe, registered
from bochner.kernels.dot import DotKernel
from bochner.seeds import Seed

DIMENSIONS = [1, 3, 10, 64]


# ---- data
def reads_norms(kernel):
    """Whether a dot product of the rows themselves enters, so that long rows would make it explode."""
    if isinstance(kernel, DotKernel):
        return True
    if isinstance(kernel, (kernels.Compose, kernels.Over)):
        return reads_norms(kernel.inner)
    return any(reads_norms(child) for child in kernel.children())


def rows(kernel, d, n=12, seed=0):
    """Read-only rows in the kernel's domain whose kernel values spread.

    Some entries are zero, one row is zero, one row is a copy of another.  Dot products reach from −1.2
    to 1.2; otherwise each row has a length of its own, so that pairs are near and far.
    """
    rng = np.random.default_rng([0, d])
    direction = rng.normal(size=d)
    rng = np.random.default_rng([1 + seed, d])
    X = rng.normal(size=(n, d))
    lengths = np.linspace(0.15, 1.6, n) * np.sqrt(d)
    if reads_norms(kernel):
        X = (X + 1.5 * direction) * rng.choice([1.0, 1.0, -1.0], size=(n, 1))
        lengths = np.linspace(0.6, 1.1, n)
    elif isinstance(kernel, (kernels.SkewedChi2, kernels.SkewedIntersection)):
        lengths *= 4.0 / d**0.75 if isinstance(kernel, kernels.SkewedChi2) else 2.0 / d
    elif kernel.laplace() is not None:
        lengths *= 6.0
    X *= rng.random((n, d)) < 0.85
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-3)
    X *= lengths[rng.permutation(n)][:, None]
    X[1] = 0.0
    X[2] = X[0]
    try:
        kernel.diag(X)
    except DomainError:
        X = np.abs(X)
    return read_only(X)


def read_only(X):
    """The same array, which nobody may write to."""
    X.flags.writeable = False
    return X


def data(recipe, d, n=12, seed=0):
    """The same within the range of a map that is meant for wide kernels only."""
    X = rows(recipe.kernel, d, n, seed)
    return X * (1.2 / np.sqrt(d)) if isinstance(recipe, features.TaylorGaussian) else X


def fitted(recipe, d, seed=0):
    """The recipe prepared with a sample of other rows."""
    return recipe.prepared(d, Seed(seed), Rows(data(recipe, d, n=60, seed=1)))


def examples():
    """(name, recipe, d) for every example of every registered map."""
    for d in DIMENSIONS:
        for cls in registered():
            for number, recipe in enumerate(cls.examples(d)):
                yield f"{cls.__name__}{number}-d{d}", recipe, d


# ---- statistics over seeds
def grams(recipe, d, X, seeds):
    """The approximate Grams of independent draws of a prepared recipe, (seeds, n, n)."""
    Z = (recipe._draw(d, Seed(1000 + s))._features(X) for s in range(seeds))
    return np.stack([z @ z.T for z in Z])


def groups(K):
    """Weights (groups, n, n), each of sum one: kinds of pairs over which errors are averaged."""
    off = ~np.eye(len(K), dtype=bool)
    cuts = np.quantile(K[off], [0.0, 0.25, 0.75, 1.0])
    bands = [off & (K >= low) & (K <= high) for low, high in itertools.pairwise(cuts)]
    masks = [off, ~off, *bands]
    weights = [mask / mask.sum() for mask in masks if mask.any()]
    weights.append(np.abs(K) / np.abs(K).sum())
    return np.stack(weights)


def unbiased(stack, K, slack=0.0, finest=0.3):
    """The mean over draws is the kernel, within four standard errors of each group of pairs.

    Single pairs may be off by six.  ``slack`` is a bias that the map states; ``finest`` bounds the
    error of scale that the test could overlook: a noisy test proves nothing.
    """
    seeds, size = len(stack), np.square(K).sum() / np.abs(K).sum()
    error = stack - K
    pooled = np.einsum("gij,sij->sg", groups(K), error)
    for name, values, limit in (("group", pooled, 4.0), ("pair", error.reshape(seeds, -1), 6.0)):
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(seeds)
        worst = (np.abs(mean) - slack - 1e-8 * size) / np.maximum(spread, 1e-12 * size)
        at = int(np.argmax(worst))
        assert worst[at] <= limit, f"{name} {at} is biased by {mean[at]:.3g} = {worst[at]:.1f} standard errors"
        if name == "group":
            overlooked = limit * spread[-1] / size
            assert overlooked <= finest, f"an error of {overlooked:.0%} would go unseen: more seeds are needed"


def stated_variance(stack, stated, finest=0.35):
    """The variance over draws, summed over pairs, is the stated one.

    Draws that missed the tail of a skewed law have too small a spread, by about the same factor.
    """
    squares = np.square(stack - stack.mean(axis=0)).sum(axis=(1, 2)) * len(stack) / (len(stack) - 1)
    mean, spread = squares.mean(), squares.std(ddof=1) / np.sqrt(len(stack))
    assert np.isfinite(stated).all()
    assert stated.min() >= 0.0
    total = stated.sum()
    floor = 1e-18 * np.square(stack).sum(axis=(1, 2)).mean()
    allowed = 4.0 * spread * max(1.0, total / max(mean, floor)) + floor if floor else 0.0
    assert abs(mean - total) <= allowed, f"variance {mean:.4g} ± {spread:.2g}, stated {total:.4g}"
    assert spread <= finest * mean + floor, f"the variance is known to {spread / mean:.0%} only"


def estimated_variance(stack, stated, factor=5.0):
    """A variance that is itself estimated from a few draws has the right size."""
    mean, total = np.var(stack, axis=0, ddof=1).sum(), stated.sum()
    floor = 1e-18 * np.square(stack).sum(axis=(1, 2)).mean()
    assert stated.shape == stack.shape[1:]
    assert stated.min() >= 0.0
    assert (mean <= floor and total <= floor) or 1.0 / factor < total / mean < factor, f"{total:.3g} for {mean:.3g}"


def rms(recipe, d, X, K, seeds):
    """Root mean squared error over pairs, averaged over draws (a mean of squares would show the worst draw only)."""
    return float(np.sqrt(np.square(grams(recipe, d, X, seeds) - K).mean(axis=(1, 2))).mean())


def falling(errors, K, low, high, growth=4.0):
    """Errors at sizes growing by a factor fall with a power of the size between low and high.

    Errors of rounding size have fallen far enough.
    """
    floor = 1e-7 * np.abs(K).max()
    if errors[-1] <= floor:
        return
    slope = np.log(errors[-1] / errors[0]) / np.log(growth) / (len(errors) - 1)
    assert low <= slope <= high, f"errors {', '.join(f'{e:.3g}' for e in errors)}: slope {slope:.2f}"


# ---- one draw
def close(actual, wanted, tolerance):
    actual, wanted = np.asarray(actual, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    assert actual.shape == wanted.shape
    scale = float(np.abs(wanted).max(initial=0.0)) or 1.0
    error = float(np.abs(actual - wanted).max(initial=0.0))
    assert error <= tolerance * scale, f"off by {error:.3g} at scale {scale:.3g}"


def single_precision(drawn, X, tolerance=1e-5):
    """float32 stays float32 and is close to what float64 makes of the same rows."""
    single = X.astype(np.float32)
    Z = drawn(single)
    assert Z.dtype == np.float32
    assert drawn(X).dtype == np.float64
    close(Z, drawn(single.astype(np.float64)), tolerance)


def rounding(drawn):
    """How far the same features may differ: Nyström divides by roots of eigenvalues down to rounding size."""
    return 1e-7 if isinstance(drawn.map, features.Nystroem) else 1e-12


def sparse(drawn, X):
    """CSR and CSC rows give what dense rows give."""
    for matrix in (sp.csr_array(X), sp.csc_matrix(X)):
        Z = drawn(matrix)
        assert isinstance(Z, np.ndarray)
        close(Z, drawn(X), rounding(drawn))
    single = drawn(sp.csr_array(X.astype(np.float32)))
    assert single.dtype == np.float32
    close(single, drawn(X.astype(np.float32)), 1e-5)


def whole_numbers(drawn, d):
    """Counts and flags are computed in float64."""
    counts = np.eye(min(3, d + 1), d, dtype=np.int64)
    Z = drawn(counts)
    assert Z.dtype == np.float64
    assert np.array_equal(Z, drawn(counts.astype(np.float64)))
    assert np.array_equal(Z, drawn(counts.astype(bool)))
    assert np.array_equal(Z, drawn(counts.tolist()))


def row_by_row(drawn, X):
    """No row sees another one: none, one, and counts around the tile size agree."""
    Z = drawn(X)
    assert Z.shape == (len(X), drawn.width)
    assert np.isfinite(Z).all()
    assert drawn(X[:0]).shape == (0, drawn.width)
    close(drawn(X[3:4]), Z[3:4], rounding(drawn))
    close(Z[0], Z[2], rounding(drawn))
    size = drawn.tile
    drawn.tile = 5
    try:
        for n in (4, 5, 6, 10, 11):
            close(drawn(X[:n]), Z[:n], rounding(drawn))
    finally:
        drawn.tile = size


def into_out(drawn, X):
    """``out=`` is filled and returned, contiguous or not; the input is left alone."""
    before = X.copy()
    wanted = drawn(X)
    out = np.full((len(X), drawn.width), np.nan)
    assert drawn(X, out=out) is out
    assert np.array_equal(out, wanted)
    wide = np.full((len(X), drawn.width + 3), np.nan)
    view = wide[:, 1 : 1 + drawn.width]
    assert drawn(X, out=view) is view
    assert np.array_equal(view, wanted)
    assert np.isnan(wide[:, [0, -1, -2]]).all()
    turned = np.full((drawn.width, len(X)), np.nan).T
    assert np.array_equal(drawn(X, out=turned), wanted)
    assert np.array_equal(X, before)


def survives(drawn, X):
    """Pickling, and JSON to a recipe and back, give the same bits."""
    Z = drawn(X)
    assert np.array_equal(pickle.loads(pickle.dumps(drawn))(X), Z)
    text = json.dumps(drawn.recipe(), allow_nan=False)
    again = from_recipe(json.loads(text))
    assert json.dumps(again.recipe(), allow_nan=False) == text
    assert np.array_equal(again(X), Z)
    assert again.width == drawn.width
    assert repr(again) == repr(drawn)


def seeded(recipe, d, X):
    """The seed decides, and nothing else."""
    sample = data(recipe, d, n=60, seed=1)
    first, second = (recipe.draw(d, seed=7, sample=sample) for _ in range(2))
    assert np.array_equal(first(X), second(X))
    third = recipe.draw(d, seed=8, sample=sample)
    if recipe.deterministic:
        assert np.array_equal(first(X), third(X))


def random(recipe, d, X):
    """Another seed gives other features."""
    first, second = (recipe._draw(d, Seed(s)) for s in (7, 8))
    assert not np.array_equal(first(X), second(X))


def prefix(recipe, d, X, sizes=(70, 610)):
    """The narrower draw is the start of the wider one, up to scale."""
    small, large = (recipe.sized(size)._draw(d, Seed(5)) for size in sizes)
    scale = np.sqrt(large.width / small.width)
    close(large(X)[:, : small.width] * scale, small(X), 1e-9)


def width(drawn, recipe, extra=0):
    """The budget is kept."""
    assert 1 <= drawn.width <= recipe.n_features + extra
    assert drawn.map.n_features == recipe.n_features


def keeps_facts(recipe, prepared):
    """Preparing a recipe settles it and changes nothing that is stated about it."""
    assert prepared.is_fitted()
    assert prepared.kernel.unresolved() == []
    for name in ("unbiased", "deterministic", "prefix_stable"):
        assert getattr(prepared, name) == getattr(recipe, name)
    assert replace(prepared, why="another reason").to_json() == {**prepared.to_json(), "why": "another reason"}
