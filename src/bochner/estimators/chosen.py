"""What a fit chose and what it found: the ``report_`` of an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from html import escape
from typing import Any

import numpy as np

from bochner.arrays import Float64
from bochner.estimators.search import Candidate, Search
from bochner.estimators.selecting import Member, Selection
from bochner.kernels import from_json as kernel_from_json
from bochner.solvers import Outcome, Surface

_NESTED = ("outcome", "notes", "surface", "search", "selection")


@dataclass(frozen=True)
class Report:
    """Every choice with its reason.  ``print`` it; notebooks show it as text too."""

    rows: int
    columns: int
    kernel: str
    scaling: str
    map: str
    map_why: str
    n_features: int
    loss: str
    solver: str
    solver_why: str
    penalty: float
    penalty_why: str
    outcome: Outcome = Outcome.CONVERGED
    unlabelled: int = 0
    classes: int | None = None
    folds: int | None = None
    #: held-out squared error over numbers of features and penalties
    surface: Surface | None = None
    search: Search | None = None
    #: principal components that were kept, and their number
    pca: str = ""
    rank: int | None = None
    #: which kernels of a sum matter, where a penalty or weights told
    selection: Selection | None = None
    #: what else a solver found
    notes: tuple[str, ...] = ()
    #: of each stage
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def error(self) -> float | None:
        """Held-out squared error at the choice, as a share of the variance of the targets (1 − R²)."""
        if self.surface is None:
            return None
        size = self.n_features if self.rank is None else self.rank
        return share(self.surface, size if size in self.surface.sizes else self.surface.sizes[-1])

    def to_json(self) -> dict[str, Any]:
        """JSON that ``from_json`` reads back; of held-out errors, the sums over the targets."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NESTED}
        surface = (
            None
            if self.surface is None
            else {
                "sizes": list(self.surface.sizes),
                "penalties": self.surface.penalties.tolist(),
                "mean": _finite(self.surface.mean),
                "by_fold": _finite(self.surface.by_fold),
                "baseline": float(self.surface.baseline.sum()),
            }
        )
        search = (
            None
            if self.search is None
            else [
                {
                    "kernel": candidate.kernel.to_json(),
                    "scaling": candidate.scaling if isinstance(candidate.scaling, str) else candidate.scaling.kind,
                    "error": candidate.error if np.isfinite(candidate.error) else None,
                    "rows": candidate.rows,
                    "n_features": candidate.n_features,
                    "failure": candidate.failure,
                }
                for candidate in self.search.tried
            ]
        )
        selection = None if self.selection is None else [asdict(member) for member in self.selection.members]
        return {
            **plain,
            "notes": list(self.notes),
            "outcome": self.outcome.name,
            "surface": surface,
            "search": search,
            "selection": selection,
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> Report:
        """The report that ``to_json`` wrote."""
        given = dict(item)
        surface, search, selection = (given.pop(name) for name in ("surface", "search", "selection"))
        if surface is not None:
            mean = _array(surface["mean"])
            surface = Surface(
                tuple(int(size) for size in surface["sizes"]),
                np.asarray(surface["penalties"], dtype=np.float64),
                mean[:, :, None],
                _array(surface["by_fold"]),
                np.array([float(surface["baseline"])]),
            )
        if search is not None:
            tried = [
                Candidate(
                    kernel_from_json(c["kernel"]),
                    str(c["scaling"]),
                    np.inf if c["error"] is None else float(c["error"]),
                    int(c["rows"]),
                    int(c["n_features"]),
                    str(c["failure"]),
                )
                for c in search
            ]
            search = Search(tuple(tried))
        if selection is not None:
            selection = Selection(tuple(Member(**member) for member in selection))
        given |= {"outcome": Outcome[given["outcome"]], "notes": tuple(map(str, given["notes"]))}
        return cls(**given, surface=surface, search=search, selection=selection)

    def __str__(self) -> str:
        what = "rows" if self.classes is None else f"rows of {self.classes} classes"
        unlabelled = f" and {self.unlabelled:,} unlabelled ones" if self.unlabelled else ""
        lines = [
            f"data      {self.rows:,} {what}{unlabelled}, {self.columns:,} columns, scaling {self.scaling}",
            f"kernel    {self.kernel}",
            f"map       {self.map}: {self.n_features:,} features; {self.map_why}",
            *([f"pca       {self.pca}"] if self.pca else []),
            f"solver    {self.solver}, {self.loss} loss; {self.solver_why}",
            f"penalty   {self.penalty:.4g}; {self.penalty_why}",
        ]
        if self.surface is not None:
            found = ", ".join(f"{share(self.surface, size):.4f} with {size:,}" for size in self.surface.sizes)
            what = "features" if self.rank is None else "components"
            lines.append(f"error     held out, as a share of the variance, by number of {what}: {found}")
        if self.outcome is not Outcome.CONVERGED:
            lines.append(f"outcome   {self.outcome.value}: {self.outcome.advice}")
        lines += [f"note      {note}" for note in self.notes]
        if self.selection is not None:
            lines.append("members   by the share of the variance of the targets that each explains:")
            lines += [f"          {member}" for member in self.selection.members]
        if self.search is not None:
            lines.append("kernels   tried on a sample, held-out error as a share of the variance:")
            lines += [f"          {candidate}" for candidate in self.search.tried]
        if self.seconds:
            lines.append("seconds   " + ", ".join(f"{stage} {s:.2f}" for stage, s in self.seconds.items()))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _finite(values: Float64) -> Any:
    """Nested lists in which None stands for what could not be told."""
    if values.ndim > 1:
        return [_finite(part) for part in values]
    return [float(value) if np.isfinite(value) else None for value in values]


def _array(values: Any) -> Float64:
    found = np.array(values, dtype=np.float64)  # which makes None a NaN
    return np.where(np.isnan(found), np.inf, found)


def share(surface: Surface, size: int) -> float:
    """The least held-out error at a number of features, as a share of the variance of the targets."""
    return float(surface.mean[surface.sizes.index(size)].min() / max(float(surface.baseline.sum()), 1e-300))
