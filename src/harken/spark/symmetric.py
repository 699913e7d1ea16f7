"""Matching a DataFrame of publications with a DataFrame of subscriptions, both of which are constraints.

This is the grid of Tomasic et al. 2006, section 7.2. Subscriptions are divided over shards as those of classical
matching are; a publication goes to the shards that it can concern, which is a symmetric match with the constraints
of the shards; and every shard is a store in the memory of one task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from harken.errors import ArgumentTypeError, ExpressionError, HarkenError, SubscriptionError
from harken.model.schema import Schema
from harken.model.subscriptions import moment_of
from harken.model.values import Type
from harken.normal.compiled import conform
from harken.spark.index.sharding import Division, divide, router_rows
from harken.spark.runtime.mapping import map_batches
from harken.spark.subscriptions.compiling import (
    Rules,
    compile_source,
    compiled_columns,
    plain,
    portions,
    subscription_columns,
)
from harken.symmetric.arguments import checked_covers, checked_schema, positive
from harken.symmetric.contract import Held, Store
from harken.symmetric.semantics import Boxes, Covers, boxes_of
from harken.symmetric.stores import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLED = 20_000
"""Subscriptions that are looked at to divide them all."""

TOGETHER = 10_000
"""Publications that are matched together."""


def symmetric_match(
    publications: DataFrame,
    subscriptions: DataFrame,
    *,
    schema: Schema | Mapping[str, Type | str] | None = None,
    covers: Covers = "publication",
    shards: int | None = None,
    at: datetime | None = None,
) -> DataFrame:
    """Which subscriptions each publication matches: a DataFrame of `publication` and `subscription`, both ids.

    Publications are rows of `id` and `expression`, and so are subscriptions, which may have `valid_from` and
    `valid_until` too; `at` is when they have to hold: now, unless said. `covers` is as with `SymmetricEngine`.
    There are as many tasks as `shards` (the session's parallelism), and each holds its part of the subscriptions,
    and of the publications those that can concern it. A row that cannot be read fails the job with an error that
    tells it; `compile_subscriptions` finds all such rows.
    """
    for name, frame in {"publications": publications, "subscriptions": subscriptions}.items():
        if not hasattr(frame, "mapInArrow"):
            raise ArgumentTypeError.of(name, "a DataFrame", type(frame).__name__)
    covers, moment = checked_covers(covers), moment_of(at)
    wanted = None if shards is None else positive("shards", shards)
    held, asked = subscription_columns(subscriptions), _publication_columns(publications)
    spark = held.sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    keys = _keys(spark, wanted or partitions, partitions)
    rules = Rules(checked_schema(schema))
    job = _Job(rules, _division(held, rules, len(keys)), keys, covers, moment)
    subscription, publication = (_id_type(frame) for frame in (held, asked))
    dealt = map_batches(
        held, partial(_deal, job), f"shard int, {compiled_columns(integer_ids=subscription == 'bigint')}"
    )
    routed = map_batches(asked, partial(_route, job), f"shard int, id {publication}, expression string")
    return (
        routed.groupBy("shard")
        .cogroup(dealt.groupBy("shard"))
        .applyInArrow(partial(_match, job), f"publication {publication}, subscription {subscription}")
    )


def _publication_columns(publications: DataFrame) -> DataFrame:
    chosen = subscription_columns(publications)
    if "expression" not in chosen.columns:
        raise SubscriptionError(f"publications need the column 'expression', found {', '.join(chosen.columns)}")
    return chosen.select("id", "expression")


def _id_type(frame: DataFrame) -> str:
    return "string" if frame.schema["id"].dataType.simpleString() == "string" else "bigint"


def _keys(spark: SparkSession, shards: int, partitions: int) -> tuple[int, ...]:
    """A number for each shard, such that Spark, which groups by hash, spreads them evenly over its partitions."""
    wanted = 20 * max(shards, partitions)
    placed = spark.range(wanted).selectExpr("id", f"pmod(hash(int(id)), {partitions}) as place").toArrow()
    seen: Counter[int] = Counter()
    turns = []
    for row in placed.to_pylist():
        turns.append((seen[row["place"]], row["id"]))
        seen[row["place"]] += 1
    return tuple(id for _, id in sorted(turns)[:shards])


def _division(held: DataFrame, rules: Rules, shards: int) -> Division:
    """By what the first subscriptions ask for. However they are divided, each has one shard."""
    if shards == 1:
        return Division(1)
    outcome = compile_source(held.limit(SAMPLED).toArrow(), rules)
    return divide(outcome.compiled.to_batches(), shards, {})


@dataclass(frozen=True)
class _Job:
    """What tasks have to know."""

    rules: Rules
    division: Division
    keys: tuple[int, ...]
    covers: Covers
    at: datetime

    @cached_property
    def router(self) -> Store:
        """The constraints of shards, as subscriptions to publications."""
        router = open_store(None)
        held = [Held(shard, boxes_of(said, self.rules.schema), "") for shard, said in router_rows(self.division)]
        router.put("subscriptions", held, "subscription")
        return router

    def concerned(self, boxes: Boxes) -> Iterable[int]:
        """The shards that a publication can concern: all, if it leaves open by what they are divided."""
        attribute = self.division.attribute
        if attribute is None or any(attribute not in box for box in boxes.boxes):
            return range(self.division.shards)
        found = self.router.match("subscriptions", [boxes], "subscription")
        return [*self.division.free, *(int(shard) for _, shard in found)]


def _deal(job: _Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: subscriptions in the compiled form, each with its shard."""
    keys = np.array(job.keys, np.int32)
    for table in portions(batches):
        outcome = compile_source(table, job.rules)
        for reject in outcome.rejects:
            raise SubscriptionError(f"subscription {reject.id!r}: {reject.reason}")
        shards = pa.array(keys[job.division.assign(outcome.compiled)])
        yield from plain(outcome.compiled).add_column(0, "shard", shards).to_batches()


def _route(job: _Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: publications, each once for every shard that it can concern."""
    for batch in batches:
        rows, shards = [], []
        for row, (id, text) in enumerate(zip(*(column.to_pylist() for column in batch.columns), strict=True)):
            for shard in job.concerned(_boxes(job, id, text)):
                rows.append(row)
                shards.append(job.keys[shard])
        ids, texts = (column.take(pa.array(rows, pa.int64())) for column in batch.columns)
        wide = ids if pa.types.is_string(ids.type) else ids.cast(pa.int64())
        yield pa.RecordBatch.from_arrays(
            [pa.array(shards, pa.int32()), wide, texts], ["shard", "id", "expression"]
        )


def _boxes(job: _Job, id: object, text: object) -> Boxes:
    try:
        if not isinstance(text, str):
            raise ExpressionError(f"an expression is a text, found {text!r}")
        return boxes_of(text, job.rules.schema)
    except HarkenError as error:
        raise SubscriptionError(f"publication {id!r}: {error}") from error


def _match(job: _Job, publications: pa.Table, subscriptions: pa.Table) -> pa.Table:
    """A task: one shard."""
    store = open_store(None)
    held = conform(subscriptions.drop_columns(["shard"]))
    store.load("subscriptions", held, job.rules.schema)
    ids = publications.column("id")
    found = []
    for first in range(0, publications.num_rows, TOGETHER):
        texts = publications.column("expression")[first : first + TOGETHER].to_pylist()
        boxes = [boxes_of(text, job.rules.schema) for text in texts]
        pairs = store.match("subscriptions", boxes, job.covers, at=job.at)
        places = pa.array([first + place for place, _ in pairs], pa.int64())
        matched = pa.array([id for _, id in pairs], held.schema.field("id").type)
        found.append(pa.table({"publication": ids.take(places), "subscription": matched}))
    empty = pa.schema([("publication", ids.type), ("subscription", held.schema.field("id").type)])
    return pa.concat_tables([empty.empty_table(), *found])
