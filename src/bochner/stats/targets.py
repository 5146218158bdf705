"""Targets as statistics take them: class codes, or columns of numbers; what is missing is unlabelled."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float64
from bochner.errors import DataError


class Targets(ABC):
    """How targets are encoded, and how many outputs a model of them has."""

    @property
    @abstractmethod
    def outputs(self) -> int: ...

    @abstractmethod
    def encode(self, y: NDArray[Any], start: int = 0) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Encoded targets, and which rows are labelled; ``start`` numbers the rows in errors."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Numbers(Targets):
    """k columns of numbers; a row that lacks one is unlabelled."""

    columns: int = 1
    #: whether y was one-dimensional, so that predictions are
    flat: bool = True

    @property
    def outputs(self) -> int:
        return self.columns

    def encode(self, y: NDArray[Any], start: int = 0) -> tuple[Float64, NDArray[np.bool_]]:
        try:
            values = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        except (TypeError, ValueError):
            raise DataError(f"the target of row {start} or later is not a number; classify, or encode it") from None
        if values.shape[1] != self.columns:
            raise DataError(f"the target has {values.shape[1]} columns, {self.columns} are expected")
        wrong = np.isinf(values).any(axis=1)
        if wrong.any():
            row = start + int(np.flatnonzero(wrong)[0])
            raise DataError(f"row {row} has an infinite target; remove or clip such rows first", row)
        return values, np.asarray(~np.isnan(values).any(axis=1))

    def to_json(self) -> dict[str, Any]:
        return {"targets": "numbers", "columns": self.columns, "flat": self.flat}


@dataclass(frozen=True, eq=False)
class Classes(Targets):
    """Labels of any one type, in ascending order; a missing label (None or NaN) is unlabelled."""

    labels: NDArray[Any]

    @property
    def outputs(self) -> int:
        return len(self.labels)

    def encode(self, y: NDArray[Any], start: int = 0) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        y = np.asarray(y).reshape(len(y))
        labelled = ~missing(y)
        codes = np.full(len(y), -1, dtype=np.int64)
        known = y[labelled]
        if known.dtype.kind == "O" and self.labels.dtype.kind != "O":
            known = np.array(known.tolist())
        try:
            place = np.searchsorted(self.labels, known).clip(max=len(self.labels) - 1)
            right = self.labels[place] == known
        except TypeError:
            right = np.zeros(len(known), dtype=bool)
            place = right.astype(np.int64)
        if not np.all(right):
            row = int(np.flatnonzero(labelled)[np.flatnonzero(~right)[0]])
            shown = y[row : row + 1].tolist()[0]  # a NumPy scalar would be shown with its type
            raise DataError(
                f"row {start + row} has the label {shown!r}, which is none of the {len(self.labels)} known classes",
                start + row,
            )
        codes[labelled] = place
        return codes, labelled

    def to_json(self) -> dict[str, Any]:
        return {"targets": "classes", "labels": self.labels.tolist(), "dtype": self.labels.dtype.str}


def targets_from_json(item: Any) -> Targets:
    """What ``to_json`` wrote."""
    try:
        if item["targets"] == "numbers":
            return Numbers(int(item["columns"]), bool(item["flat"]))
        if item["targets"] == "classes":
            return Classes(_labels(item["labels"], item["dtype"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"targets are not described as expected ({error!r})") from None
    raise DataError(f"there are no targets of the kind {item['targets']!r}")


def _labels(values: list[Any], code: str) -> NDArray[Any]:
    if not re.fullmatch(r"[<|>](i[1248]|u[1248]|f[248]|b1|U\d{1,6}|O)", code):
        raise ValueError(f"labels of dtype {code!r}")
    if "U" in code and int(code[2:]) > max(1, *map(len, values)):
        raise ValueError(f"labels of dtype {code!r} that are shorter")
    labels = np.empty(len(values), dtype=code)
    labels[:] = values
    if len(labels) < 2 or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
        raise ValueError("a classifier has two classes or more")
    return labels


def missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are None or NaN."""
    if y.dtype.kind == "f":
        return np.asarray(np.isnan(y))
    if y.dtype.kind == "O":
        return np.array([value is None or value != value for value in y], dtype=bool)
    return np.zeros(y.shape, dtype=bool)


def learn_targets(chunks: Iterable[NDArray[Any]], classify: bool) -> Targets:
    """The labels that occur, or how many columns of numbers there are, from one light pass over the targets."""
    if not classify:
        first = next(iter(chunks), None)
        if first is None:
            raise DataError("there are no rows to learn from")
        return Numbers(1 if first.ndim == 1 else first.shape[1], first.ndim == 1)
    found: NDArray[Any] | None = None
    for y in chunks:
        if y.ndim > 1 and y.shape[1] != 1:
            raise DataError(f"one column of labels is expected, got {y.shape[1]}")
        flat = y.reshape(len(y))
        here = flat[~missing(flat)]
        if here.dtype.kind == "O":
            here = np.array(here.tolist()) if len({type(value) for value in here}) == 1 else here
        try:
            here = np.unique(here)
            found = here if found is None or not len(found) else np.unique(np.concatenate([found, here]))
        except TypeError:
            raise DataError("the labels are of types that cannot be ordered together; make them all strings") from None
    if found is None or not len(found):
        raise DataError("there are no labelled rows to learn from")
    if len(found) < 2:
        raise DataError(f"there is one class only, {found.tolist()[0]!r}; a classifier needs two or more")
    return Classes(found)
