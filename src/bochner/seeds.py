"""(seed, path) → random stream, the same on every NumPy version.

NumPy promises the raw output of its bit generators and of ``SeedSequence`` for ever, but not the
methods of ``Generator``.  A model file keeps seeds instead of matrices, so every variate here is an
explicit function of the raw bits: uniforms, then quantiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import index
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import special

Float64 = NDArray[np.float64]


class Stream:
    """Variates from one counter-based generator.

    >>> Stream(0, (1, 2)).uniform(2).round(3).tolist() == Stream(0, (1, 2)).uniform(2).round(3).tolist()
    True
    """

    def __init__(self, root: int, path: tuple[int, ...] = ()):
        self._bits = np.random.Philox(np.random.SeedSequence(root, spawn_key=path))

    def _raw(self, size: int) -> NDArray[np.uint64]:
        return np.asarray(self._bits.random_raw(size), dtype=np.uint64)

    def uniform(self, *shape: int) -> Float64:
        """Uniforms in the open interval (0, 1)."""
        # 52 bits: with 53, the half added below would round the last one up to 1.
        raw = self._raw(math.prod(shape)) >> np.uint64(12)
        return ((raw.astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)

    def normal(self, *shape: int) -> Float64:
        """Standard normals, by the inverse distribution function."""
        return np.asarray(special.ndtri(self.uniform(*shape)))

    def chi(self, degrees: float, *shape: int) -> Float64:
        """The norm of a standard normal vector in ``degrees`` dimensions."""
        return np.sqrt(2.0 * self.gamma(0.5 * degrees, *shape))

    def gamma(self, shape_parameter: float, *shape: int) -> Float64:
        """Gamma variates of unit scale."""
        return np.asarray(special.gammaincinv(shape_parameter, self.uniform(*shape)))

    def signs(self, *shape: int) -> NDArray[np.int8]:
        """Rademacher signs, −1 or +1."""
        size = math.prod(shape)
        bits = np.unpackbits(self._raw(-(-size // 64)).astype("<u8").view(np.uint8), count=size)
        return (2 * bits.astype(np.int8) - 1).reshape(shape)

    def integers(self, below: int, *shape: int) -> NDArray[np.int64]:
        """Uniform integers 0 … below − 1 (bias below 2⁻⁵³ · below)."""
        return np.floor(self.uniform(*shape) * below).astype(np.int64)

    def geometric(self, ratio: float, *shape: int) -> NDArray[np.int64]:
        """n ≥ 0 with P[n] = (1 − ratio) · ratioⁿ."""
        return np.floor(np.log(self.uniform(*shape)) / math.log(ratio)).astype(np.int64)

    def permutation(self, size: int) -> NDArray[np.int64]:
        """A uniform permutation of 0 … size − 1."""
        return np.argsort(self._raw(size), kind="stable").astype(np.int64)

    def choice(self, weights: Float64, size: int) -> NDArray[np.int64]:
        """Indices drawn with replacement in proportion to ``weights``."""
        cumulative = np.cumsum(weights)
        place = np.searchsorted(cumulative, self.uniform(size) * cumulative[-1], side="right")
        return np.asarray(place.clip(max=len(weights) - 1), dtype=np.int64)


@dataclass(frozen=True)
class Seed:
    """A node of the tree of streams: ``seed.child("signs", 3)`` never collides with a sibling."""

    root: int
    path: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.root < 0:
            raise ValueError(f"a seed is a non-negative integer, got {self.root}")

    def child(self, *names: int | str) -> Seed:
        keys = tuple(crc32(name.encode()) if isinstance(name, str) else int(name) for name in names)
        if any(not 0 <= key < 2**32 for key in keys):
            raise ValueError(f"the numbers of a path lie between 0 and 2³² − 1, got {names}")
        return Seed(self.root, self.path + keys)

    def stream(self, *names: int | str) -> Stream:
        node = self.child(*names)
        return Stream(node.root, node.path)


def as_seed(seed: int | Seed | np.integer) -> Seed:
    """A ``Seed`` from what a caller passes."""
    if isinstance(seed, Seed):
        return seed
    try:
        return Seed(index(seed))
    except TypeError:
        raise ValueError(f"a seed is a non-negative integer, got {seed!r}") from None
