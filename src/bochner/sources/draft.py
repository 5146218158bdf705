"""Which columns of tables are features, and what they are: from what a user asked, or from a model's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bochner.errors import DataError
from bochner.sources.columns import is_short, kind_of
from bochner.sources.schema import Asked, Category, Column, Schema, listed, refuse_target
from bochner.sources.tables import Table

_ALIASES = {bool: "bool", int: "int64", float: "double"}


def require_names(tables: Sequence[Table], asked: Asked) -> None:
    """Refuse names that the first table lacks."""
    names = [name for name, _ in tables[0].fields]
    known = set(names)
    for name in (*asked.target, *(asked.features or ()), *asked.categories, asked.weight, asked.group, *asked.drop):
        if name is not None and name not in known:
            raise DataError(f"{_place(tables[0])}there is no column {name!r}; there are {listed(names)}", column=name)


def drafted(tables: Sequence[Table], asked: Asked) -> Schema:
    """The columns of all tables that are features; categories and fills that must be learnt are still open."""
    names = [name for name, _ in tables[0].fields]
    others = {*asked.target, *asked.drop, asked.weight, asked.group}
    wanted = [name for name in names if name not in others] if asked.features is None else list(asked.features)
    refuse_target(asked.target, wanted)
    if not wanted:
        raise DataError(f"{_place(tables[0])}no column is left to learn from; there are {listed(names)}")
    if asked.features is None:
        _require_alike(tables, names, exactly=True)
    else:
        _require_alike(tables, [*wanted, *asked.target, *(o for o in (asked.weight, asked.group) if o is not None)])
    return Schema(tuple(_column(tables, name, asked) for name in wanted))


def conformed(tables: Sequence[Table], asked: Asked, schema: Schema) -> tuple[Column, ...]:
    """The columns that give the numbers of a schema, in its order; whatever else the tables hold is left."""
    if not schema.columns:
        columns = drafted(tables, replace(asked, missing=0.0 if schema.fills else "refuse")).columns
        drawn = Schema(columns)
        if drawn.d != schema.d or any(column.kind == "category" for column in columns):
            raise DataError(
                f"{_place(tables[0])}the model knows {schema.d} columns of numbers without names; here are "
                f"{len(columns)} columns ({listed([c.name for c in columns])}); name them in order with features=[…]"
            )
        return _with_fills(columns, schema.fills)
    names = [column.name for column in schema.columns]
    for table in tables:
        lacking = [name for name in (*names, *asked.target) if table.type_of(name) is None]
        if lacking:
            raise DataError(
                f"{_place(table)}the column{'s' * (len(lacking) > 1)} {listed(lacking)} of the model "
                f"{'are' if len(lacking) > 1 else 'is'} missing; it needs {listed(names, 20)}"
            )
    forced = {c.name: c.categories for c in schema.columns if c.kind == "category"}
    for column in schema.columns:
        if column.kind == "number":
            for table in tables:
                if kind_of(table.type_of(column.name)) != "number":
                    table.force(column.name, "double")
        found = _column(tables, column.name, replace(asked, categories=forced))
        if (found.kind, found.width) != (column.kind, column.width):
            raise DataError(
                f"{_place(tables[0])}the column {column.name!r} is {_called(found)}, but the model knows it as "
                f"{_called(column)}",
                column=column.name,
            )
    return schema.columns


def precision(tables: Sequence[Table], columns: Sequence[Column]) -> type:
    """float32 where it holds all numbers exactly, else float64."""
    kinds = [table.type_of(column.name) for table in tables for column in columns if column.kind != "category"]
    return np.float32 if all(map(is_short, kinds)) else np.float64


def _place(table: Table) -> str:
    return f"{table.name}: " if table.name else ""


def _called(column: Column) -> str:
    return f"a vector of {column.width} numbers" if column.kind == "vector" else f"a {column.kind}"


def _require_alike(tables: Sequence[Table], names: Sequence[str], exactly: bool = False) -> None:
    """Refuse a table that lacks one of the names, or (``exactly``) has others."""
    first = tables[0]
    for table in tables[1:]:
        here = [name for name, _ in table.fields]
        known, wanted = set(here), set(names)
        lacking = [name for name in names if name not in known]
        extra = [name for name in here if name not in wanted] if exactly else []
        if lacking or extra:
            said = f"lacks the column {listed(lacking)}" if lacking else f"has the column {listed(extra)} besides"
            raise DataError(
                f"{table.name} {said}, unlike {first.name}; give files of the same columns, or features=[…]"
            )


def _column(tables: Sequence[Table], name: str, asked: Asked) -> Column:
    forced = name in asked.categories
    given = asked.categories.get(name)
    kinds: dict[str, Table] = {}
    for table in tables:
        if forced:
            table.force(name, _alias(given))
        kind = kind_of(table.type_of(name))
        if forced and kind == "number":
            kind = "category"
        if kind not in ("number", "category", "vector", "nothing"):
            raise DataError(
                f"{_place(table)}the column {name!r} holds {kind}, which is not a number; encode it, or leave it out "
                f"with drop=[{name!r}]",
                column=name,
            )
        if kind != "nothing":
            kinds.setdefault(kind, table)
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise DataError(
            f"the column {name!r} is a {one} in {first.name} but a {other} in {second.name}; make the files agree, "
            f"or read it as text with categories=[{name!r}]",
            column=name,
        )
    kind = next(iter(kinds), "category" if forced else "number")
    for table in tables:
        if kind_of(table.type_of(name)) == "nothing":  # its first values are missing, and tell no type
            table.force(name, "string" if kind == "category" else "double")
    fill = asked.missing if isinstance(asked.missing, float) else None
    if kind == "category":
        fixed = None if given is None else tuple(given)
        return Column(name, kind, 1, fixed, None if asked.missing == "refuse" else 0.0)
    width = _width(tables, name) if kind == "vector" else 1
    return Column(name, kind, width, None, fill if fill is None or kind == "number" else (fill,) * width)


def _alias(given: Sequence[Category] | None) -> str:
    """The Arrow type in which text is read that stands for given categories."""
    kinds = {type(value) for value in given or ()}
    return _ALIASES.get(kinds.pop(), "string") if len(kinds) == 1 else "string"


def _width(tables: Sequence[Table], name: str) -> int:
    """How many numbers the lists of a column have: those of the first row that has some."""
    import pyarrow.compute as compute

    widths: dict[int, Table] = {}
    for table in tables:
        kind = table.type_of(name)
        if hasattr(kind, "list_size"):
            widths.setdefault(kind.list_size, table)
            continue
        for batch in table.batches([name], 0, 1024):
            lengths = compute.list_value_length(batch[name]).drop_null()
            if len(lengths):
                widths.setdefault(lengths[0].as_py(), table)
                break
    if len(widths) > 1:
        (one, first), (other, second) = list(widths.items())[:2]
        raise DataError(
            f"the column {name!r} holds {one} numbers a row in {first.name} but {other} in {second.name}", column=name
        )
    if not widths or 0 in widths:
        raise DataError(f"{_place(tables[0])}the column {name!r} holds empty lists; drop it", column=name)
    return next(iter(widths))


def _with_fills(columns: Sequence[Column], fills: Sequence[float] | None) -> tuple[Column, ...]:
    """Columns with the fills of their numbers, one after another."""
    if fills is None:
        return tuple(columns)
    out, at = [], 0
    for column in columns:
        here = tuple(fills[at : at + column.width])
        out.append(replace(column, fill=here[0] if column.kind == "number" else here))
        at += column.width
    return tuple(out)


def with_learnt(
    columns: Sequence[Column], fills: Mapping[str, Any], categories: Mapping[str, Sequence[Category]]
) -> Schema:
    """The columns with what was learnt about them."""
    return Schema(
        tuple(
            replace(
                column,
                fill=fills.get(column.name, column.fill),
                categories=tuple(categories[column.name]) if column.name in categories else column.categories,
            )
            for column in columns
        )
    )
