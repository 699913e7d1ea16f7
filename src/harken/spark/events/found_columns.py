"""Which columns events have, and of which types: as found in files, as declared, and as known from before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
        elif nested and (
            within := [each for each in schema if each.startswith(f"{name}.") and each not in found.names]
        ):
            kind = StructType()
            for each in within:
                put(kind, each.removeprefix(f"{name}.").split("."), TYPES[schema[each]])
        fields.append(StructField(field.name, kind))
    return StructType(fields)


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
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in columns:
        other = others[field.name].dataType if field.name in others.names else field.dataType
        fields.append(StructField(field.name, _as_wide(field.dataType, other)))
    return StructType(fields)


def _as_wide(kind: DataType, other: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, DecimalType, IntegralType, NumericType, StructType

    if isinstance(kind, StructType) and isinstance(other, StructType):
        return as_wide(kind, other)
    if isinstance(kind, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_as_wide(kind.elementType, other.elementType))
    if kind == other or not (isinstance(kind, NumericType) and isinstance(other, NumericType)):
        return kind
    if all(isinstance(each, IntegralType) or not getattr(each, "scale", 1) for each in (kind, other)):
        return max(kind, other, key=lambda each: each.precision if isinstance(each, DecimalType) else 0)
    return _common([kind, other])


def of_other_kinds(known: StructType, now: StructType) -> Iterator[tuple[str, str, str]]:
    """The attributes whose values are of another kind than was known, or that cannot be there any more.

    Each with what it was and what there is instead.
    """
    kinds, found = kinds_of(now), leaves(now)
    for name, kind in kinds_of(known).items():
        parts = name.split(".")
        above = [".".join(parts[:length]) for length in range(1, len(parts))]
        if name in found and kinds.get(name) != kind:
            yield name, kind.value, kinds[name].value if name in kinds else found[name].kind
        elif name not in found and (leaf := next((each for each in above if each in found), None)):
            yield name, kind.value, f"in {leaf!r}, which is {found[leaf].kind}"


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
        kind = _within(field.dataType)
        known = kinds.setdefault(field.name, [])
        if kind not in known:
            known.append(kind)
    return StructType([StructField(name, _common(each)) for name, each in kinds.items()])


def _within(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, StructType):
        return once(kind)
    return ArrayType(_within(kind.elementType)) if isinstance(kind, ArrayType) else kind


def _common(kinds: list[DataType]) -> DataType:
    """As Spark does it for values of different records: numbers become floats, all else text."""
    from pyspark.sql.types import DoubleType, NumericType, StringType

    if len(kinds) == 1:
        return kinds[0]
    return DoubleType() if all(isinstance(kind, NumericType) for kind in kinds) else StringType()


def put(columns: StructType, path: list[str], kind: str) -> None:
    """Add a column, within the structs that its path names."""
    from pyspark.sql.types import StructType

    for part in path[:-1]:
        if part not in columns.names:
            columns.add(part, StructType())
        columns = columns[part].dataType  # type: ignore[assignment]  # made here
    columns.add(path[-1], spark_type(kind))


def spark_type(kind: str) -> DataType:
    """The type that Spark writes so."""
    from pyspark.sql.types import DataType

    return DataType.fromDDL(kind)
