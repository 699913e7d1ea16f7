"""Events that hold for a time meet the subscriptions that come later."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from harken.errors import EventError, StreamError
from harken.spark import (
    EventValidity,
    TableSink,
)
from harken.spark.streaming.retained_events import RetainedEvents
from tests.spark.streaming.scenes import HOUR, MINUTE, NOON, PATIENCE, After, Row, Scene, Watch, crash, fail_to

# Events that are still valid


def folders(scene: Scene) -> list[str]:
    """The batches that are kept, and whatever else lies there."""
    kept = {each.folder: f"batch={each.batch}" for each in RetainedEvents(scene.kept, EventValidity(HOUR)).kept()}
    named = {path.name for path in scene.kept.glob("*") if not path.name.startswith(("batch=", "schema-"))}
    return sorted([*kept.values(), *(named - set(kept))])


def test_a_later_subscription_meets_the_events_that_still_hold(scene: Scene, watch: type[Watch]) -> None:
    """They hold for an hour from when their batch began: half open, so not at its very end."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1), (2, 2))
    scene.arrive((11, 1), (12, 2))
    for batch in (2, 3, 4):
        scene.arrive((batch, 0))
    kept = []

    def later(time: timedelta, *subscriptions: tuple[str, str]) -> None:
        kept.append(folders(scene))
        watch.moment = NOON + time
        if subscriptions:
            scene.subscriptions.append(subscriptions)

    deeds = {
        0: lambda: later(MINUTE),
        1: lambda: later(HOUR - timedelta(microseconds=1), ("b", "x = 2")),
        2: lambda: later(HOUR, ("c", "x > 0")),
        3: lambda: later(HOUR + MINUTE, ("d", "x > 0")),
        4: lambda: later(HOUR),
    }
    scene.run(sink=After(scene.table, deeds), validity=EventValidity(lasts=HOUR))
    assert scene.matches() == {
        0: [(1, "a")],
        1: [(11, "a")],
        2: [(12, "b"), (2, "b")],
        3: [(11, "c"), (12, "c")],
        4: [],
    }
    assert kept[2:] == [
        ["batch=0", "batch=1"],
        ["batch=0", "batch=1", "batch=2"],
        ["batch=1", "batch=2", "batch=3"],
    ]
    assert folders(scene) == ["batch=2", "batch=3", "batch=4"]


@pytest.mark.long
def test_a_changed_subscription_meets_them_too_and_one_that_went_does_not(scene: Scene) -> None:
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1"), ("b", "x = 1"), ("c", "x = 1")])
    scene.arrive((1, 1), (2, 2))
    scene.run(validity=validity)
    scene.subscriptions.upsert([("a", "x = 2"), ("d", "x = 2"), ("e", "x = 2")])
    scene.subscriptions.delete(["b", "d"])
    scene.run(validity=validity)
    assert scene.matches() == {0: [(1, "a"), (1, "b"), (1, "c")], 1: [(2, "a"), (2, "e")]}
    scene.subscriptions.delete(["a"])
    scene.run(validity=validity)
    assert scene.matches()[2] == []
    scene.run(validity=validity)
    assert scene.versions() == [1, 3, 4], "nothing new, no batch"


def test_an_event_and_a_subscription_that_come_together_meet_once(scene: Scene) -> None:
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run(validity=validity)
    scene.arrive((2, 1))
    scene.subscriptions.append([("b", "x = 1")])
    other = scene.table.path.with_name("other")
    scene.run(validity=validity, keep=["x"], sink=TableSink(other))
    found = pq.read_table(other).to_pylist()
    assert sorted((row["event"], row["subscription"], row["x"]) for row in found) == [
        (1, "b", 1),
        (2, "a", 1),
        (2, "b", 1),
    ]


def test_subscriptions_that_come_between_batches_meet_what_came_before_them(scene: Scene) -> None:
    """With limits on what a batch takes, a query for what there is keeps to them."""
    scene.subscriptions.append([("a", "x = 1")])
    for batch in range(3):
        scene.arrive((batch, 1))
    changing = After(scene.table, {0: lambda: scene.subscriptions.append([("b", "x = 1")])})
    scene.run(sink=changing, validity=EventValidity(lasts=HOUR))
    assert scene.matches() == {0: [(0, "a")], 1: [(0, "b"), (1, "a"), (1, "b")], 2: [(2, "a"), (2, "b")]}


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_a_column_can_say_until_when_events_hold(scene: Scene, watch: type[Watch], kind: str) -> None:
    moments = [NOON, NOON + MINUTE, NOON + MINUTE + timedelta(microseconds=1), NOON + HOUR]
    rows: list[Row] = [
        {"id": id, "x": 1, "until": moment.replace(tzinfo=None if kind == "timestamp_ntz" else UTC)}
        for id, moment in enumerate(moments)
    ]
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive(*rows, {"id": 4, "x": 1})
    scene.arrive((5, 0))
    scene.arrive((6, 0))

    def later(time: timedelta, name: str) -> None:
        watch.moment = NOON + time
        scene.subscriptions.append([(name, "x = 1")])

    deeds = {0: lambda: later(MINUTE, "b"), 1: lambda: later(timedelta(days=900), "c")}
    events = scene.events(f"id bigint, x bigint, until {kind}")
    scene.run(events, After(scene.table, deeds), validity=EventValidity(until="until"))
    assert scene.matches() == {
        0: [(id, "a") for id in range(5)],  # an event that comes is met, though it is late
        1: [(2, "b"), (3, "b"), (4, "b")],
        2: [(4, "c")],
    }


def test_with_event_times_the_clock_follows_them_at_a_distance(scene: Scene) -> None:
    """Years ago, as far as the machine knows. An event without a time holds from when its batch began."""
    long_ago = datetime(1969, 7, 20, 20, 17, tzinfo=UTC)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive({"id": 1, "x": 1, "t": long_ago}, {"id": 2, "x": 1, "t": long_ago + 10 * MINUTE})
    scene.arrive({"id": 3, "x": 1, "t": long_ago + 70 * MINUTE}, {"id": 4, "x": 1})
    scene.arrive({"id": 5, "x": 2, "t": long_ago})
    scene.arrive((6, 0))
    deeds = {
        1: lambda: scene.subscriptions.append([("b", "x > 0")]),
        2: lambda: scene.subscriptions.append([("c", "x > 0")]),
    }
    validity = EventValidity(lasts=HOUR, event_time="t", delay=10 * MINUTE)
    scene.run(sink=After(scene.table, deeds), validity=validity)
    clocks = [entry.clock for entry in scene.ledger.entries()]
    assert clocks[1:] == [long_ago, long_ago + HOUR, long_ago + HOUR], "an event that is late does not set it back"
    assert scene.matches() == {
        0: [(1, "a"), (2, "a")],
        1: [(3, "a"), (4, "a")],
        2: [(2, "b"), (3, "b"), (4, "b"), (5, "b")],
        3: [(2, "c"), (3, "c"), (4, "c")],
    }


@pytest.mark.long
def test_what_is_kept_is_bounded_by_how_long_events_hold(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    for batch in range(9):
        moment = NOON + batch * MINUTE
        scene.arrive({"id": batch, "x": 1, "t": moment, "until": moment + 2 * MINUTE})
    sizes: list[int] = []
    deeds: dict[int, Callable[[], object]] = dict.fromkeys(range(9), lambda: sizes.append(len(folders(scene))))
    deeds[7] = lambda: scene.subscriptions.append([("b", "x = 1")])
    scene.run(sink=After(scene.table, deeds), validity=EventValidity(until="until", event_time="t"))
    assert scene.matches()[8] == [(6, "b"), (7, "b"), (8, "a"), (8, "b")]
    assert sizes == [0, 1, 2, 3, 3, 3, 3, 3]
    assert folders(scene) == ["batch=6", "batch=7", "batch=8"]


def test_a_column_that_comes_later_is_missing_in_what_was_kept(scene: Scene) -> None:
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run(scene.events("id bigint, x bigint"), validity=validity)
    scene.subscriptions.append([("b", "y is null"), ("c", "y = 3")])
    scene.arrive({"id": 2, "x": 0, "y": 3})
    scene.run(scene.events("id bigint, x bigint, y bigint"), validity=validity)
    assert scene.matches()[1] == [(1, "b"), (2, "c")]


@pytest.mark.parametrize("place", ["keep", "expire"])
def test_a_crash_after_the_matches_are_written_loses_no_event(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    with monkeypatch.context() as crashing:
        crashing.setattr(RetainedEvents, place, crash)
        fail_to(lambda: scene.run(validity=validity))
    scene.subscriptions.append([("b", "x = 1")])
    scene.arrive((2, 1))
    scene.run(validity=validity)
    assert scene.matches() == {0: [(1, "a")], 1: [(1, "b"), (2, "a"), (2, "b")]}


@pytest.mark.long
def test_a_crash_while_expired_events_are_removed_does_no_harm(
    scene: Scene, watch: type[Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run(validity=validity)
    watch.moment = NOON + HOUR
    scene.arrive((2, 1))
    with monkeypatch.context() as crashing:
        crashing.setattr(shutil, "rmtree", half_removed)
        fail_to(lambda: scene.run(validity=validity))
    scene.run(validity=validity)
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")]}
    assert folders(scene) == ["batch=1"]


def half_removed(folder: Path, **_: object) -> None:
    for file in folder.glob("*.parquet"):
        file.unlink()
    raise RuntimeError("crash")


def test_a_new_subscription_starts_a_batch_though_no_event_comes(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    query = scene.start(trigger="100 milliseconds", validity=EventValidity(lasts=HOUR), name="no events")
    try:
        assert query.name == "no events"
        wait(query, lambda: scene.matches() == {0: [(1, "a")]})
        scene.subscriptions.append([("b", "x = 1")])
        wait(query, lambda: (1, "b") in scene.matches().get(1, []))
    finally:
        query.stop()
    assert [pair for pairs in scene.matches().values() for pair in pairs] == [(1, "a"), (1, "b")]


def wait(query: StreamingQuery, happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.05)


# Keeping events, without a stream


@pytest.fixture
def elsewhere(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose time zone has summers and winters."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def still_there(lasting: RetainedEvents, events: DataFrame, clock: datetime) -> list[int]:
    earlier = lasting.before(events, 1, clock)
    return [] if earlier is None else sorted(row.id for row in earlier.select("id").collect())


def test_the_time_zone_of_a_session_does_not_matter(elsewhere: SparkSession, tmp_path: Path) -> None:
    events = elsewhere.sql(
        "select 1 id, timestamp'2026-03-01 12:00:00Z' t union all select 2, timestamp'2026-03-01 12:00:01Z'"
    )
    lasts = timedelta(days=30, microseconds=1)
    for kind in ("timestamp", "timestamp_ntz"):
        zoned = "t" if kind == "timestamp" else "convert_timezone('UTC', t::timestamp_ntz)"
        lasting = RetainedEvents(tmp_path / kind, EventValidity(lasts=lasts, event_time="t"))
        typed = events.selectExpr("id", f"{zoned}::{kind} as t")
        lasting.keep(0, typed, NOON, NOON)
        assert lasting.clock(1) == NOON + timedelta(seconds=1)
        assert still_there(lasting, typed, NOON + lasts - timedelta(microseconds=1)) == [1, 2]
        assert still_there(lasting, typed, NOON + lasts) == [2]
        assert still_there(lasting, typed, NOON + lasts + timedelta(seconds=1)) == []


def test_moments_that_python_has_not_are_as_good_as_the_last(spark: SparkSession, tmp_path: Path) -> None:
    events = spark.sql("select 1 id, timestamp_micros(568971820800000000) t, timestamp'2026-01-01' until")
    lasting = RetainedEvents(tmp_path / "a", EventValidity(until="t", event_time="until"))
    lasting.keep(0, events, NOON, NOON)
    assert still_there(lasting, events, datetime.max.replace(tzinfo=UTC)) == [1]
    lasting = RetainedEvents(tmp_path / "b", EventValidity(until="until", event_time="t"))
    lasting.keep(0, events, NOON, NOON)
    assert lasting.clock(1) == datetime.max.replace(tzinfo=UTC)


def test_a_stream_without_event_times_so_far_expires_nothing(spark: SparkSession, tmp_path: Path) -> None:
    events = spark.sql("select 1 id, cast(null as timestamp) t, timestamp'1600-01-01' until")
    lasting = RetainedEvents(tmp_path / "events", EventValidity(until="until", event_time="t"))
    clock = lasting.clock(0)
    assert clock == datetime.min.replace(tzinfo=UTC)
    lasting.keep(0, events, NOON, clock)
    assert lasting.clock(1) == clock
    assert still_there(lasting, events, clock) == [1]


@pytest.fixture
def another_is_active(spark: SparkSession) -> Iterator[None]:
    """A session that does not know the settings of the events', as in a thread that has used none yet."""
    java = spark._jvm.org.apache.spark.sql.SparkSession  # type: ignore[union-attr]
    before = java.getActiveSession()
    java.setActiveSession(spark.newSession()._jsparkSession)
    yield
    java.setActiveSession(before.get() if before.isDefined() else spark._jsparkSession)


@pytest.mark.usefixtures("another_is_active")
def test_texts_of_a_bounded_length_are_kept_too(scene: Scene, lent_spark: SparkSession) -> None:
    lent_spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1), (2, 2))
    events = scene.events().selectExpr("cast(concat('e', id) as varchar(4)) id", "x", "cast('q' as char(2)) other")
    scene.run(events, validity=validity)
    scene.subscriptions.append([("late", "x > 1")])
    scene.run(events, validity=validity)
    assert scene.matches() == {0: [("e1", "a")], 1: [("e2", "late")]}


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION"])
def test_kept_events_are_exact_whatever_files_of_others_are_to_have(
    lent_spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    others = {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
    }
    for name, value in others.items():
        lent_spark.conf.set(name, value)
    events = lent_spark.sql(
        "select 1 id, timestamp'2026-03-01 12:00:00.123456' t, timestamp'1582-10-10' old, date'1582-10-10' day"
    )
    lasting = RetainedEvents(tmp_path / "events", EventValidity(lasts=HOUR))
    lasting.keep(0, events, NOON, NOON)
    kept = lasting.before(events, 1, NOON)
    assert kept is not None
    told = [f"cast({name} as string)" for name in events.columns]
    assert kept.selectExpr(*told).collect() == events.selectExpr(*told).collect()
    assert {name: lent_spark.conf.get(name) for name in others} == others


SHAPES = "id int, x bigint, s struct<a: int>, l array<int>, m map<string, int>, d decimal(5,2)"


@pytest.fixture
def shapes(spark: SparkSession, tmp_path: Path) -> RetainedEvents:
    """Two batches that are kept, the second without most columns of the first."""
    lasting = RetainedEvents(tmp_path / "events", EventValidity(lasts=HOUR))
    rows = [(1, 5, (1,), [1], {"k": 1}, Decimal("1.25"))]
    now = datetime.now(UTC)
    lasting.keep(0, spark.createDataFrame(rows, SHAPES), now, now)
    lasting.keep(1, spark.createDataFrame([(2,)], "id int"), now, now)
    return lasting


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x bigint", "x string"),
        ("x bigint", "X int"),
        ("x bigint", "x date"),
        ("struct<a: int>", "string"),
        ("struct<a: int>", "struct<b: int, A: string>"),
        ("array<int>", "array<string>"),
        ("map<string, int>", "map<string, date>"),
        ("decimal(5,2)", "decimal(5,3)"),
    ],
)
def test_however_deep_another_type_is_it_is_told(
    spark: SparkSession, shapes: RetainedEvents, before: str, after: str
) -> None:
    with pytest.raises(StreamError, match=r"events that are kept have .* in the column '.*', and it would be"):
        shapes.check_like(spark.createDataFrame([], SHAPES.replace(before, after)), 2, datetime.now(UTC))


def test_types_may_become_wider(spark: SparkSession, shapes: RetainedEvents) -> None:
    wider = (
        "id bigint, x bigint, s struct<a: bigint, b: string>, l array<bigint>, m map<string, bigint>, "
        "d decimal(7,3), more date"
    )
    arriving = spark.createDataFrame([], wider)
    shapes.check_like(arriving, 2, datetime.now(UTC))
    kept = shapes.before(arriving, 2, datetime.now(UTC))
    assert kept is not None
    (first,) = kept.where("id = 1").collect()
    assert first == (1, 5, (1, None), [1], {"k": 1}, Decimal("1.250"), None)


def test_types_may_change_when_what_had_them_has_expired(spark: SparkSession, tmp_path: Path) -> None:
    lasting = RetainedEvents(tmp_path / "events", EventValidity(lasts=HOUR))
    long_ago = datetime.now(UTC) - 2 * HOUR
    lasting.keep(0, spark.sql("select 1 id"), long_ago, long_ago)
    other = spark.sql("select 'one' id")
    for batch, clock in ((0, long_ago), (1, long_ago)):  # of a batch that is repeated, by the clock of then
        with pytest.raises(StreamError, match="have int in the column 'id'"):
            lasting.check_like(other, batch, clock)
    lasting.check_like(other, 1, datetime.now(UTC))
    lasting.keep(1, other, datetime.now(UTC), datetime.now(UTC))
    lasting.expire(1, datetime.now(UTC))
    assert len(list((tmp_path / "events").glob("schema-*"))) == 1


@pytest.mark.parametrize("lasts", [HOUR, timedelta.max])
def test_no_event_holds_longer_than_for_ever(spark: SparkSession, tmp_path: Path, lasts: timedelta) -> None:
    largest = 2**63 - 1
    for at, micros in enumerate((largest, -largest, 0)):
        events = spark.sql(f"select 1 id, timestamp_micros({micros}) t")
        lasting = RetainedEvents(tmp_path / str(at), EventValidity(lasts=lasts, event_time="t"))
        lasting.keep(0, events, NOON, NOON)
        (kept,) = lasting.kept()
        assert kept.facts.until == min(micros + lasts // timedelta(microseconds=1), micros + largest, largest)


def test_what_files_cannot_hold_is_told_before_events_are_to_be_kept(scene: Scene) -> None:
    events = scene.events().selectExpr("id", "x", "array(make_interval(1)) span")
    with pytest.raises(EventError, match=r"with the column 'span' cannot be kept: Spark writes no interval"):
        scene.start(events, validity=EventValidity(lasts=HOUR))
    assert not scene.checkpoint.exists()
