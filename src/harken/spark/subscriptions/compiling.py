"""Subscriptions in a DataFrame to the compiled form, by Spark's tasks; bad rows become rejects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from harken.compiler import PlanCache, Reject, compile_texts
from harken.errors import SubscriptionError
from harken.intake import COLUMNS, SubscriptionSource, fitting, texts_of
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.normal.compiled import PREDICATE, compiled_schema, conform, is_compiled
from harken.normal.validation import compiled_faults
from harken.spark.runtime.mapping import map_batches
from harken.spark.runtime.texts import as_plain_text, is_other_text
from harken.spark.runtime.workers import check_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PORTION = 262_144
"""Rows compiled together: large, so that shapes repeat among them; bounded, so that memory is."""

REJECTS = pa.schema(
    [
        ("id", pa.string()),
        ("expression", pa.string()),
        ("reason", pa.string()),
        ("line", pa.int32()),
        ("column", pa.int32()),
    ]
)
"""A rejected row, what is wrong with it, and where in its expression if that can be said."""

_PREDICATE = (
    "attribute:string,operator:string,type:string,integer:bigint,real:double,text:string,shape:array<double>"
)
_CLAUSES = f"array<array<struct<{_PREDICATE}>>>"
_KNOWN = {*COLUMNS, "clauses"}


@dataclass(frozen=True, slots=True)
class Rules:
    """What subscriptions are held to."""

    schema: Schema | None = None
    limits: Limits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class CompiledSubscriptions:
    """What became of a DataFrame of subscriptions. Both parts come of one computation, which is kept."""

    compiled: DataFrame
    """In the compiled form: id, owner, valid_from, valid_until, clauses."""
    rejects: DataFrame
    """Rows that were not taken: id, expression, reason, line, column."""
    outcome: DataFrame
    """Both together, as they are kept."""

    def unpersist(self) -> None:
        """Let go of what is kept."""
        self.outcome.unpersist()


def compile_subscriptions(
    subscriptions: DataFrame, *, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS
) -> CompiledSubscriptions:
    """Rows of `id`, `expression` and, if there, `owner`, `valid_from`, `valid_until` to the compiled form.

    Runs when one of the parts is first used, in parallel by partitions, and is kept for the other. A malformed
    row becomes a reject and disturbs no other.
    """
    chosen = subscription_columns(subscriptions)
    check_workers(subscriptions.sparkSession)
    whole = chosen.schema["id"].dataType.simpleString() != "string"
    reject = "struct<id:string,expression:string,reason:string,line:int,column:int>"
    task = partial(_outcomes, Rules(schema, limits), whole)
    outcome = map_batches(chosen, task, f"{compiled_columns(whole)}, reject {reject}").persist()
    taken = outcome.where("reject is null").drop("reject")
    return CompiledSubscriptions(taken, outcome.where("reject is not null").select("reject.*"), outcome)


def subscription_columns(subscriptions: DataFrame) -> DataFrame:
    """The columns that make a subscription, in types that can be read; SubscriptionError if they do not."""
    fields = {field.name: field.dataType.simpleString() for field in subscriptions.schema}
    others = {name for name, found in fields.items() if is_other_text(found)}
    needed = ("id",) if "clauses" in fields else ("id", "expression")
    for name in needed:
        if name not in fields:
            raise SubscriptionError(f"subscriptions need the column {name!r}, found {', '.join(fields) or 'none'}")
    for name, found in fields.items():
        wanted = _TYPES.get(name)
        if wanted is not None and found not in wanted and not (name in others and "string" in wanted):
            raise SubscriptionError(f"the column {name!r} of subscriptions is {wanted[0]}, found {found}")
    return subscriptions.selectExpr(
        *[
            f"{as_plain_text(f'`{name}`')} AS `{name}`" if name in others else f"`{name}`"
            for name in fields
            if name in _KNOWN
        ]
    )


_TYPES = {
    "id": ("string", "bigint", "int", "smallint", "tinyint"),
    "expression": ("string",),
    "owner": ("string",),
    "valid_from": ("timestamp", "timestamp_ntz"),
    "valid_until": ("timestamp", "timestamp_ntz"),
}


def compiled_columns(integer_ids: bool) -> str:
    """The compiled form as Spark writes types."""
    id_type = "bigint" if integer_ids else "string"
    return f"id {id_type}, owner string, valid_from timestamp, valid_until timestamp, clauses {_CLAUSES}"


def portions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined into tables of at least a portion each, but for the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= PORTION:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of subscriptions as an engine takes them."""

    compiled: pa.Table
    rejects: list[Reject]
    expressions: Sequence[object] | None = None
    """By row of what was compiled, its expression, where there are any."""

    def rejects_table(self) -> pa.Table:
        """The rejects as they are written down."""
        return pa.Table.from_pylist([self._told(reject) for reject in self.rejects], REJECTS)

    def _told(self, reject: Reject) -> dict[str, object]:
        position = reject.position
        return {
            "id": _text(reject.id),
            "expression": None if self.expressions is None else _text(self.expressions[reject.row]),
            "reason": _text(str(getattr(reject.error, "message", reject.reason)).splitlines()[0]),
            "line": None if position is None else position.line,
            "column": None if position is None else position.column,
        }


def compile_source(source: SubscriptionSource, rules: Rules) -> Outcome:
    """The compiled form of subscriptions as an engine takes them, and their rejects."""
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table) and is_compiled(source):
        return _checked(conform(source), rules)
    texts = texts_of(source)
    done = compile_texts(texts, schema=rules.schema, limits=rules.limits, plans=_plans_of(rules))
    return Outcome(done.table, done.rejects, texts.expressions)


_PLANS: dict[str, PlanCache] = {}
"""What a worker knows of shapes, kept from batch to batch and from task to task."""


def _plans_of(rules: Rules) -> PlanCache:
    return _PLANS.setdefault(repr(rules), {})


def _text(value: object) -> str | None:
    """A value that was rejected, as a text; None where there is none. What is not Unicode is escaped."""
    try:
        return None if value is None else str(value).encode("utf-8", "backslashreplace").decode()
    except ValueError:  # an integer of thousands of digits, which Python does not print
        return None


def _checked(table: pa.Table, rules: Rules) -> Outcome:
    """What is sound of a table that is compiled already."""
    faults = compiled_faults(table, rules.limits)
    ids = table.column("id")
    rejects = [Reject(row, ids[row].as_py(), error) for row, error in faults.items()]
    sound = np.delete(np.arange(table.num_rows), list(faults))
    if rules.schema is not None:
        sound = fitting(table, sound, rules.schema, rejects)
    taken = table if len(sound) == table.num_rows else table.take(pa.array(sound))
    return Outcome(taken, sorted(rejects, key=lambda reject: reject.row))


def _outcomes(rules: Rules, integer_ids: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: what was taken with no reject, and the rejects with nothing else."""
    shape = _plain_schema(integer_ids)
    for table in portions(batches):
        outcome = compile_source(table, rules)
        compiled, rejects = outcome.compiled, outcome.rejects_table()
        taken = plain(compiled).append_column("reject", pa.nulls(compiled.num_rows, shape.field("reject").type))
        yield from taken.cast(shape).to_batches()
        if rejects.num_rows:
            empty = [pa.nulls(rejects.num_rows, field.type) for field in list(shape)[:-1]]
            yield from pa.Table.from_arrays([*empty, _as_struct(rejects)], schema=shape).to_batches()


def _plain_schema(integer_ids: bool) -> pa.Schema:
    fields = [pa.field(field.name, _plain_type(field.type)) for field in compiled_schema(pa.string())]
    fields[0] = pa.field("id", pa.int64() if integer_ids else pa.string())
    return pa.schema([*fields, ("reject", pa.struct(list(REJECTS)))])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries, which Spark does not take from Python."""
    if pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(table: pa.Table) -> pa.Table:
    """A compiled table without dictionaries."""
    clauses = pa.chunked_array(
        [_plain_clauses(chunk) for chunk in table.column("clauses").chunks],
        _plain_type(table.schema.field("clauses").type),
    )
    return table.set_column(table.column_names.index("clauses"), "clauses", clauses)


def _plain_clauses(chunk: pa.ListArray) -> pa.ListArray:
    clauses = chunk.values
    predicates = clauses.values
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in (predicates.field(field.name) for field in PREDICATE)
    ]
    plain = pa.StructArray.from_arrays(columns, names=[field.name for field in PREDICATE])
    return pa.ListArray.from_arrays(chunk.offsets, pa.ListArray.from_arrays(clauses.offsets, plain))


def _as_struct(table: pa.Table) -> pa.Array:
    columns = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(REJECTS))
