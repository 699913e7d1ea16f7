"""What `harken pipeline` removes is what it wrote, and nothing of others; without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from harken.cli.jobs import Output, Streaming, _or_no_output
from harken.cli.streams import _check_continues
from harken.errors import OutputExistsError
from harken.spark.storage import folder_at
from harken.spark.streaming.retained_events import RetainedEvents


def job(folder: Path) -> SimpleNamespace:
    return SimpleNamespace(
        output=Output(str(folder / "matches")),
        rejects=str(folder / "rejects"),
        stream=Streaming(str(folder / "checkpoint"), None, once=False),
    )


def files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("precious")
    return folder


def test_a_job_whose_rejects_fail_leaves_neither_them_nor_an_output(tmp_path):
    files(tmp_path, "matches/part-0.parquet")
    with pytest.raises(FileExistsError), _or_no_output(job(tmp_path)):
        files(tmp_path, "rejects/subscriptions/part-0.parquet", "rejects/subscriptions/part-0.parquet/below")
    assert list(tmp_path.iterdir()) == []


def test_rejects_of_another_job_that_came_meanwhile_are_left_alone(tmp_path):
    files(tmp_path, "matches/part-0.parquet", "rejects/subscriptions/part-0.parquet")
    with pytest.raises(OutputExistsError, match="rejects exists"), _or_no_output(job(tmp_path)):
        pytest.fail("there is no folder for them")
    assert [path.name for path in tmp_path.rglob("*")] == ["rejects", "subscriptions", "part-0.parquet"]


OF_OTHERS = {
    "a store of subscriptions": ("versions/1.json", "segments/1.arrow"),
    "a table of another program": ("part-0.parquet", "_SUCCESS"),
    "a table with something beside": (".schema", "part-0.parquet", "thesis.tex"),
}


@pytest.mark.parametrize("names", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_stream_does_not_take_a_folder_of_others_for_rejects_of_an_earlier_run(names, tmp_path):
    files(tmp_path / "rejects" / "subscriptions", *names)
    with pytest.raises(OutputExistsError, match="rejects/subscriptions exists"):
        _check_continues(job(tmp_path))


def test_a_stream_knows_rejects_of_an_earlier_run_again(tmp_path):
    names = (".schema", "part-0.snappy.parquet", ".part-0.snappy.parquet.crc", "_SUCCESS", "._SUCCESS.crc")
    files(tmp_path / "rejects" / "subscriptions", *names)
    _check_continues(job(tmp_path))


def test_what_crashed_batches_left_goes_and_all_else_stays(tmp_path):
    stale = ("7-0123456789abcdef/events", "3-fedcba9876543210/part-0.parquet")
    files(tmp_path, *stale, ".git/config", "notes.txt")
    RetainedEvents(folder_at(tmp_path), None).expire(8, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "notes.txt"]
