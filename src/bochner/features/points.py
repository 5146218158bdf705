"""Uniform points for quantiles: pseudo-random, scrambled Sobol', Latin hypercube."""

from __future__ import annotations

import numpy as np

from bochner.arrays import Float64
from bochner.errors import MapError
from bochner.seeds import Seed, Stream

#: frequencies of one stream: block j can be drawn without the others
BLOCK = 256
_BITS = 30


def uniform(seed: Seed, count: int, dims: int) -> Float64:
    """Independent uniforms (count, dims), block by block."""
    blocks = [
        seed.stream("uniform", j).uniform(min(BLOCK, count - start), dims)
        for j, start in enumerate(range(0, count, BLOCK))
    ]
    return np.concatenate(blocks) if blocks else np.empty((0, dims))


def sobol(seed: Seed, count: int, dims: int) -> Float64:
    """The first points of a Sobol' sequence under a random linear matrix scramble and digital shift.

    (Matoušek 1998.)  Every point is uniform; the scramble is drawn from the seed's own stream, since
    NumPy and SciPy do not promise theirs for ever.
    """
    from scipy.stats import qmc  # half of the time of importing this package, if it were at the top

    if dims > qmc.Sobol.MAXDIM:
        raise MapError(f"Sobol' points have at most {qmc.Sobol.MAXDIM} dimensions, {dims} are needed; use 'iid'")
    size = 1 << max(0, (count - 1).bit_length())  # whole powers of two keep SciPy from warning
    raw = qmc.Sobol(dims, scramble=False, bits=_BITS).random(size)[:count]
    plain = np.round(raw * 2.0**_BITS).astype(np.int64)
    stream = seed.stream("scramble")
    columns, shift = _scramble(stream, dims)
    out = np.broadcast_to(shift, plain.shape).copy()
    for bit in range(_BITS):
        out ^= np.where((plain >> bit) & 1, columns[bit], 0)
    return (out + 0.5) * 2.0**-_BITS


def _scramble(stream: Stream, dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower-triangular unit matrices over GF(2), one a dimension, as the image of each input bit."""
    # Bit _BITS−1 is the most significant digit; an input digit may change only itself and lower ones.
    random = (stream.uniform(dims, _BITS) * 2.0**_BITS).astype(np.int64)
    weight = np.int64(1) << np.arange(_BITS, dtype=np.int64)
    columns = (random & (weight - 1)) | weight
    shift = (stream.uniform(dims) * 2.0**_BITS).astype(np.int64)
    return columns.T.copy(), shift


def latin(seed: Seed, count: int, dims: int) -> Float64:
    """A Latin hypercube: every coordinate is stratified over all points together."""
    stream = seed.stream("latin")
    out = stream.uniform(count, dims)
    for j in range(dims):
        out[:, j] = (out[:, j] + stream.permutation(count)) / count
    return out


POINTS = {"iid": uniform, "sobol": sobol, "latin": latin}
