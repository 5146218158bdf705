"""Which way to ridge regression: moments, sweeps of conjugate gradients, or blocks of features; and why."""

from __future__ import annotations

from dataclasses import dataclass

from bochner.solvers.pcg import MULTIPLIED, SWEPT, sketch_bytes, sketch_rows
from bochner.stats.sketched import BUCKETS

#: seconds of a core for a product of two numbers with the coefficients of an output in a sweep
_OUTPUT = 1e-10
#: sweeps for a model, and for the choice of its penalty
_SWEEPS, _CHOOSING = 15, 25
#: moments do more than coefficients (exact cross-validation, updates): they are given up for sweeps only where they
#: take more core seconds than this, and so many times as many
_SHORT, _TIMES = 60.0, 4.0
#: rows of a source that does not know how many it has
_UNKNOWN = 1_000_000
#: a block is not smaller
_LEAST_BLOCK = 256


@dataclass(frozen=True)
class Way:
    """A solver, how large the sketch or a block of it should be, and the reason in words."""

    solver: str
    why: str
    sketch: int = 0
    block: int = 0


def choose(
    rows: int | None,
    width: int,
    outputs: int,
    memory: int,
    *,
    folds: int = 5,
    choosing: bool = True,
    asked: str = "auto",
) -> Way:
    """The way for ``rows`` rows, ``width`` features, ``outputs`` targets or classes and ``memory`` bytes.

    It goes by a model of core seconds and bytes with measured constants, so that the same sizes give the same
    way everywhere.  ``choosing`` says whether a penalty is to be chosen; ``asked`` names a way, and leaves its
    sizes to be found.

    >>> choose(350_000, 1024, 2, 8 << 30).solver, choose(350_000, 16_384, 2, 8 << 30).solver
    ('moments', 'sweeps')
    """
    n = _UNKNOWN if rows is None else rows
    columns = 1 if outputs == 2 else outputs
    sketch = sketch_rows(n, width, memory)
    least = min(sketch_bytes(sketch, width), sketch_bytes(max(1, min(BUCKETS, n // 2)), width))
    block = _block(width, outputs, memory)
    slow, fast = (
        moments_seconds(n, width, folds if choosing else 0),
        sweeps_seconds(n, width, columns, sketch, choosing),
    )
    fits = moments_bytes(width, outputs, folds) <= memory
    costs = f"about {_told(slow)} of a core by moments, {_told(fast)} by sweeps"
    if asked == "moments":
        return Way("moments", "one pass and one factorisation")
    if asked == "sweeps":
        return Way("sweeps", f"as asked for; {costs}", sketch)
    if asked == "blocks":
        return Way("blocks", "as asked for", block=block)
    if fits and (slow <= _SHORT or slow <= _TIMES * fast):
        return Way("moments", "one pass and one factorisation")
    if least > memory:
        why = f"{memory / 2**30:.2g} GB of memory hold neither moments nor a preconditioner of {width:,} features"
        return Way("blocks", why, block=block)
    if not fits:
        return Way("sweeps", f"moments of {width:,} features do not fit in {memory / 2**30:.2g} GB of memory", sketch)
    return Way("sweeps", costs, sketch)


def moments_bytes(width: int, outputs: int, folds: int) -> int:
    """Of the moments of every fold, those of a thread, a total, and a factor."""
    return 8 * width * (width + 2 * outputs) * (2 * folds + 2)


def moments_seconds(rows: int, width: int, folds: int) -> float:
    """Of the pass, one factor, and a band form for each fold."""
    return rows * width * (SWEPT + MULTIPLIED * width) + width**3 * (2e-11 + 1e-10 * folds)


def sweeps_seconds(rows: int, width: int, columns: int, sketch: int, choosing: bool) -> float:
    """Of the first sweep, the factor, and the sweeps."""
    less, more = sorted((max(sketch, 1), width))
    sweeps = _SWEEPS + (_CHOOSING if choosing else 0)
    return MULTIPLIED * less * less * (more + less) + rows * width * (6 * SWEPT + sweeps * (SWEPT + _OUTPUT * columns))


def _block(width: int, outputs: int, memory: int) -> int:
    """The widest block whose moments and factor fit, as a power of two."""
    block = 1 << (width - 1).bit_length()
    while block > _LEAST_BLOCK and moments_bytes(block, outputs, 1) > memory:
        block //= 2
    return min(block, width)


def _told(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
