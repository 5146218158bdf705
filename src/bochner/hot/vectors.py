"""Loops over vectors of sixteen floats: Hadamard transforms, and cosines and sines of turns, of many rows at once.

Rows stand side by side (feature by row), so that a transform is sums of whole vectors, with no shuffles.  The
vectors are written out in LLVM's terms, which every processor has a form of; plain loops come to a half of the
speed.  ``reference`` has the twins.  This file is imported when it is first needed: Numba is.
"""

# Numba has no types of its own.
# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call,no-any-return"
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from bochner.hot.reference import LOGARITHM, TURNS

#: rows of a vector
LANES = 16

_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)


def _all(value: float) -> Any:
    return ir.Constant(_VECTOR, [ir.Constant(_FLOAT, float(np.float32(value)))] * LANES)


def _call(builder: Any, name: str, *operands: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(operands))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32"), operands)


def _spread(builder: Any, number: Any) -> Any:
    """A vector of one number."""
    blank = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(blank, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, blank, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))


def _place(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [offset])


def _load(builder: Any, place: Any) -> Any:
    return builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=4)


def _store(builder: Any, vector: Any, place: Any) -> None:
    builder.store(vector, builder.bitcast(place, _VECTOR.as_pointer()), align=4)


def _butterfly(radix: int) -> Any:
    """dst[q] = Σ ± src[q] signs[q] for ``radix`` vectors, ``gap`` apart in src, ``step`` in dst, signs ``stride``."""

    @intrinsic
    def butterfly(_typing, src, at, gap, dst, to, step, signs, sign_at, stride):
        place = types.intp
        signature = types.void(src, place, place, dst, place, place, signs, place, place)

        def generate(context, builder, signature, values):
            src, at, gap, dst, to, step, signs, sign_at, stride = values
            source = _place(context, builder, signature.args[0], src, at)
            target = _place(context, builder, signature.args[3], dst, to)
            sign = _place(context, builder, signature.args[6], signs, sign_at)
            parts = []
            for q in range(radix):
                number = ir.Constant(_LONG, q)
                value = _load(builder, builder.gep(source, [builder.mul(gap, number)]))
                factor = builder.load(builder.gep(sign, [builder.mul(stride, number)]))
                parts.append(builder.fmul(value, _spread(builder, factor)))
            half = 1
            while half < radix:
                for start in range(0, radix, 2 * half):
                    for q in range(start, start + half):
                        a, b = parts[q], parts[q + half]
                        parts[q], parts[q + half] = builder.fadd(a, b), builder.fsub(a, b)
                half *= 2
            for q in range(radix):
                _store(builder, parts[q], builder.gep(target, [builder.mul(step, ir.Constant(_LONG, q))]))
            return context.get_dummy_value()

        return signature, generate

    return butterfly


_two, _four, _eight = _butterfly(2), _butterfly(4), _butterfly(8)


def _reduced(builder: Any, turns: Any) -> Any:
    """Turns from the nearest whole number of them: exact, so that no phase is too large."""
    return builder.fsub(turns, _call(builder, "rint", turns))


def _wave(builder: Any, turns: Any, scale: Any) -> Any:
    """Scale times cos 2π turns, for |turns| ≤ ½: an odd polynomial about the nearest zero."""
    u = builder.fsub(_call(builder, "fabs", turns), _all(0.25))
    square = builder.fmul(u, u)
    value = _all(TURNS[-1])
    for coefficient in reversed(TURNS[:-1]):
        value = _call(builder, "fma", value, square, _all(coefficient))
    return builder.fmul(builder.fmul(value, u), scale)


@intrinsic
def _cos_sin(_typing, src, at, factor, amplitude, out, cos_to, sin_to):
    """Amplitude times cos and sin of 2π · factor · src."""
    signature = types.void(src, types.intp, types.float32, types.float32, out, types.intp, types.intp)

    def generate(context, builder, signature, values):
        src, at, factor, amplitude, out, cos_to, sin_to = values
        turns = _load(builder, _place(context, builder, signature.args[0], src, at))
        turns = _reduced(builder, builder.fmul(turns, _spread(builder, factor)))
        late = _reduced(builder, builder.fsub(turns, _all(0.25)))
        scale = _spread(builder, amplitude)
        for rest, to in ((turns, cos_to), (late, sin_to)):
            _store(builder, _wave(builder, rest, scale), _place(context, builder, signature.args[4], out, to))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _cos(_typing, src, at, factor, offset, amplitude, out, to):
    """Amplitude times cos 2π (factor · src + offset)."""
    signature = types.void(src, types.intp, types.float32, types.float32, types.float32, out, types.intp)

    def generate(context, builder, signature, values):
        src, at, factor, offset, amplitude, out, to = values
        turns = _load(builder, _place(context, builder, signature.args[0], src, at))
        turns = _call(builder, "fma", turns, _spread(builder, factor), _spread(builder, offset))
        value = _wave(builder, _reduced(builder, turns), _spread(builder, amplitude))
        _store(builder, value, _place(context, builder, signature.args[5], out, to))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _log_and_root(_typing, src, at, logs, roots, to):
    """log₂ x = e + 2 artanh s / ln 2 with x = 2ᵉ m, s = (m − 1)/(m + 1) and m within √2 of 1; and √x."""
    signature = types.void(src, types.intp, logs, roots, types.intp)

    def generate(context, builder, signature, values):
        src, at, logs, roots, to = values
        whole = ir.VectorType(_INT, LANES)

        def number(value):
            return ir.Constant(whole, [ir.Constant(_INT, value)] * LANES)

        x = _load(builder, _place(context, builder, signature.args[0], src, at))
        denormal = builder.fcmp_ordered("<", x, _all(2.0**-126))
        bits = builder.bitcast(builder.select(denormal, builder.fmul(x, _all(2.0**24)), x), whole)
        exponent = builder.ashr(builder.sub(bits, number(0x3F3504F3)), number(23))
        m = builder.bitcast(builder.sub(bits, builder.shl(exponent, number(23))), _VECTOR)
        exponent = builder.sub(exponent, builder.select(denormal, number(24), number(0)))
        s = builder.fdiv(builder.fsub(m, _all(1.0)), builder.fadd(m, _all(1.0)))
        square = builder.fmul(s, s)
        value = _all(LOGARITHM[-1])
        for coefficient in reversed(LOGARITHM[:-1]):
            value = _call(builder, "fma", value, square, _all(coefficient))
        value = _call(builder, "fma", value, s, builder.sitofp(exponent, _VECTOR))
        value = builder.fadd(value, builder.fsub(x, x))  # an infinity is not a number any more
        _store(builder, value, _place(context, builder, signature.args[2], logs, to))
        _store(builder, _call(builder, "sqrt", x), _place(context, builder, signature.args[3], roots, to))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _scaled_cos_sin(_typing, src, scales, at, factor, amplitude, out, cos_to, sin_to):
    """Scales times amplitude times cos and sin of 2π · factor · src."""
    place = types.intp
    signature = types.void(src, scales, place, types.float32, types.float32, out, place, place)

    def generate(context, builder, signature, values):
        src, scales, at, factor, amplitude, out, cos_to, sin_to = values
        turns = _load(builder, _place(context, builder, signature.args[0], src, at))
        scale = _load(builder, _place(context, builder, signature.args[1], scales, at))
        scale = builder.fmul(scale, _spread(builder, amplitude))
        turns = _reduced(builder, builder.fmul(turns, _spread(builder, factor)))
        late = _reduced(builder, builder.fsub(turns, _all(0.25)))
        for rest, to in ((turns, cos_to), (late, sin_to)):
            _store(builder, _wave(builder, rest, scale), _place(context, builder, signature.args[5], out, to))
        return context.get_dummy_value()

    return signature, generate


# In all loops ``out`` is a stretch of memory with features ``step`` apart.  There are at least ``LANES`` rows, and
# the last vector of them begins where it ends with the last row: some rows are worked out twice.


@njit(nogil=True, cache=True, error_model="numpy")
def cos_sin(phases, factor, amplitude, out, step):
    """See ``reference.cos_sin``."""
    count, rows = phases.shape
    src = phases.reshape(-1)
    for i in range(count):
        for start in range(0, rows, LANES):
            j = min(start, rows - LANES)
            _cos_sin(src, i * rows + j, factor, amplitude, out, 2 * i * step + j, (2 * i + 1) * step + j)


@njit(nogil=True, cache=True, error_model="numpy")
def cos(phases, factor, offsets, amplitude, out, step):
    """See ``reference.cos``."""
    count, rows = phases.shape
    src = phases.reshape(-1)
    for i in range(count):
        for start in range(0, rows, LANES):
            j = min(start, rows - LANES)
            _cos(src, i * rows + j, factor, offsets[i], amplitude, out, i * step + j)


@njit(nogil=True, cache=True, error_model="numpy")
def _hadamard(src, at, gap, dst, size, signs, first):
    """The transform of ``size`` vectors times ``signs[first:]``, from src (``gap`` apart) to dst."""
    ones = np.ones(1, np.float32)
    step = size // 8
    for j in range(step):
        _eight(src, at + j * gap, step * gap, dst, j * LANES, step * LANES, signs, first + j, step)
    while step > 1:
        radix = min(8, step)
        part = step // radix
        apart = part * LANES
        for group in range(0, size, step):
            for j in range(group * LANES, (group + part) * LANES, LANES):
                if radix == 8:
                    _eight(dst, j, apart, dst, j, apart, ones, 0, 0)
                elif radix == 4:
                    _four(dst, j, apart, dst, j, apart, ones, 0, 0)
                else:
                    _two(dst, j, apart, dst, j, apart, ones, 0, 0)
        step = part


@njit(nogil=True, cache=True, error_model="numpy")
def structured(rows, signs, factors, amplitude, out, step):
    """See ``reference.structured``.  Block by block: few features are written to at any one time."""
    size, n = rows.shape
    count = len(factors)
    src = rows.reshape(-1)
    work = np.empty(size * LANES, np.float32)
    for block in range(0, count, size):
        for first in range(0, n, LANES):
            start = min(first, n - LANES)
            _hadamard(src, start, n, work, size, signs[0], block)
            _hadamard(work, 0, LANES, work, size, signs[1], block)
            _hadamard(work, 0, LANES, work, size, signs[2], block)
            for i in range(min(size, count - block)):
                to = 2 * (block + i) * step + start
                _cos_sin(work, i * LANES, factors[block + i], amplitude, out, to, to + step)


@njit(nogil=True, cache=True, error_model="numpy")
def signature(columns, step, weights, out, apart):
    """See ``reference.signature``, for degree 1; ``step`` is in turns for each doubling."""
    d, rows = columns.shape
    m = 2 * len(weights) - 1
    src = columns.reshape(-1)
    logs, roots = np.empty(rows, np.float32), np.empty(rows, np.float32)
    for i in range(d):
        for start in range(0, rows, LANES):
            j = min(start, rows - LANES)
            _log_and_root(src, i * rows + j, logs, roots, j)
        first = i * m * apart
        constant = out[first : first + rows]
        for j in range(rows):
            constant[j] = weights[0] * roots[j]
        for k in range(1, len(weights)):
            to = first + (2 * k - 1) * apart
            turns = np.float32(k * step)
            for start in range(0, rows, LANES):
                j = min(start, rows - LANES)
                _scaled_cos_sin(logs, roots, j, turns, weights[k], out, to + j, to + apart + j)


@njit(nogil=True, cache=True, error_model="numpy")
def products(factors, start, constant, out, step):
    """See ``reference.products``."""
    rows = factors.shape[1]
    for i in range(len(constant)):
        target = out[i * step : i * step + rows]
        first, count = start[i], start[i + 1] - start[i]
        if count < 2:
            if count == 0:
                target[:] = constant[i]
            else:
                one = factors[first]
                for j in range(rows):
                    target[j] = constant[i] * one[j]
            continue
        one, two = factors[first], factors[first + 1]
        for j in range(rows):
            target[j] = constant[i] * one[j] * two[j]
        for level in range(first + 2, first + count):
            more = factors[level]
            for j in range(rows):
                target[j] *= more[j]


@njit(nogil=True, cache=True, error_model="numpy")
def count_sketch(X, bucket, sign, out):
    """See ``reference.count_sketch``: adds to ``out``."""
    rows, d = X.shape
    for i in range(rows):
        for j in range(d):
            out[i, bucket[j]] += sign[j] * X[i, j]
