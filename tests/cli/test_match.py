"""`harken match`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import run


def pairs(text: str) -> list[tuple[object, object]]:
    return [(line["event"], line["subscription"]) for line in map(json.loads, text.splitlines())]


def test_matches_go_to_standard_output_as_json_lines_and_a_summary_to_standard_error(
    subscriptions: Path, events: Path
) -> None:
    done = run("match", "--subscriptions", subscriptions, "--events", events)
    assert done.status == 0
    assert pairs(done.out) == [("e1", "ann"), ("e1", "bob"), ("e2", "bob")]
    assert "3 events, 3 matches in" in done.err
    assert "0 rejects; 3 subscriptions, algorithm" in done.err


def test_the_time_of_matching_can_be_given(subscriptions: Path, events: Path) -> None:
    done = run("match", "-s", subscriptions, "-e", events, "--at", "2020-06-01T12:00:00+02:00")
    assert ("e2", "old") in pairs(done.out)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_output_is_of_the_kind_its_ending_names(
    subscriptions: Path, events: Path, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"matches.{ending}"
    done = run("match", "-s", subscriptions, "-e", events, "-o", path)
    assert (done.status, done.out) == (0, "")
    if ending == "parquet":
        found = [tuple(row.values()) for row in pq.read_table(path).to_pylist()]
    elif ending == "csv":
        lines = path.read_text().splitlines()
        assert lines[0] == '"event","subscription"'
        found = [tuple(line.replace('"', "").split(",")) for line in lines[1:]]
    else:
        found = pairs(path.read_text())
    assert found == [("e1", "ann"), ("e1", "bob"), ("e2", "bob")]


def test_events_without_an_id_are_called_by_their_row(subscriptions: Path, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("item,price\nlens,7\ncamera,299\n")
    assert pairs(run("match", "-s", subscriptions, "-e", path).out) == [(1, "ann"), (1, "bob")]


def test_events_may_be_parquet_and_subscriptions_may_come_from_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"id": [70, 71], "x": [1, 2]}), path)
    done = run("match", "-s", "-", "-e", path, given='{"id": 5, "expression": "x > 1"}\n')
    assert pairs(done.out) == [(71, 5)]


def test_events_may_come_from_standard_input(subscriptions: Path) -> None:
    done = run("match", "-s", subscriptions, "-e", "-", given='{"price": 100}\n\n{"price": 500}\n')
    assert pairs(done.out) == [(0, "bob"), (2, "bob")]


def test_a_schema_gives_text_its_types(tmp_path: Path) -> None:
    schema, events, subscriptions = tmp_path / "schema.json", tmp_path / "e.jsonl", tmp_path / "s.csv"
    schema.write_text('{"day": "date", "where": "point"}')
    events.write_text('{"id": "e", "day": "2026-11-15", "where": [1, 2]}\n')
    subscriptions.write_text(
        "id,expression\nday,day < DATE '2026-12-01'\nplace,\"where WITHIN BOX(0, 0, 5, 5)\"\n"
    )
    assert pairs(run("match", "-s", subscriptions, "-e", events).out) == []
    done = run("match", "-s", subscriptions, "-e", events, "--schema", schema)
    assert pairs(done.out) == [("e", "day"), ("e", "place")]


@pytest.mark.parametrize("algorithm", ["auto", "reference"])
def test_the_algorithm_can_be_chosen(subscriptions: Path, events: Path, algorithm: str) -> None:
    done = run("match", "-s", subscriptions, "-e", events, "--algorithm", algorithm)
    assert len(pairs(done.out)) == 3


def test_bad_subscriptions_stop_the_run_unless_they_are_to_be_collected(
    bad_subscriptions: Path, tmp_path: Path
) -> None:
    events, output = tmp_path / "e.jsonl", tmp_path / "matches.jsonl"
    events.write_text('{"x": 1}\n')
    bad_subscriptions.write_text(bad_subscriptions.read_text().replace("not json\n", ""))
    stopped = run("match", "-s", bad_subscriptions, "-e", events, "-o", output)
    assert (stopped.status, stopped.out, output.exists()) == (2, "", False)
    assert f"error: 2 of 5 subscriptions are bad; the first: {bad_subscriptions}:2 2 2:" in stopped.err
    assert "--on-error collect leaves them out" in stopped.err


def test_collected_rejects_are_told_one_by_one_and_the_others_are_matched(
    bad_subscriptions: Path, tmp_path: Path
) -> None:
    events = tmp_path / "e.jsonl"
    events.write_text('{"x": 1}\nbroken\n{"x": []}\n{"id": "last", "x": 1}\n')
    schema = tmp_path / "schema.json"
    schema.write_text('{"x": "int"}')
    done = run("match", "-s", bad_subscriptions, "-e", events, "--on-error", "collect", "--schema", schema)
    assert done.status == 0
    assert pairs(done.out) == [(0, 1), (0, 5), ("last", 1), ("last", 5)]
    rejected = [line for line in done.err.splitlines() if line.startswith("rejected: ")]
    assert all(f":{place} " in line for place, line in zip((4, 2, 5), rejected, strict=False))
    assert "line 2: not JSON" in rejected[3]
    assert "line 3: attribute 'x' is declared int, found a list" in rejected[4]
    assert "5 rejects" in done.err


def test_values_that_the_language_has_no_type_for_stop_nobody(subscriptions: Path, tmp_path: Path) -> None:
    events = tmp_path / "e.jsonl"
    events.write_text('{"price": [1]}\n{"price": 200, "item": ["camera"]}\n{"price": 99999999999999999999}\n')
    done = run("match", "-s", subscriptions, "-e", events)
    assert (done.status, pairs(done.out)) == (0, [(1, "bob")])
    assert "3 events, 1 matches in" in done.err


def test_a_failed_run_leaves_the_old_output_and_nothing_else(subscriptions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    output = folder / "matches.csv"
    output.write_text("before")
    events = tmp_path / "e.jsonl"
    events.write_text('{"price": 200}\n' * 20_000 + "broken\n")
    done = run("match", "-s", subscriptions, "-e", events, "-o", output)
    assert (done.status, output.read_text(), list(folder.iterdir())) == (2, "before", [output])
    assert f"error: {events}, line 20001: not JSON" in done.err


def test_an_input_is_not_overwritten(subscriptions: Path, events: Path) -> None:
    before = events.read_text()
    done = run("match", "-s", subscriptions, "-e", events, "-o", events)
    assert (done.status, events.read_text()) == (2, before)
    assert "is also read from" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--algorithm", "refrence"],
            "error: no algorithm 'refrence'; there are auto, .*did you mean 'reference'",
        ),
        (["--at", "yesterday"], "error: Invalid value for --at: no such moment: 'yesterday'"),
        (["--on-error", "ignore"], "error: Invalid value for '--on-error'"),
        (["--schema", "absent.json"], "error: absent.json: there is no such file"),
        (["--subscriptions", "absent"], "error: absent: there is no such file or folder\n$"),
        (["--events", "absent.txt"], "error: absent.txt: there is no such file or folder\n$"),
        (["--output", "matches.txt"], "error: matches.txt: files ending in '.txt' are not known"),
        (["--subscriptions", "-", "--events", "-"], "only one of --subscriptions and --events can be '-'"),
        (["--nonsense"], "error: No such option: --nonsense"),
    ],
)
def test_bad_options_are_errors(subscriptions: Path, events: Path, arguments: list[str], said: str) -> None:
    import re

    done = run("match", "-s", subscriptions, "-e", events, *arguments)
    assert (done.status, done.out) == (2, "")
    assert re.search(said, done.err), done.err
