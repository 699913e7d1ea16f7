"""Which columns of a DataFrame of events travel to the matchers, and how they arrive.

Only attributes that some subscription asks for travel, each in the type that it has, and of nested structs only
their fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import EventError, SchemaError
from harken.model.schema import Schema
from harken.model.values import Type
from harken.spark.profile import Profile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

_TYPES = {
    "tinyint": Type.INT,
    "smallint": Type.INT,
    "int": Type.INT,
    "bigint": Type.INT,
    "float": Type.FLOAT,
    "double": Type.FLOAT,
    "string": Type.STRING,
    "boolean": Type.BOOL,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
    "timestamp_ntz": Type.TIMESTAMP,
}
_SHAPES = ("array<double>", "array<float>")


@dataclass(frozen=True, slots=True)
class Transport:
    """How the attributes lie in the columns that travel; what follows them is not for matching."""

    attributes: tuple[str, ...]
    """The attributes, which come first."""
    shapes: tuple[str, ...]
    """Those of them that are points or boxes, as lists of numbers."""
    others: int
    """Columns that come last and are handed through."""

    def events(self, table: pa.Table) -> pa.Table:
        """The attributes of events that have travelled."""
        events = table.select(range(len(self.attributes))).rename_columns(list(self.attributes))
        for name in self.shapes:
            at = self.attributes.index(name)
            events = events.set_column(at, name, _shaped(name, events.column(at)))
        return events

    def handed_through(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """The columns that are not for matching."""
        return list(table.columns[table.num_columns - self.others :])


def select(
    events: DataFrame, profile: Profile, schema: Schema | None, others: Sequence[Column]
) -> tuple[DataFrame, Transport]:
    """The columns that subscriptions of this profile ask for, then others; and how they lie.

    EventError or SchemaError, before anything runs, if a column that is asked for is of a type the language has
    not, or of another than is declared.
    """
    from pyspark.sql import functions

    found = leaves(events.schema)
    asked = {name: leaf for name, leaf in found.items() if name in profile.attributes}
    _check(found, asked, profile, schema)
    columns = [leaf.column.alias(f"a{at}") for at, leaf in enumerate(asked.values())]
    through = [column.alias(f"o{at}") for at, column in enumerate(others)]
    if not columns and not through:
        columns.append(functions.lit(0).alias("rows"))  # without any column, Spark would not hand rows over
    shapes = tuple(name for name, leaf in asked.items() if leaf.kind in _SHAPES)
    return events.select(*columns, *through), Transport(tuple(asked), shapes, len(through))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column, or a field of a struct."""

    column: Column
    kind: str
    """Its type, as Spark writes it."""


def leaves(schema: StructType) -> dict[str, Leaf]:
    """The attributes that events of a schema have: columns and, dotted, the fields of structs."""
    from pyspark.sql import functions

    found: dict[str, Leaf] = {}
    for field in schema:
        quoted = field.name.replace("`", "``")
        for name, leaf in _within(field.name, functions.col(f"`{quoted}`"), field.dataType):
            if name in found:
                raise EventError(f"attribute {name!r} occurs twice", attribute=name)
            found[name] = leaf
    return found


def _within(name: str, column: Column, kind: DataType) -> Iterator[tuple[str, Leaf]]:
    if kind.typeName() != "struct":
        yield name, Leaf(column, kind.simpleString())
        return
    for field in kind:  # type: ignore[attr-defined]  # a struct has fields
        yield from _within(f"{name}.{field.name}", column.getField(field.name), field.dataType)


def type_of(kind: str) -> Type | None:
    """The type of the language that a type of Spark carries; None if there is none."""
    return Type.FLOAT if kind.startswith("decimal") else _TYPES.get(kind)


def _check(found: dict[str, Leaf], asked: dict[str, Leaf], profile: Profile, schema: Schema | None) -> None:
    for name, leaf in found.items():
        declared = None if schema is None else schema.get(name)
        if name not in asked and declared is None:
            continue
        if leaf.kind == "void":
            continue
        kind = type_of(leaf.kind)
        if kind is None and leaf.kind in _SHAPES and _geometric(name, profile, declared):
            continue
        if kind is None:
            raise EventError(f"attribute {name!r}: {leaf.kind} is not a type of the language", attribute=name)
        if declared is not None and declared is not kind and (declared, kind) != (Type.FLOAT, Type.INT):
            raise SchemaError.wrong_type(name, declared.value, leaf.kind)


def _geometric(name: str, profile: Profile, declared: Type | None) -> bool:
    return declared in (Type.POINT, Type.BOX) or (declared is None and profile.geometric(name))


def _shaped(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of two numbers as points, lists of four as boxes."""
    sizes = set(pc.list_value_length(column).drop_null().unique().to_pylist())
    if not sizes:
        return pa.chunked_array([pa.nulls(len(column))])
    if sizes not in ({2}, {4}):
        said = f"attribute {name!r}: a point has 2 numbers and a box has 4, found lists of {sorted(sizes)}"
        raise EventError(said, attribute=name)
    return column.cast(pa.list_(pa.float64(), sizes.pop()))
