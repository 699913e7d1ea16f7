"""Events in files, read by Spark: CSV, JSON and Parquet, in bulk or as they are added to a folder.

The types of CSV are those that `harken.files` finds in the first file, so that `harken match` and Spark read one
file alike; Spark's own rules, which make a number of `007`, are left for addresses that only Spark can read.

Spark's readers pass over what they cannot read: a value that is not of its column's type becomes null, which to a
subscription is an attribute that is missing. Here such a record fails the job, or is sorted out with its reason.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from harken.errors import InputFileError
from harken.files import is_one_line, sample_csv, sample_json, spans_lines
from harken.model.schema import Schema
from harken.spark.events.columns import leaves, quoted
from harken.spark.events.found_columns import (
    TYPES,
    among,
    as_readable,
    as_wide,
    declared_in,
    may_be_empty,
    of_other_kinds,
    once,
    put,
    read_as_well,
    spark_type,
    with_all,
)
from harken.spark.storage.hadoop import literally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

Format: TypeAlias = Literal["csv", "json", "parquet"]

FAULT = "_harken_fault"
"""The column that says why an event was sorted out; null for those that can be matched."""

_UNREAD = "_harken_unread"
"""The column in which Spark leaves the text of a record that it could not read."""

_OURS = (FAULT, _UNREAD)

_EVER = "36500d"
"""How much older than the latest file one may be that is added to a folder: Spark passes over others, unsaid."""

_SAMPLED = 20
"""Files whose beginnings are looked at, of however many."""

_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_OPTIONS: dict[Format, dict[str, str]] = {
    # As RFC 4180 has it. Columns are found by the names in each file's header, and a line with too few or too many
    # is noticed even if the cells that are asked for are all there.
    # An empty cell is missing, and `""` is the empty string: they differ only if what stands for null is neither.
    "csv": {
        "header": "true",
        "escape": '"',
        "enforceSchema": "false",
        "columnPruning": "false",
        "nullValue": "\x00",
        "positiveInf": "inf",
        "negativeInf": "-inf",
        "dateFormat": "yyyy-MM-dd",  # which is what it is anyway, but else moments would be cut down to their days
        "timeZone": "UTC",
    },
    "json": {"allowNonNumericNumbers": "false", "timeZone": "UTC", "dateFormat": "yyyy-MM-dd"},
    "parquet": {},
}


@dataclass(frozen=True, slots=True)
class Followed:
    """The columns that a stream reads, and those to be known when it goes on."""

    columns: StructType
    known: StructType
    remarks: dict[str, str]
    """What is to be said of attributes that files of now have otherwise."""


@dataclass(frozen=True, slots=True)
class EventFiles:
    """A file of events, a folder of them, or a pattern; anything with `://` is handed to Spark as it is.

    CSV has a header; JSON has one object per line, or is an array. The types of their columns are those that
    `schema` declares, and inferred for others: those of CSV from the beginning of the first file, by the rules of
    `harken.files`; those of JSON, and of what only Spark can read, from all there is, by Spark.
    """

    path: str
    format: Format
    schema: Schema | None = None

    @classmethod
    def at(cls, path: str, format: Format | None = None, schema: Schema | None = None) -> EventFiles:  # noqa: A002
        """The files at a path, of the format that their endings name unless it is given; InputFileError if not."""
        if "://" not in path and not os.path.lexists(path) and not _matching(path):
            raise InputFileError(path, "there is no such file or folder")
        return cls(path, format or _format_of(path), schema)

    def read(self, spark: SparkSession, *, collect: bool = False) -> DataFrame:
        """The events as a DataFrame. A record that cannot be read fails the job that comes to it.

        With `collect` it does not, and `sorted_out` has to follow.
        """
        columns = self._columns(spark)
        reader = spark.read.format(self.format).options(**self._options(collect))
        reader = reader.schema(self._raw(columns, collect))
        return self._typed(reader.load(self._address), columns)

    def follow(self, spark: SparkSession, columns: StructType, *, collect: bool = False) -> DataFrame:
        """The events as a stream that goes on with every file added to the folder, of the `columns_to_follow`."""
        options = {**self._options(collect), **({"multiLine": "false"} if self.format == "json" else {})}
        reader = spark.readStream.format(self.format).options(**options, maxFileAge=_EVER)
        return self._typed(reader.schema(self._raw(columns, collect)).load(self._address), columns)

    def columns_to_follow(
        self, spark: SparkSession, known: StructType | None = None, *, widening: bool = True
    ) -> Followed:
        """The columns of a stream, as it has `known` them so far; InputFileError if nothing tells of them.

        Columns that were known go on as they were, whatever the files of now hold: what is not of their type is at
        fault, and nobody takes for text what were numbers. Others join them. Numbers become as wide as those of
        the files if they may, by `widening`: not where an event that was too wide has passed as a reject. A schema
        has the last word. To be known are those that had a value so far, or are declared.
        """
        from pyspark.sql.types import StructType

        self._check_lines()
        known = StructType() if known is None else known
        found = self._columns(spark, following=True)
        by_case = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
        if self.schema is not None and self.format != "parquet":
            known = declared_in(known, self.schema, nested=self.format == "json")
            if self.format == "json":
                found = with_all(found, self._declared_only(leaves(found)), by_case)
        sure = self._with_values(spark, found)
        remarks = {
            name: f"{name!r} is read as {before}, as when the stream began, though it is {now} in files of now"
            + ("" if self.format == "parquet" else "; a schema can say otherwise")
            for name, before, now in of_other_kinds(known, sure)
        }
        if self.format == "parquet":
            kept = as_readable(known, sure)
        else:
            kept = as_wide(known, sure) if widening else known
        kept = with_all(kept, sure, by_case)
        columns = with_all(kept, found, by_case)
        if self.format == "csv":  # whose files say which columns there are
            columns = StructType([columns[name] if name in columns.names else found[name] for name in found.names])
        if not columns.fields:
            raise self._unknown("there is no event yet")
        return Followed(columns, kept, remarks)

    # ---------------------------------------------------------------- inside

    @property
    def _address(self) -> str:
        if "://" in self.path:
            return self.path
        # What is there is meant, even if its name has characters that Spark takes for patterns.
        name = os.path.abspath(self.path)
        return f"file://{literally(name) if os.path.lexists(self.path) else name}"

    def _options(self, collect: bool) -> dict[str, str]:
        if self.format == "parquet":
            return {}
        mode = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREAD} if collect else {"mode": "FAILFAST"}
        return {**self._form(), **mode}

    def _form(self) -> dict[str, str]:
        """How the files are written."""
        over_lines, files = False, self._local()
        if self.format == "csv":
            over_lines = any(sample_csv(each).over_lines for each in _some(files))
        elif self.format == "json" and any(map(spans_lines, _some(files))):
            over_lines = True
            self._check_forms(files)
        return {**_OPTIONS[self.format], "multiLine": str(over_lines).lower()}

    def _check_forms(self, files: list[str]) -> None:
        """InputFileError if some file has several events beside each other: only the first would be met."""
        for each in files:
            if not (spans_lines(each) or is_one_line(each)):
                raise InputFileError(
                    each,
                    "it has an event on each line, and other files that are read with it have events over several",
                    suggestion="read the ones and the others each by themselves",
                )

    def _check_lines(self) -> None:
        """InputFileError if events span lines in a file to follow: others to come may have one on each."""
        for each in _some(self._local()) if self.format == "json" else ():
            if spans_lines(each):
                raise InputFileError(
                    each,
                    "events span lines, and a stream reads an event, or an array of them, from each line",
                    suggestion="write it so, or read it without --stream",
                )

    def _local(self) -> list[str]:
        """The files that can be read here, but for empty ones."""
        if "://" in self.path:
            return []
        return [str(file) for file in _files(self.path) if file.stat().st_size]

    def _first(self) -> str | None:
        """The first of the files that can be read here, and of CSV tells of a column; None if there is none."""
        files = self._local()
        if self.format == "csv":
            return next((each for each in files[:_SAMPLED] if sample_csv(each).types), None)
        return next(iter(files), None)

    def remarks(self) -> list[str]:
        """What Spark will read otherwise than `harken match` does, as far as some files tell."""
        if self.format != "json" or self._first() is None:
            return []
        declared = self.schema or Schema({})
        said = sample_json(*_some(self._local())).remarks
        return [each for each in said if not any(each.startswith(f"attribute {name!r} ") for name in declared)]

    def _columns(self, spark: SparkSession, following: bool = False) -> StructType:
        """The columns with the types they are to have."""
        if following and not _has_files(self.path):
            return self._declared_only()
        if self.format == "parquet":
            return self._merged(spark)
        first = self._first()
        found = _sampled(first) if self.format == "csv" and first is not None else None
        found = found or self._inferred(spark)
        if self.schema is None:
            return found
        return declared_in(found, self.schema, nested=self.format == "json")

    def _with_values(self, spark: SparkSession, columns: StructType) -> StructType:
        """The columns that had a value, or are declared: others are found to be text, and need not stay so."""
        from pyspark.sql.types import StringType, StructType

        if self.format == "parquet" or not _has_files(self.path):
            return columns
        first, declared = self._first(), self._declared_only() if self.schema else StructType()
        if self.format == "json":
            seen = self._inferred(spark, {"dropFieldIfAllNull": "true"}) if may_be_empty(columns) else columns
        elif first is not None:
            types = sample_csv(first).types
            seen = StructType([field for field in columns if types.get(field.name) is not None])
        else:
            seen = StructType([field for field in columns if not isinstance(field.dataType, StringType)])
        return among(columns, [seen, declared])

    def _inferred(self, spark: SparkSession, further: Mapping[str, str] = {}) -> StructType:
        """The columns that Spark finds. Records that cannot be read tell of none; they are met again later."""
        from pyspark.errors import AnalysisException

        options = {**self._form(), "mode": "DROPMALFORMED", "inferSchema": "true", **further}
        try:
            return spark.read.format(self.format).options(**options).load(self._address).schema
        except AnalysisException as error:
            if self.format != "json" or error.getCondition() != "COLUMN_ALREADY_EXISTS":
                raise
        # Some object has a key twice. Spark refuses to find columns in such a file, though it can read it.
        texts = spark.read.text(self._address, wholetext=options["multiLine"] == "true")
        reader = spark.read.options(**options)
        try:
            found = once(reader.json(texts).schema)
        except TypeError:  # before Spark 4.2
            found = once(reader.json(texts.rdd.map(itemgetter(0))).schema)
        if spark.conf.get("spark.sql.caseSensitive") != "true":
            self._check_case(found)
        return found

    def _merged(self, spark: SparkSession) -> StructType:
        """The columns of all files of Parquet; where types differ, one that all can be read as, or the first."""
        reader = spark.read.format(self.format)
        try:
            return reader.option("mergeSchema", "true").load(self._address).schema
        except Exception:  # in words of Java's; whatever else it was comes again
            events = reader.option("mergeSchema", "false").load(self._address)
        columns = events.schema
        local = [f"file://{literally(os.path.abspath(each))}" for each in self._local()]
        for each in local or events.inputFiles():
            others = reader.load(each).schema
            columns = with_all(read_as_well(columns, others), others)
        return columns

    def _check_case(self, columns: StructType, prefix: str = "") -> None:
        """InputFileError if names differ in case alone, which Spark takes for one."""
        from pyspark.sql.types import StructType

        seen: dict[str, str] = {}
        for field in columns:
            other = seen.setdefault(field.name.lower(), field.name)
            if other != field.name:
                said = f"to Spark the attributes {prefix + other!r} and {prefix + field.name!r} are one"
                hint = "set spark.sql.caseSensitive to true, or rename one"
                raise InputFileError(self.path, said, suggestion=hint)
            if isinstance(field.dataType, StructType):
                self._check_case(field.dataType, f"{prefix}{field.name}.")

    def _declared_only(self, known: Collection[str] = ()) -> StructType:
        """The columns that are declared, but for some that are known."""
        from pyspark.sql.types import StructType

        if self.schema is None:
            raise self._unknown("the folder is empty")
        columns = StructType()
        for name, declared in self.schema.items():
            if name in known:
                continue
            put(columns, name.split(".") if self.format == "json" else [name], TYPES[declared])
        return columns

    def _unknown(self, why: str) -> InputFileError:
        return InputFileError(
            self.path,
            f"{why}, so the columns of events are not known",
            suggestion="put a first file there, or declare them in a schema",
        )

    def _raw(self, columns: StructType, collect: bool) -> StructType:
        """The columns as the reader is told: CSV has no lists."""
        from pyspark.sql.types import StringType, StructField, StructType

        text = StringType()
        fields = [StructField(each.name, text) if self._shaped(each.dataType) else each for each in columns]
        if collect and self.format != "parquet":
            fields.append(StructField(_UNREAD, text))
        return StructType(fields)

    def _shaped(self, kind: DataType) -> bool:
        return self.format == "csv" and kind.typeName() == "array"

    def _typed(self, events: DataFrame, columns: StructType) -> DataFrame:
        """Points and boxes of CSV, `[2.35, 48.86]`, as lists; what is no list is an unread record."""
        from pyspark.sql import functions

        for field in columns:
            if self._shaped(field.dataType):
                text = functions.col(quoted(field.name))
                collect = _UNREAD in events.columns
                mode = "PERMISSIVE" if collect else "FAILFAST"
                parsed = functions.from_json(text, field.dataType, {"mode": mode})  # type: ignore[arg-type]
                if collect:
                    bad = functions.when(text.isNotNull() & parsed.isNull(), text)
                    events = events.withColumn(_UNREAD, functions.coalesce(functions.col(_UNREAD), bad))
                events = events.withColumn(field.name, parsed)
        return events


def sorted_out(events: DataFrame) -> DataFrame:
    """Events that were read to `collect`, with a column that says which could not be; null for all others."""
    from pyspark.sql import functions

    if _UNREAD not in events.columns:
        return events.withColumn(FAULT, functions.lit(None).cast("string"))
    said = functions.lit("the record cannot be read, or a value is not of the type of its column")
    return events.withColumn(FAULT, functions.when(functions.col(_UNREAD).isNotNull(), said))


def sound(events: DataFrame) -> DataFrame:
    """Of events with their faults, those without, as they were."""
    from pyspark.sql import functions

    return events.where(functions.col(FAULT).isNull()).drop(*_OURS)


def faulty(events: DataFrame, columns: Collection[str]) -> DataFrame:
    """Of events with their faults, those with one: the record, or these of its columns, as text, and the reason.

    Spark reads only what is used, and meets only the faults of that; so it is to be what matching uses.
    """
    from pyspark.sql import functions

    whole = {name: functions.col(quoted(name)) for name in events.columns}
    known = whole | {name: leaf.column for name, leaf in leaves(events.schema).items()}
    shown = [column.alias(name) for name, column in known.items() if name in columns and name not in _OURS]
    record = functions.to_json(functions.struct(*shown)) if shown else functions.lit(None).cast("string")
    if _UNREAD in events.columns:
        record = functions.coalesce(functions.col(_UNREAD), record)
    bad = events.where(functions.col(FAULT).isNotNull())
    return bad.select(record.alias("record"), functions.col(FAULT).alias("reason"))


def _matching(path: str) -> bool:
    return glob.has_magic(path) and bool(glob.glob(path))


def _files(path: str) -> Iterator[Path]:
    """The files that Spark would read, which passes over hidden ones."""
    for place in map(Path, [path] if os.path.lexists(path) else sorted(glob.glob(path))):
        yield from _within(place) if place.is_dir() else [place]


def _within(folder: Path) -> Iterator[Path]:
    """The files of a folder, and of partitions in it, by their names: Spark looks into no other folders."""
    for each in sorted(folder.iterdir()):
        if each.name[0] == "." or (each.name[0] == "_" and "=" not in each.name):
            continue
        if each.is_file():
            yield each
        elif "=" in each.name and each.is_dir():
            yield from _within(each)


def _some(files: list[str]) -> list[str]:
    """The first and the last of files, and some between them."""
    if not files:
        return []
    places = {at * (len(files) - 1) // (_SAMPLED - 1) for at in range(_SAMPLED)}
    return [files[place] for place in sorted(places)]


def _has_files(path: str) -> bool:
    return "://" in path or any(True for _ in _files(path))


def _format_of(path: str) -> Format:
    names = [Path(path)] if "://" in path else _files(path)
    for name in names:
        # The last known one: names may go on with how a file is compressed.
        known = [_ENDINGS[ending.lower()] for ending in name.suffixes if ending.lower() in _ENDINGS]
        if known:
            return known[-1]
        break
    raise InputFileError(
        path,
        f"cannot tell the format of events by their names; the endings are {', '.join(_ENDINGS)}",
        suggestion=f"say which of {', '.join(get_args(Format))} it is",
    )


def _sampled(path: str) -> StructType | None:
    """The columns of a CSV file, of the types that its first values have; None if it has none."""
    from pyspark.sql.types import StructType

    sample = sample_csv(path)
    columns = StructType()
    for name, kind in sample.types.items():
        wide = name in sample.wide
        spoken = "string" if kind is None or (wide and name == "id") else "decimal(38,0)" if wide else TYPES[kind]
        columns.add(name, spark_type(spoken))
    return columns if sample.types else None
