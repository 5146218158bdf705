"""Uniform points for quantiles: pseudo-random, scrambled Sobol', Latin, stratified extremes, orthogonal normals."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bochner.arrays import Float64, frozen, tiles
from bochner.errors import MapError
from bochner.seeds import Seed, Stream

#: frequencies of one stream: block j can be drawn without the others
BLOCK = 256
_BITS = 30
#: coordinates farthest from ½ that ``extremes`` stratifies
_FARTHEST = 8
#: uniforms keep away from 0 and 1, where quantiles are infinite
_LEAST = 2.0**-53


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
    levels = max(0, (count - 1).bit_length())
    plain = _sobol_digits(levels, dims)[:count]
    columns, shift = _scramble(seed.stream("scramble"), dims)
    out = np.broadcast_to(shift, plain.shape).copy()
    for bit in range(_BITS - levels, _BITS):  # the first 2ᵐ points have m digits
        out ^= ((plain >> bit) & 1) * columns[bit]
    return np.asarray((out + 0.5) * 2.0**-_BITS)


@lru_cache(maxsize=4)
def _sobol_digits(levels: int, dims: int) -> NDArray[np.int32]:
    """The first 2^levels points of the plain sequence, as integers of _BITS digits."""
    from scipy.stats import qmc  # half of the time of importing this package, if it were at the top

    if dims > qmc.Sobol.MAXDIM:
        raise MapError(f"Sobol' points have at most {qmc.Sobol.MAXDIM} dimensions, {dims} are needed; use 'iid'")
    points = qmc.Sobol(dims, scramble=False, bits=_BITS).random(1 << levels)
    return np.asarray(frozen(np.round(points * 2.0**_BITS), np.int32))


def _scramble(stream: Stream, dims: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Lower-triangular unit matrices over GF(2), one a dimension, as the image of each input bit."""
    # Bit _BITS−1 is the most significant digit; an input digit may change only itself and lower ones.
    random = (stream.uniform(dims, _BITS) * 2.0**_BITS).astype(np.int64)
    weight = np.int64(1) << np.arange(_BITS, dtype=np.int64)
    columns = (random & (weight - 1)) | weight
    shift = (stream.uniform(dims) * 2.0**_BITS).astype(np.int64)
    return columns.T.astype(np.int32), shift.astype(np.int32)


def latin(seed: Seed, count: int, dims: int) -> Float64:
    """A Latin hypercube: every coordinate is stratified over all points together."""
    stream = seed.stream("latin")
    out = stream.uniform(count, dims)
    for j in range(dims):
        out[:, j] = (out[:, j] + stream.permutation(count)) / count
    return out


def extremes(seed: Seed, count: int, dims: int) -> Float64:
    """Independent uniforms, of which the few that lie farthest from ½ are drawn first, at Sobol' points.

    For heavy-tailed quantiles, where one or two coordinates decide what a point does.  By order statistics:
    the largest of n uniforms below m is m U^{1/n}, at any of n places alike.
    """
    farthest = min(_FARTHEST, dims)
    level, place, side = sobol(seed.child("extremes"), count, 3 * farthest).T.reshape(farthest, 3, count).swapaxes(0, 1)
    free, rows = np.tile(np.arange(dims), (count, 1)), np.arange(count)
    deviation = 2.0 * uniform(seed, count, dims) - 1.0
    bound = np.ones(count)
    for k in range(farthest):
        bound *= level[k] ** (1.0 / (dims - k))
        pick = k + (place[k] * (dims - k)).astype(np.int64)
        chosen = free[rows, pick]
        free[rows, pick] = free[:, k]
        free[:, k] = chosen
        deviation[rows, chosen] = np.where(side[k] < 0.5, -bound, bound)
    others = free[:, farthest:]
    within = np.take_along_axis(deviation, others, axis=1) * bound[:, None]
    np.put_along_axis(deviation, others, within, axis=1)
    return 0.5 * (1.0 + deviation)


def directions(width: int, count: int, seed: Seed) -> Float64:
    """Blocks of orthonormal columns, uniform over rotations (Yu et al. 2016)."""
    together = width * max(1, BLOCK // width)  # small blocks share a stream and a call
    rows = []
    for j, columns in enumerate(tiles(count, together)):
        size = columns.stop - columns.start
        # Householder QR works column by column, so a narrower block is the start of a wider one.
        gaussian = seed.stream("directions", j).normal(-(-size // width), min(size, width), width)
        q, r = np.linalg.qr(gaussian.swapaxes(1, 2))
        q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
        rows.append(q.swapaxes(1, 2).reshape(-1, width)[:size])
    return np.concatenate(rows).T


def orthogonal(seed: Seed, count: int, dims: int) -> Float64:
    """The distribution functions of normal vectors, orthogonal within blocks of ``dims`` points.

    Each point is uniform, and second moments over the points are near to what they should be: for smooth
    functions of many coordinates.  Norms are at Sobol' points through the quantiles of chi.
    """
    radii = np.sqrt(2.0 * special.gammaincinv(0.5 * dims, sobol(seed.child("norms"), count, 1)))
    return np.asarray(np.clip(special.ndtr(radii * directions(dims, count, seed).T), _LEAST, 1.0 - _LEAST))


def mirrored(seed: Seed, count: int, dims: int) -> Float64:
    """u, 1 − u for orthogonal points u: odd functions have no error, and those of second order little."""
    half = orthogonal(seed, -(-count // 2), dims)
    return np.stack([half, 1.0 - half], axis=1).reshape(-1, dims)[:count]


POINTS = {
    "iid": uniform,
    "sobol": sobol,
    "latin": latin,
    "extremes": extremes,
    "orthogonal": orthogonal,
    "mirrored": mirrored,
}
