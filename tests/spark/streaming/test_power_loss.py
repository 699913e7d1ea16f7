"""What Spark notes of a stream is on disk some time later: a loss of power leaves files empty, or cut off."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harken.errors import StreamError
from harken.spark import (
    EventValidity,
    Subscriptions,
    TableSink,
    repin_batch,
    replan_batch,
    skip_batch,
    stream_status,
)
from harken.spark.storage import folder_at
from harken.spark.streaming.checkpoints import Checkpoint
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.spark_half import SparkHalf
from tests.spark.streaming.scenes import HOUR, FailsOnce, Scene, crash, fail_to

LEFT = {
    "empty": lambda said: b"",
    "zeros": lambda said: bytes(len(said)),
    "cut": lambda said: said[: len(said) // 2],
}


def tear(scene: Scene, name: str, left: str = "empty") -> None:
    """Have Spark find a file as a loss of power may leave it."""
    path = scene.checkpoint / "spark" / name
    said = path.read_bytes() if path.exists() else b"v1\n{}"
    path.write_bytes(LEFT[left](said))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def fail_once(scene: Scene, batch: int) -> None:
    """Have a batch planned and decided, and nothing of it written."""
    fail_to(lambda: scene.run(sink=FailsOnce(scene.table, batch=batch, late=False)), "is full")


@pytest.fixture
def begun(scene: Scene) -> Scene:
    """A stream that has done one batch."""
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    scene.run()
    return scene


@pytest.mark.parametrize("left", LEFT)
def test_a_batch_whose_plan_is_torn_is_planned_anew(begun: Scene, left: str) -> None:
    begun.arrive((1, 1))
    fail_once(begun, 1)
    tear(begun, "offsets/1", left)
    with pytest.raises(StreamError, match=r"has lost its file of batch 1 .*have it planned anew"):
        begun.start()
    with pytest.raises(StreamError, match=r"has lost its file of batch 1.* have it planned anew"):
        skip_batch(begun.checkpoint, reason="it is torn")
    assert replan_batch(begun.checkpoint, begun.table) == 1
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")]}


@pytest.mark.parametrize("left", LEFT)
def test_a_batch_that_is_not_known_to_be_done_any_more_is_repeated(begun: Scene, left: str) -> None:
    tear(begun, "commits/0", left)
    assert "batch 0 is pending" in str(stream_status(begun.checkpoint))
    begun.arrive((1, 1))
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")]}


def test_a_torn_plan_beyond_the_one_that_is_made_anew_goes_too(begun: Scene) -> None:
    begun.arrive((1, 1))
    fail_once(begun, 1)
    for batch in (1, 2):
        tear(begun, f"offsets/{batch}")
    assert replan_batch(begun.checkpoint, begun.table) == 1
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")]}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("is_planned", [False, True])
def test_a_batch_whose_files_are_forgotten_is_planned_anew_unless_it_never_was(
    begun: Scene, is_planned: bool, left: str
) -> None:
    begun.arrive((1, 1))
    fail_once(begun, 1)
    tear(begun, "sources/0/1", left)
    if is_planned:
        with pytest.raises(StreamError, match=r"has lost its file of batch 1 .*have it planned anew"):
            begun.start()
        assert "Spark has lost its file of it" in str(stream_status(begun.checkpoint))
    else:
        tear(begun, "offsets/1")
    assert replan_batch(begun.checkpoint, begun.table) == 1
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")]}


def test_files_that_no_batch_was_planned_of_are_seen_again(begun: Scene) -> None:
    tear(begun, "sources/0/1")
    begun.arrive((1, 1))
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")]}


def test_a_batch_whose_files_are_forgotten_and_that_is_done_is_not_told_again(begun: Scene) -> None:
    tear(begun, "sources/0/0")
    with pytest.raises(StreamError, match="has lost its file of batch 0"):
        begun.start()
    with pytest.raises(StreamError, match="matches has batch 0, and its events would come again"):
        replan_batch(begun.checkpoint, begun.table)


def planned_anew_and_not_decided(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.arrive((1, 1))
    fail_once(scene, 1)
    tear(scene, "offsets/1")
    replan_batch(scene.checkpoint, scene.table)
    with monkeypatch.context() as changed:
        changed.setattr(Ledger, "enter", crash)
        fail_to(scene.run)


def test_a_batch_that_was_planned_anew_can_be_passed_over(begun: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    planned_anew_and_not_decided(begun, monkeypatch)
    assert skip_batch(begun.checkpoint, reason="it fails again") == 1
    assert "batch 1 is pending, and will be passed over" in str(stream_status(begun.checkpoint))
    begun.run()
    assert begun.matches() == {0: [(0, "a")]}


def test_a_batch_that_was_planned_anew_can_be_repinned(begun: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    planned_anew_and_not_decided(begun, monkeypatch)
    version = begun.subscriptions.version
    begun.subscriptions.append([("late", "x = 1")])
    repin_batch(begun.checkpoint, begun.subscriptions, begun.table, version=version)
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")]}


def test_a_batch_that_comes_out_after_all_can_be_passed_over(
    begun: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned_anew_and_not_decided(begun, monkeypatch)
    assert "batch 1 is pending" in str(stream_status(begun.checkpoint))
    late = begun.spark.sql("select 1L event, 'a' subscription")
    begun.table.write(1, late, stream_status(begun.checkpoint).query)
    fail_to(begun.run, "has batch 1, which .* has not begun since it was planned anew; pass it over")
    assert skip_batch(begun.checkpoint, reason="it is there") == 1
    begun.arrive((2, 1))
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")], 2: [(2, "a")]}


def test_a_batch_that_went_to_another_output_is_not_told_in_the_new_one(
    begun: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun.arrive((1, 1))
    other = TableSink(tmp_path / "other")
    with monkeypatch.context() as changed:
        changed.setattr(Ledger, "enter", crash)
        fail_to(lambda: begun.run(sink=other))
    for batch in (0, 1):
        tear(begun, f"offsets/{batch}")
    with pytest.raises(StreamError, match="batch 0 went to another output than those from 1 on, and its events"):
        replan_batch(begun.checkpoint, other)


def test_rejects_in_the_checkpoint_move_with_it(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema={"x": "int"})
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((0, 1))
    sink = FailsOnce(scene.table, batch=0, late=False)
    fail_to(lambda: scene.run(sink=sink, on_error="collect"), "is full")
    scene.checkpoint = scene.checkpoint.rename(tmp_path / "moved")
    scene.run(on_error="collect")
    assert scene.matches() == {0: [(0, "a")]}


def test_a_ledger_that_is_older_than_what_spark_has_done_is_told(scene: Scene, tmp_path: Path) -> None:
    """Kept events would be forgotten, and nobody had subscribed, so that no output tells."""
    validity = EventValidity(lasts=HOUR)
    scene.arrive((0, 1))
    scene.run(validity=validity)
    shutil.copytree(scene.checkpoint / "harken", tmp_path / "copy")
    scene.arrive((1, 1))
    scene.run(validity=validity)
    shutil.rmtree(scene.checkpoint / "harken")
    shutil.copytree(tmp_path / "copy", scene.checkpoint / "harken")
    with pytest.raises(
        StreamError, match=r"Spark has done batch 1, and the ledger .* does not know it: .* is an old"
    ):
        scene.start(validity=validity)


def test_a_stream_that_runs_has_lost_nothing(begun: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody looks, it plans and decides a batch."""
    listed = SparkHalf.planned.func  # type: ignore[attr-defined]

    def go_on(half: SparkHalf) -> object:
        found = listed(half)
        begun.ledger.decide(1, begun.subscriptions.version)
        return found

    monkeypatch.setattr(SparkHalf, "planned", property(go_on))
    assert Checkpoint(begun.checkpoint).lost() is None


@pytest.mark.parametrize(
    ("said", "is_whole"),
    [
        (b"v1\n{}\n-", True),
        (b'v1\n{"a":1}\n{"logOffset":3}', True),
        (b"v1\n{}\n7", True),  # as that of rates
        (b'v2\n{}\n0:{"logOffset":0}', True),  # as later releases of Spark may write it
        (b"v9\nwhatever", True),
        (b"v1\n{}", True),
        (b"v1\n", False),
        (b"v1\n{}\n{", False),
        (b"v1\n{}\n\0\0\0", False),
        (b"v2\n{}\n\0\0\0", False),
        (b"v1\n{}\n\0\0\0\n{}", False),
        (b"\0\0\0", False),
        (b"{}\n{}\n{}", False),
    ],
)
def test_what_can_be_read_is_whole(tmp_path: Path, said: bytes, is_whole: bool) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_bytes(b"v1\n{}\n{}")
    (tmp_path / "offsets" / "5").write_bytes(said)
    assert SparkHalf(folder_at(tmp_path)).planned.torn == ([] if is_whole else [5])


@pytest.mark.parametrize("said", [b'\0v1\n{"topic":{"0":5}}', b"{}", b"v1\n1700000000000"])
def test_what_sources_of_another_kind_have_noted_is_left_to_them(tmp_path: Path, said: bytes) -> None:
    for name in ("offsets", "sources/0", "sources/named"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "offsets" / "4").write_bytes(b'v1\n{}\n{"topic":{"0":5}}')
    (tmp_path / "sources" / "0" / "0").write_bytes(said)
    (tmp_path / "sources" / "named" / "0").write_bytes(b"")
    half = SparkHalf(folder_at(tmp_path))
    half.mend()
    assert half.unreadable == [f"{tmp_path}/sources/named/0"]
    assert not half.misses_files
    assert (tmp_path / "sources" / "named" / "0").exists()


def test_notes_that_were_put_together_are_the_first_that_are_read(tmp_path: Path) -> None:
    for name in ("offsets", "sources/0"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "offsets" / "4").write_bytes(b'v1\n{}\n{"logOffset":11}')
    for name, said in {"8": b"", "9.compact": b"v1\n{}", "10": b"", "11": b"v1\n{}", "12": b""}.items():
        (tmp_path / "sources" / "0" / name).write_bytes(said)
    half = SparkHalf(folder_at(tmp_path))
    assert half.unreadable == [f"{tmp_path}/sources/0/10"]
    half.mend()
    assert sorted(each.name for each in (tmp_path / "sources" / "0").iterdir()) == ["10", "11", "8", "9.compact"]


def test_a_batch_whose_list_of_files_is_gone_is_planned_anew(begun: Scene) -> None:
    begun.arrive((1, 1))
    fail_once(begun, 1)
    for name in ("1", ".1.crc"):
        (begun.checkpoint / "spark" / "sources" / "0" / name).unlink(missing_ok=True)
    with pytest.raises(StreamError, match=r"has lost its file of batch 1 .*have it planned anew"):
        begun.start()
    assert replan_batch(begun.checkpoint, begun.table) == 1
    begun.run()
    assert begun.matches() == {0: [(0, "a")], 1: [(1, "a")]}


@pytest.mark.parametrize("name", ["offsets/0", "sources/0/0"])
def test_what_nobody_can_mend_is_told(begun: Scene, name: str) -> None:
    begun.arrive((1, 1))
    begun.run()
    tear(begun, name)
    with pytest.raises(StreamError, match=rf"Spark cannot read what it noted in .*{name}; start with a new"):
        begun.start()
