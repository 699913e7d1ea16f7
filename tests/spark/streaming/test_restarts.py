"""A stream that is started again otherwise than it was, or with a checkpoint that is not what it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from harken.errors import ArgumentTypeError, SinkError, StreamError
from harken.spark import (
    EventValidity,
    Query,
    Subscriptions,
    TableSink,
    repin_batch,
    replan_batch,
    skip_batch,
    stream_status,
)
from tests.spark.streaming.scenes import HOUR, MINUTE, NOON, After, FailsOnce, Scene, fail_to

VALIDITY = EventValidity(lasts=HOUR)


def older(folder: Path, copy: Path) -> None:
    """Have a folder be as it was when it was copied."""
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)


def test_a_checkpoint_that_is_older_than_its_output_loses_nothing_silently(scene: Scene, tmp_path: Path) -> None:
    """Restored from a copy, it would begin a batch anew, of other events, which the output takes for known."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run()
    shutil.copytree(scene.checkpoint, tmp_path / "copy")
    scene.arrive((1, 1))
    scene.run()
    older(scene.checkpoint, tmp_path / "copy")
    with pytest.raises(
        StreamError, match=r"has batch 1, which the checkpoint .* has not begun: it is an older copy"
    ):
        scene.start()
    shutil.rmtree(scene.table.path / "batch=1")  # type: ignore[operator]
    scene.arrive((2, 1))
    scene.run()
    assert scene.matches() == {0: [(0, "a")], 1: [(1, "a")], 2: [(2, "a")]}


def test_an_older_copy_is_told_though_batches_are_missing_in_the_output(scene: Scene, tmp_path: Path) -> None:
    scene.arrive((0, 1))
    scene.run()
    shutil.copytree(scene.checkpoint, tmp_path / "copy")
    scene.arrive((1, 1))  # no subscription has ever been there, and nothing is written
    scene.run()
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((2, 1))
    scene.run()
    assert scene.matches() == {2: [(2, "a")]}
    older(scene.checkpoint, tmp_path / "copy")
    with pytest.raises(StreamError, match=r"has batch 2, which the checkpoint .* has not begun"):
        scene.start()


def test_an_older_copy_is_told_by_the_rejects_too(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    aside = tmp_path / "aside"
    scene.run(on_error="collect", rejects=aside)
    (aside / "batch=1").mkdir(parents=True)
    (aside / ".query").write_bytes((scene.table.path / ".query").read_bytes())  # type: ignore[operator]
    with pytest.raises(StreamError, match=r"aside has batch 1, which the checkpoint .* has not begun"):
        scene.start(on_error="collect", rejects=aside)


def test_a_half_of_a_checkpoint_that_is_older_than_the_other_is_told(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run()
    shutil.copytree(scene.checkpoint / "spark", tmp_path / "copy")
    scene.arrive((1, 1))
    scene.arrive((2, 1))
    scene.run()
    older(scene.checkpoint / "spark", tmp_path / "copy")
    with pytest.raises(
        StreamError, match=r"the ledger in .* knows batch 2, and Spark's .* is an older copy; .*put$"
    ):
        scene.start()
    with pytest.raises(StreamError, match=r"nothing in .* is to be planned anew"):
        replan_batch(scene.checkpoint, scene.table)


def lose_plan(scene: Scene, batch: int, *, wholly: bool = True) -> None:
    """Have Spark not know that it planned a batch, as after a loss of power, which may leave an empty file."""
    for name in (str(batch), f".{batch}.crc"):
        (scene.checkpoint / "spark" / "offsets" / name).unlink(missing_ok=True)
    if not wholly:
        (scene.checkpoint / "spark" / "offsets" / str(batch)).touch()


@pytest.mark.parametrize("is_done", [False, True])
def test_a_batch_that_spark_lost_is_planned_anew(scene: Scene, is_done: bool) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run()
    scene.arrive((1, 1))
    if is_done:
        scene.run()
    else:
        fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=1, late=False)), "is full")
        skip_batch(scene.checkpoint, reason="it fails")
    lose_plan(scene, 1, wholly=is_done)
    with pytest.raises(StreamError, match=r"has lost its file of batch 1 .*have it planned anew"):
        scene.start()
    with pytest.raises(StreamError, match=r"has lost its file of batch 1.* have it planned anew"):
        skip_batch(scene.checkpoint, reason="it is gone")
    assert "batch 1 was planned, and Spark has lost" in str(stream_status(scene.checkpoint))
    if is_done:
        with pytest.raises(StreamError, match="matches has batch 1, and its events would come again"):
            replan_batch(scene.checkpoint, scene.table)
        shutil.rmtree(scene.table.path / "batch=1")  # type: ignore[operator]
    assert replan_batch(scene.checkpoint, scene.table) == 1
    scene.arrive((2, 1))
    scene.run()
    assert sorted(row["event"] for row in scene.rows()) == [0, 1, 2]
    assert stream_status(scene.checkpoint).skipped == ()
    with pytest.raises(StreamError, match=r"nothing in .* is to be planned anew"):
        replan_batch(scene.checkpoint, scene.table)


def test_what_was_kept_of_a_batch_that_is_planned_anew_does_not_count(scene: Scene) -> None:
    """A subscription that comes later meets the events that the batch has now, each once."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run(validity=VALIDITY)
    lose_plan(scene, 0)
    shutil.rmtree(scene.checkpoint / "spark" / "sources")
    (scene.arrivals / "0.json").unlink()
    shutil.rmtree(scene.table.path / "batch=0")  # type: ignore[operator]
    replan_batch(scene.checkpoint, scene.table)
    scene.arrive((1, 1), (2, 1))
    scene.run(validity=VALIDITY)
    scene.subscriptions.append([("late", "x = 1")])
    scene.run(validity=VALIDITY)
    assert scene.matches() == {0: [(1, "a"), (2, "a")], 1: [(1, "late"), (2, "late")]}


@pytest.mark.parametrize("is_said", [False, True])
def test_a_batch_is_planned_anew_only_if_neither_output_nor_rejects_of_the_stream_have_it(
    scene: Scene, tmp_path: Path, is_said: bool
) -> None:
    rejects = tmp_path / "aside" if is_said else None
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema={"x": "int"})  # only then there are any
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    sink = FailsOnce(scene.table, batch=0, late=False)
    fail_to(lambda: scene.run(sink=sink, on_error="collect", rejects=rejects), "is full")
    lose_plan(scene, 0)
    with pytest.raises(StreamError, match=r"matches .* went to .*matches so far, not to .*elsewhere"):
        replan_batch(scene.checkpoint, tmp_path / "elsewhere", rejects=rejects)
    with pytest.raises(ArgumentTypeError, match="output"):
        replan_batch(scene.checkpoint, None)  # type: ignore[arg-type]
    if is_said:
        with pytest.raises(StreamError, match=r"rejects .* went to .*aside so far, not to .*rejects"):
            replan_batch(scene.checkpoint, scene.table)
    with pytest.raises(StreamError, match=r"(aside|rejects) has batch 0, and its events would come again"):
        replan_batch(scene.checkpoint, scene.table, rejects=rejects)
    if not is_said:
        (scene.checkpoint / "harken" / "output.json").unlink()
        with pytest.raises(StreamError, match="rejects has batch 0, and its events would come again"):
            replan_batch(scene.checkpoint, scene.table)
    shutil.rmtree((rejects or scene.checkpoint / "rejects") / "batch=0")
    assert replan_batch(scene.checkpoint, scene.table, rejects=rejects) == 0
    scene.run(on_error="collect", rejects=rejects)
    assert scene.matches() == {0: [(0, "a")]}


def test_a_batch_that_is_planned_anew_and_lost_again_is_refused_again(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    for _ in range(2):
        fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=0, late=False)), "is full")
        lose_plan(scene, 0)
        with pytest.raises(StreamError, match=r"has lost its file of batch 0"):
            scene.start()
        replan_batch(scene.checkpoint, scene.table)
    scene.table.write(
        0, scene.spark.sql("select 7L event, 'a' subscription"), stream_status(scene.checkpoint).query
    )
    fail_to(scene.run, "has batch 0, which the checkpoint .* has not begun")


def test_an_empty_plan_of_a_batch_that_nothing_was_decided_for_is_removed(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run()
    lose_plan(scene, 1, wholly=False)
    assert replan_batch(scene.checkpoint, scene.table) == 1
    scene.arrive((1, 1))
    scene.run()
    assert scene.matches() == {0: [(0, "a")], 1: [(1, "a")]}


def test_a_batch_that_is_planned_anew_meets_the_subscriptions_of_then(scene: Scene) -> None:
    """It may have events that came after they changed."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=0, late=False)), "is full")
    lose_plan(scene, 0)
    before = scene.ledger.entries()[-1]
    scene.subscriptions.append([("late", "x = 1")])
    replan_batch(scene.checkpoint, scene.table)
    assert "batch 0 will be planned anew" in str(stream_status(scene.checkpoint))
    scene.run()
    assert scene.matches() == {0: [(0, "a"), (0, "late")]}
    (after,) = scene.ledger.entries()
    assert after.at > before.at
    assert not after.anew


def test_of_two_plans_that_were_lost_none_is_offered_to_be_made_anew(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    for number in range(3):
        scene.arrive((number, 1))
    scene.run()
    for batch in (1, 2):
        lose_plan(scene, batch, wholly=False)
    with pytest.raises(StreamError, match=r"knows batch 2, and Spark's half does not"):
        scene.start()
    with pytest.raises(StreamError, match=r"nothing in .* is to be planned anew"):
        replan_batch(scene.checkpoint, scene.table)


def test_time_does_not_go_back_when_a_batch_is_planned_anew(scene: Scene) -> None:
    """What told how far it was has expired with the events that it was of."""
    validity = EventValidity(until="until", event_time="t")
    scene.arrive({"id": 0, "x": 1, "t": NOON, "until": NOON - MINUTE})
    scene.arrive({"id": 1, "x": 1, "t": NOON - HOUR, "until": NOON - HOUR + MINUTE})
    scene.run(validity=validity)  # nobody has ever subscribed, and no batch is written
    lose_plan(scene, 1)
    clock = scene.ledger.entries()[-1].clock
    assert clock == NOON
    replan_batch(scene.checkpoint, scene.table)
    scene.run(validity=validity)
    scene.subscriptions.append([("late", "x = 1")])
    scene.run(validity=validity)
    assert scene.ledger.entries()[-1].clock == NOON
    assert [pairs for pairs in scene.matches().values() if pairs] == []


def test_where_nobody_can_be_asked_a_batch_is_planned_anew_all_the_same(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run(sink=(sink := After(scene.table, {})))
    lose_plan(scene, 0)
    assert replan_batch(scene.checkpoint, sink) == 0
    scene.run(sink=sink)
    assert scene.matches() == {0: [(0, "a")]}


def test_what_is_written_beside_a_stream_has_numbers_that_it_never_has(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    past = scene.spark.sql("select -1L event, 'a' subscription")
    scene.table.write(-1, past)
    scene.arrive((0, 1))
    scene.run()
    with pytest.raises(SinkError, match=r"and this one, 7, is of no query; give .* a number below 0"):
        scene.table.write(7, past)
    scene.table.write(-2, past)
    scene.arrive((1, 1))
    scene.run()
    assert scene.matches() == {-2: [(-1, "a")], -1: [(-1, "a")], 0: [(0, "a")], 1: [(1, "a")]}


class Told(TableSink):
    """A table with a method of its own, by a name that could mean anything."""

    def latest(self) -> str:
        return "news"


def test_a_sink_is_asked_nothing_that_it_does_not_promise(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    for number in (0, 1):
        scene.arrive((number, 1))
        scene.run(sink=Told(scene.table.folder))
    assert scene.matches() == {0: [(0, "a")], 1: [(1, "a")]}


class Overtaken(TableSink):
    """A table that a stream with a copy of the checkpoint writes to as well."""

    def write(self, batch: int, matches: DataFrame, query: Query | None = None) -> None:
        super().write(batch, matches, query)
        if batch == 0:
            super().write(1, matches, query)


def test_of_two_streams_with_copies_of_a_checkpoint_the_slower_one_is_stopped(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.arrive((1, 1))
    fail_to(lambda: scene.run(sink=Overtaken(scene.table.folder)), "has batch 1, which the checkpoint .* has not")
    assert scene.ledger.entry(1) is None


@pytest.mark.parametrize("before", [None, VALIDITY])
def test_a_stream_keeps_events_from_its_beginning_or_never(scene: Scene, before: EventValidity | None) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run(validity=before)
    after = VALIDITY if before is None else None
    said = "without" if before is None else "with"
    with pytest.raises(StreamError, match=f"was started {said} validity, and can only go on so; start with a new"):
        scene.start(validity=after)
    scene.arrive((1, 1))
    scene.run(validity=before)
    assert scene.matches() == {0: [(0, "a")], 1: [(1, "a")]}


def test_a_stream_that_was_released_goes_on_with_validity_after_a_batch_was_repinned(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=0, late=False), validity=VALIDITY), "is full")
    scene.subscriptions.release(stream_status(scene.checkpoint).query.id)
    repin_batch(scene.checkpoint, scene.subscriptions, scene.table)
    (reader,) = scene.subscriptions.readers()
    assert reader.follows
    scene.run(validity=VALIDITY)
    assert scene.matches() == {0: [(0, "a")]}


def test_columns_of_another_type_than_in_events_that_are_kept_are_told_at_the_start(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 5))
    scene.run(scene.events("id bigint, x int"), validity=VALIDITY)
    with pytest.raises(StreamError, match="are kept have int in the column 'x', and it would be date now"):
        scene.start(scene.events("id bigint, x date"), validity=VALIDITY)
    scene.subscriptions.append([("late", "x = 5")])
    scene.run(scene.events("id bigint, x bigint"), validity=VALIDITY)
    assert scene.matches() == {0: [], 1: [(0, "late")]}
