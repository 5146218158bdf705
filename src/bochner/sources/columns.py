"""One Arrow array → numbers, codes of categories, or labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float64
from bochner.errors import DataError
from bochner.sources.files import arrow
from bochner.sources.schema import Category, Column

#: Arrow types whose values float32 holds exactly
_SHORT = ("float", "halffloat", "int8", "int16", "uint8", "uint16", "bool")


def kind_of(arrow_type: Any) -> str:
    """ "number", "category", "vector", "nothing" (all values are missing), or what it is that no number stands for."""
    t = arrow().types
    if t.is_floating(arrow_type) or t.is_integer(arrow_type) or t.is_decimal(arrow_type) or t.is_boolean(arrow_type):
        return "number"
    if _is_text(arrow_type) or t.is_dictionary(arrow_type):
        return "category"
    if _is_list(arrow_type):
        return "vector" if kind_of(arrow_type.value_type) == "number" else str(arrow_type)
    return "nothing" if t.is_null(arrow_type) else str(arrow_type)


def _is_text(arrow_type: Any) -> bool:
    t = arrow().types
    view = getattr(t, "is_string_view", lambda kind: False)
    return bool(t.is_string(arrow_type) or t.is_large_string(arrow_type) or view(arrow_type))


def _is_list(arrow_type: Any) -> bool:
    t = arrow().types
    return bool(t.is_fixed_size_list(arrow_type) or t.is_list(arrow_type) or t.is_large_list(arrow_type))


def is_short(arrow_type: Any) -> bool:
    """Whether float32 holds the values of a type exactly."""
    if _is_list(arrow_type):
        return is_short(arrow_type.value_type)
    return str(arrow_type) in _SHORT or kind_of(arrow_type) in ("category", "nothing")


def numbers(array: Any) -> NDArray[Any]:
    """An array of numbers, NaN where they are missing."""
    pa = arrow()
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def vectors(array: Any, column: Column) -> NDArray[Any]:
    """Lists of ``width`` numbers as rows, NaN where they are missing; without a copy where nothing is."""
    pa = arrow()
    width, rows = column.width, len(array)
    if pa.types.is_null(array.type):
        return np.full((rows, width), np.nan)
    if pa.types.is_fixed_size_list(array.type):
        lengths = None if array.type.list_size == width else np.full(rows, array.type.list_size)
        if lengths is None:
            flat = numbers(array.values.slice(array.offset * width, rows * width)).reshape(rows, width)
            if array.null_count:
                flat = np.where(missing(array)[:, None], np.nan, flat)
            return flat
    else:
        import pyarrow.compute as compute

        lengths = compute.fill_null(compute.list_value_length(array), width).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"row {row}, column {column.name!r} holds {lengths[row]} numbers, not {width} as other rows do; "
            "make all lists equally long",
            row,
            column.name,
        )
    present = ~missing(array)
    out = np.full((rows, width), np.nan)
    out[present] = numbers(array.flatten()).reshape(-1, width)
    return out if not is_short(array.type) else out.astype(np.float32)


def missing(array: Any) -> NDArray[np.bool_]:
    """Which entries are null."""
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def coded(array: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """A code for every entry, −1 where it is missing (null or NaN), and the value of every code."""
    pa = arrow()
    if not pa.types.is_dictionary(array.type):
        if _is_text(array.type):
            array = array.cast(pa.large_string())
        array = array.dictionary_encode()
    indices = array.indices
    codes = np.asarray(indices.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)).copy()
    codes[missing(indices)] = -1
    values = array.dictionary.to_pylist()
    gone = [code for code, value in enumerate(values) if value is None or value != value]
    if gone:
        codes[np.isin(codes, gone)] = -1
    return codes, values


def one_hot(array: Any, column: Column, codes_of: Mapping[Category, int], out: NDArray[Any]) -> None:
    """Write 0 and 1 into the columns of a category; a missing value, where it is allowed, is a row of zeros."""
    codes, values = coded(array)
    # Numbers are the categories that were learnt from a text file, as they are written there.
    found = [codes_of.get(value, codes_of.get(str(value), -1)) for value in values]
    known = np.array([*found, -2], dtype=np.int64)
    place = known[codes]  # code −1 takes the last entry, −2
    if column.fill is None and (place == -2).any():
        raise gap(int(np.flatnonzero(place == -2)[0]), column.name)
    if (place == -1).any():
        row = int(np.flatnonzero(place == -1)[0])
        few = ", ".join(map(repr, (column.categories or ())[:5]))
        raise DataError(
            f"row {row}, column {column.name!r} holds {values[codes[row]]!r}, which is none of the "
            f"{len(codes_of)} known categories ({few}{', …' if len(codes_of) > 5 else ''}); drop such rows, or name "
            f"the categories with categories={{{column.name!r}: […]}}",
            row,
            column.name,
        )
    out[:] = 0
    rows = np.flatnonzero(place >= 0)
    out[rows, place[rows]] = 1


def gap(row: int, column: str) -> DataError:
    """The error of a missing value that nothing may fill."""
    return DataError(
        f"row {row}, column {column!r} is missing; drop such rows, or fill them with missing='mean', 'median', "
        "'most_frequent' or a number",
        row,
        column,
    )


def labels(array: Any) -> NDArray[Any]:
    """Targets or groups: numbers keep their type, text becomes objects; None, or NaN among floats, is missing."""
    t = arrow().types
    kind = kind_of(array.type)
    if kind == "vector":
        width = array.type.list_size if t.is_fixed_size_list(array.type) else None
        if width is None:
            raise DataError("a target of several numbers is a fixed-size list, or several columns; cast it")
        return vectors(array, Column("target", "vector", width))
    if kind == "nothing":
        return np.full(len(array), None, dtype=object)
    if kind == "number" and (t.is_floating(array.type) or t.is_decimal(array.type) or not array.null_count):
        whole = t.is_integer(array.type) or t.is_boolean(array.type)
        return np.asarray(array.to_numpy(zero_copy_only=False)) if whole else numbers(array)
    if kind not in ("number", "category"):
        raise DataError(f"labels of type {kind} are not understood; make them numbers or text")
    codes, values = coded(array)
    table = np.empty(len(values) + 1, dtype=object)
    table[:-1] = values
    return np.asarray(table[codes])  # code −1 takes the last entry, None


def columned(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One target as it is, several as columns."""
    if len(parts) == 1:
        return parts[0]
    if any(part.dtype.kind == "O" for part in parts):
        return np.column_stack([part.astype(object) for part in parts])
    return np.column_stack(parts)


def as_float64(array: Any) -> Float64:
    """Weights: NaN where they are missing."""
    if kind_of(array.type) != "number":
        raise DataError(f"weights are numbers, got type {array.type}")
    return numbers(array).astype(np.float64)
