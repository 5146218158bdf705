"""kernel="auto": a handful of suitable kernels compared on a sample, by successive halving.

Every candidate is judged by the held-out squared error of ridge regression on its features, from exact
cross-validation at its best penalty.  Many candidates see few rows and features, few see many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bochner import features, kernels
from bochner.arrays import Matrix, Rows, is_sparse
from bochner.errors import BochnerError, DataError
from bochner.features import Best, FeatureMap
from bochner.kernels import Kernel
from bochner.run import Flow, Local
from bochner.seeds import Seed
from bochner.solvers import cross_validated, penalties_for
from bochner.sources import Chunk, MemorySource, Scaling
from bochner.stats import Folds, Moments, Targets

#: share of the candidates that a round keeps
_KEEP = 3
_ROUNDS = 3
#: features in the last round, at most
_WIDEST = 1024
#: rows in the first round, at least
_FEWEST = 500
_PENALTIES = 7
_FOLDS = 3
#: multiples of a heuristic bandwidth that are tried
_MULTIPLES = (0.0625, 0.25, 1.0, 4.0)


@dataclass(frozen=True)
class Candidate:
    """A kernel on rows scaled in one way, and its held-out error as a share of the variance of the targets."""

    kernel: Kernel
    scaling: str | Scaling
    error: float = np.inf
    rows: int = 0
    n_features: int = 0
    #: why it could not be tried
    failure: str = ""

    def __str__(self) -> str:
        scaling = self.scaling if isinstance(self.scaling, str) else self.scaling.kind
        found = f"{self.error:.4f} with {self.rows} rows, {self.n_features} features"
        return f"{self.kernel} (scaling {scaling}): {self.failure or found}"


@dataclass(frozen=True)
class Search:
    """All candidates, those of the last round first and each round by ascending error."""

    tried: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return self.tried[0]

    def __str__(self) -> str:
        return "\n".join(f"  {candidate}" for candidate in self.tried)


def scaling_for(kernel: Kernel) -> str:
    """What scaling="auto" means for a kernel.

    Dot-product kernels other than the linear one get rows in the unit ball ("norm"), since their values
    explode outside; kernels of non-negative data get rows as they are; others get columns of unit
    variance where their bandwidth is left to the data, and rows as they are where it is given.
    """
    parts = list(leaves(kernel))
    if any(part.domain.lower > -np.inf for part in parts):
        return "none"
    if any(part.series() is not None and not isinstance(part, kernels.Linear) for part in parts):
        return "norm"
    return "standard" if kernel.unresolved() or all(isinstance(part, kernels.Linear) for part in parts) else "none"


def leaves(kernel: Kernel) -> Iterator[Kernel]:
    """The kernels at the ends of a tree."""
    children = kernel.children()
    if not children:
        yield kernel
    for child in children:
        yield from leaves(child)


def suitable(X: Matrix, scaling: str | Scaling) -> list[Candidate]:
    """Kernels worth a try on these rows: histogram kernels only where no entry is negative."""
    entries = X.data if is_sparse(X) else X
    general = "standard" if scaling == "auto" else scaling
    found = [kernels.Linear(), kernels.Gaussian("median"), kernels.Laplacian("median")]
    candidates = [Candidate(kernel, general) for kernel in found]
    scaled = scaling.kind if isinstance(scaling, Scaling) else scaling
    if scaled != "standard" and entries.size and entries.min() >= 0.0 and X.shape[1] > 1:
        histogram = "l1" if scaling == "auto" else scaling
        found = [kernels.Chi2(), kernels.ExpChi2("mean"), kernels.ExponentialSemigroup("median")]
        candidates += [Candidate(kernel, histogram) for kernel in found]
    return candidates


def search(sample: Chunk, scaling: str | Scaling, targets: Targets | None, most: int, seed: int) -> Search:
    """Compare suitable kernels on the labelled rows of a sample; ``most`` bounds the number of features."""
    if targets is None or sample.y is None:
        raise DataError('kernel="auto" compares kernels by what they predict and needs a target; name a kernel')
    folds = Folds(_FOLDS, seed)
    labelled = np.flatnonzero(targets.encode(sample.y)[1])
    if len(labelled) < 2 * folds.count:
        raise DataError(
            f'kernel="auto" needs {2 * folds.count} labelled rows or more, the sample has {len(labelled)}; '
            "name a kernel"
        )
    # In random order: the first rows of a sorted source may be of one class.
    chunk = sample.take(labelled[Seed(seed).stream("search").permutation(len(labelled))])

    def judged(candidates: list[Candidate], rows: int, width: int) -> list[Candidate]:
        few = chunk.take(np.arange(rows))
        return sorted((judge(c, few, targets, folds, width, seed) for c in candidates), key=lambda c: c.error)

    sizes = [
        (min(len(chunk), max(_FEWEST, len(chunk) >> (2 * left))), min(most, _WIDEST >> left))
        for left in reversed(range(_ROUNDS))
    ]
    candidates, tried = expanded(suitable(chunk.X, scaling), chunk.X), list[Candidate]()
    for rows, width in dict.fromkeys(sizes):  # few rows make rounds of the same size, and one of them will do
        results = judged(candidates, rows, width)
        if not np.isfinite(results[0].error):
            raise DataError(f"no kernel could be tried on these rows: {results[0].failure}")
        tried = results + tried[len(results) :]
        candidates = results[: max(1, len(results) // _KEEP)]
    around = [replace(candidates[0], kernel=kernel) for kernel in multiples(candidates[0].kernel, (0.5, 2.0))]
    tried = sorted(judged(around, rows, width) + tried[: len(results)], key=lambda c: c.error) + tried[len(results) :]
    return Search(tuple(tried))


def expanded(candidates: list[Candidate], X: Matrix) -> list[Candidate]:
    """Bandwidths left to the data become a few multiples of what the heuristic finds on scaled rows."""
    out: list[Candidate] = []
    for candidate in candidates:
        try:
            kernel = candidate.kernel.resolve(Rows(scaled(candidate, X)[1]))
            out += [replace(candidate, kernel=other) for other in multiples(kernel, _MULTIPLES) or [kernel]]
        except BochnerError as error:
            out.append(replace(candidate, failure=str(error)))
    return out


def multiples(kernel: Kernel, of: Sequence[float]) -> list[Kernel]:
    """The kernel with its bandwidth times each number; none where it has no bandwidth."""
    name = getattr(kernel, "parameter", "gamma")
    value = getattr(kernel, name, None)
    if not isinstance(value, float):
        return []
    return [replace(kernel, **{name: value * multiple}) for multiple in of]  # type: ignore[type-var]


def likeliest(recipe: FeatureMap) -> FeatureMap:
    """The recipe without trials: the first candidate wherever it would decide among several."""
    if isinstance(recipe, Best):
        return likeliest(recipe.candidates[0])
    parts = {f.name: getattr(recipe, f.name) for f in fields(recipe)}
    made: dict[str, Any] = {name: likeliest(part) for name, part in parts.items() if isinstance(part, FeatureMap)}
    return replace(recipe, **made)


def scaled(candidate: Candidate, X: Matrix) -> tuple[Scaling, Matrix]:
    """The scaling of a candidate, and rows under it."""
    given = candidate.scaling
    scaling = given if isinstance(given, Scaling) else Scaling.learn(given, [X])
    return scaling, scaling.apply(X)


def judge(candidate: Candidate, chunk: Chunk, targets: Targets, folds: Folds, width: int, seed: int) -> Candidate:
    """The candidate with its held-out error at the best of some penalties."""
    if candidate.failure:
        return candidate
    try:
        scaling, X = scaled(candidate, chunk.X)
        d = X.shape[1]
        drawn = likeliest(features.choose(candidate.kernel, width, d)).draw(d, seed, sample=Rows(X))
        source = MemorySource(Rows(chunk.X), chunk.y, chunk.weight, chunk.group)
        moments = Local(1).sweep(
            Flow(source, drawn, scaling, targets, folds), Moments(drawn.width, targets.outputs, folds=folds.count)
        )
        surface = cross_validated(moments.labelled(), penalties_for(moments.total(), _PENALTIES))
    except BochnerError as error:
        return replace(candidate, error=np.inf, failure=str(error))
    share = float(surface.mean.min() / max(surface.baseline.sum(), 1e-300))
    return replace(candidate, error=share, rows=len(chunk), n_features=drawn.width)
