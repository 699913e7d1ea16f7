"""Which columns of a DataFrame of events travel to the matchers, and how they arrive.

Only attributes that some subscription asks for travel, each in the type that it has, and of nested structs only
their fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import EventError, SchemaError
from harken.model.foreign import parents
from harken.model.schema import Schema
from harken.model.values import Type
from harken.spark.subscriptions.profile import Profile

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
_TOLD = ("array", "map", "binary")
"""Foreign types whose values can be shown as text."""

Rows: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Transport:
    """How the attributes lie in the columns that travel; what follows them is not for matching."""

    attributes: tuple[str, ...]
    """The attributes, which come first."""
    shapes: tuple[str, ...]
    """Those of them that are points or boxes, as lists of numbers."""
    others: int
    """Columns that come last and are handed through."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Attributes of a type that the language has not, and that type: of them travels whether they are there."""

    def parts(self, table: pa.Table) -> Iterator[tuple[Rows | None, pa.Table]]:
        """The attributes of events that have travelled, in parts in which each column is of one type; which rows.

        It is one part, of all rows (None), unless points and boxes are mixed.
        """
        events = table.select(range(len(self.attributes))).rename_columns(list(self.attributes))
        for name in self.foreign:
            at = self.attributes.index(name)
            events = events.set_column(at, name, events.column(at).cast(pa.binary()))
        if not self.shapes:
            yield None, events
            return
        sizes = np.array([_sizes(events.column(name)) for name in self.shapes]).T
        alike = np.unique(sizes, axis=0)
        for part in alike:
            rows = np.flatnonzero((sizes == part).all(axis=1)) if len(alike) > 1 else None
            yield rows, self._shaped(events if rows is None else events.take(pa.array(rows)), part.tolist())

    def _shaped(self, events: pa.Table, sizes: Sequence[int]) -> pa.Table:
        """Lists of two numbers as points and lists of four as boxes; any others are foreign."""
        for name, size in zip(self.shapes, sizes, strict=True):
            at = self.attributes.index(name)
            column = events.column(at)
            if column.null_count == len(column):
                # Casting some of these crashes Arrow.
                events = events.set_column(at, name, pa.nulls(len(column)))
            elif size in (2, 4):
                events = events.set_column(at, name, column.cast(pa.list_(pa.float64(), size)))
        return events

    def handed_through(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """The columns that are not for matching."""
        return list(table.columns[table.num_columns - self.others :])


def select(
    events: DataFrame,
    profile: Profile,
    schema: Schema | None,
    others: Sequence[Column],
    *,
    collect: bool = False,
) -> tuple[DataFrame, Transport]:
    """The columns that subscriptions of this profile ask for, then others; and how they lie.

    SchemaError, before anything runs, if a column is of another type than is declared, unless events at fault are
    to be collected.
    """
    from pyspark.sql import functions

    found = leaves(events.schema)
    if schema is not None and not collect:
        _check(found, schema)
    declared: Schema | tuple[()] = () if schema is None else schema
    named = {*profile.attributes, *declared}
    concerned = named | {parent for name in named for parent in parents(name)}
    asked = {name: leaf for name, leaf in found.items() if name in concerned}
    shapes = tuple(
        name for name, leaf in asked.items() if leaf.kind in _SHAPES and _geometric(name, profile, schema)
    )
    foreign = {name: leaf.kind for name, leaf in asked.items() if name not in shapes and is_foreign(leaf.kind)}
    columns = [
        (_trace(leaf, name in declared) if name in foreign else leaf.column).alias(f"a{at}")
        for at, (name, leaf) in enumerate(asked.items())
    ]
    through = [column.alias(f"o{at}") for at, column in enumerate(others)]
    if not columns and not through:
        columns.append(functions.lit(0).alias("rows"))  # without any column, Spark would not hand rows over
    return events.select(*columns, *through), Transport(tuple(asked), shapes, len(through), foreign)


def _trace(leaf: Leaf, told: bool) -> Column:
    """All that travels of a foreign value, null if there is none: nothing, or its beginning as text."""
    from pyspark.sql import functions

    text = functions.lit("")
    if told and leaf.kind.startswith(_TOLD):
        text = functions.coalesce(functions.substring(leaf.column.cast("string"), 1, 80), text)
    return functions.when(leaf.column.isNotNull(), text)


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
    for each in schema:
        quoted = each.name.replace("`", "``")
        for name, leaf in _within(each.name, functions.col(f"`{quoted}`"), each.dataType):
            if name in found:
                raise EventError(f"attribute {name!r} occurs twice", attribute=name)
            found[name] = leaf
    return found


def _within(name: str, column: Column, kind: DataType) -> Iterator[tuple[str, Leaf]]:
    if kind.typeName() != "struct":
        yield name, Leaf(column, kind.simpleString())
        return
    for each in kind:  # type: ignore[attr-defined]  # a struct has fields
        yield from _within(f"{name}.{each.name}", column.getField(each.name), each.dataType)


def type_of(kind: str) -> Type | None:
    """The type of the language that a type of Spark carries; None if there is none."""
    return Type.FLOAT if kind.startswith("decimal") else _TYPES.get(kind)


def is_foreign(kind: str) -> bool:
    """Whether the language has no type for values of a type of Spark."""
    return type_of(kind) is None and kind != "void"


def types_of(schema: StructType) -> dict[str, frozenset[Type]]:
    """By attribute, the types that its values may have; those that the language has not are left out."""
    known = {name: type_of(leaf.kind) for name, leaf in leaves(schema).items()}
    return {name: frozenset({found}) for name, found in known.items() if found is not None}


def _check(found: dict[str, Leaf], schema: Schema) -> None:
    for name, declared in schema.items():
        if name not in found or found[name].kind == "void":
            continue
        kind = found[name].kind
        fits = type_of(kind) is declared or (declared, type_of(kind)) == (Type.FLOAT, Type.INT)
        if not fits and not (declared in (Type.POINT, Type.BOX) and kind in _SHAPES):
            raise SchemaError.wrong_type(name, declared.value, kind)


def _geometric(name: str, profile: Profile, schema: Schema | None) -> bool:
    declared = None if schema is None else schema.get(name)
    return declared in (Type.POINT, Type.BOX) or (declared is None and profile.geometric(name))


def _sizes(column: pa.ChunkedArray) -> Rows:
    """For lists, 2 for those that may be points, 4 for boxes, 0 for others; where there is none, any of these."""
    sizes = pc.list_value_length(column)
    some = sizes.drop_null()
    any_size = some[0].as_py() if len(some) else 2
    found = np.asarray(sizes.fill_null(any_size).to_numpy(), np.int64)
    return np.where(np.isin(found, (2, 4)), found, 0)
