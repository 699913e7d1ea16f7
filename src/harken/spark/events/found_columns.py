"""Which columns events have, and of which types: as found in files, as declared, and as known from before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from harken.errors import SchemaError
from harken.model.schema import Schema
from harken.model.values import Type
from harken.spark.events.columns import kinds_of, leaves

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

TYPES = {
    Type.INT: "bigint",
    Type.FLOAT: "double",
    Type.STRING: "string",
    Type.BOOL: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
    Type.POINT: "array<double>",
    Type.BOX: "array<double>",
}
"""What a declared type is in Spark."""

_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_NUMBERS = re.compile(r"\b(tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\))")


def declared_in(found: StructType, schema: Schema, prefix: str = "", *, nested: bool) -> StructType:
    """The columns that were found, with the types that are declared, also of what is within them if it can be."""
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in found:
        name = prefix + field.name
        declared = schema.get(name)
        kind = field.dataType
        if declared is not None:
            kind = spark_type(TYPES[declared])
        elif isinstance(kind, StructType):
            kind = declared_in(kind, schema, f"{name}.", nested=nested)
        elif nested and (within := _within(name, schema, [prefix + each for each in found.names])):
            kind = StructType()
            for each in within:
                put(kind, each.removeprefix(f"{name}.").split("."), TYPES[schema[each]])
        fields.append(StructField(field.name, kind))
    return StructType(fields)


def _within(name: str, schema: Schema, found: Sequence[str]) -> list[str]:
    """What is declared within an attribute, and is no column by its whole name."""
    return [each for each in schema if each.startswith(f"{name}.") and each not in found]


def with_all(columns: StructType, others: StructType, by_case: bool = True) -> StructType:
    """Columns, and those of others that they lack; what is to Spark the same is not added."""
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in columns:
        within = others[field.name].dataType if field.name in others.names else None
        kind = field.dataType
        if isinstance(kind, StructType) and isinstance(within, StructType):
            kind = with_all(kind, within, by_case)
        fields.append(StructField(field.name, kind))
    names = {field.name if by_case else field.name.lower() for field in columns}
    return StructType(
        fields + [each for each in others if (each.name if by_case else each.name.lower()) not in names]
    )


def as_wide(columns: StructType, others: StructType) -> StructType:
    """Columns, of numbers as wide as they are and as others of these names are."""
    return _each(columns, others, _wider)


def as_readable(columns: StructType, others: StructType) -> StructType:
    """Columns, of the types of numbers that others of these names have, unless Spark reads these as columns."""
    return _each(columns, others, lambda kind, other: kind if _reads(other, kind) else other)


def read_as_well(columns: StructType, others: StructType) -> StructType:
    """Columns, of the types of numbers that others of these names have, if Spark reads columns as these."""
    return _each(columns, others, lambda kind, other: other if _reads(kind, other) else kind)


def _each(columns: StructType, others: StructType, choose: Callable[[DataType, DataType], DataType]) -> StructType:
    """Columns, of the types that are chosen where both they and others of these names are numbers."""
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in columns:
        other = others[field.name].dataType if field.name in others.names else field.dataType
        fields.append(StructField(field.name, _chosen(field.dataType, other, choose)))
    return StructType(fields)


def _chosen(kind: DataType, other: DataType, choose: Callable[[DataType, DataType], DataType]) -> DataType:
    from pyspark.sql.types import ArrayType, NumericType, StructType

    if isinstance(kind, StructType) and isinstance(other, StructType):
        return _each(kind, other, choose)
    if isinstance(kind, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_chosen(kind.elementType, other.elementType, choose))
    if kind == other or not (isinstance(kind, NumericType) and isinstance(other, NumericType)):
        return kind
    return choose(kind, other)


def _wider(kind: DataType, other: DataType) -> DataType:
    if all(_is_whole(each) for each in (kind, other)):
        return max(kind, other, key=lambda each: _DIGITS.get(each.typeName(), getattr(each, "precision", 0)))
    return _common([kind, other])


def _is_whole(kind: DataType) -> bool:
    return kind.typeName() in _DIGITS or not getattr(kind, "scale", 1)


def _reads(kind: DataType, wider: DataType) -> bool:
    """Whether Spark reads numbers of one type, in a file of Parquet, as numbers of another."""
    if kind.typeName() in _DIGITS and wider.typeName() in _DIGITS:
        return _DIGITS[kind.typeName()] <= _DIGITS[wider.typeName()]
    if wider.typeName() == "double":
        return kind.typeName() in ("float", "byte", "short", "integer")
    scales = [getattr(each, "scale", None) for each in (kind, wider)]
    return None not in scales and scales[0] == scales[1] and kind.precision <= wider.precision  # type: ignore[attr-defined]


def of_other_kinds(known: StructType, now: StructType) -> Iterator[tuple[str, str, str]]:
    """The attributes whose values are of another kind than was known: each with what it was, and what it is."""
    found, kinds = leaves(now), _kinds(now)
    for name, kind in _kinds(known).items():
        path = leaves(known)[name].path
        above = [".".join(path[:length]) for length in range(1, len(path))]
        if name in found:
            if kinds[name] != kind:
                yield name, kind, kinds[name]
        elif leaf := next((each for each in above if each in found), None):
            yield name, kind, f"in {leaf!r}, which is {kinds[leaf]}"
        elif any(each.path[: len(path)] == path for each in found.values()):
            yield name, kind, "an object"


def _kinds(columns: StructType) -> dict[str, str]:
    """By attribute, the kind of its values; of types that the language has not, the type, whatever its numbers."""
    kinds = kinds_of(columns)
    return {
        name: kinds[name].value if name in kinds else _NUMBERS.sub("numbers", leaf.kind)
        for name, leaf in leaves(columns).items()
    }


def may_be_empty(columns: StructType) -> bool:
    """Whether one of the columns, or of what is within them, is of a type that Spark finds where no value is."""
    empty = ("string", "array<string>")
    return any(leaf.kind in empty for leaf in leaves(columns).values()) or "struct<>" in columns.simpleString()


def among(columns: StructType, others: Sequence[StructType]) -> StructType:
    """The columns that are among others too, and what of them is; no struct of which nothing is."""
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in columns:
        same = [each[field.name].dataType for each in others if field.name in each.names]
        kind = field.dataType
        if isinstance(kind, StructType):
            kind = among(kind, [each for each in same if isinstance(each, StructType)])
            same = [kind] if kind.fields else []
        if same:
            fields.append(StructField(field.name, kind))
    return StructType(fields)


def once(columns: StructType) -> StructType:
    """Columns some of which come more than once, each once, of a type that holds all that it was."""
    from pyspark.sql.types import StructField, StructType

    kinds: dict[str, list[DataType]] = {}
    for field in columns:
        kind = _once_within(field.dataType)
        known = kinds.setdefault(field.name, [])
        if kind not in known:
            known.append(kind)
    return StructType([StructField(name, _common(each)) for name, each in kinds.items()])


def _once_within(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, StructType):
        return once(kind)
    return ArrayType(_once_within(kind.elementType)) if isinstance(kind, ArrayType) else kind


def _common(kinds: list[DataType]) -> DataType:
    """As Spark does it for values of different records: numbers become floats, all else text."""
    from pyspark.sql.types import DoubleType, NumericType, StringType

    if len(kinds) == 1:
        return kinds[0]
    return DoubleType() if all(isinstance(kind, NumericType) for kind in kinds) else StringType()


def put(columns: StructType, path: list[str], kind: str) -> None:
    """Add a column, within the structs that its path names; SchemaError if one of them is declared to be none."""
    from pyspark.sql.types import StructType

    for at, part in enumerate(path[:-1], 1):
        if part not in columns.names:
            columns.add(part, StructType())
        inner = columns[part].dataType
        if not isinstance(inner, StructType):
            raise SchemaError(
                f"{'.'.join(path[:at])!r} is declared, and so is what is within it", attribute=path[0]
            )
        columns = inner
    if path[-1] in columns.names:
        raise SchemaError(f"{'.'.join(path)!r} is declared, and so is what is within it", attribute=path[0])
    columns.add(path[-1], spark_type(kind))


def spark_type(kind: str) -> DataType:
    """The type that Spark writes so."""
    from pyspark.sql.types import DataType

    return DataType.fromDDL(kind)
