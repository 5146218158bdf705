"""Several statistics from one sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import NDArray

from bochner.stats.base import Batch, Statistic


class Together(Statistic):
    """Each of ``parts`` sees every batch, in order: only the last that takes a batch may overwrite its features.

    >>> import numpy as np
    >>> from bochner.stats import Moments
    >>> both = Together(Moments(2), Moments(2))
    >>> both.update(Batch(np.zeros((3, 2)))); (both + both.fresh()).parts[0].total().count
    3
    """

    def __init__(self, *parts: Any):
        self.parts: tuple[Any, ...] = parts
        self.tile_bytes = max(part.tile_bytes for part in parts)

    def fresh(self) -> Self:
        return type(self)(*(part.fresh() for part in self.parts))

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def update(self, batch: Batch) -> None:
        for part in self.parts:
            part.update(batch)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        each = [part.to_arrays() for part in self.parts]
        if not all(each):
            return {}
        return {f"{i}/{name}": array for i, arrays in enumerate(each) for name, array in arrays.items()}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        each: list[dict[str, NDArray[Any]]] = [{} for _ in self.parts]
        for name, array in arrays.items():
            place, _, own = name.partition("/")
            each[int(place)][own] = array
        return type(self)(*(part.restored(own) for part, own in zip(self.parts, each, strict=True)))

    def __add__(self, other: Self) -> Self:
        return type(self)(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))
