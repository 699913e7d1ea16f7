"""JSON, an event on each line: a line holds one value, or it is a record that cannot be read.

Spark's own reader takes the first value of a line and passes over what follows it, without a word. Only who has
the text of a line can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

TEXT = "value"
"""The column of lines that are read as text."""


_FILE = "_harken_file"
"""The column that says which file a line is in."""


def has_crowded(texts: DataFrame) -> bool:
    """Whether some line holds more than one value, or none that can be read. Reads all lines, if none does."""
    return not texts.where(~_is_blank() & ~_is_alone()).isEmpty()


def events_in(texts: DataFrame, columns: StructType, options: Mapping[str, str], unread: str) -> DataFrame:
    """The events of lines, an object or an array of objects on each, by Spark's rules for JSON.

    Where `unread` is among the columns, it takes the text of what cannot be read; else that fails the job. All
    columns of the texts but the first are those of partitions, and stay.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    partitions = texts.columns[1:]
    texts = texts.withColumn(_FILE, functions.col("_metadata.file_path"))
    made = StructType([field for field in columns if field.name not in partitions])
    text, told = _text(), dict(options)
    bad = _unread(made, unread) if unread in made.names else _failure()
    each = functions.from_json(text, "array<string>")
    several = functions.transform(
        each,
        lambda one: functions.from_json(functions.coalesce(one, functions.lit("null")), made, told),
    )
    one = functions.array(functions.from_json(text, made, told))
    events = functions.when(~_is_alone(), bad).when(text.rlike(r"^\s*\["), functions.coalesce(several, bad))
    # As rows that are made: parts of a value that is computed would be computed for each by itself.
    return texts.where(~_is_blank()).select(functions.inline(events.otherwise(one)), *partitions)


def _text() -> Column:
    from pyspark.sql import functions

    return functions.expr(
        f"trim(LEADING '\ufeff' FROM {TEXT})"
    )  # a mark that may stand at the beginning of a file


def _is_blank() -> Column:
    return ~_text().rlike(r"\S")


def _is_alone() -> Column:
    """Whether a line holds one value: put into an array before another one, it makes two."""
    from pyspark.sql import functions

    wrapped = functions.concat(functions.lit("["), _text(), functions.lit(",0]"))
    count = functions.coalesce(functions.json_array_length(wrapped), functions.lit(0))
    return functions.is_valid_utf8(functions.col(TEXT)) & (count == 2)


def _unread(columns: StructType, unread: str) -> Column:
    """A line as a record that cannot be read."""
    from pyspark.sql import functions

    fields = [
        (_text() if each.name == unread else functions.lit(None)).cast(each.dataType).alias(each.name)
        for each in columns
    ]
    return functions.array(functions.struct(*fields))


def _failure() -> Column:
    from pyspark.sql import functions

    said = functions.lit("; Malformed records are detected: a line is to hold one value of JSON, and one holds ")
    return functions.raise_error(functions.concat(_FILE, said, functions.substring(_text(), 1, 200)))
