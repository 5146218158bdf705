"""Which map for which kernel: by its facts, the dimension, the budget, and the sample where there is one.

The rules and the measurements behind them are in the documentation of the error table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bochner.arrays import as_rows
from bochner.errors import MapError
from bochner.features.algebra import Chain, NormalizedMap, OnColumns, ProductSketch, Scaled
from bochner.features.base import FeatureMap
from bochner.features.deciding import Best, Stacked
from bochner.features.diagonal import ExactDiagonal
from bochner.features.fourier import RandomFourier
from bochner.features.gaussian import FourierExponential, TaylorExponential, TaylorGaussian
from bochner.features.laplace import RandomLaplace
from bochner.features.maclaurin import Compositional
from bochner.features.mercer import Mercer1D
from bochner.features.nystroem import Nystroem
from bochner.features.optimal import OptimalMaclaurin
from bochner.features.projected import Projected
from bochner.features.sampled import SampledSignature
from bochner.kernels import (
    Compose,
    DotProduct,
    Exponential,
    Gaussian,
    JensenShannon,
    Normalized,
    On,
    Over,
    Product,
    Scale,
    Sum,
)
from bochner.kernels.base import Kernel
from bochner.kernels.laplace import ExponentialLaw
from bochner.kernels.spectrum import Spectrum
from bochner.seeds import Seed

_SOBOL = 16  # coordinates up to which Sobol' points beat orthogonal frequencies …
_SOBOL_TRIED = 64  # … and up to which they may, so that a sample decides
_MANY = 2048  # columns inside a chain, whose cost grows with them
_HADAMARD = 512  # columns from which the O(log d) transform is worth its rounding up to a power of two


def choose(
    kernel: Kernel,
    n_features: int | str = "auto",
    d: int | None = None,
    n_rows: int | None = None,
    *,
    tol: float | None = None,
    sample: Any = None,
    seed: int = 0,
    separate: bool = False,
) -> FeatureMap:
    """The recipe with the least error that we know for this kernel and budget; ``.why`` explains it.

    Give the number of columns ``d``, or a ``sample`` of rows.  Recipes that profit from data decide
    finally when they are drawn with a sample.  n_features="auto" with ``tol`` and a sample finds the
    number of features whose measured relative error is below ``tol``.  With ``separate`` every part of
    a sum has columns of its own (``Drawn.blocks``), where else parts of one family may share a map.

    >>> from bochner import kernels
    >>> choose(kernels.SkewedChi2(0.5), 256, d=100)
    RandomFourier(SkewedChi2(skew=0.5), 256, frequencies='orthogonal')
    """
    rows = None if sample is None else as_rows(sample)
    if rows is not None:
        d = rows.values.shape[1] if d is None else d
    if d is None or d < 1:
        raise MapError("give the number of columns (d=…) or a sample of rows")
    kernel = kernel.bound(None if rows is None else rows.names, d)
    if n_features == "auto":
        if tol is None or rows is None:
            raise MapError('n_features="auto" needs a target error (tol=0.05) and a sample of rows')
        from bochner.features.error import sized_for

        return sized_for(lambda size: choose(kernel, size, d, n_rows, separate=separate), tol, rows, seed)
    if isinstance(n_features, str):
        raise MapError(f'n_features is a number or "auto", got {n_features!r}')
    recipe = (separated if separate else rule)(kernel, int(n_features), d)
    if n_rows is not None and n_rows <= n_features:
        note = f"with {n_rows} rows, Nyström on all of them, or the exact kernel, costs no more and has no error"
        recipe = replace(recipe, why=f"{recipe.why}; {note}")
    return recipe


def rule(kernel: Kernel, D: int, d: int) -> FeatureMap:
    """The rules by the structure and the facts of a kernel."""
    facts = _facts(kernel, d)
    if isinstance(kernel, Scale):
        inner = rule(kernel.inner, D, d)
        return Scaled(kernel, D, inner, why=f"√c times the map of the inner kernel ({inner.why})")
    if isinstance(kernel, On):
        inner = rule(kernel.inner, D, len(kernel.columns))
        return OnColumns(kernel, D, inner, why=f"on {len(kernel.columns)} columns: {inner.why}")
    if isinstance(kernel, Normalized):
        inner = rule(kernel.inner, D, d)
        return NormalizedMap(kernel, D, inner, why=f"divided by √K(x, x): {inner.why}")
    if isinstance(kernel, Exponential):
        return _exponential(kernel, D, d)
    series = facts.series()
    if series is not None:
        why = "low degrees exact, the others by complex Hadamard sketches in the best shares"
        maclaurin = OptimalMaclaurin(kernel, D, why=why)
        if series.length is not None and series.length <= 2:  # exact, or a sketch that is linear
            return maclaurin
        return _best(kernel, D, [maclaurin, _rescaled(maclaurin)], _landmarks(kernel, D))
    if facts.radial() is not None:
        return _over(kernel, D, d)
    if isinstance(kernel, Sum):
        return _sum(kernel, D, d)
    if facts.profile() is not None:
        return _additive(kernel, D, d)
    spectrum = facts.spectrum()
    if spectrum is not None:
        return _fourier(kernel, spectrum, D, d)
    if facts.laplace() is not None:
        return _laplace(kernel, D, d)
    if isinstance(kernel, Product):
        return _product(kernel, D, d)
    if isinstance(kernel, Compose):
        return _composed(kernel, D, d)
    return Nystroem(kernel, D, why="no explicit map is known for this kernel: randomly pivoted landmarks")


def _rescaled(recipe: FeatureMap) -> FeatureMap:
    return ExactDiagonal(recipe.kernel, recipe.n_features, recipe, why=f"{recipe.why}, with an exact diagonal")


def _landmarks(kernel: Kernel, D: int) -> FeatureMap:
    """Where random maps fail: products of many factors, or values that differ by many orders of magnitude."""
    return Nystroem(
        kernel, D, why="random maps are off by more than a quarter of the kernel: randomly pivoted landmarks"
    )


def _facts(kernel: Kernel, d: int) -> Kernel:
    """The kernel with a stand-in for every number that the data will give: facts do not depend on it."""
    if not kernel.unresolved():
        return kernel
    stand_in = np.abs(Seed(0).stream("facts").normal(8, d)) + 0.1
    return kernel.resolve(stand_in)


def _fourier(kernel: Kernel, spectrum: Spectrum, D: int, d: int) -> FeatureMap:
    if D < 2:
        return RandomFourier(kernel, D, form="phase", why="one feature cannot hold a pair")
    radial = spectrum.radius_dims > 0
    dims = spectrum.width(d) if radial else spectrum.dims(d)
    if not radial and spectrum.heavy:
        law, found = "extremes", "points with stratified extremes through the quantiles of the spectrum"
    elif not radial:
        law, found = "orthogonal", "orthogonal normals taken to the quantiles of the spectrum"
    else:
        law = "hadamard" if dims >= _HADAMARD else "orthogonal"
        found = f"{law} frequencies with the norms of their law"
    candidates: list[FeatureMap] = [RandomFourier(kernel, D, frequencies=law, why=f"{found}, in pairs")]
    if dims <= _SOBOL_TRIED:
        why = "scrambled Sobol' points through the quantiles of the spectrum, in pairs"
        sobol = RandomFourier(kernel, D, frequencies="sobol", why=why)
        candidates.insert(0 if dims <= _SOBOL and law != "extremes" else 1, sobol)
    if isinstance(kernel, Gaussian) and D >= 4:
        candidates.append(TaylorGaussian(kernel, D, why="wide for these data: exact low degrees of its Taylor series"))
    return _best(kernel, D, candidates)


def _exponential(kernel: Kernel, D: int, d: int) -> FeatureMap:
    laws = ["orthogonal" if d < _HADAMARD else "hadamard"] + (["sobol"] if d <= _SOBOL_TRIED else [])
    taylor = OptimalMaclaurin(
        kernel, D, why="low degrees exact, the others by complex Hadamard sketches in the best shares"
    )
    why = "e^{‖x‖²/2σ²} times Gaussian features: these data reach far"
    fourier = [FourierExponential(kernel, D, frequencies=law, why=f"{why} ({law})") for law in laws]
    centred = TaylorExponential(kernel, D, why=f"{taylor.why}, around the mean of the data")
    return _best(kernel, D, [taylor, _rescaled(taylor), centred, *fourier], _landmarks(kernel, D))


def _laplace(kernel: Kernel, D: int, d: int) -> FeatureMap:
    ways = [("sobol", 256, "Sobol' points"), ("sobol", 16, "Sobol' points")]
    if isinstance(_facts(kernel, d).laplace(), ExponentialLaw) and D >= 2 * d:  # whole blocks of pairs only
        ways.append(("mirrored", 16, "mirrored orthogonal normals"))
    tilted = [
        RandomLaplace(
            kernel,
            D,
            sampling="tilted",
            points=points,
            components=m,
            why=f"importance sampling tilted towards the data, 10 % plain, {m} components, {name}",
        )
        for points, m, name in ways
    ]
    plain = RandomLaplace(kernel, D, points="sobol", why="Sobol' points through the Laplace measure")
    return _best(kernel, D, [*tilted, plain])


def _additive(kernel: Kernel, D: int, d: int) -> FeatureMap:
    profile = kernel.profile()
    assert profile is not None
    exact = profile.name == "root"
    if D < d:
        few = f"{D} features are fewer than {d} columns, too few for an additive map"
        landmarks = Nystroem(kernel, D, why=f"{few}: randomly pivoted landmarks")
        if profile.signature is None:
            return landmarks
        inner = SampledSignature(kernel, d if exact else 3 * d)
        mixed = Projected(kernel, D, inner, why=f"{few}: random combinations of the columns of one")
        return _best(kernel, D, [landmarks, mixed])
    if exact:
        return SampledSignature(kernel, d, why="x^{degree/2} is the exact map")
    fitted = Mercer1D(
        kernel, D, why=f"{D // d} Mercer functions for each column, the best for the entries of the sample"
    )
    if profile.signature is None:
        return fitted
    window = "uniform" if isinstance(kernel, JensenShannon) else "rect"
    plain = SampledSignature(kernel, D, window=window, why="sampled signature (no sample to fit Mercer functions on)")
    return _best(kernel, D, [fitted, plain])


def _over(kernel: Kernel, D: int, d: int) -> FeatureMap:
    found, spectrum = _facts(kernel, d).radial(), _facts(kernel, d).spectrum()
    assert found is not None
    if spectrum is not None:
        return _fourier(kernel, spectrum, D, d)
    # Not the stand-ins, whose numbers would stay in the parts of a composite inner kernel.
    outer, inner = (kernel.outer, kernel.inner) if isinstance(kernel, Over) else found
    return _chain(kernel, outer, inner, D, d)


def _composed(kernel: Compose, D: int, d: int) -> FeatureMap:
    if _facts(kernel.inner, d).laplace() is not None or isinstance(kernel.inner, Compose):
        return Compositional(kernel, D, why="random Maclaurin columns over independent columns of the inner kernel")
    return _chain(kernel, kernel.outer, kernel.inner, D, d)


def _chain(kernel: Kernel, outer: Kernel, inner: Kernel, D: int, d: int) -> FeatureMap:
    """The default map of the outer kernel over one of the inner.

    More columns of an additive inner map lower the floor of the error and raise the dimension that the
    outer map has to cope with: a sample decides.
    """
    profile = _facts(inner, d).profile()
    if profile is None:
        firsts = [rule(inner, max(D, _least(inner, d)), d)]
    else:
        # Functions of a corner fall off slowly, like 1/m².
        kinked = (5, 9, 33) if 33 * d <= _MANY else (5, 9)
        sizes = (1,) if profile.name == "root" else kinked if profile.kinked else (3, 5)
        firsts = [_additive(inner, each * d, d) for each in sizes]
    candidates: list[FeatureMap] = []
    for first in firsts:
        second = rule(outer, D, first.n_features)
        why = f"{second.why}, over a map of the inner kernel ({first.why})"
        candidates.append(Chain(kernel, D, first, second, why=why))
    return _best(kernel, D, candidates)


def _sum(kernel: Sum, D: int, d: int) -> FeatureMap:
    """Dot products join into one series and additive kernels into one profile; the rest stands alone."""
    facts = [_facts(k, d) for k in kernel.parts]
    dots = tuple(i for i, k in enumerate(facts) if k.series() is not None)
    additive = tuple(i for i, k in enumerate(facts) if k.profile() is not None)
    alone = [(i,) for i in range(len(facts)) if i not in dots + additive]
    places = tuple(place for place in (dots, additive, *alone) if place)
    if len(places) == 1:
        return _additive(kernel, D, d)
    groups = [kernel.joined(place) for place in places]
    least = tuple(_least(k, d) for k in groups)
    if sum(least) > D:
        why = f"{D} features are fewer than the {sum(least)} that maps of the parts need: randomly pivoted landmarks"
        return Nystroem(kernel, D, why=why)
    parts = tuple(rule(k, max(D, low), d) for k, low in zip(groups, least, strict=True))
    why = "stacked maps, the budget split where it lowers the error most"
    return Stacked(kernel, D, parts, least, places, why=why)


def separated(kernel: Kernel, D: int, d: int) -> FeatureMap:
    """The default map of each part of a sum, stacked; what is done to a sum is done to its map."""
    if isinstance(kernel, Scale):
        return Scaled(kernel, D, inner := separated(kernel.inner, D, d), why=f"√c times: {inner.why}")
    if isinstance(kernel, On):
        return OnColumns(kernel, D, inner := separated(kernel.inner, D, len(kernel.columns)), why=inner.why)
    if not isinstance(kernel, Sum):
        return rule(kernel, D, d)
    least = tuple(_least_apart(k, d) for k in kernel.parts)
    parts = tuple(separated(k, max(D, low), d) for k, low in zip(kernel.parts, least, strict=True))
    places = tuple((i,) for i in range(len(parts)))
    why = "a map for each part, the budget split where it lowers the error most"
    return Stacked(kernel, D, parts, least, places, why=why)


def _least_apart(kernel: Kernel, d: int) -> int:
    """The width below which the parts of a kernel cannot be mapped one by one."""
    if isinstance(kernel, Scale):
        return _least_apart(kernel.inner, d)
    if isinstance(kernel, On):
        return _least_apart(kernel.inner, len(kernel.columns))
    return sum(_least_apart(k, d) for k in kernel.parts) if isinstance(kernel, Sum) else _least(kernel, d)


def _product(kernel: Product, D: int, d: int) -> FeatureMap:
    """Small maps of the factors, multiplied whole, or wide ones, multiplied by sketches: a sample decides.

    Whole products have the errors of their factors only, and sketches one of their own, about D^(−½).
    """
    parts = tuple(rule(part, D, d) for part in kernel.parts)
    sketched = ProductSketch(kernel, D, parts, why="the maps of the factors, multiplied by complex sketches")
    least, m = [_least(part, d) for part in kernel.parts], len(parts)
    splits = {
        tuple(max(low, int(D ** ((1 + (i == larger)) / (m + (larger >= 0))))) for i, low in enumerate(least))
        for larger in range(-1, m)  # equal roots of D, then each factor in turn wider than the others
    }
    whole: list[FeatureMap] = [
        ProductSketch(
            kernel,
            D,
            tuple(rule(part, size, d) for part, size in zip(kernel.parts, sizes, strict=True)),
            why=f"the maps of the factors, of {' × '.join(map(str, sizes))} features, multiplied whole",
        )
        for sizes in sorted(splits)
        if math.prod(sizes) <= D
    ]
    return _best(kernel, D, [sketched, *whole])


def _least(kernel: Kernel, d: int) -> int:
    """The width below which a part cannot be mapped."""
    if isinstance(kernel, (Scale, Normalized)):
        return _least(kernel.inner, d)
    if isinstance(kernel, On):
        return _least(kernel.inner, len(kernel.columns))
    facts = _facts(kernel, d)
    if facts.profile() is not None:
        return 3 * d
    if isinstance(kernel, Sum) and facts.series() is None:
        return sum(_least(part, d) for part in kernel.parts)
    return 1 if isinstance(kernel, DotProduct) and len(kernel.coefficients or (0, 0)) == 1 else 4


def _best(kernel: Kernel, D: int, candidates: Sequence[FeatureMap], resort: FeatureMap | None = None) -> FeatureMap:
    if len(candidates) == 1 and resort is None:
        return candidates[0]
    why = f"decided when drawn: {'; or '.join(c.why for c in candidates)}"
    if resort is not None:
        why = f"{why}; or, where {resort.why}"
    return Best(kernel, D, tuple(candidates), resort, why=why)
