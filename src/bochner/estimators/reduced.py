"""Learning after PCA: which components are kept, how they were chosen, and coefficients folded back.

A coefficient of components is a coefficient of features, so that a fitted model never projects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bochner.arrays import Float64
from bochner.errors import SolverError
from bochner.estimators.learning import Learnt, by_criterion, penalties_of
from bochner.features import Drawn
from bochner.features.pca import Blockwise
from bochner.solvers import Prepared, Solution, ridge
from bochner.solvers import pca as solver
from bochner.solvers.pca import Components
from bochner.stats import BlockMoments, Moments, Part, Sweep
from bochner.stats.moments import UNLABELLED

#: components that the first of two passes keeps, in units of those that are asked for, where memory allows
_MARGIN = 2.0


@dataclass(frozen=True)
class Reduction:
    """How features are reduced to principal components before a model is learnt.

    Parameters
    ----------
    rank : "cv", int, float, list or None
        How many components: chosen by exact cross-validation together with the penalty, over a path or a list;
        a number; the share of the variance that they explain, below 1; or None for all.
    each : int, float, list or None
        For a sum of kernels: how many components of each kernel's own features are kept before the joint ones
        are taken, as a number (at most), a share of the variance, or one of these for each kernel.
    unlabelled : bool
        Whether rows without a target shape the components.
    memory : int
        Bytes that the joint moments of several kernels may take; with more, the rows are swept twice.

    Examples
    --------
    >>> from bochner import KernelRegressor, Reduction
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-3, 3, (400, 2))
    >>> y = np.sin(2 * X[:, 0])
    >>> y[100:] = np.nan                      # the other rows help to find the components
    >>> model = KernelRegressor("gaussian(gamma=1)", 256, pca=Reduction(50), random_state=0).fit(X, y)
    >>> model.pca_.rank, model.coef_.shape
    (50, (1, 256))
    """

    rank: Any = "cv"
    each: Any = None
    unlabelled: bool = True
    memory: int = 2 << 30

    def __post_init__(self) -> None:
        rank = self.rank
        if isinstance(rank, str) and rank != "cv":
            raise SolverError(
                f'pca is None, "cv", a number, a share of the variance, a list or Reduction; got {rank!r}'
            )
        if isinstance(rank, (list, tuple)) and not rank:
            raise SolverError("pca is an empty list; name the ranks to compare")

    @classmethod
    def of(cls, pca: Any) -> Reduction | None:
        """What the parameter ``pca`` of an estimator stands for."""
        return pca if pca is None or isinstance(pca, Reduction) else cls(pca)

    @property
    def chooses(self) -> bool:
        """Whether several ranks are compared."""
        return isinstance(self.rank, (str, list, tuple))


@dataclass(frozen=True)
class Reduced:
    """The components that a model was learnt on, and the moments of its labelled rows in them."""

    components: Components
    part: Part
    why: str

    def spread(self, penalty: float, noise: float) -> tuple[Prepared, Float64, Float64]:
        """Solved moments, mean and factor in terms of the features: see ``Prepared.spread``."""
        prepared = Prepared(self.part, noise)
        basis = self.components.basis
        return prepared, basis @ self.part.mean, basis @ prepared.spread(penalty)


@dataclass(frozen=True)
class Stage:
    """The first stage of a sum of kernels: how many components of each are kept, and what a pass of its own gave.

    In two passes ``drawn`` gives leading components of each kernel, whose moments the second pass collects: more
    than ``each`` of them where memory allows, so that every fold still finds its own among them.
    """

    each: tuple[int, ...] | None = None
    drawn: Blockwise | None = None
    why: str = ""
    #: of the variance that the first of two passes kept
    share: float = 1.0


def sizes_of(parts: list[Part], each: Any, noise: float) -> tuple[int, ...]:
    """How many components of each block are kept."""
    asked = each if isinstance(each, (list, tuple)) else [each] * len(parts)
    if len(asked) != len(parts):
        raise SolverError(f"each={each!r} names {len(asked)} kernels, the sum has {len(parts)}")
    return tuple(
        solver.rank_for(
            solver.principal(part), min(n, part.width) if isinstance(n, (int, np.integer)) else n, noise, "each"
        )
        for part, n in zip(parts, asked, strict=True)
    )


def first_stage(
    how: Reduction, drawn: Drawn, outputs: int, folds: int, sweep: Callable[[], Sweep], noise: float
) -> Stage:
    """Whether a sum of kernels takes one pass or two; the first of two is made here, by ``sweep``."""
    if how.each is None:
        return Stage()
    blocks = drawn.block_widths()
    if len(blocks) < 2:
        raise SolverError(f"each= is for sums of kernels, whose maps stand side by side; {drawn.kernel} has one map")
    joint = 2 * Moments(drawn.width, outputs, folds=folds).nbytes  # a total, and what a thread adds to it
    size = f"the joint moments of {drawn.width:,} features take {joint / 2**20:,.0f} MiB of {how.memory / 2**20:,.0f}"
    if joint <= how.memory:
        return Stage(why=f"one pass, since {size}")
    parts = sweep()(BlockMoments(blocks, how.unlabelled)).parts
    each = sizes_of(parts, how.each, noise)
    room = np.sqrt(how.memory / (16.0 * folds)) / sum(each)
    wide = [min(width, int(n * np.clip(room, 1.0, _MARGIN))) for width, n in zip(blocks, each, strict=True)]
    found = [solver.principal(part, keep=n) for part, n in zip(parts, wide, strict=True)]
    share = float(sum(one.values.sum() for one in found) / max(sum(one.trace for one in found), 1e-300))
    why = f"two passes, since {size}; folds find them among the first {' + '.join(f'{n:,}' for n in wide)}"
    return Stage(each, Blockwise(drawn, [one.basis for one in found]), why, share)


@dataclass(frozen=True)
class Staged:
    """All components of some rows, by one stage or two."""

    components: Components
    blocks: tuple[int, ...] | None
    each: tuple[int, ...] | None
    #: what to say about the first stage
    why: str


def staged(rows: Part, how: Reduction, drawn: Drawn, stage: Stage, noise: float) -> Staged:
    """The components of rows, from the moments that ``stage`` made to be collected."""
    if how.each is None:
        return Staged(solver.principal(rows), None, None, "")
    blocks = (stage.drawn or drawn).block_widths()
    starts = np.cumsum([0, *blocks])
    each = stage.each or sizes_of([within(rows, a, b) for a, b in pairwise(starts)], how.each, noise)
    found = solver.principal(rows, blocks, each)
    kept, of = (" + ".join(f"{n:,}" for n in sizes) for sizes in (each, drawn.block_widths()))
    why = f"; first {kept} of {of}: {stage.why}"
    return Staged(replace(found, trace=found.trace / stage.share), blocks, each, why)


def after_pca(moments: Moments, alpha: Any, noise: float, how: Reduction, drawn: Drawn, stage: Stage) -> Learnt:
    """Ridge regression on principal components: rank and penalty from moments, coefficients of the features."""
    total, folds = moments.total(), moments.labelled()
    extra = moments.parts.get(UNLABELLED) if how.unlabelled else None
    extra = None if extra is None or not extra.weight else extra
    rows = total if extra is None else total + extra
    first = staged(rows, how, drawn, stage, noise)
    found, blocks, each = first.components, first.blocks, first.each
    ranks, rank_why = _ranks(how, found, noise)
    penalties = penalties_of(alpha, total)
    surface, hidden = None, False
    notes: tuple[str, ...] = ()
    if len(penalties) == 1 and not how.chooses:
        rank, penalty, why = ranks[-1], float(penalties[0]), "as given"
    elif isinstance(alpha, str) and alpha != "cv":
        if how.chooses:
            raise SolverError(f"alpha={alpha!r} does not compare ranks; use alpha='cv', or give the rank as a number")
        rank = ranks[-1]
        part = total.transformed(found.leading(rank).basis)
        penalty, why = by_criterion(Prepared(part, solver.noise_within(part, total, noise)), penalties, alpha)
    else:
        surface = solver.cross_validated(folds, penalties, ranks, extra, blocks, each, noise)
        rank = surface.best()[0] if how.chooses else ranks[-1]
        penalty = surface.best_for(rank)
        why = f"the best of {len(penalties)} by exact cross-validation over {len(folds)} folds"
        hidden = surface.hidden(rank)
        if hidden:
            notes = ("smaller penalties may be better, but rounding of the moments hides their held-out error",)
    solution, part = _solved(total, found.leading(rank), penalty, noise)

    def without() -> dict[int, Solution]:
        keys = [key for key, item in moments.parts.items() if key != UNLABELLED and item.weight > 0.0]
        if len(keys) < 2:
            return {}
        made = {}
        for key, (train, _) in zip(keys, ridge.splits([moments.parts[key] for key in keys]), strict=True):
            basis = solver.principal(train if extra is None else train + extra, blocks, each, rank)
            made[key] = _solved(train, basis, penalty, noise)[0]
        return made

    kept = found.leading(rank)
    of = f"{told(kept, found)}; {rank_why}"
    if extra is not None:
        of += f"; from {total.count:,} rows with a target and {extra.count:,} without"
    of += first.why
    learnt = Learnt(
        solution,
        penalty,
        why,
        "moments",
        "one factorisation of the moments of principal components",
        total.width,
        surface,
        notes,
        hidden,
        without,
        reduced=Reduced(kept, part, of),
    )
    return learnt if stage.drawn is None else _folded(learnt, stage.drawn)


def told(kept: Components, found: Components) -> str:
    """How many components are kept, and of what."""
    share = f"{100.0 * kept.ratio.sum():.1f} %"
    return f"{kept.rank:,} of {found.rank:,} components, {share} of the variance"


def within(part: Part, start: int, stop: int) -> Part:
    """The moments of some consecutive features."""
    here = slice(int(start), int(stop))
    return replace(part, mean=part.mean[here], scatter=part.scatter[here, here], cross=part.cross[here])


def _ranks(how: Reduction, found: Components, noise: float) -> tuple[list[int], str]:
    """The ranks that are looked at, in order, and why: the last is taken where they are not compared."""
    if how.rank == "cv":
        ranks = solver.ranks_up_to(solver.rank_for(found, None, noise))
        return ranks, f"the best of {len(ranks)} ranks"
    if how.chooses:
        ranks = sorted({solver.rank_for(found, rank, noise, "pca") for rank in how.rank})
        return ranks, f"the best of {len(ranks)} ranks"
    rank = solver.rank_for(found, how.rank, noise, "pca")
    return sorted({max(1, rank // share) for share in (8, 4, 2, 1)}), "all" if how.rank is None else "as given"


def _solved(total: Part, components: Components, penalty: float, noise: float) -> tuple[Solution, Part]:
    """The solution in terms of the features, and the moments of the components."""
    part = total.transformed(components.basis)
    found = ridge.solved(part, penalty, solver.noise_within(part, total, noise))
    return replace(found, coef=components.basis @ found.coef), part


def unfolded(components: Components, first: Blockwise) -> Components:
    """Components of the components of every kernel, in terms of the features."""
    return replace(components, mean=first.fold(components.mean), basis=first.fold(components.basis))


def _folded(learnt: Learnt, first: Blockwise) -> Learnt:
    """What was learnt of the components of every kernel, in terms of the features."""
    reduced, without = learnt.reduced, learnt.without
    assert reduced is not None
    assert without is not None

    def folded() -> dict[int, Solution]:
        return {key: replace(one, coef=first.fold(one.coef)) for key, one in without().items()}

    whole = unfolded(reduced.components, first)
    return replace(
        learnt,
        solution=replace(learnt.solution, coef=first.fold(learnt.solution.coef)),
        width=first.base.width,
        without=folded,
        reduced=replace(reduced, components=whole),
    )


class ReducedMixin:
    """What a predictor does where its features are reduced first: parameter ``pca``, attribute ``pca_``."""

    pca: Any
    drawn_: Drawn
    #: the components that the model was learnt on, or None
    pca_: Components | None
    _stage: Stage
    _reduced: Reduced | None

    @property
    def _reduction(self) -> Reduction | None:
        return Reduction.of(self.pca)

    @property
    def _gathered(self) -> Drawn:
        """The map whose moments are collected."""
        return self._stage.drawn or self.drawn_

    def _require_reduction(self, loss: str, solver: str, n_features: Any) -> None:
        if self._reduction is None:
            return
        if loss != "squared":
            raise SolverError(
                f"pca is for the squared loss, which moments decide; for the {loss} loss put KernelPCA in a pipeline"
            )
        if solver not in ("auto", "moments"):
            raise SolverError(f"pca is found from moments, not with solver={solver!r}; use solver='auto'")
        if isinstance(n_features, (list, tuple)):
            raise SolverError("pca compares ranks of one map; give one number as n_features")
