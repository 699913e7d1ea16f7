"""Which columns of a DataFrame of events travel to the matchers, and how they arrive.

Only attributes that some subscription asks for travel, each in the type that it has, and of nested structs only
their fields.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import EventError, SchemaError
from harken.model.foreign import parents
from harken.model.schema import Schema
from harken.model.values import Kind, Type
from harken.spark.runtime.texts import as_plain_text, is_other_text
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
_NEVER_HANDED_BACK = re.compile(r"interval( (year|month).*)?")
_NEVER_STORED = re.compile(r"interval|geography.*|geometry.*")
_WIDER = ("tinyint", "smallint", "int", "bigint"), ("float", "double")

_TOLD = ("array", "map", "binary")
"""Foreign types whose values can be shown as text."""

Rows: TypeAlias = npt.NDArray[np.int64]
Path: TypeAlias = tuple[str, ...]
"""The names of a column, and of fields within it."""


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
    others: Sequence[str],
    *,
    collect: bool = False,
    numbered: bool = False,
) -> tuple[DataFrame, Transport]:
    """The columns that subscriptions of this profile ask for, then others, given by name; and how they lie.

    If events are to be numbered, their numbers come between.

    SchemaError, before anything runs, if a column is of another type than is declared, unless events at fault are
    to be collected.
    """
    found = leaves(events.schema)
    if schema is not None and not collect:
        _check(found, schema)
    declared: Schema | tuple[()] = () if schema is None else schema
    named = {*profile.attributes, *declared}
    concerned = named | {parent for name in named for parent in parents(name)}
    asked = {name: leaf for name, leaf in found.items() if name in concerned}
    wanted = [*(leaf.path for leaf in asked.values()), *((name,) for name in others)]
    _check_case(events, [*(leaf.path for leaf in found.values()), *wanted], wanted)
    shapes = tuple(
        name for name, leaf in asked.items() if leaf.kind in _SHAPES and _geometric(name, profile, schema)
    )
    foreign = {name: leaf.kind for name, leaf in asked.items() if name not in shapes and is_foreign(leaf.kind)}
    # In SQL: a stream plans every batch, and each call on a Column is one across to Java.
    events, expressions = _in_sql(events, wanted)
    columns = [
        f"{_trace(said, leaf.kind, name in declared) if name in foreign else leaf.in_sql(said)} AS a{at}"
        for at, ((name, leaf), said) in enumerate(zip(asked.items(), expressions, strict=False))
    ]
    through = [f"{expression} AS o{at}" for at, expression in enumerate(expressions[len(asked) :])]
    if numbered:
        # By Spark itself: a task does several partitions where its answers are coalesced, and rows that a query
        # spells out have none while their columns are computed.
        columns.append("monotonically_increasing_id() AS number")
    elif not columns and not through:
        columns.append("0 AS rows")  # without any column, Spark would not hand rows over
    return events.selectExpr(*columns, *through), Transport(tuple(asked), shapes, len(through), foreign)


def _in_sql(events: DataFrame, paths: Sequence[Path]) -> tuple[DataFrame, list[str]]:
    """Columns and fields in Spark's SQL; those that it would read otherwise get other names in the frame."""
    odd = {path: uuid.uuid4().hex for path in paths if not _is_plain(path)}
    if odd:
        events = events.withColumns({name: column_at(path) for path, name in odd.items()})
    return events, [_sql((odd[path],) if path in odd else path) for path in paths]


def _is_plain(path: Path) -> bool:
    """Whether SQL means what it says: variables are replaced anywhere, and settings tell how to escape quotes."""
    return not any("${" in name for name in path) and not any(mark in name for name in path[1:] for mark in "'\\")


def quoted(name: str) -> str:
    """The name of a column, as Spark reads it."""
    return "`{}`".format(name.replace("`", "``"))


def _sql(path: Path) -> str:
    # Fields not with a dot: before it, Spark would look for a table of that name first.
    column, *fields = path
    return quoted(column) + "".join(f"['{name}']" for name in fields)


def column_at(path: Path) -> Column:
    """A column, or a field of a struct."""
    from pyspark.sql import functions

    column, *fields = path
    found = functions.col(quoted(column))
    for name in fields:
        found = found.getField(name)
    return found


def _check_case(events: DataFrame, found: Iterable[Path], asked: Iterable[Path]) -> None:
    """EventError if Spark cannot tell a column, or a field, that is asked for from another."""
    spelt: defaultdict[Path, set[Path]] = defaultdict(set)
    for path in found:
        for end in range(1, len(path) + 1):
            spelt[_folded(path[:end])].add(path[:end])
    for path in asked:
        alike = max((spelt[_folded(path[:end])] for end in range(1, len(path) + 1)), key=len)
        if len(alike) > 1 and str(events.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true":
            hint = "rename one, or set spark.sql.caseSensitive to true"
            told = " and ".join(repr(".".join(each)) for each in sorted(alike))
            raise EventError(f"columns {told} differ by case only", attribute=".".join(path), suggestion=hint)


def _folded(path: Path) -> Path:
    return tuple(map(str.lower, path))


def _trace(expression: str, kind: str, told: bool) -> str:
    """All that travels of a foreign value, null if there is none: nothing, or its beginning as text."""
    text = "''"
    if told and kind.startswith(_TOLD):
        text = f"coalesce(substring(CAST({expression} AS STRING), 1, 80), '')"
    return f"CASE WHEN {expression} IS NOT NULL THEN {text} END"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column, or a field of a struct."""

    path: Path
    """The column, and the fields within it."""
    kind: str
    """Its type, as Spark writes it; "string" for all texts."""
    is_plain: bool = True
    """Whether it travels as it is: texts that Spark compares by rules of its own, or bounds, become plain ones."""

    @property
    def column(self) -> Column:
        """The same as a Column."""
        return column_at(self.path) if self.is_plain else column_at(self.path).cast("string")

    def in_sql(self, expression: str) -> str:
        """The same in Spark's SQL, where this expression is what lies at its path."""
        return expression if self.is_plain else as_plain_text(expression)


def leaves(schema: StructType) -> dict[str, Leaf]:
    """The attributes that events of a schema have: columns and, dotted, the fields of structs."""
    found: dict[str, Leaf] = {}
    for each in schema:
        for leaf in _within((each.name,), each.dataType):
            name = ".".join(leaf.path)
            if name in found:
                raise EventError(f"attribute {name!r} occurs twice", attribute=name)
            found[name] = leaf
    return found


def _within(path: Path, kind: DataType) -> Iterator[Leaf]:
    if kind.typeName() != "struct":
        said = kind.simpleString()
        is_plain = not is_other_text(said)
        yield Leaf(path, said if is_plain else "string", is_plain)
        return
    for each in kind:  # type: ignore[attr-defined]  # a struct has fields
        yield from _within((*path, each.name), each.dataType)


def plain_type(kind: DataType) -> DataType:
    """A type with plain texts for those of a bounded length, which Python workers do not hand back."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if kind.typeName() in ("char", "varchar"):
        return StringType()
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, plain_type(each.dataType), each.nullable) for each in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(plain_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(plain_type(kind.keyType), plain_type(kind.valueType), kind.valueContainsNull)
    return kind


def check_answerable(name: str, kind: DataType) -> None:
    """EventError, with the name of the column, if there is something in it that workers cannot hand back."""
    for each in _kinds_in(kind):
        if _NEVER_HANDED_BACK.fullmatch(each):
            said = f"the column {name!r} cannot go into the answer: Spark takes no {each} from Python"
            raise EventError(said, attribute=name, suggestion="cast it, to string for instance")


def check_storable(name: str, kind: DataType) -> None:
    """EventError, with the name of the column, if there is something in it that files cannot hold."""
    for each in _kinds_in(kind):
        if _NEVER_STORED.fullmatch(each):
            said = f"events with the column {name!r} cannot be kept: Spark writes no {each} to files"
            raise EventError(said, attribute=name, suggestion="drop it, or cast it, to string for instance")


def _kinds_in(kind: DataType) -> Iterator[str]:
    """The types of all values in a type, as Spark writes them."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        inner = [each.dataType for each in kind]
    elif isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    else:
        yield kind.simpleString()
        return
    for each in inner:
        yield from _kinds_in(each)


def is_read_as(written: DataType, wanted: DataType, fold: Callable[[str], str]) -> bool:
    """Whether values of a type in a file are the same values if they are read as another type.

    `fold` tells which names of fields are one to Spark. A field that is in one of both only does no harm.
    """
    from pyspark.sql.types import ArrayType, DecimalType, MapType, NullType, StringType, StructType

    if isinstance(written, NullType) or isinstance(wanted, NullType):
        return True
    if isinstance(written, StructType) and isinstance(wanted, StructType):
        kept = {fold(each.name): each.dataType for each in written}
        alike = [(kept[fold(each.name)], each.dataType) for each in wanted if fold(each.name) in kept]
        return all(is_read_as(*both, fold) for both in alike)
    if isinstance(written, ArrayType) and isinstance(wanted, ArrayType):
        return is_read_as(written.elementType, wanted.elementType, fold)
    if isinstance(written, MapType) and isinstance(wanted, MapType):
        return is_read_as(written.keyType, wanted.keyType, fold) and is_read_as(
            written.valueType, wanted.valueType, fold
        )
    if isinstance(written, DecimalType) and isinstance(wanted, DecimalType):
        return wanted.precision - written.precision >= wanted.scale - written.scale >= 0
    if isinstance(written, StringType) and isinstance(wanted, StringType):
        return True
    kinds = written.simpleString(), wanted.simpleString()
    return kinds[0] == kinds[1] or any(
        set(kinds) <= set(order) and order.index(kinds[0]) < order.index(kinds[1]) for order in _WIDER
    )


def with_plain_texts(events: DataFrame, names: Sequence[str] | None = None) -> DataFrame:
    """The same events, with plain texts in these columns, or in all."""
    known = {name: events.schema[name].dataType for name in (events.columns if names is None else names)}
    plain = {name: plain_type(kind) for name, kind in known.items()}
    other = [name for name, kind in plain.items() if kind != known[name]]
    if not other:
        return events
    leaves(events.schema)  # refuses columns that come twice
    _check_case(events, [(name,) for name in events.columns], [(name,) for name in other])
    return events.withColumns({name: column_at((name,)).cast(plain[name]) for name in other})


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


def kinds_of(schema: StructType) -> dict[str, Kind]:
    """By attribute, the kind of its values."""
    return {name: kind for name, types in types_of(schema).items() for kind in {each.kind for each in types}}


def check_declared(columns: StructType, schema: Schema) -> None:
    """SchemaError if a column is of another type than is declared."""
    _check(leaves(columns), schema)


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
