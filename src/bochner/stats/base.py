"""What a statistic is: it takes batches of features, and merges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64

S = TypeVar("S", bound="Statistic")


@dataclass
class Batch:
    """Features of some rows of one fold, by ascending class where targets are classes.

    ``Z`` belongs to whoever gets the batch until ``update`` ends, and may be overwritten: the next batch
    takes its place.  ``target`` holds class codes (n,),
    numbers (n, k), or None where the rows are unlabelled.
    """

    Z: Float
    target: NDArray[Any] | None = None
    weight: Float64 | None = None
    fold: int = 0
    #: numbers of the rows in the source
    rows: NDArray[np.int64] | None = None


class Statistic(ABC):
    """A sum over rows.  A fresh one is the identity of ``+``."""

    @abstractmethod
    def fresh(self) -> Self:
        """One of the same shape that has seen nothing."""

    @abstractmethod
    def update(self, batch: Batch) -> None:
        """Add rows."""

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    #: names of the attributes that are sums: numbers or arrays, all that rows change
    summed: ClassVar[tuple[str, ...]] = ()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays that ``restored`` reads back, for files; {} where a statistic cannot be kept in one."""
        return {name: np.asarray(getattr(self, name)) for name in self.summed}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """One of the same shape that has seen the rows of the one that gave ``arrays``."""
        other = self.fresh()
        for name in self.summed:
            mine = getattr(other, name)
            array = arrays[name]
            setattr(other, name, array.copy() if isinstance(mine, np.ndarray) else type(mine)(array.item()))
        return other

    #: whether it works on memory that it has in common with others, so that it cannot leave its process
    shared: ClassVar[bool] = False

    #: bytes of a tile of features: small ones stay in the cache for statistics that go over them twice
    tile_bytes: int = 32 << 20

    @property
    def nbytes(self) -> int:
        """How much memory it takes once it has seen rows: every worker has one."""
        return 0


class Sweep(Protocol):
    """One pass over the data, as solvers see it: the statistic of all rows, shaped as the one that is given."""

    def __call__(self, statistic: S) -> S: ...
