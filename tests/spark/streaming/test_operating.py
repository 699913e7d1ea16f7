"""A batch that cannot be done is passed over, or repeated with a later version."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from harken.errors import (
    StreamError,
    UnknownVersionError,
)
from harken.spark import (
    EventValidity,
    Subscriptions,
    repin_batch,
    skip_batch,
    stream_status,
)
from harken.spark.streaming.checkpoints import Checkpoint
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.retained_events import RetainedEvents
from harken.spark.subscriptions.readers import Readers
from tests.spark.streaming.scenes import HOUR, FailsOnce, Scene, crash, fail_to


def leave_pending(scene: Scene) -> None:
    """Have a first batch that fails before the output has it."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=0, late=False)), "the sink is full")


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


def test_what_a_batch_has_told_is_not_told_again_if_it_is_passed_over_then(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    validity = EventValidity(lasts=HOUR)
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run(validity=validity)
    scene.subscriptions.append([("b", "x = 1")])
    scene.arrive((1, 1))
    with monkeypatch.context() as crashing:
        crashing.setattr(RetainedEvents, "keep", crash)
        fail_to(lambda: scene.run(validity=validity))
    skip_batch(scene.checkpoint, reason="its events cannot be kept")
    scene.arrive((2, 1))
    scene.run(validity=validity)
    assert scene.matches() == {0: [(0, "a")], 1: [(0, "b"), (1, "a"), (1, "b")], 2: [(2, "a"), (2, "b")]}


def test_what_was_passed_over_is_recorded_though_that_was_interrupted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_pending(scene)
    with monkeypatch.context() as crashing:
        crashing.setattr(Checkpoint, "note_skipped", crash)
        with pytest.raises(RuntimeError, match="crash"):
            skip_batch(scene.checkpoint, reason="a test")
    scene.run()
    assert [(each.batch, each.reason) for each in stream_status(scene.checkpoint).skipped] == [(0, "a test")]


def test_a_batch_that_is_repeated_after_all_has_no_record_of_being_passed_over(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_pending(scene)
    skip_batch(scene.checkpoint, reason="a test")
    with monkeypatch.context() as crashing:
        crashing.setattr(Ledger, "repin", crash)
        with pytest.raises(RuntimeError, match="crash"):
            repin_batch(scene.checkpoint, scene.subscriptions, scene.table)
    assert "will be passed over" in str(stream_status(scene.checkpoint))
    repin_batch(scene.checkpoint, scene.subscriptions, scene.table)
    scene.run()
    assert scene.matches() == {0: [(0, "a")]}
    assert stream_status(scene.checkpoint).skipped == ()


def test_a_version_that_a_batch_is_to_be_repeated_with_is_kept(scene: Scene) -> None:
    leave_pending(scene)
    scene.subscriptions.append([("b", "x = 1")])
    repin_batch(scene.checkpoint, scene.subscriptions, scene.table)
    for number in range(12):
        scene.subscriptions.append([(f"n{number}", "x = 9")])
    scene.subscriptions.compact()
    scene.subscriptions.vacuum(keep=1, grace=timedelta(0))
    scene.run()
    assert scene.matches() == {0: [(0, "a"), (0, "b")]}


def test_a_later_reason_counts_and_drafts_do_not(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_pending(scene)
    skip_batch(scene.checkpoint, reason="one")
    with monkeypatch.context() as crashing:
        crashing.setattr(Checkpoint, "note_skipped", crash)
        with pytest.raises(RuntimeError, match="crash"):
            skip_batch(scene.checkpoint, reason="another")
    scene.run()
    (scene.checkpoint / "harken" / "skipped" / ".draft.json").write_text("{")
    assert [each.reason for each in stream_status(scene.checkpoint).skipped] == ["another"]


@pytest.mark.parametrize("name", ["ledger", "skipped"])
def test_damaged_records_of_a_batch_are_told_with_their_place(scene: Scene, name: str) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run()
    folder = scene.checkpoint / "harken" / name
    folder.mkdir(exist_ok=True)
    (folder / f"{0:020d}.json").write_text("{}")
    with pytest.raises(StreamError, match=f"harken/{name}"):
        stream_status(scene.checkpoint)


def test_a_batch_whose_version_is_gone_is_repeated_with_a_later_one(scene: Scene) -> None:
    leave_pending(scene)
    scene.subscriptions.append([("b", "x = 1")])
    shutil.rmtree(scene.subscriptions.folder.child("index").path)  # type: ignore[arg-type]
    (scene.subscriptions.folder.child("versions").path / "00000000000000000001.json").unlink()  # type: ignore[operator]
    with pytest.raises(UnknownVersionError, match="has no version 1"):
        scene.start()
    with pytest.raises(UnknownVersionError, match="has no version 9"):
        repin_batch(scene.checkpoint, scene.subscriptions, scene.table, version=9)


def test_a_batch_can_be_repeated_with_a_later_version_until_the_output_has_it(scene: Scene) -> None:
    leave_pending(scene)
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


def test_a_batch_is_not_repeated_with_a_version_of_other_subscriptions(scene: Scene, tmp_path: Path) -> None:
    leave_pending(scene)
    other = Subscriptions.create(tmp_path / "others")
    other.append([("b", "x = 1")])
    with pytest.raises(StreamError, match=r"is that of a stream of the subscriptions in .*, and these are others"):
        repin_batch(scene.checkpoint, other, scene.table)
    scene.run()
    assert scene.matches() == {0: [(0, "a")]}


def test_a_version_is_kept_from_before_a_batch_is_to_be_matched_with_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is killed between the two notes finds it again, however long that was ago."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run()
    scene.subscriptions.append([("b", "x = 1")])
    scene.arrive((1, 1))

    with monkeypatch.context() as patched:
        patched.setattr(Readers, "note", crash)
        fail_to(scene.run)
    for number in range(12):
        scene.subscriptions.append([(f"n{number}", "x = 9")])
    scene.subscriptions.compact()
    scene.subscriptions.vacuum(keep=1, grace=timedelta(0))
    scene.run()
    assert scene.matches() == {0: [(0, "a")], 1: [(1, "a"), (1, "b")]}
