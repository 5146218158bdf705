"""Folds of cross-validation, by a hash of the row number or the group: the same however the rows are cut."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.errors import DataError


@dataclass(frozen=True)
class Folds:
    """``count`` folds; rows of one group are never apart when the rows have groups.

    >>> Folds(3).assign(0, 5).tolist() == Folds(3).assign(0, 9)[:5].tolist()
    True
    """

    count: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 2:
            raise DataError(f"cross-validation needs at least 2 folds, got {self.count}")

    def assign(self, start: int, rows: int, group: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """The fold of each of the rows from number ``start`` on."""
        return self.of(np.arange(start, start + rows), group)

    def of(self, numbers: NDArray[np.int64], group: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """The fold of each of the rows with these numbers, or of these groups."""
        if group is None:
            keys = np.asarray(numbers).astype(np.uint64)
        else:
            names, places = np.unique(group.astype(str), return_inverse=True)
            digests = [blake2b(name.encode(), digest_size=8).digest() for name in names]
            keys = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[places]
        return (mixed(keys, self.seed) % np.uint64(self.count)).astype(np.int64)


def mixed(keys: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea & Flood 2014): neighbours become independent bits."""
    with np.errstate(over="ignore"):
        z = keys + np.uint64(seed % 2**64) * np.uint64(0xD1B54A32D192ED03) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
