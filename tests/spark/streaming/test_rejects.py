"""Events that cannot be matched stop no stream, and are told once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from harken.errors import SinkError, StreamError
from harken.spark import (
    Subscriptions,
    TableSink,
    match_stream,
)
from tests.spark.streaming.scenes import COLUMNS, PATIENCE


def followed(spark: SparkSession, folder: Path, columns: str) -> DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(str(folder))


def test_an_array_that_somebody_asks_for_stops_no_stream(spark: SparkSession, tmp_path: Path) -> None:
    store = Subscriptions.create(tmp_path / "s")
    store.append([("cheap", "price < 300"), ("poison", "tags = 'new'"), ("there", "exists tags.id")])
    incoming = tmp_path / "in"
    stream = followed(spark, incoming, "id bigint, price bigint, tags array<struct<id: bigint>>")
    (incoming / "a.json").write_text('{"id": 1, "price": 1, "tags": [{"id": 5}]}\n{"id": 2, "price": 2}\n')
    query = match_stream(
        stream, store, tmp_path / "out", checkpoint=tmp_path / "check", event_id="id", available_now=True
    )
    query.awaitTermination(PATIENCE)
    found = sorted((row.event, row.subscription) for row in TableSink(tmp_path / "out").read(spark).collect())
    assert found == [(1, "cheap"), (1, "there"), (2, "cheap")]


@pytest.mark.parametrize("named", [True, False])
def test_events_at_fault_go_to_the_rejects_once_and_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path, named: bool
) -> None:
    store = Subscriptions.create(tmp_path / "s", schema={"x": "int", "tags": "string"})
    store.append([("all", "x >= 0")])
    incoming, checkpoint = tmp_path / "in", tmp_path / "check"
    stream = followed(spark, incoming, "id bigint, x bigint, tags array<string>")
    rejects = tmp_path / "rejects" if named else checkpoint / "rejects"

    def run() -> None:
        query = match_stream(
            stream,
            store,
            tmp_path / "out",
            checkpoint=checkpoint,
            event_id="id",
            on_error="collect",
            rejects=rejects if named else None,
            available_now=True,
        )
        query.awaitTermination(PATIENCE)

    (incoming / "a.json").write_text('{"id": 1, "x": 1, "tags": ["new"]}\n{"id": 2, "x": 2}\n')
    run()
    # As if the batch had been written, and the process killed before Spark took note.
    (checkpoint / "spark" / "commits" / "0").unlink()
    (incoming / "b.json").write_text('{"id": 3, "x": 3}\n{"id": 4, "x": 4, "tags": []}\n')
    run()
    found = sorted((row.event, row.subscription) for row in TableSink(tmp_path / "out").read(spark).collect())
    assert found == [(2, "all"), (3, "all")]
    told = sorted(
        (row.batch, row.event, row.attribute, row.reason, row.value)
        for row in TableSink(rejects).read(spark).collect()
    )
    said = "attribute 'tags' is declared string, found array<string>"
    assert told == [(0, 1, "tags", said, "[new]"), (1, 4, "tags", said, "[]")]


def test_rejects_are_only_for_streams_that_collect(spark: SparkSession, tmp_path: Path) -> None:
    store = Subscriptions.create(tmp_path / "s")
    stream = followed(spark, tmp_path / "in", COLUMNS)
    with pytest.raises(ValueError, match='rejects are for on_error="collect"'):
        match_stream(stream, store, tmp_path / "out", checkpoint=tmp_path / "c", rejects=tmp_path / "r")
    with pytest.raises(ValueError, match="on_error is one of"):
        match_stream(stream, store, tmp_path / "out", checkpoint=tmp_path / "c", on_error="drop")  # type: ignore[arg-type]


def test_rejects_stay_where_and_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of two formats cannot be read, and a batch that is repeated would be told twice."""
    store = Subscriptions.create(tmp_path / "s", schema={"price": "float"})
    store.append([("cheap", "price < 300")])
    incoming = tmp_path / "in"
    stream = followed(spark, incoming, "id string, price double")

    def run(rejects: TableSink | None) -> None:
        query = match_stream(
            stream,
            store,
            tmp_path / "out",
            checkpoint=tmp_path / "check",
            event_id="id",
            available_now=True,
            on_error="raise" if rejects is None else "collect",
            rejects=rejects,
        )
        query.awaitTermination(PATIENCE)

    (incoming / "a.json").write_text('{"id": "e0", "price": 9}\n{"id": "bad0", "price": "NaN"}\n')
    run(TableSink(tmp_path / "R"))
    (incoming / "b.json").write_text('{"id": "e1", "price": 9}\n{"id": "bad1", "price": "NaN"}\n')
    with pytest.raises(SinkError, match="is a table of parquet, not of json"):
        run(TableSink(tmp_path / "R", "json"))
    write = TableSink.write

    def failing(self: TableSink, batch: int, *given: object) -> None:
        if self.folder.path == tmp_path / "out":
            raise OSError("the machine goes down")
        write(self, batch, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(TableSink, "write", failing)
        with pytest.raises(StreamingQueryException, match="goes down"):
            run(TableSink(tmp_path / "R"))
    elsewhere = r"the rejects of the checkpoint .* went to .*R so far, not to .*R2"
    with pytest.raises(StreamError, match=elsewhere):
        run(TableSink(tmp_path / "R2"))
    with pytest.raises(StreamingQueryException, match="bad1"):
        run(None)  # which collects none, and still some of the batch are where they are
    with pytest.raises(StreamError, match=elsewhere):
        run(TableSink(tmp_path / "R2"))
    run(TableSink(tmp_path / "R"))
    assert sorted(row.event for row in TableSink(tmp_path / "R").read(spark).collect()) == ["bad0", "bad1"]
    assert sorted(row.event for row in TableSink(tmp_path / "out").read(spark).collect()) == ["e0", "e1"]
