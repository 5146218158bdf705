"""Rows of numbers: what the library accepts as X, and how it says that they are wrong."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bochner.errors import DataError, DomainError

Float: TypeAlias = NDArray[Any]  # float32 or float64
Float64: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = Any  # a dense 2-D array or scipy's csr_array


@dataclass(frozen=True)
class Rows:
    """A checked matrix (dense or CSR, float32 or float64) and its column names, if it has any."""

    values: Matrix
    names: tuple[str, ...] | None = None


def is_sparse(X: Any) -> bool:
    """Whether X is one of SciPy's sparse arrays or matrices."""
    return bool(sp.issparse(X))


def column_name(names: Sequence[str] | None, column: int) -> str:
    """How an error calls a column: by its quoted name, or by its position."""
    name = f"{column}" if names is None else names[column]
    return name if name.isdigit() else f"'{name}'"


def as_rows(X: Any, *, finite: bool = True) -> Rows:
    """Take arrays, sparse matrices and tables (pandas, polars, Arrow) as rows of floats.

    float32 and float64 are kept, float16 becomes float32, integers and booleans become float64.

    >>> as_rows([[1, 2]]).values.dtype.name
    'float64'
    """
    if isinstance(X, Rows):
        return X
    names: tuple[str, ...] | None = None
    if is_sparse(X):
        values: Any = _canonical(X) if X.ndim == 2 else X
    elif hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise DataError("a lazy table has no rows yet; call its collect() first")
    elif hasattr(X, "columns") or hasattr(X, "column_names"):
        values, names = _from_table(X)
    else:
        try:
            values = _unmasked(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        except ValueError as error:
            raise DataError(f"rows must form a two-dimensional array; {error}") from None
    if values.ndim != 2:
        hint = " (one row? use X[None, :]; one column? use X[:, None])" if values.ndim == 1 else ""
        raise DataError(f"rows must form a two-dimensional array, got shape {values.shape}{hint}")
    values = _floating(values, names)
    if finite:
        _require_finite(values, names)
    return Rows(values, names)


def _canonical(X: Any) -> Matrix:
    """CSR with sorted unique columns, so that its stored entries are its entries."""
    values = sp.csr_array(X)
    if not values.has_canonical_format:
        values = values.copy()  # merging duplicates works in place, on the caller's own arrays
        values.sum_duplicates()
    return values


def _unmasked(X: Any) -> NDArray[Any]:
    """NaN where an entry is masked: what is missing is refused, never computed with."""
    return np.asarray(X.astype(np.float64).filled(np.nan) if np.ma.is_masked(X) else X.data)


def _from_table(table: Any) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    if hasattr(table, "column_names"):  # pyarrow
        names = tuple(table.column_names)
        columns = [np.asarray(table.column(j).to_numpy(zero_copy_only=False)) for j in range(len(names))]
        # Objects keep what is not a number as it is, so that the error can show it.
        columns = [c if c.dtype.kind in "iufb" else c.astype(object) for c in columns]
        return np.column_stack(columns) if columns else np.empty((table.num_rows, 0)), names
    for column, dtype in enumerate(getattr(table, "dtypes", ())):
        if getattr(dtype, "is_temporal", bool)():  # polars would turn dates into numbers
            raise DataError(
                f"column {column_name(tuple(table.columns), column)} holds {dtype}, which is not a number; "
                "encode or drop the column",
                column=column,
            )
    labels = list(table.columns)
    named = any(isinstance(label, str) for label in labels)  # pandas numbers the columns of a bare array
    return np.asarray(table.to_numpy()), tuple(map(str, labels)) if named else None


def _floating(values: Any, names: Sequence[str] | None) -> Any:
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "f" and size <= 8:
        return values.astype(np.float32 if size <= 4 else np.float64, copy=False)
    if kind in "iubf":
        with np.errstate(over="ignore"):
            return values.astype(np.float64)
    if kind == "c":
        raise DataError(f"Complex data not supported: rows must hold real numbers, got dtype {values.dtype}")
    if is_sparse(values) or kind not in "OUS":
        raise DataError(f"rows must hold real numbers, got dtype {values.dtype}; encode such columns first")
    good = np.frompyfunc(_is_number, 1, 1)(values).astype(bool)
    if good.all():
        return values.astype(np.float64)
    row, column = first_where(good, np.logical_not)
    shown = values[row : row + 1, column].tolist()[0]  # a NumPy scalar would be shown with its type
    raise DataError(
        f"row {row}, column {column_name(names, column)} holds {shown!r}, which is not a number; "
        "encode or drop the column",
        row,
        column,
    )


def _is_number(value: Any) -> bool:
    if isinstance(value, (str, bytes)):  # "007" may be a name
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _require_finite(values: Matrix, names: Sequence[str] | None) -> None:
    data = values.data if is_sparse(values) else values
    # A sum is finite only when all terms are, and costs one pass without a temporary.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()) or np.isfinite(data).all():
            return
    row, column = first_where(values, lambda entries: ~np.isfinite(entries))
    raise DataError(
        f"row {row}, column {column_name(names, column)} is {_entry(values, row, column)}; "
        "remove or impute such rows first",
        row,
        column,
    )


def _entry(values: Matrix, row: int, column: int) -> float:
    return float(dense(values[[row]])[0, column])


def first_where(values: Matrix, test: Any) -> tuple[int, int]:
    """Row and column of the first stored entry that passes a test."""
    if is_sparse(values):
        entries = values.tocoo()
        hit = int(np.flatnonzero(test(entries.data))[0])
        return int(entries.row[hit]), int(entries.col[hit])
    hit = int(np.flatnonzero(test(values).ravel())[0])
    return hit // values.shape[1], hit % values.shape[1]


@dataclass(frozen=True)
class Domain:
    """Where each entry may lie: x ≥ lower, or x > lower when ``open``."""

    lower: float = -np.inf
    open: bool = False

    def require(self, rows: Rows, who: str) -> None:
        """Refuse the first entry outside, naming its row and column."""
        values = rows.values
        if self.lower > 0.0 or (self.lower == 0.0 and self.open):
            values = dense(values)  # the zeros that a sparse matrix does not store count too
        data = values.data if is_sparse(values) else values
        if self.lower == -np.inf or data.size == 0:
            return
        lowest = data.min()
        if lowest > self.lower or (lowest == self.lower and not self.open):
            return
        row, column = first_where(values, lambda x: (x <= self.lower) if self.open else (x < self.lower))
        value = _entry(values, row, column)
        sign = ">" if self.open else "≥"
        raise DomainError(
            f"row {row}, column {column_name(rows.names, column)} is {value:g}, but {who} needs "
            f"entries {sign} {self.lower:g}; clip, shift or drop such values first",
            row,
            column,
        )


REALS = Domain()
NON_NEGATIVE = Domain(0.0)


def dense(X: Matrix) -> Float:
    """The same rows without sparsity."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


def tiles(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` rows that cover n."""
    size = max(1, size)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def spread(values: Matrix, most: int) -> Matrix:
    """At most ``most`` rows, evenly from the first to the last: a sample may be sorted."""
    n = values.shape[0]
    return values if n <= most else values[np.linspace(0, n - 1, most).astype(int)]


def frozen(array: Any, dtype: Any = None) -> NDArray[Any]:
    """A read-only contiguous copy."""
    copy = np.array(array, dtype=dtype, order="C", copy=True)
    copy.flags.writeable = False
    return copy


def encode(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: dtype, shape and base64 of its little-endian bytes."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return {
        "dtype": little.dtype.str,
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode("ascii"),
    }


def decode(item: dict[str, Any]) -> NDArray[Any]:
    """The array that ``encode`` wrote."""
    try:
        dtype = np.dtype(item["dtype"])
        shape = tuple(int(n) for n in item["shape"])
        content = base64.b64decode(item["base64"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"an encoded array has the keys dtype, shape and base64; {error!r}") from None
    if dtype.kind not in "iuf":
        raise DataError(f"an encoded array must hold numbers, got dtype {dtype}")
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(content):
        raise DataError(f"an encoded array of {len(content)} bytes cannot have shape {shape} and dtype {dtype}")
    flat = np.frombuffer(content, dtype=dtype)
    return frozen(flat.reshape(shape).astype(dtype.newbyteorder("=")))
