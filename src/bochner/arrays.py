"""Rows of numbers: what the library accepts as X, and how it says that they are wrong."""

from __future__ import annotations

import base64
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


def column_name(names: Sequence[str] | None, column: int) -> str:
    """How an error calls a column; columns without names are f0, f1, …"""
    return f"'{names[column]}'" if names is not None else f"{column}"


def as_rows(X: Any, *, finite: bool = True) -> Rows:
    """Take arrays, sparse matrices and tables (pandas, polars, Arrow) as rows of floats.

    float32 and float64 are kept, float16 becomes float32, integers and booleans become float64.

    >>> as_rows([[1, 2]]).values.dtype.name
    'float64'
    """
    if isinstance(X, Rows):
        return X
    names: tuple[str, ...] | None = None
    if sp.issparse(X):
        values: Any = sp.csr_array(X)
        values.sum_duplicates()
    elif hasattr(X, "columns") or hasattr(X, "column_names"):
        values, names = _from_table(X)
    else:
        values = np.asarray(X)
    if values.ndim != 2:
        hint = " (one row? use X[None, :]; one column? use X[:, None])" if values.ndim == 1 else ""
        raise DataError(f"rows must form a two-dimensional array, got shape {values.shape}{hint}")
    values = _floating(values, names)
    if finite:
        _require_finite(values, names)
    return Rows(values, names)


def _from_table(table: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    if hasattr(table, "column_names"):  # pyarrow
        names = tuple(table.column_names)
        columns = [np.asarray(table.column(name).to_numpy()) for name in names]
        return np.column_stack(columns) if columns else np.empty((table.num_rows, 0)), names
    return np.asarray(table.to_numpy()), tuple(str(name) for name in table.columns)


def _floating(values: Any, names: Sequence[str] | None) -> Any:
    dtype = values.dtype
    if dtype in (np.float32, np.float64):
        return values
    if dtype == np.float16:
        return values.astype(np.float32)
    if dtype.kind in "iub" or dtype == np.longdouble:
        return values.astype(np.float64)
    if dtype.kind == "O":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            row, column = next(
                (i, j) for i, line in enumerate(values) for j, value in enumerate(line) if not _is_number(value)
            )
            raise DataError(
                f"row {row}, column {column_name(names, column)} holds {values[row, column]!r}, which is not a "
                "number; encode or drop the column",
                row,
                column,
            ) from None
    raise DataError(f"rows must hold real numbers, got dtype {dtype}; encode text and categories first")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _require_finite(values: Matrix, names: Sequence[str] | None) -> None:
    data = values.data if sp.issparse(values) else values
    # A sum is finite when all terms are, and costs one pass without a temporary.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()) or np.isfinite(data).all():
            return
    row, column = first_where(values, lambda entries: ~np.isfinite(entries))
    value = values[[row]].toarray()[0, column] if sp.issparse(values) else values[row, column]
    raise DataError(
        f"row {row}, column {column_name(names, column)} is {value}; remove or impute such rows first", row, column
    )


def first_where(values: Matrix, test: Any) -> tuple[int, int]:
    """Row and column of the first stored entry that passes a test."""
    if sp.issparse(values):
        entries = values.tocoo()
        hit = int(np.flatnonzero(test(entries.data))[0])
        return int(entries.coords[0][hit]), int(entries.coords[1][hit])
    hit = int(np.flatnonzero(test(values).ravel())[0])
    return hit // values.shape[1], hit % values.shape[1]


@dataclass(frozen=True)
class Domain:
    """Where each entry may lie: x ≥ lower, or x > lower when ``open``."""

    lower: float = -np.inf
    open: bool = False

    def require(self, rows: Rows, who: str) -> None:
        """Refuse the first entry outside, naming its row and column."""
        if self.lower == -np.inf:
            return
        values = rows.values
        data = values.data if sp.issparse(values) else values
        lowest = data.min() if data.size else 0.0
        if lowest > self.lower or (lowest == self.lower and not self.open):
            return
        row, column = first_where(values, lambda x: (x <= self.lower) if self.open else (x < self.lower))
        value = values[[row]].toarray()[0, column] if sp.issparse(values) else values[row, column]
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
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def tiles(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` rows that cover n."""
    size = max(1, size)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


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
    dtype = np.dtype(item["dtype"])
    if dtype.kind not in "iuf":
        raise DataError(f"an encoded array must hold numbers, got dtype {dtype}")
    flat = np.frombuffer(base64.b64decode(item["base64"], validate=True), dtype=dtype)
    shape = tuple(int(n) for n in item["shape"])
    if any(n < 0 for n in shape) or int(np.prod(shape, dtype=object)) != flat.size:
        raise DataError(f"an encoded array of {flat.size} numbers cannot have shape {shape}")
    return frozen(flat.reshape(shape).astype(dtype.newbyteorder("=")))
