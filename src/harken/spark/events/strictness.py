"""Values that Spark's readers take too leniently are read as they are written, and made into what they are to be.

To Spark, a number is a timestamp, and so is `10:00`; what is to be a text is one, whatever it was; and a number
that no float holds is infinite. To the language each is a value of another type, which is a fault of its event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harken.model.values import Type
from harken.spark.events.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_OFFSET = r"(?:Z|[+-](?:0\d|1[0-5])(?::?[0-5]\d)?)"
_DAY = r"(?!0000)\d{4}-\d\d-\d\d"
_FORMS = {"date": f"^{_DAY}$", "timestamp": f"^{_DAY}(?:[ T]{_TIME}{_OFFSET}?)?$"}
"""As the language has them (`harken.language.literals`), in the expressions of Java."""

_WITHOUT_OFFSET = r"^.{11}[^Z+-]*$"


@dataclass(frozen=True, slots=True)
class Strictness:
    """How the columns of files are read, of which these attributes are declared."""

    format: Literal["csv", "json"]
    declared: Mapping[str, Type]

    def written(self, columns: StructType) -> StructType:
        """The columns as the reader is told."""
        return self._written_within(columns, "")

    def made(self, events: DataFrame, columns: StructType, unread: str) -> DataFrame:
        """Events that were read as `written`, with the types of the columns.

        A value that is not of its type is put, with its name, into the column for what cannot be read, if there
        is one and it is empty; otherwise it fails the job.
        """
        from pyspark.sql import functions

        collect = unread in events.columns
        odd: list[Column] = []
        made: dict[str, Column] = {}
        for field in columns:
            if self._read(field, field.name) == field.dataType and not self._may_overflow(field, field.name):
                continue
            values = _Values(self, collect, [])
            made[field.name] = values.of(functions.col(quoted(field.name)), field, field.name)
            odd += values.odd
        if odd:
            made[unread] = functions.coalesce(functions.col(unread), *odd)
        return events.withColumns(made) if made else events

    def _written_within(self, columns: StructType, prefix: str) -> StructType:
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(each.name, self._read(each, prefix + each.name)) for each in columns])

    def _read(self, field: StructField, name: str) -> DataType:
        """The type that a column, or a field within one, is read as."""
        from pyspark.sql.types import StringType, StructType, VariantType

        kind = field.dataType
        if isinstance(kind, StructType):
            return self._written_within(kind, f"{name}.")
        if kind.typeName() in _FORMS or (self.format == "csv" and kind.typeName() == "array"):
            return StringType()
        if self.format == "json" and isinstance(kind, StringType) and self.declared.get(name) is Type.STRING:
            return VariantType()  # which alone tells a text from a number
        return kind

    def _may_overflow(self, field: StructField, name: str) -> bool:
        """Whether Spark takes a number that is too large for an infinite one: JSON has none."""
        if field.dataType.typeName() == "struct":
            return any(self._may_overflow(each, f"{name}.{each.name}") for each in field.dataType)  # type: ignore[attr-defined]
        return self.format == "json" and self.declared.get(name) is Type.FLOAT


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of one column, and what is odd of them, told if it is collected."""

    strictness: Strictness
    collect: bool
    odd: list[Column]

    def of(self, written: Column, field: StructField, name: str) -> Column:
        """What is written, as the type that it is to be."""
        kind = field.dataType.typeName()
        if kind == "struct":
            return self._within(written, field, name)
        if kind in _FORMS:
            return self._or_odd(_moment(written, kind), written, written.isNotNull(), name, kind)
        if kind == "array" and self.strictness.format == "csv":
            return self._list(written, field, name)
        if kind == "string" and self.strictness.declared.get(name) is Type.STRING:
            return self._text(written, name)
        if self.strictness._may_overflow(field, name):
            return self._float(written, name)
        return written

    def _within(self, written: Column, field: StructField, name: str) -> Column:
        made = written
        for each in field.dataType:  # type: ignore[attr-defined]  # a struct has fields
            inner = written.getField(each.name)
            value = self.of(inner, each, f"{name}.{each.name}")
            if value is not inner:
                made = made.withField(quoted(each.name), value)
        return made

    def _text(self, written: Column, name: str) -> Column:
        """A text; an object is one too, as it is where nothing is declared."""
        from pyspark.sql import functions

        other = functions.schema_of_variant(written).rlike("^(?!STRING|OBJECT|VOID)")
        text = functions.when(~other, written.cast("string"))
        return self._or_odd(text, written, other, name, "string")

    def _float(self, written: Column, name: str) -> Column:
        from pyspark.sql import functions

        other = functions.abs(written) == float("inf")
        return self._or_odd(functions.when(~other, written), written, other, name, "float")

    def _list(self, written: Column, field: StructField, name: str) -> Column:
        """A point or a box of CSV, `[2.35, 48.86]`."""
        from pyspark.sql import functions

        parsed = functions.from_json(written, field.dataType)  # type: ignore[arg-type]
        return self._or_odd(parsed, written, written.isNotNull(), name, "point or box")

    def _or_odd(self, value: Column, written: Column, is_there: Column, name: str, kind: str) -> Column:
        """The value; what is there and makes none is odd, or an error."""
        from pyspark.sql import functions

        odd = is_there & value.isNull()
        shown = functions.to_json(functions.struct(written.alias(name)))
        told = written if self.strictness.format == "csv" else shown
        if self.collect:
            self.odd.append(functions.when(odd, told))
            return value
        said = functions.lit(f"Malformed records are detected: attribute {name!r} is to be {kind}, found ")
        failure = functions.raise_error(functions.concat(said, functions.substring(told, 1, 200)))
        return functions.when(odd, failure).otherwise(value)


def _moment(written: Column, kind: str) -> Column:
    """A date, or a moment, in UTC unless it says otherwise; null if it is written in none of the forms."""
    from pyspark.sql import functions

    if kind == "date":
        return functions.when(written.rlike(_FORMS[kind]), written.try_cast(kind))
    # To Spark, what has an offset has seconds, and what has none is of the session's time zone.
    seconds = functions.when(functions.substring(written, 17, 1) == ":", "").otherwise(":00")
    minute, rest = functions.substring(written, 1, 16), functions.substring(written, 17, 20)
    zone = functions.when(written.rlike(_WITHOUT_OFFSET), "Z").otherwise("")
    day = functions.concat(written, functions.lit("T00:00:00Z"))
    moment = functions.concat(minute, seconds, rest, zone)
    text = functions.when(functions.length(written) == 10, day).otherwise(moment)
    return functions.when(written.rlike(_FORMS[kind]), text.try_cast(kind))
