"""Which calls work on Spark Connect: this page is a table of them, and fails where the table is wrong.

Run as a program, this file is the server or the client: neither can share a process with Spark as other tests use
it. The client has no Java and reaches the server through a port of the loopback interface only.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from harken import Engine
from harken import spark as pipeline
from harken.spark import (
    DatabaseSink,
    EventValidity,
    Index,
    KafkaSink,
    Subscriptions,
    TableSink,
    build_index,
    compile_subscriptions,
    event_statistics,
    local_session,
    match,
    match_stream,
    plan,
    symmetric_match,
    write_table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXTS = {id: f"n = {id % 3} and m > {id % 2}" for id in range(6)} | {7: "n ="}
"""What is appended; then 0 is replaced, 5 deleted, and 9 added."""

EVENTS = [{"id": id, "n": id % 4, "p": {"m": id % 3}, "m": id % 3} for id in range(12)]
HELD = {0: "n = 3", **{id: TEXTS[id] for id in range(1, 5)}}
ADDED = {9: "p.m = 2 and n = 1"}


def expected(subscriptions: dict[int, str], *, flat: bool = False) -> list[int]:
    """How many pairs match, and how many events; of flat events, which have no struct, if these are meant."""
    engine = Engine()
    engine.subscribe_many(subscriptions.items())
    found = [len(engine.match({name: event[name] for name in ("n", "m") if flat} or event)) for event in EVENTS]
    return [sum(found), sum(count > 0 for count in found)]


PAIRS, MATCHED = expected(HELD)
MORE, _ = expected(HELD | ADDED)
STREAMED, _ = expected(HELD | ADDED, flat=True)

WORKS: dict[str, object] = {
    "compile_subscriptions": [6, ["7"]],
    "Subscriptions.append": [1, 6, 1],
    "Subscriptions.upsert": [2, 1, 0],
    "Subscriptions.delete": [3, 1, 0],
    "Subscriptions.read": [0, 1, 2, 3, 4],
    "Subscriptions.rejects": ["7"],
    "event_statistics": [12, 3],
    "build_index": [2, 5],
    "build_index with statistics": ["n", 5],
    "plan": ["local", 2],
    "match": PAIRS,
    "match, grid": PAIRS,
    "match, grouped on the grid": MATCHED,
    "match with a DataFrame of subscriptions": PAIRS,
    "symmetric_match": [[1, 2], [4, 2]],
    "Index.refresh": [4, MORE],
    "Index.compact": [4, MORE],
    "write_table": MORE,
    "TableSink.write": MORE,
    "DatabaseSink.write": MORE,
    "match_stream": STREAMED,
    "match_stream with validity": STREAMED,
    "match_stream to an output with files of nobody": "has files that are those of no stream",
    "match_stream of a pending batch to another output": "so far, not to",
}
"""What each call gives there, the same as anywhere."""

REFUSED = {
    "local_session": "PySparkRuntimeError: [CONNECT_URL_NOT_SET]",
    "KafkaSink.write": "SinkError: this Spark session has no connector to Kafka",
}
"""What a call says there instead. Kafka needs a package that this server was not started with."""


@pytest.mark.long
def test_calls_do_on_connect_what_the_table_says(tmp_path: Path) -> None:
    found = outcomes(tmp_path)
    worked = {call: outcome["result"] for call, outcome in found.items() if "result" in outcome}
    refused = {call: str(outcome["error"]) for call, outcome in found.items() if "error" in outcome}
    assert {call: said[: len(REFUSED.get(call, said))] for call, said in refused.items()} == REFUSED
    assert worked == WORKS


WITHOUT_SESSION = {"stream_status", "skip_batch", "repin_batch", "replan_batch"}
"""They look at a checkpoint, and ask nothing of Spark."""


def test_the_table_has_every_call() -> None:
    functions = {name for name in pipeline.__all__ if name.islower()} - WITHOUT_SESSION
    sinks = {name for name in pipeline.__all__ if name.endswith("Sink")} - {"Sink"}
    assert functions | sinks <= {re.split("[., ]", call)[0] for call in (*WORKS, *REFUSED)}


def outcomes(folder: Path) -> dict[str, dict[str, object]]:
    """By call, what it came to in a process of its own."""
    with open(folder / "server.log", "w+") as log:
        serve = [sys.executable, __file__, "serve", str(folder)]
        server = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            asked = [sys.executable, __file__, "ask", str(folder), port]
            client = subprocess.run(asked, capture_output=True, text=True, timeout=600)
        finally:
            server.communicate(timeout=60)
        log.seek(0)
        assert client.returncode == 0, client.stderr + log.read()
    return {name: outcome for line in client.stdout.splitlines() for name, outcome in json.loads(line).items()}


# ---------------------------------------------------------------- the server


def serve(folder: Path) -> None:
    """Serve until the standard input ends, and say on which port."""
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    session = local_session("local[2]", name="harken connect", settings=settings)
    service = getattr(session._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    print(getattr(service, "MODULE$").localPort(), flush=True)
    sys.stdin.read()
    session.stop()


# ---------------------------------------------------------------- the client

Call: TypeAlias = Callable[[], object]


def ask(folder: Path, port: str) -> None:
    """Make all calls, one after the other, and print what each came to."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    for name, call in calls(spark, folder):
        print(json.dumps({name: attempted(call)}), flush=True)
    spark.stop()


def attempted(call: Call, attempts: int = 3) -> dict[str, object]:
    """What a call came to. A stream starts a process that has ten seconds to answer: a busy machine needs more."""
    try:
        return {"result": call()}
    except Exception as error:
        if attempts > 1 and "worker failed to connect back" in str(error):
            return attempted(call, attempts - 1)
        return {"error": f"{type(error).__name__}: {error}"}


def calls(spark: SparkSession, folder: Path) -> Iterator[tuple[str, Call]]:
    subscriptions = spark.createDataFrame(list(TEXTS.items()), "id bigint, expression string")
    columns = "id bigint, n bigint, p struct<m:bigint>, m bigint"
    events = spark.createDataFrame(EVENTS, columns)  # type: ignore[type-var]
    store = Subscriptions.create(folder / "subscriptions")
    yield "compile_subscriptions", lambda: compiled(subscriptions)
    yield "Subscriptions.append", lambda: list(store.append(subscriptions, on_error="collect"))
    yield "Subscriptions.rejects", lambda: [row["id"] for row in store.rejects(spark).collect()]
    yield "Subscriptions.upsert", lambda: list(store.upsert(spark.sql("select 0L id, 'n = 3' expression")))
    yield "Subscriptions.delete", lambda: list(store.delete(spark.sql("select 5L id")))
    yield "Subscriptions.read", lambda: sorted(row["id"] for row in store.read(spark).select("id").collect())
    yield from matching(spark, store, events, folder)
    yield from writing(spark, store, events, folder)
    yield "local_session", lambda: str(local_session("local[1]"))


def matching(
    spark: SparkSession, store: Subscriptions, events: DataFrame, folder: Path
) -> Iterator[tuple[str, Call]]:
    statistics = event_statistics(events, ["id", "n", "m"])
    yield "event_statistics", lambda: [statistics.events, len(statistics.attributes)]
    learned = build_index(spark, store, folder / "learned", shards=2, statistics=statistics).state()
    yield "build_index with statistics", lambda: [learned.division.attribute, learned.layers[0].rows]
    index = build_index(spark, store, shards=2)
    yield "build_index", lambda: [index.state().division.shards, index.state().layers[0].rows]
    planned = plan(events, index)
    yield "plan", lambda: [planned.strategy, len(planned.transport.attributes)]
    yield "match", lambda: match(events, index, event_id="id", keep=["p"]).count()
    yield "match, grid", lambda: match(events, index, strategy="grid").count()
    grouped = match(events, index, event_id="id", keep=["p"], how="grouped", strategy="grid")
    yield "match, grouped on the grid", grouped.count
    yield "match with a DataFrame of subscriptions", lambda: match(events, store.read(spark)).count()
    yield (
        "symmetric_match",
        lambda: met(spark.sql("select 2L id, 'n = 1 and m between 0 and 9' expression"), store),
    )
    yield "Index.refresh", lambda: refreshed(spark, store, index, events)
    yield "Index.compact", lambda: [index.compact(spark).covers, match(events, index).count()]


def writing(
    spark: SparkSession, store: Subscriptions, events: DataFrame, folder: Path
) -> Iterator[tuple[str, Call]]:
    found = match(events, store, event_id="id")
    yield "write_table", lambda: written(spark, found, folder / "table")
    yield "TableSink.write", lambda: sunk(spark, found, TableSink(folder / "batches", "json"))
    yield "DatabaseSink.write", lambda: stored(found, folder / "matches.db")
    yield "KafkaSink.write", lambda: KafkaSink("127.0.0.1:1", "matches").write(0, found)
    events.select("id", "n", "m").write.parquet(str(folder / "events"))
    yield "match_stream", lambda: streamed(spark, store, folder, None)
    yield "match_stream with validity", lambda: streamed(spark, store, folder, EventValidity(timedelta(days=1)))
    call = "match_stream to an output with files of nobody"
    found.limit(1).write.parquet(str(folder / "taken" / "out" / "batch=0"))
    yield call, lambda: said_of(lambda: streamed(spark, store, folder, None, "taken"), str(WORKS[call]))
    call = "match_stream of a pending batch to another output"
    yield call, lambda: said_of(lambda: repeated_elsewhere(spark, store, folder), str(WORKS[call]))


def compiled(subscriptions: DataFrame) -> object:
    done = compile_subscriptions(subscriptions)
    try:
        return [done.compiled.count(), [row["id"] for row in done.rejects.collect()]]
    finally:
        done.unpersist()


def met(publications: DataFrame, store: Subscriptions) -> object:
    found = symmetric_match(publications, store.read(publications.sparkSession), shards=2)
    return sorted([row["subscription"], row["publication"]] for row in found.collect())


def refreshed(spark: SparkSession, store: Subscriptions, index: Index, events: DataFrame) -> object:
    store.append(ADDED.items())
    return [index.refresh(spark).covers, match(events, index).count()]


def written(spark: SparkSession, found: DataFrame, path: Path) -> object:
    write_table(found, path)
    return spark.read.parquet(str(path)).count()


def sunk(spark: SparkSession, found: DataFrame, sink: TableSink) -> object:
    for _ in range(2):
        sink.write(0, found)
    return sink.read(spark).count()


def stored(found: DataFrame, path: Path) -> object:
    import sqlite3

    DatabaseSink(f"sqlite:///{path}").write(0, found)
    with closing(sqlite3.connect(path)) as connection:
        (rows,) = connection.execute("select count(*) from notifications").fetchone()
    return rows


def said_of(call: Call, words: str) -> str:
    """The words that a call is refused with, if it is."""
    try:
        call()
    except Exception as error:
        if words in str(error):
            return words
        raise
    return "it was not refused"


def repeated_elsewhere(spark: SparkSession, store: Subscriptions, folder: Path) -> object:
    streamed(spark, store, folder, None, "pending")
    (folder / "pending" / "checkpoint" / "spark" / "commits" / "0").unlink()
    return streamed(spark, store, folder, None, "pending", "elsewhere")


def streamed(
    spark: SparkSession,
    store: Subscriptions,
    folder: Path,
    validity: EventValidity | None,
    name: str | None = None,
    output: str = "out",
) -> object:
    """How many matches a query has written when it has seen all there is."""
    events = spark.readStream.schema("id bigint, n bigint, m bigint").parquet(str(folder / "events"))
    place = folder / (name or ("streamed" if validity is None else "kept"))
    query = match_stream(
        events,
        store,
        place / output,
        checkpoint=place / "checkpoint",
        event_id="id",
        validity=validity,
        available_now=True,
    )
    query.awaitTermination()
    return TableSink(place / output).read(spark).count()


if __name__ == "__main__":
    _, role, place, *rest = sys.argv
    serve(Path(place)) if role == "serve" else ask(Path(place), *rest)
