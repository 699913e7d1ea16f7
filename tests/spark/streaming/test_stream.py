"""Every event of a stream meets the subscriptions of its batch once, whatever fails or changes meanwhile."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harken import Engine
from harken.errors import (
    ArgumentTypeError,
    ConcurrentChangeError,
    EventError,
)
from harken.spark import (
    DatabaseSink,
    EventValidity,
    Subscriptions,
)
from harken.spark.index import building
from harken.spark.index import index as index_room
from harken.spark.index.index import Index, build_index
from harken.spark.subscriptions.versions import VersionLog
from tests.spark.streaming.scenes import HOUR, After, FailsOnce, Scene, crash, fail_to

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


def test_a_stream_that_goes_on_rehearses_changes_with_its_first_batch(scene: Scene, monkeypatch) -> None:
    rehearsed: list[str] = []
    monkeypatch.setattr(building, "_build_for_nothing", lambda algorithm, options: rehearsed.append(algorithm))
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run()
    assert not rehearsed  # it ends when all there is is done
    scene.arrive((2, 1))
    scene.arrive((3, 1))
    query = scene.start(trigger="0 seconds")
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert rehearsed == ["dynamic"]
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")], 2: [(3, "a")]}
