"""``scan``: from whatever holds rows to a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bochner.arrays import is_sparse
from bochner.errors import DataError
from bochner.sources.base import Source
from bochner.sources.files import arrow, find, is_path, reading
from bochner.sources.fills import checked_missing
from bochner.sources.schema import Asked


def scan(
    where: Any,
    target: Any = None,
    features: Sequence[Any] | None = None,
    drop: Any = None,
    weight: Any = None,
    group: Any = None,
    categories: Any = None,
    missing: str | float = "refuse",
    *,
    format: str | None = None,
    delimiter: str | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
) -> Source:
    """Rows that an estimator can learn from, read chunk by chunk whenever they are needed.

    Parameters
    ----------
    where : path, list of paths, folder, glob, array or table
        Parquet, Feather and Arrow IPC, CSV and TSV, libsvm (text may be packed by gzip or bzip2) or .npy
        files; NumPy, memory-mapped and SciPy sparse arrays; pandas, polars and Arrow tables, and whatever
        else has an Arrow stream (a stream that can be read once only is read into memory).
    target : name or number of a column, list of them, array, or path of a .npy file
        What is to be predicted; rows where it is missing are unlabelled.  A list names columns, an array
        holds values.  The target of libsvm files is their label.
    features, drop : list of columns
        The columns of X: these only, or all but these.
    weight, group : column, array, or path of a .npy file
        Weights ≥ 0; rows of one group are never in different folds.  ``group="qid"`` for libsvm files.
    categories : list of columns, or dict from column to list of values or None
        Columns of numbers that are categories all the same, and the values of a category where they are
        not to be learnt.  Text is always a category; each value becomes a column of 0 and 1.
    missing : "refuse", "mean", "median", "most_frequent" or a number
        What stands in for a missing number; learnt on the training rows and part of the model.  A missing
        category then becomes a row of zeros.
    format : "parquet", "ipc", "csv", "libsvm" or "npy", optional
        The format of files whose names do not tell it.
    delimiter : str, optional
        What separates the columns of CSV files.
    n_features, zero_based : int, bool or "auto"
        Of libsvm files: the number of columns, and whether indices count from 0.

    Examples
    --------
    >>> import bochner, numpy as np
    >>> source = bochner.scan(np.array([[1.0, 2.0, 0.0], [3.0, 5.0, 1.0]]), target=-1)
    >>> source.d, source.n_rows
    (2, 2)
    """
    columns, values = _split(target=target, weight=weight, group=group)
    asked = Asked(
        target=_names(columns["target"]),
        features=None if features is None else _names(features),
        drop=_names(drop),
        weight=_name(columns["weight"], "weight"),
        group=_name(columns["group"], "group"),
        categories=_categories(categories),
        missing=checked_missing(missing),
    )
    if isinstance(where, Source):
        raise DataError("this is a source already; use it as it is")
    if is_path(where):
        with reading(_called(where)):
            kind, paths = find(where, format)
    else:
        kind, paths = "memory", []
    _require_fitting(kind, delimiter=delimiter, n_features=n_features, zero_based=zero_based)
    source = (
        _libsvm(paths, asked, n_features, zero_based)
        if kind == "libsvm"
        else _rows(where, kind, paths, asked, delimiter)
    )
    if not values:
        return source
    from bochner.sources.beside import Beside, values_of

    given = {name: values_of(value) for name, value in values.items()}
    return Beside(source, given.get("target"), given.get("weight"), given.get("group"))


def _rows(where: Any, kind: str, paths: list[Path], asked: Asked, delimiter: str | None) -> Source:
    """Rows of tables or of arrays."""
    if kind == "npy" or (kind == "memory" and not is_table(where)):
        from bochner.sources.npy import ArraySource, Part, mapped

        if kind == "npy":
            return ArraySource([Part(str(path), mapped(path)) for path in paths], asked)
        return ArraySource([Part("", where if is_sparse(where) else _array(where))], asked)
    from bochner.sources.arrow import TableSource
    from bochner.sources.delimited import CsvTable
    from bochner.sources.tables import IpcTable, MemoryTable, ParquetTable, Table

    tables: list[Table]
    if kind == "memory":
        tables = [MemoryTable(_table(where))]
    elif kind == "parquet":
        tables = [ParquetTable(path) for path in paths]
    elif kind == "ipc":
        tables = [IpcTable(path) for path in paths]
    else:
        tables = [CsvTable(path, delimiter) for path in paths]
    return TableSource(tables, asked)


def _libsvm(paths: list[Path], asked: Asked, n_features: int | None, zero_based: bool | str) -> Source:
    from bochner.sources.libsvm import LibsvmSource

    if asked.features is not None or asked.drop or asked.categories or asked.missing != "refuse":
        raise DataError(
            f"{paths[0]}: libsvm files have one kind of column, so that features, drop, categories and missing do "
            "not apply"
        )
    if asked.target not in ((), ("label",)) or asked.weight is not None or asked.group not in (None, "qid"):
        raise DataError(
            f"{paths[0]}: the target of libsvm files is their label and a group is group='qid'; give other targets, "
            "weights and groups as arrays or .npy files"
        )
    return LibsvmSource(paths, n_features, zero_based, asked.group is not None)


def _require_fitting(kind: str, **options: Any) -> None:
    """Refuse options of another format."""
    of = {"delimiter": "csv", "n_features": "libsvm", "zero_based": "libsvm"}
    for name, value in options.items():
        if value not in (None, "auto") and of[name] != kind:
            raise DataError(f"{name} is for {of[name]} files; these rows are {kind}")


def _split(**given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Names of columns, and values: arrays, and paths of .npy files."""
    columns: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for what, item in given.items():
        some = item if isinstance(item, (list, tuple)) else [item]
        path = bool(some) and all(map(_is_npy, some))
        named = item is None or all(isinstance(one, (str, int, np.integer)) for one in some)
        columns[what] = item if named and not path else None
        if path or not named:
            values[what] = item
    return columns, values


def _is_npy(item: Any) -> bool:
    return isinstance(item, PathLike) or (isinstance(item, str) and item.endswith(".npy"))


def _names(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    return tuple(str(item) for item in (given if isinstance(given, (list, tuple)) else [given]))


def _name(given: Any, what: str) -> str | None:
    names = _names(given)
    if len(names) > 1:
        raise DataError(f"a {what} is one column, got {len(names)}; give an array for values")
    return names[0] if names else None


def _categories(given: Any) -> dict[str, tuple[Any, ...] | None]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): None if values is None else tuple(values) for name, values in given.items()}
    return dict.fromkeys(_names(given))


def _called(where: Any) -> str:
    return str(where[0] if isinstance(where, (list, tuple)) else where)


def is_table(where: Any) -> bool:
    """Whether something has named columns."""
    if hasattr(where, "files") and hasattr(where, "to_batches"):
        raise DataError("a dataset of Arrow is read by its files; give scan(dataset.files)")
    names = ("collect", "__arrow_c_stream__", "column_names", "columns")
    return isinstance(where, Mapping) or any(hasattr(where, name) for name in names)


def _array(where: Any) -> Any:
    """An array as it is, lists as an array; what is masked is missing."""
    if isinstance(where, np.ma.MaskedArray):
        floats: Any = where.astype(np.result_type(where.dtype, np.float32))
        return floats.filled(np.nan)
    try:
        return where if isinstance(where, np.ndarray) else np.asarray(where)
    except ValueError as error:
        raise DataError(f"rows must form a two-dimensional array; {error}") from None


def _table(where: Any) -> Any:
    """An Arrow table of a table in memory, without a copy where the columns allow it."""
    pa = arrow()
    if isinstance(where, pa.Table):
        return where
    if hasattr(where, "collect"):
        raise DataError("a lazy table has no rows yet; call its collect() first")
    if getattr(where, "ndim", 2) == 1 or hasattr(where, "name"):
        raise DataError(f"a {type(where).__name__} is one column; give a table of columns")
    try:
        if isinstance(where, Mapping):
            return pa.table(dict(where))
        if hasattr(where, "iloc"):  # pandas: its own stream would bring the index along
            return pa.Table.from_pandas(where, preserve_index=False)
        if hasattr(where, "__arrow_c_stream__"):
            return pa.table(where)
    except (pa.ArrowException, ValueError, TypeError) as error:
        said = " ".join(str(error).split())
        raise DataError(f"the table cannot be read: {said[:300]}; give each column one type") from None
    raise DataError(f"a {type(where).__name__} is no table that can be read; give one with an Arrow stream")
