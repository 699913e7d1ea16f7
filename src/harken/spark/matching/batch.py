"""Matching a DataFrame of events: DataFrame in, DataFrame out.

While an index fits the memory of a machine, every task matches its events with all shards, which it maps; nothing
is moved. Past that, events travel to the shards they can concern (the grid of Tomasic et al. 2006, section 7.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args, overload

from harken.engine import OnError
from harken.errors import ArgumentError, ArgumentTypeError, EventError, closest
from harken.model.foreign import parents
from harken.model.schema import Schema
from harken.model.subscriptions import moment_of
from harken.normal.kinds import mismatches
from harken.spark.events.columns import Transport, check_answerable, select, types_of, with_plain_texts
from harken.spark.events.partitioning import by_number
from harken.spark.index.frames import Address, Located, index_of_frame
from harken.spark.index.index import Index, index_beside
from harken.spark.index.layers import IndexState
from harken.spark.index.sizing import MEMORY_SHARE, executor_memory
from harken.spark.index.worker_cache import Parts
from harken.spark.matching.tasks import How, Request, match_events, match_packets, reject_events, route_events
from harken.spark.runtime.mapping import map_batches
from harken.spark.runtime.session import BATCH_BYTES, NO_LIMIT
from harken.spark.runtime.workers import check_workers
from harken.spark.storage import Folder
from harken.spark.subscriptions.subscriptions import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

Strategy: TypeAlias = Literal["auto", "local", "grid"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How events are going to be matched; `str` says it for people, `frame` does it."""

    state: IndexState
    strategy: Literal["local", "grid"]
    transport: Transport
    copies: tuple[int, ...]
    frame: DataFrame
    columns: StructType
    """Those of the events."""
    rejects: DataFrame | None = None
    """With `on_error="collect"`, the events that cannot be matched."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What subscriptions ask for in vain. Looks at every attribute, so that nobody pays who does not ask."""
        foreign = (
            f"{name!r} is {kind}, which is foreign: it is there for IS NULL and EXISTS, and all else is unknown"
            for name, kind in self.transport.foreign.items()
        )
        misspelt = _misspelt(self.state, self.transport, self.columns.names)
        return (*foreign, *misspelt, *never_true(self.state, self.columns))

    def __str__(self) -> str:
        state, transport = self.state, self.transport
        rows = sum(layer.rows for layer in state.layers)
        lines = [
            f"{rows:,} subscriptions of version {state.covers}, {len(state.layers)} layers, {state.bytes:,} bytes",
            f"{len(transport.attributes)} attributes travel",
            _said_of_shards(state, self.strategy, self.copies),
        ]
        if _measures_rows(self.frame.sparkSession):
            lines.append(f"Spark measures each row: {BATCH_BYTES}={NO_LIMIT} would hand events over faster")
        lines += [f"warning: {each}" for each in self.warnings]
        return "\n".join(lines)


class MatchedEvents(NamedTuple):
    """What became of events: their matches, and those that could not be matched, with the reason."""

    matches: DataFrame
    rejects: DataFrame


@overload
def match(
    events: DataFrame,
    subscriptions: Index | Subscriptions | DataFrame,
    *,
    event_id: str | None = None,
    keep: Sequence[str] = (),
    how: How = "pairs",
    at: datetime | None = None,
    strategy: Strategy = "auto",
    on_error: Literal["raise"] = "raise",
    folder: Address | None = None,
) -> DataFrame: ...


@overload
def match(
    events: DataFrame,
    subscriptions: Index | Subscriptions | DataFrame,
    *,
    event_id: str | None = None,
    keep: Sequence[str] = (),
    how: How = "pairs",
    at: datetime | None = None,
    strategy: Strategy = "auto",
    on_error: Literal["collect"],
    folder: Address | None = None,
) -> MatchedEvents: ...


def match(
    events: DataFrame,
    subscriptions: Index | Subscriptions | DataFrame,
    *,
    event_id: str | None = None,
    keep: Sequence[str] = (),
    how: How = "pairs",
    at: datetime | None = None,
    strategy: Strategy = "auto",
    on_error: OnError = "raise",
    folder: Address | None = None,
) -> DataFrame | MatchedEvents:
    """Which subscriptions each event satisfies: a DataFrame of `event`, `subscription` and the columns to keep.

    `event` is the column named by `event_id`, or else a number that is unique in the result. With `how="grouped"`
    there is one row per event that has matches, with an array `subscriptions`. `at` is when subscriptions must be
    valid: now, unless said. Subscriptions may be given as an index, which answers as it is; as a folder, whose
    index is brought up to date; or as a DataFrame of texts. That is read once, however often it is matched with;
    its index is built by this process and travels to the workers. Where it is too large for that, `folder` names
    one that all machines reach: it is built there, and removed when this process ends.

    An event with a value of another type than the schema declares fails the job. With `on_error="collect"` the
    others are matched, and the answer is two DataFrames: the `matches`, and the `rejects` as `event`, `attribute`,
    `reason` and `value`. Each of the two reads the events.
    """
    planned = plan(
        events,
        subscriptions,
        event_id=event_id,
        keep=keep,
        how=how,
        at=at,
        strategy=strategy,
        on_error=on_error,
        folder=folder,
    )
    return planned.frame if planned.rejects is None else MatchedEvents(planned.frame, planned.rejects)


def plan(
    events: DataFrame,
    subscriptions: Index | Subscriptions | DataFrame,
    *,
    event_id: str | None = None,
    keep: Sequence[str] = (),
    how: How = "pairs",
    at: datetime | None = None,
    strategy: Strategy = "auto",
    on_error: OnError = "raise",
    folder: Address | None = None,
) -> Plan:
    """How `match` would go about it. Takes the same arguments."""
    check_words(how, on_error, strategy)
    check_frame(events, keep)
    if events.isStreaming:
        raise EventError("the events are a stream, which never ends", suggestion="match_stream is for streams")
    check_workers(events.sparkSession)
    located = _located(events.sparkSession, subscriptions, folder)
    collect = on_error == "collect"
    return plan_for(
        events, *located, event_id=event_id, keep=keep, how=how, at=at, strategy=strategy, collect=collect
    )


def check_words(how: str, on_error: str, strategy: str = "auto") -> None:
    """ArgumentError if one of these is none of the words there are."""
    for name, word, words in (
        ("how", how, How),
        ("on_error", on_error, OnError),
        ("strategy", strategy, Strategy),
    ):
        if word not in get_args(words):
            raise ArgumentError.choice(name, word, get_args(words))


def check_frame(events: object, keep: object) -> None:
    """ArgumentTypeError if events are no DataFrame of Spark, or the columns to keep are one name."""
    if not hasattr(events, "sparkSession"):
        said = f"events is a DataFrame of Spark, found {type(events).__name__}"
        raise ArgumentTypeError(said, argument="events", suggestion="for others there is Engine.match_batch")
    if isinstance(keep, str) or not isinstance(keep, Iterable):
        said = f"keep is a list of names of columns, found {keep!r}"
        raise ArgumentTypeError(said, argument="keep", suggestion="write keep=['price']")


def plan_for(
    events: DataFrame,
    folder: Folder,
    state: IndexState,
    *,
    event_id: str | None,
    keep: Sequence[str],
    how: How,
    at: datetime | None,
    strategy: Strategy,
    collect: bool = False,
    prefix: str | None = None,
) -> Plan:
    """The plan for one version of the index in a folder; if events at fault are collected, with those.

    Events without an id are numbered; with a prefix, they are called by it and the number.
    """
    schema = None if state.schema is None else Schema(state.schema)
    handed, names = handed_through(events, event_id, keep)
    events = with_plain_texts(events, handed)
    parts = Parts(folder, state.layers, state.division, state.integer_ids)
    chosen = _strategy(events.sparkSession, state, strategy)
    copies = _copies(events.sparkSession, state) if chosen == "grid" else ()
    scattered = how == "grouped" and len(copies) > 1
    numbered = event_id is None or scattered
    selected, transport = select(events, state.profile, schema, handed, collect=collect, numbered=numbered)
    named = event_id is not None
    told = None if named else prefix
    request = Request(parts, transport, moment_of(at), how, numbered, copies, schema, collect, named, told)
    through = [events.schema[name].dataType for name in handed]
    answer = _answer_schema(through, state, request)
    if chosen == "local":
        frame = map_batches(selected, partial(match_events, request), answer)
    else:
        packets = map_batches(selected, partial(route_events, request), "target int, packet binary")
        sent = by_number(packets, "target", max(1, sum(copies)))
        frame = map_batches(sent, partial(match_packets, request), answer)
    if scattered:
        frame = _gathered(frame, event_id is None)
    rejects = _rejects(selected, through, replace(request, numbered=event_id is None)) if collect else None
    answered = frame.toDF(*frame.columns[:2], *names) if names else frame
    return Plan(state, chosen, transport, copies, answered, events.schema, rejects)


def never_true(state: IndexState, columns: StructType) -> Iterator[str]:
    """What to say of attributes that are compared with constants of a kind that their columns never hold."""
    wrong = mismatches(state.profile.attributes, types_of(columns))
    return (str(each) for _, each in sorted(wrong.items()))


def _misspelt(state: IndexState, transport: Transport, names: Sequence[str]) -> Iterator[str]:
    """Attributes that no column has, though one is called nearly so. Events may well lack what some ask for."""
    found = set(transport.attributes)
    reached = found | {parent for name in found for parent in parents(name)}
    for name in sorted(state.profile.attributes):
        if name in reached or not found.isdisjoint(parents(name)):
            continue
        near = closest(name, names)
        if near is not None:
            yield f"subscriptions ask for {name!r}, which no column is called; did somebody mean {near!r}?"


def _rejects(selected: DataFrame, through: Sequence[DataType], request: Request) -> DataFrame:
    """The events that cannot be matched; without a schema there are none, and nothing is read."""
    from pyspark.sql.types import StringType, StructField, StructType

    event = _number_type(request) if request.numbered else through[0]
    told = [StructField(name, StringType()) for name in ("attribute", "reason", "value")]
    columns = StructType([StructField("event", event), *told])
    if request.schema is None:
        return selected.sparkSession.createDataFrame([], columns)
    return map_batches(selected, partial(reject_events, request), columns)


def _located(
    spark: SparkSession, subscriptions: Index | Subscriptions | DataFrame, folder: Address | None
) -> Located:
    """An index that answers for the subscriptions, in whichever form they are given."""
    if not isinstance(subscriptions, Index | Subscriptions):
        if not hasattr(subscriptions, "sparkSession"):
            found = type(subscriptions).__name__
            said = f"subscriptions are an Index, Subscriptions or a DataFrame of Spark, found {found}"
            raise ArgumentTypeError(said, argument="subscriptions")
        return index_of_frame(subscriptions, folder)
    if folder is not None:
        said = "folder is for subscriptions in a DataFrame: these have one"
        raise ArgumentError(said, argument="folder")
    if isinstance(subscriptions, Index):
        return Located(subscriptions.folder, subscriptions.state())
    index, state = index_beside(spark, subscriptions)
    return Located(index.folder, state)


def _measures_rows(spark: SparkSession) -> bool:
    from pyspark.errors import PySparkException

    try:
        return spark.conf.get(BATCH_BYTES) != NO_LIMIT
    except PySparkException:  # a Spark that has no such setting
        return False


def _strategy(spark: SparkSession, state: IndexState, asked: Strategy) -> Literal["local", "grid"]:
    if asked != "auto":
        return asked
    fits = state.bytes <= MEMORY_SHARE * executor_memory(spark)
    return "local" if fits or state.division.shards == 1 else "grid"


def _copies(spark: SparkSession, state: IndexState) -> tuple[int, ...]:
    """How many partitions share the events of each shard: the more, the more work there is for it.

    Work goes with the subscriptions of a shard and, for those without a constraint, with all events. To a shard
    without subscriptions no event is sent.
    """
    division = state.division
    rows = [
        sum(each.parts[shard].rows for each in state.layers if shard in each.parts)
        for shard in range(division.shards)
    ]
    work = [count * (division.shards if shard in division.free else 1) for shard, count in enumerate(rows)]
    partitions = max(division.shards, int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200))
    total = sum(work) or 1
    return tuple(max(1, round(partitions * each / total)) if each else 0 for each in work)


def handed_through(events: DataFrame, event_id: str | None, keep: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns that go into the answer as they are, and the names of those that are kept.

    EventError if there is none of a name, or its values cannot go into the answer.
    """
    for name in (*([] if event_id is None else [event_id]), *keep):
        if name not in events.columns:
            near = closest(name, events.columns)
            hint = f"did you mean {near!r}?" if near else None
            raise EventError(f"events have no column {name!r}", attribute=name, suggestion=hint)
        check_answerable(name, events.schema[name].dataType)
    taken = {"event", "subscription", "subscriptions"}
    for name in keep:
        if name.lower() in taken:  # to Spark, `Event` is `event`
            raise EventError(f"a column {name!r} cannot be kept: the answer has one of that name", attribute=name)
        taken.add(name.lower())
    return [*([] if event_id is None else [event_id]), *keep], list(keep)


def _gathered(frame: DataFrame, numbered: bool) -> DataFrame:
    """One row per event of those that several shards gave, joined by its number: ids need not be distinct."""
    from pyspark.sql import functions

    event, subscriptions, *kept = frame.columns
    found = functions.flatten(functions.collect_list(subscriptions)).alias(subscriptions)
    gathered = frame.groupBy(event).agg(found, *(functions.first(name).alias(name) for name in kept))
    if numbered:
        return gathered
    return gathered.select(functions.col(kept[0]).alias(event), subscriptions, *kept[1:])


def _number_type(request: Request) -> DataType:
    from pyspark.sql.types import LongType, StringType

    return LongType() if request.prefix is None else StringType()


def _answer_schema(through: Sequence[DataType], state: IndexState, request: Request) -> StructType:
    from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

    kinds = list(through)
    event = _number_type(request) if request.numbered else kinds.pop(0)
    subscription = LongType() if state.integer_ids else StringType()
    found = (
        StructField("subscription", subscription)
        if request.how == "pairs"
        else StructField("subscriptions", ArrayType(subscription))
    )
    kept = [StructField(f"k{at}", kind) for at, kind in enumerate(kinds)]
    return StructType([StructField("event", event), found, *kept])


def _said_of_shards(state: IndexState, strategy: str, copies: tuple[int, ...]) -> str:
    division = state.division
    if division.shards == 1:
        return "one shard, mapped by every worker"
    where = "mapped by every worker" if strategy == "local" else f"events travel to them, {sum(copies)} partitions"
    by = "dealt out by id" if division.attribute is None else f"divided by {division.attribute!r}"
    lines = [f"{division.shards} shards, {by}; {where}"]
    split = {value: shards for value, shards in division.shards_of.items() if len(shards) > 1}
    for shard in range(division.shards):
        rows = sum(each.parts[shard].rows for each in state.layers if shard in each.parts)
        values = sum(shard in shards for shards in division.shards_of.values())
        concern = "every event" if division.constraint(shard) is None else f"events with one of {values} values"
        copied = f", {copies[shard]} copies" if copies else ""
        lines.append(f"  shard {shard}: {rows:,} subscriptions, {concern}{copied}")
    if split:
        lines.append(f"  values with several shards: {', '.join(map(repr, list(split)[:10]))}")
    return "\n".join(lines)
