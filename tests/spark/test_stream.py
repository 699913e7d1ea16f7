"""Every event of a stream meets the subscriptions of its batch once, whatever fails or changes meanwhile."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from harken import Engine
from harken.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConcurrentChangeError,
    DatabaseError,
    EventError,
    SinkError,
    StorageError,
    StreamError,
    UnknownVersionError,
)
from harken.model.evaluation import truth
from harken.model.expressions import Expression
from harken.model.values import Type
from harken.spark import (
    DatabaseSink,
    EventValidity,
    Query,
    Sink,
    Subscriptions,
    TableSink,
    match_stream,
    repin_batch,
    skip_batch,
    stream_status,
)
from harken.spark.index import index as index_room
from harken.spark.index.index import Index, build_index
from harken.spark.streaming import ledger as ledger_room
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.retained_events import RetainedEvents
from harken.spark.subscriptions.versions import VersionLog
from tests.contract.checks import arrow_events
from tests.strategies import TYPED, Generator

PATIENCE = 300
"""Seconds after which a query, or what it should have done, is given up."""

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
COLUMNS = "id bigint, x bigint, t timestamp, until timestamp"

Row = dict[str, object]
Pair = tuple[object, object]


class Scene:
    """A folder of events, subscriptions, and a stream that matches the one with the other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        awkward = folder / "a [b] {c,d}"  # Spark takes such names for patterns, if it is let
        self.spark = spark
        self.arrivals = folder / "events"
        self.arrivals.mkdir()
        self.table = TableSink(awkward / "matches")
        self.checkpoint = awkward / "checkpoint"
        self.ledger = Ledger(self.checkpoint / "harken" / "ledger")
        self.kept = self.checkpoint / "harken" / "events"
        self.subscriptions = Subscriptions.create(awkward / "subscriptions")
        self._files = 0

    def arrive(self, *rows: Row | tuple[int, int]) -> None:
        """A file of events, which is a batch. Pairs are the id and x."""
        lines = [dict(zip(("id", "x"), row, strict=True)) if isinstance(row, tuple) else row for row in rows]
        text = "".join(json.dumps(line, default=datetime.isoformat) + "\n" for line in lines)
        self._put("json", lambda path: path.write_text(text, encoding="utf-8"))

    def arrive_as_columns(self, table: pa.Table) -> None:
        """The same, as Parquet."""
        self._put("parquet", lambda path: pq.write_table(table, path))

    def _put(self, form: str, write: Callable[[Path], object]) -> None:
        path = self.arrivals / f"{self._files}.{form}"
        write(path)
        os.utime(path, (1_700_000_000 + self._files,) * 2)  # Spark takes them in this order
        self._files += 1

    def events(self, columns: str = COLUMNS) -> DataFrame:
        reader = self.spark.readStream.option("maxFilesPerTrigger", 1)
        return reader.schema(columns).json(f"file://{self.arrivals}")

    def start(
        self,
        events: DataFrame | None = None,
        sink: Sink | None = None,
        trigger: str | None = None,
        **options: object,
    ) -> StreamingQuery:
        return match_stream(
            self.events() if events is None else events,
            self.subscriptions,
            sink or self.table,
            checkpoint=self.checkpoint,
            available_now=trigger is None,
            trigger=trigger,
            **{"event_id": "id", **options},  # type: ignore[arg-type]
        )

    def run(self, events: DataFrame | None = None, sink: Sink | None = None, **options: object) -> None:
        """Do all there is to do."""
        # Where changes are part of the stream, Spark 4.0 would do all of it as one batch.
        one_by_one = "validity" in options and not hasattr(DataFrame, "repartitionById")
        query = self.start(events, sink, "0 seconds" if one_by_one else None, **options)  # type: ignore[arg-type]
        try:
            if one_by_one:
                query.processAllAvailable()
            else:
                assert query.awaitTermination(PATIENCE), "the query has come to no end"
        finally:
            query.stop()

    def matches(self) -> dict[int, list[Pair]]:
        """What came out, by batch. Pairs that are there twice are there twice."""
        found: dict[int, list[Pair]] = {int(path.name[6:]): [] for path in self.table.path.glob("batch=*")}
        for row in self.rows():
            found[row["batch"]].append((row["event"], row["subscription"]))  # type: ignore[index]
        return {batch: sorted(pairs, key=repr) for batch, pairs in sorted(found.items())}

    def rows(self) -> list[Row]:
        return pq.read_table(self.table.path).to_pylist() if self.table.path.exists() else []

    def versions(self) -> list[int]:
        """Which version matched which batch."""
        return [entry.version for entry in self.ledger.entries()]


@pytest.fixture
def scene(spark: SparkSession, tmp_path: Path) -> Scene:
    return Scene(spark, tmp_path)


@dataclass
class After:
    """A sink that does something after certain batches."""

    sink: Sink
    deeds: Mapping[int, Callable[[], object]]

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        self.sink.write(batch, matches, query)
        if batch in self.deeds:
            self.deeds[batch]()


@dataclass
class FailsOnce:
    """A sink that fails in one batch, before or after all is written."""

    sink: Sink
    batch: int
    late: bool
    failed: bool = field(default=False)

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        failing = batch == self.batch and not self.failed
        if failing and not self.late:
            self._fail()
        self.sink.write(batch, matches, query)
        if failing:
            self._fail()

    def _fail(self) -> None:
        self.failed = True
        raise RuntimeError("the sink is full")


class Watch(datetime):
    """Stands in for `datetime` where the ledger asks for the time."""

    moment = NOON

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return cls.moment


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> type[Watch]:
    monkeypatch.setattr(Watch, "moment", NOON)
    monkeypatch.setattr(ledger_room, "datetime", Watch)
    return Watch


def crash(*_: object, **__: object) -> None:
    raise RuntimeError("crash")


def fail_to(run: Callable[[], None], said: str = "crash") -> None:
    with pytest.raises(StreamingQueryException, match=said):
        run()


# Matching


def test_matches_are_those_of_an_engine(scene: Scene) -> None:
    subscriptions = [(f"s{n}", f"x between {n} and {2 * n} or id = {n}") for n in range(20)]
    scene.subscriptions.append(subscriptions)
    engine = Engine()
    engine.subscribe_many(subscriptions)
    expected = {}
    for batch in range(3):
        events = [(10 * batch + n, (7 * n + batch) % 40) for n in range(10)]
        scene.arrive(*events)
        expected[batch] = sorted((id, name) for id, x in events for name in engine.match({"id": id, "x": x}))
    scene.run()
    assert scene.matches() == expected
    assert all(expected.values())
    assert scene.versions() == [1, 1, 1]


def test_matches_can_be_grouped_and_carry_columns(scene: Scene) -> None:
    scene.subscriptions.append([(1, "x > 1"), (2, "x > 2"), (3, "x > 9")])
    scene.arrive((10, 1), (11, 2), (12, 3))
    scene.run(how="grouped", keep=["x"])
    found = sorted((row["event"], sorted(row["subscriptions"]), row["x"]) for row in scene.rows())  # type: ignore[call-overload]
    assert found == [(11, [1], 2), (12, [1, 2], 3)]


def test_events_without_an_id_are_never_taken_for_each_other(scene: Scene, tmp_path: Path) -> None:
    """A database knows a pair by its names, and numbers begin anew with every batch."""
    scene.subscriptions.append([(n, "x > 0") for n in range(5)])
    for _ in range(3):
        scene.arrive((0, 1))
    scene.run(sink=DatabaseSink(f"sqlite:///{tmp_path}/matches.db"), event_id=None)
    with closing(sqlite3.connect(tmp_path / "matches.db")) as connection:
        rows = connection.execute("select event, batch from notifications").fetchall()
    assert Counter(rows) == {("0-0", 0): 5, ("1-0", 1): 5, ("2-0", 2): 5}


def test_events_without_an_id_are_told_apart_within_a_batch(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 0"), ("b", "x > 1")])
    scene.arrive((0, 1), (0, 2), (0, 2))
    scene.run(event_id=None, keep=["x"])
    rows = scene.rows()
    assert sorted((row["x"], row["subscription"]) for row in rows) == [(1, "a")] + [(2, "a")] * 2 + [(2, "b")] * 2
    assert len({row["event"] for row in rows}) == 3
    assert len({(row["event"], row["subscription"]) for row in rows}) == 5


def test_a_folder_will_do_as_output(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 0")])
    scene.arrive((1, 1))
    scene.run(sink=str(scene.table.path))  # type: ignore[arg-type]
    assert scene.matches() == {0: [(1, "a")]}


def test_a_stream_can_begin_before_the_first_subscription(scene: Scene) -> None:
    """Then it is not known yet whether their ids are numbers."""
    scene.arrive((1, 1))
    scene.arrive((2, 1))
    scene.run()
    assert scene.matches() == {}
    scene.subscriptions.append([(7, "x > 0")])
    scene.arrive((3, 1))
    scene.run()
    assert scene.matches() == {2: [(3, 7)]}
    assert scene.versions() == [0, 0, 1]


# What is refused before anything runs


def test_what_is_no_stream_is_refused(scene: Scene) -> None:
    frame = scene.spark.range(3)
    with pytest.raises(EventError, match="the events are no stream; match is for DataFrames that are"):
        scene.start(frame)


def test_an_unknown_way_to_answer_is_refused(scene: Scene) -> None:
    said = "how is one of 'pairs', 'grouped', found 'groups'; did you mean 'grouped'"
    with pytest.raises(ValueError, match=said):
        scene.start(how="groups")


def test_events_that_are_kept_need_an_id(scene: Scene) -> None:
    with pytest.raises(EventError, match="need an id to be known again; pass event_id"):
        scene.start(event_id=None, validity=EventValidity(lasts=HOUR))


@pytest.mark.parametrize("named", ["until", "event_time"])
def test_columns_of_validity_must_be_timestamps_that_are_there(scene: Scene, named: str) -> None:
    lasts = {"lasts": HOUR} if named == "event_time" else {}
    with pytest.raises(EventError, match="events have no column 'utnil'; did you mean 'until'"):
        scene.start(validity=EventValidity(**{named: "utnil", **lasts}))  # type: ignore[arg-type]
    with pytest.raises(EventError, match="column 'x' is to be a timestamp, found bigint"):
        scene.start(validity=EventValidity(**{named: "x", **lasts}))  # type: ignore[arg-type]


def test_how_long_events_hold_is_a_timedelta() -> None:
    with pytest.raises(ArgumentTypeError, match="lasts is a timedelta, found 5"):
        EventValidity(lasts=5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="delay is a timedelta, found None"):
        EventValidity(lasts=HOUR, delay=None)  # type: ignore[arg-type]


def test_validity_says_either_how_long_or_until_when() -> None:
    for wrong in ({}, {"lasts": HOUR, "until": "until"}):
        with pytest.raises(ValueError, match="either for a time"):
            EventValidity(**wrong)  # type: ignore[arg-type]
    for lasts in (timedelta(), -HOUR):
        with pytest.raises(ValueError, match="hold for a positive time"):
            EventValidity(lasts=lasts)


# Changes


def test_a_change_takes_effect_in_the_next_batch_and_not_before(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1"), ("b", "x = 2")])
    for batch in range(5):
        scene.arrive((10 * batch + 1, 1), (10 * batch + 2, 2))
    subscriptions = scene.subscriptions
    changing = After(
        scene.table,
        {
            0: lambda: subscriptions.append([("c", "x > 0")]),
            1: lambda: (subscriptions.upsert([("a", "x = 2")]), subscriptions.delete(["c"])),
            3: lambda: subscriptions.delete(["a", "b"]),
        },
    )
    scene.run(sink=changing)
    assert scene.matches() == {
        0: [(1, "a"), (2, "b")],
        1: [(11, "a"), (11, "c"), (12, "b"), (12, "c")],
        2: [(22, "a"), (22, "b")],
        3: [(32, "a"), (32, "b")],
        4: [],
    }
    assert [(entry.batch, entry.before, entry.version) for entry in scene.ledger.entries()] == [
        (0, 1, 1),
        (1, 1, 2),
        (2, 2, 4),
        (3, 4, 4),
        (4, 4, 5),
    ]


# Restarts


def test_a_query_that_is_started_again_goes_on_where_it_was(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 0")])
    scene.arrive((1, 1))
    scene.arrive((2, 1))
    scene.run()
    first = scene.matches()
    scene.run()
    assert scene.matches() == first == {0: [(1, "a")], 1: [(2, "a")]}
    scene.arrive((3, 1))
    scene.run()
    assert scene.matches() == {**first, 2: [(3, "a")]}


@pytest.mark.parametrize("late", [False, True], ids=["before it wrote", "after it wrote"])
def test_a_batch_whose_sink_failed_is_there_once_and_as_it_was_decided(scene: Scene, late: bool) -> None:
    """Newer subscriptions, which are there when it comes again, are for the batch after it."""
    scene.subscriptions.append([("a", "x = 1")])
    for batch in range(3):
        scene.arrive((batch, 1))
    sink = FailsOnce(scene.table, batch=1, late=late)
    fail_to(lambda: scene.run(sink=sink), "the sink is full")
    assert list(scene.matches()) == [0, 1][: 1 + late]
    before = scene.ledger.entries()
    assert [entry.batch for entry in before] == [0, 1]
    scene.subscriptions.append([("b", "x = 1")])
    scene.subscriptions.delete(["a"])
    scene.run(sink=sink)
    assert scene.matches() == {0: [(0, "a")], 1: [(1, "a")], 2: [(2, "b")]}
    assert scene.ledger.entries()[:2] == before
    assert scene.versions() == [1, 1, 3]


def test_a_crash_right_after_the_first_decision_changes_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.arrive((2, 1))
    with monkeypatch.context() as crashing:
        crashing.setattr(Index, "refresh", crash)
        fail_to(scene.run)
    assert scene.versions() == [1]
    scene.subscriptions.upsert([("a", "x = 2"), ("b", "x = 1")])
    scene.run()
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "b")]}


def test_an_index_that_was_only_begun_is_built(scene: Scene) -> None:
    (scene.subscriptions.path / "index" / "versions").mkdir(parents=True)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run()
    assert scene.matches() == {0: [(1, "a")]}


def test_of_two_streams_that_begin_at_once_one_builds_the_index(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(spark: SparkSession, subscriptions: Subscriptions) -> Index:
        build_index(spark, subscriptions)
        raise ConcurrentChangeError(str(subscriptions.path), 1)

    monkeypatch.setattr(index_room, "build_index", overtaken)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run()
    assert scene.matches() == {0: [(1, "a")]}


@pytest.mark.long
def test_what_is_built_for_one_batch_is_gone_after_it(scene: Scene) -> None:
    """Changes that meet earlier events are built apart where the index has merged them with others."""
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([(n, "x = 1") for n in range(3)])
    for batch in range(4):
        scene.arrive((batch, 1))

    def change(batch: int) -> None:
        scene.subscriptions.upsert([(batch % 3, f"x = 1 and id <> {batch + 90}")])

    scene.run(sink=After(scene.table, {batch: partial(change, batch) for batch in range(3)}), validity=validity)
    assert len(scene.matches()[3]) == 3 + 3
    index = Index(scene.subscriptions.folder.child("index"))
    versions = [index.state(number) for number in VersionLog(index.folder.child("versions")).numbers()]
    named = {part.folder for state in versions for layer in state.layers for part in layer.parts.values()}
    assert {each.name for each in index.folder.child("parts").entries()} == named


def test_a_stream_says_which_version_it_is_at(scene: Scene) -> None:
    """So that this version is kept, for as long as its batch may be repeated."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.arrive((2, 1))
    scene.run(sink=After(scene.table, {0: lambda: scene.subscriptions.append([("b", "x = 1")])}))
    (reader,) = scene.subscriptions.readers()
    assert (reader.version, reader.before, reader.follows) == (2, 1, False)
    assert reader.checkpoint == str(scene.checkpoint)
    assert reader.query == json.loads((scene.checkpoint / "spark" / "metadata").read_text())["id"]


# Whose batches these are


def test_a_new_checkpoint_with_an_old_output_is_refused(scene: Scene, tmp_path: Path) -> None:
    """Its batches would be taken for repetitions."""
    database = DatabaseSink(f"sqlite:///{tmp_path}/matches.db")
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run()
    old = scene.checkpoint
    scene.checkpoint = old.with_name("another")
    refused = rf"{re.escape(str(scene.table.path))} has the batches of another query.*{re.escape(str(old))}"
    with pytest.raises(SinkError, match=rf"{refused}; write to another place, or go on with that checkpoint"):
        scene.start()
    scene.run(sink=database)
    scene.checkpoint = old.with_name("a third")
    with pytest.raises(SinkError, match=r"table notifications of .* has the batches of another"):
        scene.start(sink=database)
    assert scene.matches() == {0: [(1, "a")]}


def test_rejects_are_those_of_one_query_too(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema={"x": "string"})
    scene.subscriptions.append([("a", "x = '1'")])
    scene.arrive((1, 1))
    rejects = TableSink(tmp_path / "rejects")
    scene.run(on_error="collect", rejects=rejects)
    scene.checkpoint = tmp_path / "another"
    other = TableSink(tmp_path / "other")
    fail_to(lambda: scene.run(sink=other, on_error="collect", rejects=rejects), "batches of another query")


def test_a_checkpoint_whose_half_was_removed_is_refused(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run()
    shutil.rmtree(scene.checkpoint / "spark")
    with pytest.raises(StreamError, match=r"the ledger in .*was removed, or replaced; start with a new"):
        scene.start()
    assert scene.matches() == {0: [(1, "a")]}


def test_an_address_that_is_not_supported_is_refused_by_name(scene: Scene) -> None:
    with pytest.raises(StorageError, match="addresses with wasb: are not supported"):
        scene.start(sink=TableSink("wasb://box/matches"))
    scene.checkpoint = "dbfs:/checkpoint"  # type: ignore[assignment]
    with pytest.raises(StorageError, match="addresses with dbfs: are not supported"):
        scene.start()


# Events that are still valid


def folders(scene: Scene) -> list[str]:
    """The batches that are kept, and whatever else lies there."""
    kept = {each.folder: f"batch={each.batch}" for each in RetainedEvents(scene.kept, EventValidity(HOUR)).kept()}
    named = {path.name for path in scene.kept.glob("*") if not path.name.startswith("batch=")}
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


# Laws


@dataclass
class Story:
    """Random subscriptions, changes after every batch, and events; and what must come of them."""

    seed: str
    batches: int = 6
    subscriptions: dict[int, Expression] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    versions: list[dict[int, Expression]] = field(default_factory=list)
    changes: list[set[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = Generator(self.seed, TYPED)
        self.random = random.Random(self.seed)
        self.events = [
            [self.generator.event() for _ in range(self.random.randint(0, 12) or 1)] for _ in range(self.batches)
        ]

    def begin(self, place: Subscriptions) -> None:
        self.subscriptions = {id: self.generator.expression() for id in range(0, 120, 3)}
        place.append(list(self.subscriptions.items()))

    def note(self) -> None:
        """What held, and what was new, in the batch that was just done."""
        self.versions.append(dict(self.subscriptions))
        self.changes.append(self.changed & set(self.subscriptions))
        self.changed = set()

    def change(self, place: Subscriptions) -> None:
        self.note()
        for _ in range(self.random.randint(0, 3)):
            ids = sorted(self.random.sample(range(120), self.random.randint(1, 9)))
            if self.random.random() < 0.3:
                place.delete(ids, missing_ok=True)
                self.subscriptions = {id: each for id, each in self.subscriptions.items() if id not in ids}
            else:
                rows = {id: self.generator.expression() for id in ids}
                place.upsert(list(rows.items()))
                self.subscriptions.update(rows)
                self.changed |= set(ids)

    def id_of(self, batch: int, row: int) -> int:
        return 100 * batch + row

    def time_of(self, batch: int, row: int) -> datetime:
        """When an event was, which hardly follows the order of batches."""
        return NOON + (3 * batch + (7 * row + batch) % 10) * MINUTE

    def columns(self, batch: int) -> pa.Table:
        """A batch as it arrives."""
        rows = self._rows(batch)
        table = arrow_events(self.events[batch], TYPED)
        table = table.append_column("id", pa.array([self.id_of(batch, row) for row in rows], pa.int64()))
        times = pa.array([self.time_of(batch, row) for row in rows], pa.timestamp("us", tz="UTC"))
        return table.append_column("when", times)

    def expected(self, lasts: timedelta | None) -> dict[int, list[Pair]]:
        """The matches by batch, by the semantics themselves."""
        found: dict[int, list[Pair]] = {}
        clock = datetime.min.replace(tzinfo=UTC)
        for batch, held in enumerate(self.versions):
            pairs = self._pairs(batch, self._rows(batch), held, held)
            for earlier in range(batch):
                rows = [row for row in self._rows(earlier) if lasts and self.time_of(earlier, row) + lasts > clock]
                pairs += self._pairs(earlier, rows, held, self.changes[batch])
            found[batch] = sorted(pairs, key=repr)
            clock = max(clock, *(self.time_of(batch, row) for row in self._rows(batch)))
        return found

    def _rows(self, batch: int) -> range:
        return range(len(self.events[batch]))

    def _pairs(
        self, batch: int, rows: Iterable[int], held: Mapping[int, Expression], ids: Iterable[int]
    ) -> list[Pair]:
        wanted = list(ids)
        return [
            (self.id_of(batch, row), id)
            for row in rows
            for id in wanted
            if truth(held[id], self.events[batch][row]) is True
        ]


SCHEMA: dict[str, Type | str] = {
    "n": Type.FLOAT,
    "m": Type.FLOAT,
    "s": Type.STRING,
    "b": Type.BOOL,
    "d": Type.DATE,
    "t": Type.TIMESTAMP,
    "place.name": Type.STRING,
    "spot": Type.POINT,
    "area": Type.BOX,
}


@pytest.mark.parametrize("lasts", [None, 8 * MINUTE], ids=["events pass", "events last"])
def test_random_subscriptions_changes_and_events_agree_with_the_semantics(
    spark: SparkSession, tmp_path: Path, lasts: timedelta | None
) -> None:
    scene, story = Scene(spark, tmp_path), Story("streams")
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema=SCHEMA)
    story.begin(scene.subscriptions)
    for batch in range(story.batches):
        scene.arrive_as_columns(story.columns(batch))
    folder = f"file://{scene.arrivals}"
    columns = spark.read.parquet(folder).schema
    events = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(folder)
    deeds = dict.fromkeys(range(story.batches - 1), lambda: story.change(scene.subscriptions))
    validity = None if lasts is None else EventValidity(lasts=lasts, event_time="when")
    scene.run(events, After(scene.table, deeds), validity=validity)
    story.change(scene.subscriptions)
    assert scene.matches() == story.expected(lasts)
    assert [entry.before for entry in scene.ledger.entries()][1:] == scene.versions()[:-1]
    assert len(set(scene.versions())) > story.batches // 2


# ---------------------------------------------------------------- foreign values and faults


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
    for name in ("0", ".0.crc"):
        (checkpoint / "spark" / "commits" / name).unlink()
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


# ---------------------------------------------------------------- batches that cannot be done


def test_a_batch_that_cannot_be_done_is_passed_over_with_a_record(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    for batch in range(3):
        scene.arrive((batch, 1))
    sink = FailsOnce(scene.table, batch=1, late=False)
    fail_to(lambda: scene.run(sink=sink), "the sink is full")
    assert stream_status(scene.checkpoint).pending == 1
    assert skip_batch(scene.checkpoint, reason="the disk is gone") == 1
    assert "batch 1 is pending, and will be passed over" in str(stream_status(scene.checkpoint))
    scene.run()
    assert scene.matches() == {0: [(0, "a")], 2: [(2, "a")]}
    status = stream_status(scene.checkpoint)
    assert [(each.batch, each.reason) for each in status.skipped] == [(1, "the disk is gone")]
    assert status.pending is None
    with pytest.raises(StreamError, match=r"nothing is pending in .*: batch 2 is done"):
        skip_batch(scene.checkpoint, reason="again")


@pytest.mark.long
def test_changes_between_a_batch_that_is_passed_over_and_the_next_are_met(scene: Scene) -> None:
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run(validity=validity)
    scene.subscriptions.append([("b", "x = 1")])
    scene.arrive((1, 1))
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=1, late=False), validity=validity), "full")
    skip_batch(scene.checkpoint, reason="a test")
    scene.arrive((2, 1))
    scene.run(validity=validity)
    assert scene.matches() == {0: [(0, "a")], 2: [(0, "b"), (2, "a"), (2, "b")]}


def test_a_batch_whose_version_is_gone_is_repeated_with_a_later_one(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=0, late=False)), "the sink is full")
    scene.subscriptions.append([("b", "x = 1")])
    shutil.rmtree(scene.subscriptions.folder.child("index").path)  # type: ignore[arg-type]
    (scene.subscriptions.folder.child("versions").path / "00000000000000000001.json").unlink()  # type: ignore[operator]
    with pytest.raises(UnknownVersionError, match="has no version 1"):
        scene.start()
    with pytest.raises(UnknownVersionError, match="has no version 9"):
        repin_batch(scene.checkpoint, scene.subscriptions, scene.table, version=9)


def test_a_batch_can_be_repeated_with_a_later_version_until_the_output_has_it(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=0, late=False)), "the sink is full")
    scene.subscriptions.append([("b", "x = 1")])
    assert repin_batch(scene.checkpoint, scene.subscriptions, scene.table).version == 2
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=0, late=True)), "the sink is full")
    assert scene.matches() == {0: [(0, "a"), (0, "b")]}
    with pytest.raises(StreamError, match=r"batch 0 is done: TableSink\(.*\) has it; pass it over"):
        repin_batch(scene.checkpoint, scene.subscriptions, str(scene.table.path))
    scene.run()
    with pytest.raises(StreamError, match="nothing is pending"):
        repin_batch(scene.checkpoint, scene.subscriptions, scene.table)


def test_what_is_no_checkpoint_has_no_status(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="is no checkpoint of a stream"):
        stream_status(tmp_path)


# ---------------------------------------------------------------- whose checkpoint, and where matches go


def test_folders_of_a_stream_lie_apart(scene: Scene, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for options in (
        {"sink": TableSink(out), "rejects": out},
        {"sink": TableSink(out), "rejects": out / "rejects"},
        {"sink": TableSink(scene.checkpoint)},
        {"sink": TableSink(scene.checkpoint.parent)},
        {"sink": TableSink(scene.subscriptions.folder.child("matches"))},
    ):
        with pytest.raises(ArgumentError, match=r"are one folder|lie in each other"):
            scene.start(on_error="collect" if "rejects" in options else "raise", **options)
    assert not out.exists()
    assert not scene.checkpoint.exists()


def test_a_checkpoint_goes_on_with_the_subscriptions_it_began_with(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    other = Subscriptions.create(tmp_path / "others")
    other.append([("stranger", "x > 1")])
    mine, scene.subscriptions = scene.subscriptions, other
    scene.arrive((2, 5))
    with pytest.raises(StreamError, match=r"is that of a stream of the subscriptions in .*, and these are others"):
        scene.start()
    scene.subscriptions = mine
    scene.run()
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")]}


def test_from_another_output_on_batches_go_there(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    scene.arrive((2, 5))
    other = TableSink(tmp_path / "elsewhere")
    scene.run(sink=other)
    assert scene.matches() == {0: [(1, "a")]}
    assert other.read(scene.spark).collect() == [(2, "a", 1)]
    assert json.loads((scene.checkpoint / "harken" / "output.json").read_text())["place"] == str(other.path)


def test_a_database_that_cannot_be_reached_is_told_before_the_stream_begins(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    with pytest.raises(DatabaseError, match="unable to open"):
        scene.start(sink=DatabaseSink(f"sqlite:///{tmp_path}/missing/x.db"))
    scene.run()
    assert scene.matches() == {0: [(1, "a")]}


def test_a_batch_is_not_repinned_for_another_output(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    for name in ("0", ".0.crc"):
        (scene.checkpoint / "spark" / "commits" / name).unlink()
    with pytest.raises(StreamError, match=r"went to .* so far, not to"):
        repin_batch(scene.checkpoint, scene.subscriptions, tmp_path / "typo")


def test_what_a_sink_cannot_take_is_told_before_the_stream_begins(scene: Scene, tmp_path: Path) -> None:
    database = DatabaseSink(f"sqlite:///{tmp_path}/x.db")
    for said, options in {
        "takes only the ids, not x": {"sink": database, "keep": ["x"]},
        "needs a column 'subscription'": {"sink": database, "how": "grouped"},
        "takes the columns 'x' and 'X' for one": {
            "keep": ["x", "X"],
            "events": scene.events("id int, x int, X int"),
        },
    }.items():
        with pytest.raises((SinkError, EventError), match=said):
            scene.start(**options)
    with pytest.raises(ArgumentTypeError, match="subscriptions is Subscriptions, found str"):
        match_stream(scene.events(), "subscriptions", tmp_path / "out", checkpoint=tmp_path / "c")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="or has a trigger, not both"):
        match_stream(
            scene.events(),
            scene.subscriptions,
            tmp_path / "out",
            checkpoint=tmp_path / "c",
            trigger="1 second",
            available_now=True,
        )
