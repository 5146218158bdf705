"""Moments of blocks of features, each by itself: what PCA of every kernel of a sum needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bochner.stats.base import Batch, Statistic
from bochner.stats.moments import Moments, Part


class BlockMoments(Statistic):
    """Moments of consecutive blocks of features, without those between blocks: Σ Dᵢ² numbers instead of (Σ Dᵢ)².

    Rows without a target count where ``unlabelled`` says so.

    >>> import numpy as np
    >>> moments = BlockMoments((2, 1))
    >>> moments.update(Batch(np.array([[1.0, 0.0, 3.0], [3.0, 0.0, 5.0]])))
    >>> [part.scatter.tolist() for part in moments.parts]
    [[[2.0, 0.0], [0.0, 0.0]], [[2.0]]]
    """

    def __init__(self, blocks: Sequence[int], unlabelled: bool = True, found: Sequence[Moments] = ()):
        self.blocks, self.unlabelled = tuple(blocks), unlabelled
        self._found = list(found) or [Moments(width) for width in self.blocks]

    def fresh(self) -> Self:
        return type(self)(self.blocks, self.unlabelled)

    @property
    def nbytes(self) -> int:
        return sum(moments.nbytes for moments in self._found)

    def update(self, batch: Batch) -> None:
        if batch.target is None and not self.unlabelled:
            return
        start = 0
        for width, moments in zip(self.blocks, self._found, strict=True):
            moments.update(Batch(np.ascontiguousarray(batch.Z[:, start : start + width]), weight=batch.weight))
            start += width

    def __add__(self, other: Self) -> Self:
        found = [mine + theirs for mine, theirs in zip(self._found, other._found, strict=True)]
        return type(self)(self.blocks, self.unlabelled, found)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            f"{block}/{name}": array
            for block, moments in enumerate(self._found)
            for name, array in moments.to_arrays().items()
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        split = [
            {name.removeprefix(f"{block}/"): a for name, a in arrays.items() if name.startswith(f"{block}/")}
            for block in range(len(self.blocks))
        ]
        read = [moments.restored(own) for moments, own in zip(self._found, split, strict=True)]
        return type(self)(self.blocks, self.unlabelled, read)

    @property
    def parts(self) -> list[Part]:
        """One for each block."""
        return [moments.total() for moments in self._found]
