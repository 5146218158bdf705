"""What a source is: rows in order, in chunks of one size, that can be read again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bochner.arrays import Float64, Matrix
from bochner.errors import DataError
from bochner.seeds import Seed
from bochner.sources.schema import Schema

#: rows of a chunk: results depend on it in their last bits, so that it is a constant
CHUNK = 8192


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows: numbers X, and what else the source was asked to read.

    ``y`` holds labels of any type or numbers, (n,) or (n, k); a missing label is None, a missing number NaN.
    """

    X: Matrix
    start: int
    y: NDArray[Any] | None = None
    weight: Float64 | None = None
    group: NDArray[Any] | None = None
    #: the numbers of rows that are not consecutive: those of a sample
    picked: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number of every row in the source."""
        return self.start + np.arange(len(self)) if self.picked is None else self.picked

    def take(self, rows: Any) -> Chunk:
        """Some of the rows (``start`` stays that of the chunk)."""
        y, weight, group = (None if a is None else a[rows] for a in (self.y, self.weight, self.group))
        return Chunk(self.X[rows], self.start, y, weight, group, self.numbers[rows])


class Source(ABC):
    """Rows of numbers, with targets where they are known, that can be read many times in the same order."""

    schema: Schema
    #: the number of rows, where it is known without reading them
    n_rows: int | None = None
    #: whether chunks are sparse matrices
    sparse: bool = False
    #: names of the target columns; () when rows have none
    target: tuple[str, ...] = ()

    @property
    def d(self) -> int:
        """How many numbers a row has."""
        return self.schema.d

    @abstractmethod
    def chunks(self, size: int = CHUNK, start: int = 0) -> Iterator[Chunk]:
        """Every row from ``start`` on (a multiple of ``size``), in chunks of ``size``; the last is shorter."""

    def settle(self) -> Self:
        """The source with everything that a light first pass has to learn: categories, what fills a gap."""
        return self

    @abstractmethod
    def with_schema(self, schema: Schema) -> Source:
        """The same rows, with the columns and constants of a model: by name, where both have names."""

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """JSON that changes when the data do: for a fit that is resumed."""

    def targets(self, size: int = CHUNK) -> Iterator[NDArray[Any]]:
        """The targets alone, chunk by chunk."""
        for chunk in self.chunks(size):
            if chunk.y is None:
                raise DataError("the rows have no target; name one with target=…")
            yield chunk.y

    def sample(self, count: int, seed: int | Seed = 0) -> Chunk:
        """At most ``count`` rows, uniformly without replacement, in order.

        Where the number of rows is known the picks are made first and one pass gathers them; otherwise
        every row gets a key from its number and the smallest keys win.
        """
        node = seed if isinstance(seed, Seed) else Seed(int(seed)).child("sample")
        kept: list[Chunk] = []
        if self.n_rows is not None:
            picks = np.sort(node.stream("rows").permutation(self.n_rows)[:count])
            for chunk in self.chunks():
                here = picks[np.searchsorted(picks, chunk.start) : np.searchsorted(picks, chunk.start + len(chunk))]
                if len(here):
                    kept.append(chunk.take(here - chunk.start))
            return gathered(kept, self)
        keys = np.empty(0)
        for chunk in self.chunks():
            fresh = node.stream("keys", chunk.start // CHUNK).uniform(len(chunk))
            keys = np.concatenate([keys, fresh])
            kept.append(chunk)
            if len(keys) > 2 * count or len(kept) > 64:
                kept, keys = _smallest(kept, keys, count, self)
        return _smallest(kept, keys, count, self)[0][0] if kept else gathered([], self)


def _smallest(kept: list[Chunk], keys: Float64, count: int, source: Source) -> tuple[list[Chunk], Float64]:
    rows = np.sort(np.argsort(keys, kind="stable")[:count])
    return [gathered(kept, source).take(rows)], keys[rows]


def gathered(parts: list[Chunk], source: Source) -> Chunk:
    """Chunks one after another, as one."""
    if not parts:
        raise DataError("the source has no rows")
    if len(parts) == 1:
        return parts[0]
    X = [part.X for part in parts]
    joined = sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)
    y, weight, group = (
        None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in ("y", "weight", "group")
    )
    return Chunk(joined, parts[0].start, y, weight, group, np.concatenate([part.numbers for part in parts]))
