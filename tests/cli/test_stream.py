"""`harken stream` tells where a stream is, without Spark, and has it go on past a batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harken.cli.streams import CountingSink
from harken.errors import SinkError
from harken.spark import Subscriptions, TableSink
from harken.spark.streaming.checkpoints import Checkpoint
from harken.spark.streaming.sinks.contract import Counts, Tabular
from tests.cli.running import run


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Of a stream that has begun its second batch, and not ended it, as Spark and the ledger have it."""
    place = tmp_path / "checkpoint"
    for kind, numbers in (("offsets", (0, 1)), ("commits", (0,))):
        (place / "spark" / kind).mkdir(parents=True)
        for number in numbers:
            (place / "spark" / kind / str(number)).write_text("v1\n{}")
    (place / "spark" / "metadata").write_text(json.dumps({"id": "b1c9"}))
    ledger = Checkpoint(place).ledger
    ledger.decide(0, 1)
    ledger.decide(1, 2)
    return place


def test_a_batch_is_passed_over_and_the_status_tells(checkpoint: Path) -> None:
    before = run("stream", "status", checkpoint)
    assert f"query b1c9 of {checkpoint}\nbatch 1 began at" in before.out
    assert "with version 2\nbatch 1 is pending\n" in before.out
    assert run("stream", "skip", checkpoint, "--reason", "the file is gone").err == "batch 1 will be passed over\n"
    after = run("stream", "status", checkpoint).out
    assert "batch 1 is pending, and will be passed over" in after
    assert after.endswith(": the file is gone\n")


def test_a_batch_is_matched_with_a_later_version(checkpoint: Path, tmp_path: Path) -> None:
    store = Subscriptions.create(tmp_path / "subscriptions")
    for number in range(3):
        store.append([(number, "x = 1")])
    done = run("stream", "repin", checkpoint, "-s", tmp_path / "subscriptions", "-o", tmp_path / "matches")
    assert done.err == "batch 1 will be matched with version 3\n"
    entry = Checkpoint(checkpoint).ledger.entry(1)
    assert entry is not None
    assert entry.version == 3


def test_a_batch_that_spark_lost_is_planned_anew(checkpoint: Path, tmp_path: Path) -> None:
    lost = "stream", "replan", checkpoint, "-o", tmp_path / "matches"
    assert "nothing in" in run(*lost).err
    (checkpoint / "spark" / "offsets" / "1").unlink()
    assert run(*lost).err == "batch 1 will be planned anew\n"
    entry = Checkpoint(checkpoint).ledger.entry(1)
    assert entry is not None
    assert (entry.anew, entry.version) == (True, 2)


def test_a_batch_that_is_done_is_left_alone(checkpoint: Path) -> None:
    (checkpoint / "spark" / "commits" / "1").write_text("v1\n{}")
    done = run("stream", "skip", checkpoint, "--reason", "late")
    assert (done.status, done.err) == (2, f"error: nothing is pending in {checkpoint}: batch 1 is done\n")


def test_a_sink_that_counts_is_asked_what_the_other_can_be_asked(tmp_path: Path) -> None:
    sink = CountingSink(TableSink(tmp_path), None, frozenset())  # type: ignore[arg-type]
    assert isinstance(sink, Counts)
    (tmp_path / "batch=3").mkdir()
    assert sink.latest_batch() == 3
    assert isinstance(sink, Tabular)
    with pytest.raises(SinkError, match="files that are those of no stream"):
        sink.check_empty()
