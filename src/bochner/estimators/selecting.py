"""Which features and which kernels of a sum matter: penalties that select, and weights, from moments alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.estimators.learning import Learnt, from_moments
from bochner.kernels import Kernel, On, Scale
from bochner.solvers import Outcome, Solution, Surface, group, lasso, paths, ridge, weights
from bochner.stats import Moments, Part

#: the words for ``penalty``
PENALTIES = ("ridge", "lasso", "elasticnet", "group")
#: of a penalty, the share that rounding may move
_TENTH = 0.1
_HOW = {
    "lasso": "LASSO by an active set on the Gram of one pass",
    "elasticnet": "elastic net by an active set on the Gram of one pass",
    "group": "group LASSO by block descent and Newton steps on the Gram of one pass",
}


@dataclass(frozen=True)
class Member:
    """What became of one kernel of a sum.

    ``share`` is the variance of the kernel's own part of the model as a share of that of the targets (parts
    that go together make the shares add to more or less than what all explain), ``norm`` that of its
    coefficients, ``selected`` how many of its features have one.
    """

    kernel: str
    n_features: int
    selected: int
    norm: float
    share: float
    #: of the kernel in the sum, where weights were given or chosen
    weight: float | None = None
    #: held-out squared error of the kernel by itself, and of all others, as a share of the variance
    alone: float | None = None
    without: float | None = None

    def __str__(self) -> str:
        found = [f"{self.share:.4f}", self.kernel, f"{self.selected} of {self.n_features} features"]
        found += [f"norm {self.norm:.4g}"] if self.selected else ["out"]
        found += [] if self.weight is None else [f"weight {self.weight:.4g}"]
        found += [] if self.alone is None else [f"error alone {self.alone:.4f}, without it {self.without:.4f}"]
        return ", ".join(found)


@dataclass(frozen=True)
class Selection:
    """The kernels of a sum, those that matter most first."""

    members: tuple[Member, ...]

    @property
    def kernels(self) -> tuple[str, ...]:
        """Those that are in."""
        return tuple(member.kernel for member in self.members if member.selected)

    def __str__(self) -> str:
        return "\n".join(f"  {member}" for member in self.members)


@dataclass(frozen=True)
class Options:
    """What an estimator was asked for, checked."""

    penalty: str
    l1_ratio: float
    weights: Any

    @classmethod
    def of(cls, estimator: Any) -> Options:
        options = cls(estimator.penalty, estimator.l1_ratio, estimator.weights)
        if options.penalty not in PENALTIES:
            raise SolverError(f"penalty is one of {', '.join(PENALTIES)}; got {options.penalty!r}")
        if options.plain:
            return options
        if estimator.loss != "squared":
            raise SolverError(
                f"penalty={options.penalty!r} and weights of kernels are for the squared loss, not {estimator.loss}"
            )
        if estimator.solver not in ("auto", "moments"):
            raise SolverError(
                f"penalty={options.penalty!r} and weights of kernels are solved from moments, not by "
                f"solver={estimator.solver!r}; use solver='auto'"
            )
        if options.penalty == "elasticnet":
            lasso.require_share(options.l1_ratio)
        if options.weights is not None and options.penalty != "ridge":
            raise SolverError(f"weights of kernels go with penalty='ridge', not with {options.penalty!r}")
        if isinstance(options.weights, str) and options.weights != "cv":
            raise SolverError(f'weights is None, "cv" or one number for each kernel; got {options.weights!r}')
        alpha = estimator.alpha
        if isinstance(alpha, str) and alpha != "cv" and options.penalty != "ridge":
            raise SolverError(f"alpha={alpha!r} is for penalty='ridge'; use alpha='cv' or numbers")
        if options.weights_chosen and not (isinstance(alpha, str) and alpha == "cv"):
            raise SolverError("weights='cv' chooses the penalty with the weights; leave alpha='cv'")
        if isinstance(estimator.n_features, (list, tuple)):
            raise SolverError(
                "numbers of features are compared for plain ridge regression only; give one as n_features"
            )
        return options

    @property
    def plain(self) -> bool:
        """Ridge regression as ever."""
        return self.penalty == "ridge" and self.weights is None

    @property
    def by_kernel(self) -> bool:
        """Whether every kernel of a sum needs columns of its own."""
        return self.penalty == "group" or self.weights is not None

    @property
    def weights_chosen(self) -> bool:
        return isinstance(self.weights, str)

    def require_sum(self, kernel: Kernel, count: int) -> None:
        """Refuse a kernel that is not a sum where its parts are to be told apart."""
        if self.by_kernel and count < 2:
            what = f"penalty={self.penalty!r}" if self.penalty == "group" else "weights"
            raise SolverError(f"{what} is about the kernels of a sum, and {kernel} is one kernel; give a sum k1 + k2")
        if self.weights is not None and not self.weights_chosen:
            weights.require_weights(self.weights, count)


def learn(
    options: Options,
    moments: Moments,
    blocks: Sequence[tuple[Kernel, slice]],
    alpha: Any,
    noise: float,
    names: Sequence[str] | None,
) -> Learnt:
    """The coefficients that the options ask for, and what became of each kernel."""
    slices = [own for _, own in blocks]
    found: dict[str, Sequence[float]] = {}
    if options.penalty == "ridge":
        learnt, found = _weighted(options, moments, slices, alpha, noise)
    else:
        learnt = _selected(options, moments, slices, alpha, noise)
    total, coef = moments.total(), learnt.solution.coef
    energy = max(float(total.target_scatter.sum()), 1e-300)
    members = [
        Member(
            str(named(kernel, names)),
            own.stop - own.start,
            int(coef[own].any(axis=1).sum()),
            float(np.linalg.norm(coef[own])),
            float((coef[own] * (total.scatter[own, own] @ coef[own])).sum()) / energy,
            **{name: float(values[j]) for name, values in found.items()},
        )
        for j, (kernel, own) in enumerate(blocks)
    ]
    return replace(learnt, selection=Selection(tuple(sorted(members, key=lambda m: -m.share))))


def _selected(options: Options, moments: Moments, slices: Sequence[slice], alpha: Any, noise: float) -> Learnt:
    """LASSO, elastic net or group LASSO."""
    total, folds = moments.total(), moments.labelled()
    rough: paths.Path
    exact: paths.Path
    if options.penalty == "group":
        prices = group.prices_for(total, slices)

        def exact(part: Part, penalties: Float64) -> list[Solution]:
            return group.Grouped(part, slices, prices).path(penalties)

        rough = exact
        largest = group.Grouped(total, slices, prices).largest()
        bounds = [price / np.sqrt(own.stop - own.start) for price, own in zip(prices, slices, strict=True)]
    else:
        share = 1.0 if options.penalty == "lasso" else options.l1_ratio
        rough, exact = partial(lasso.path, share=share, tol=lasso.ROUGH), partial(lasso.path, share=share)
        largest = lasso.largest(total, share)
        bounds = [share]
    surface: Surface | None = None
    if isinstance(alpha, str):
        surface = paths.searched(folds, paths.geometric(largest), rough)
    elif len(values := ridge.require_penalties(alpha)) > 1:
        surface = paths.crossed(folds, values, rough)
    if surface is None:
        penalty, why = float(values[0]), "as given"
    else:
        penalty = surface.best()[1]
        why = f"the best of {len(surface.penalties)} by exact cross-validation over {len(folds)} folds"

    def without() -> Mapping[int, Solution]:
        return paths.without_each(moments.parts, penalty, rough) if len(folds) > 1 else {}

    (solution,) = exact(total, np.array([penalty]))
    if _rounding(total, solution, noise) > _TENTH * penalty * min(bounds):
        solution = replace(solution, outcome=Outcome.BELOW_PRECISION)
    how = _HOW[options.penalty]
    return Learnt(solution, penalty, why, "moments", how, total.width, surface, without=without)


def _rounding(part: Part, solution: Solution, noise: float) -> float:
    """How far rounding of the statistics moves the pull of the residuals on a feature."""
    return noise * float(np.trace(part.scatter)) / part.width * float(np.linalg.norm(solution.coef, axis=0).max())


def _weighted(
    options: Options, moments: Moments, slices: Sequence[slice], alpha: Any, noise: float
) -> tuple[Learnt, dict[str, Sequence[float]]]:
    """Ridge regression with the weighted sum of the kernels, as coefficients of the plain features."""
    found: dict[str, Any] = {}
    if options.weights_chosen:
        chosen = weights.weighed(moments.labelled(), slices, noise)
        path = ridge.penalties_for(moments.total())
        of_kernels, alpha = chosen.weights, np.sort(np.append(path, chosen.penalty))
        found = {"weight": of_kernels, "alone": chosen.alone, "without": chosen.without}
        note = f"weights chosen by exact cross-validation: error {chosen.error:.4f}, {chosen.equal:.4f} with equal ones"
    else:
        of_kernels = weights.require_weights(options.weights, len(slices))
        found = {"weight": of_kernels}
        note = "weights as given"
    factors = weights.roots(of_kernels, slices)
    parts = {key: part.scaled(factors) for key, part in moments.parts.items()}
    learnt = from_moments(Moments(moments.width, moments.outputs, parts, moments.folds), alpha, noise, [moments.width])

    def folded(solution: Solution) -> Solution:
        return replace(solution, coef=factors[:, None] * solution.coef)

    def without() -> Mapping[int, Solution]:
        solutions = {} if learnt.without is None else learnt.without()
        return {key: folded(solution) for key, solution in solutions.items()}

    return replace(
        learnt, solution=folded(learnt.solution), without=without, factors=factors, notes=(*learnt.notes, note)
    ), found


def named(kernel: Kernel, names: Sequence[str] | None) -> Kernel:
    """The kernel with the names of the columns that it is on."""
    if names is None:
        return kernel
    if isinstance(kernel, Scale):
        return Scale(kernel.factor, named(kernel.inner, names))
    if isinstance(kernel, On):
        inner = [names[int(j)] for j in kernel.columns]
        return On(named(kernel.inner, inner), tuple(inner))
    return kernel
