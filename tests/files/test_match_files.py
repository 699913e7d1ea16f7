"""Matches are written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from harken.errors import InputFileError
from harken.files import write_matches

FIRST = (["a", "é"], pa.table({"event": [0, 1, 1], "subscription": ["s", "s", "t"]}))
SECOND = (["c"], pa.table({"event": [0], "subscription": ["t"]}))
PAIRS = [("a", "s"), ("é", "s"), ("é", "t"), ("c", "t")]


def read_back(path: Path) -> list[tuple[object, object]]:
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [(line["event"], line["subscription"]) for line in lines]
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.csv.read_csv(path)
    return [(row["event"], row["subscription"]) for row in table.to_pylist()]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_matches_are_written_chunk_by_chunk_in_every_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"matches.{ending}"
    path.write_text("what was there before")
    with write_matches(str(path)) as writer:
        writer.write(*FIRST)
        writer.write(*SECOND)
        assert path.read_text() == "what was there before"
    assert read_back(path) == PAIRS
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_run_that_fails_leaves_what_was_there_before(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"matches.{ending}"
    path.write_text("before")

    def interrupted() -> None:
        with write_matches(str(path)) as writer:
            writer.write(*FIRST)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_no_matches_at_all_make_a_file_without_rows(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"matches.{ending}"
    with write_matches(str(path)):
        pass
    assert read_back(path) == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("names", [[["a", 1]], [[1, "a"]], [["a", "b"], [0, 1]]])
def test_events_called_by_strings_and_by_integers_do_not_fit_one_column(
    tmp_path: Path, ending: str, names: list[list[str | int]]
) -> None:
    matches = pa.table({"event": [0, 1], "subscription": ["s", "s"]})

    def write() -> None:
        with write_matches(str(tmp_path / f"m.{ending}")) as writer:
            for chunk in names:
                writer.write(chunk, matches)

    with pytest.raises(InputFileError, match=r"some events are called by strings.*write \.jsonl"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    path = tmp_path / "m.jsonl"
    with write_matches(str(path)):
        pass
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target.jsonl")
    with write_matches(str(tmp_path / "link.jsonl")) as writer:
        writer.write(*SECOND)
    assert (tmp_path / "link.jsonl").is_symlink()
    assert read_back(tmp_path / "target.jsonl") == [("c", "t")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("m.txt", "'.txt' are not known"),
        ("absent/m.csv", "there is no such file or folder"),
        ("file/m.csv", "cannot be written: Not a directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputFileError, match=said), write_matches(str(tmp_path / name)):
        pass


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "m.jsonl")
    with pytest.raises(InputFileError, match=r"m\.jsonl: cannot be written: No space"), write_matches(path):
        raise OSError(28, "No space left on device")
