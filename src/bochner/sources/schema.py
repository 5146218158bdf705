"""What the columns of a table are and which numbers they become: part of a model, so that rows can be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bochner.errors import DataError

Category = str | int | float | bool
KINDS = ("number", "vector", "category")


@dataclass(frozen=True)
class Column:
    """One column of a table: a number, a vector of ``width`` numbers, or a category.

    ``categories`` are the values of a category that were learnt or given: each becomes a column of 0 and 1.
    ``fill`` stands in for a missing number (of a vector: one for each); without it a missing value is refused.
    A category with a fill takes a missing value as a row of zeros.
    """

    name: str
    kind: str = "number"
    width: int = 1
    categories: tuple[Category, ...] | None = None
    fill: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.width < 1 or (self.kind != "vector" and self.width != 1):
            raise DataError(f"a column of kind {self.kind!r} and width {self.width} does not exist", column=self.name)

    @property
    def numbers(self) -> int:
        """How many numbers it becomes."""
        if self.kind == "category":
            return len(self.categories or ())
        return self.width

    @property
    def names(self) -> tuple[str, ...]:
        """The names of those numbers."""
        if self.kind == "category":
            return tuple(f"{self.name}={value}" for value in self.categories or ())
        if self.kind == "vector":
            return tuple(f"{self.name}[{i}]" for i in range(self.width))
        return (self.name,)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to learn from the data."""
        return self.kind != "category" or self.categories is not None


@dataclass(frozen=True)
class Schema:
    """The columns of X: named ones of a table, or ``plain`` numbers of an array without names."""

    columns: tuple[Column, ...] = ()
    plain: int = 0
    #: what stands in for a missing number of each plain column
    fills: tuple[float, ...] | None = None
    #: the number of the first plain column where a file numbers its columns: libsvm counts from 0 or 1
    first: int | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise DataError(f"the column {twice[0]!r} is there twice; rename or drop one", column=twice[0])

    @property
    def d(self) -> int:
        """How many numbers a row has."""
        return self.plain if not self.columns else sum(column.numbers for column in self.columns)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The name of every number, where columns have names."""
        return tuple(name for column in self.columns for name in column.names) if self.columns else None

    @property
    def settled(self) -> bool:
        """Whether nothing is left to learn from the data."""
        return all(column.settled for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """JSON that ``from_json`` reads back."""
        columns = [
            {
                "name": c.name,
                "kind": c.kind,
                "width": c.width,
                "categories": None if c.categories is None else list(c.categories),
                "fill": list(c.fill) if isinstance(c.fill, tuple) else c.fill,
            }
            for c in self.columns
        ]
        fills = None if self.fills is None else list(self.fills)
        return {"columns": columns, "plain": self.plain, "fills": fills, "first": self.first}

    @classmethod
    def from_json(cls, item: Any) -> Schema:
        """The schema that ``to_json`` wrote."""
        try:
            columns = tuple(
                Column(
                    str(c["name"]),
                    str(c["kind"]),
                    int(c["width"]),
                    None if c["categories"] is None else tuple(c["categories"]),
                    _fill(c["fill"]),
                )
                for c in item["columns"]
            )
            fills = item["fills"]
            first = item["first"]
            return cls(
                columns,
                int(item["plain"]),
                None if fills is None else tuple(map(float, fills)),
                None if first is None else int(first),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"a schema has the keys columns, plain, fills and first ({error!r})") from None


def _fill(item: Any) -> float | tuple[float, ...] | None:
    if isinstance(item, list):
        return tuple(map(float, item))
    return None if item is None else float(item)


@dataclass(frozen=True)
class Asked:
    """What a user asked a source to read: which columns are what, and what to do about gaps."""

    target: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    weight: str | None = None
    group: str | None = None
    #: columns of numbers that are categories all the same
    categories: dict[str, tuple[Category, ...] | None] = field(default_factory=dict)
    #: "refuse", "mean", "median", "most_frequent", or the number that stands in
    missing: str | float = "refuse"


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Names for an error: not more than ``most``."""
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def refuse_target(target: Sequence[Any], features: Sequence[Any]) -> None:
    """A target that is a feature too would be predicted from itself."""
    both = [name for name in target if name in features]
    if both:
        raise DataError(f"the target {listed(both)} is among the features; name it as one of the two", column=both[0])
