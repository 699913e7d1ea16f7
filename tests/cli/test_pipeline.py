"""`harken pipeline`, with Spark on two cores."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken.cli import jobs
from harken.spark import Subscriptions
from tests.cli.pipelines import MATCHES, apart, left_behind, pairs, pipeline, rows
from tests.cli.running import run

pytestmark = pytest.mark.usefixtures("spark")


# ---------------------------------------------------------------- files in, files out


def test_matches_are_those_of_harken_match(subscriptions: Path, events: Path, tmp_path: Path) -> None:
    out = tmp_path / "matches"
    done = pipeline(subscriptions, events, out)
    alone = run("match", "-s", subscriptions, "-e", events).out.splitlines()
    assert (done.status, done.out) == (0, "")
    assert pairs(out) == sorted(tuple(json.loads(line).values()) for line in alone) == MATCHES


def test_a_summary_tells_counts_times_and_the_plan(subscriptions: Path, events: Path, tmp_path: Path) -> None:
    lines = pipeline(subscriptions, events, tmp_path / "matches").err.splitlines()
    assert re.fullmatch(r"3 events, 3 matches, 0 rejects in [0-9.]+ s \([0-9,]+ events/s\)", lines[0])
    assert re.fullmatch(r"stages: (\w+ [0-9.]+ s(, )?){5}", lines[1])
    assert lines[2].startswith("plan: 3 subscriptions of version 1")
    assert len(lines) == 3


def test_compiled_subscriptions_are_matched_with_a_folder_of_parquet(tmp_path: Path) -> None:
    run("generate", "w1", "--subscriptions", 5_000, "--events", 600, "--out", tmp_path)
    folder, out = tmp_path / "events", tmp_path / "matches"
    folder.mkdir()
    whole = pq.read_table(tmp_path / "events.parquet")
    whole = whole.append_column("id", pa.array(range(len(whole))))
    pq.write_table(whole, tmp_path / "events.parquet")
    for at in range(3):
        pq.write_table(whole.slice(200 * at, 200), folder / f"{at}.parquet")
    assert pipeline(tmp_path / "subscriptions.parquet", folder, out, "--shards", 2).status == 0
    files = ("-s", tmp_path / "subscriptions.parquet", "-e", tmp_path / "events.parquet")
    alone = [json.loads(line) for line in run("match", *files).out.splitlines()]
    assert pairs(out) == sorted((each["event"], each["subscription"]) for each in alone) != []


def test_texts_in_parquet_are_compiled_and_rows_grouped_and_columns_kept(tmp_path: Path) -> None:
    wishes, offers, out = tmp_path / "wishes.parquet", tmp_path / "offers.csv", tmp_path / "matches"
    pq.write_table(pa.table({"id": [1, 2], "expression": ["price < 10", "price < 5"]}), wishes)
    offers.write_text('number,price,title\n7,3,"a ""new"" one, red"\n8,9,b\n9,11,c\n')
    done = pipeline(
        wishes, offers, out, "--event-id", "number", "--keep", "title", "--grouped", "--format", "json"
    )
    assert (done.status, "3 events, 3 matches" in done.err) == (0, True)
    found = [json.loads(line) for part in sorted(out.glob("part-*")) for line in part.read_text().splitlines()]
    assert [{**each, "subscriptions": sorted(each["subscriptions"])} for each in found] == [
        {"event": 7, "subscriptions": [1, 2], "title": 'a "new" one, red'},
        {"event": 8, "subscriptions": [1], "title": "b"},
    ]


def test_a_schema_gives_text_its_types_and_the_time_of_matching_can_be_given(tmp_path: Path) -> None:
    schema, subscriptions = tmp_path / "schema.json", tmp_path / "s.csv"
    schema.write_text('{"day": "date", "where": "point", "code": "string"}')
    subscriptions.write_text(
        "id,expression,valid_until\n"
        "day,day < DATE '2026-12-01',\n"
        'place,"where WITHIN BOX(0, 0, 5, 5)",\n'
        "code,code = '007',\n"
        "past,day IS NOT NULL,2020-06-01\n"
    )
    lines, cells = tmp_path / "e.jsonl", tmp_path / "e.csv"
    lines.write_text('{"id": 1, "day": "2026-11-15", "where": [1, 2], "code": "007"}\n')
    cells.write_text('id,day,where,code\n1,2026-11-15,"[1, 2]",007\n')
    for events in (lines, cells):
        out = tmp_path / f"matches of {events.name}"
        done = pipeline(subscriptions, events, out, "--schema", schema, "--at", "2020-05-01")
        assert done.status == 0, done.err
        assert pairs(out) == [(1, "code"), (1, "day"), (1, "past"), (1, "place")]


def test_a_file_without_events_gives_a_table_without_rows(subscriptions: Path, tmp_path: Path) -> None:
    events, out = tmp_path / "events.csv", tmp_path / "matches"
    events.write_text("id,price\n")
    done = pipeline(subscriptions, events, out)
    assert (done.status, "0 events, 0 matches" in done.err, pairs(out)) == (0, True, [])


# ---------------------------------------------------------------- rejects and errors


def test_rejects_are_counted_and_written(bad_subscriptions: Path, tmp_path: Path) -> None:
    events, out, rejects = tmp_path / "events.csv", tmp_path / "matches", tmp_path / "rejects"
    events.write_text("id,x,note\n1,1,a\n2,one,b\n3,1\n4,1,NaN\n5,2.5,c\n")
    schema = tmp_path / "schema.json"
    schema.write_text('{"x": "float"}')
    more = ("--on-error", "collect", "--rejects", rejects, "--schema", schema)
    done = pipeline(bad_subscriptions, events, out, *more)
    assert done.status == 0, done.err
    assert "5 events, 5 matches, 5 rejects" in done.err
    assert "rejects: 3 subscriptions, 2 events" in done.err
    assert pairs(out) == [(1, 1), (1, 5), (4, 1), (4, 5), (5, 5)]
    refused = rows(rejects / "subscriptions")
    assert sorted((each["place"].rpartition(":")[2], each["id"], each["line"]) for each in refused) == [
        ("2", "2", 2),
        ("4", None, None),
        ("5", "1", None),
    ]
    assert sorted(each["record"] for each in rows(rejects / "events")) == ["2,one,b", "3,1"]


def test_values_of_another_type_than_declared_are_rejected_and_otherwise_taken(
    tmp_path: Path,
) -> None:
    subscriptions, events = tmp_path / "s.jsonl", tmp_path / "events.parquet"
    subscriptions.write_text('{"id": "low", "expression": "seller.rating < 3"}\n')
    schema = tmp_path / "schema.json"
    schema.write_text('{"seller.rating": "float"}')
    seller = [{"rating": 1.0}, {"rating": float("nan")}, None]
    pq.write_table(pa.table({"n": [1, 2, 3], "seller": seller, "other": [float("nan")] * 3}), events)
    assert pipeline(subscriptions, events, tmp_path / "taken", "--event-id", "n").status == 0
    assert pairs(tmp_path / "taken") == [(1, "low")]
    stopped = pipeline(subscriptions, events, tmp_path / "none", "--event-id", "n", "--schema", schema)
    assert (stopped.status, (tmp_path / "none").exists()) == (2, False)
    assert "attribute 'seller.rating' is declared float, found NaN" in stopped.err
    out, rejects = tmp_path / "matches", tmp_path / "rejects"
    more = ("--event-id", "n", "--on-error", "collect", "--rejects", rejects, "--schema", schema)
    done = pipeline(subscriptions, events, out, *more)
    assert done.status == 0
    assert "rejects: 0 subscriptions, 1 events" in done.err
    assert pairs(out) == [(1, "low")]
    assert rows(rejects / "faults") == [
        {
            "event": 2,
            "attribute": "seller.rating",
            "reason": "attribute 'seller.rating' is declared float, found NaN",
            "value": "nan",
        }
    ]
    assert (rows(rejects / "events"), rows(rejects / "subscriptions")) == ([], [])


def test_a_bad_subscription_stops_the_run(bad_subscriptions: Path, events: Path, tmp_path: Path) -> None:
    done = pipeline(bad_subscriptions, events, tmp_path / "matches")
    assert (done.status, (tmp_path / "matches").exists()) == (2, False)
    assert f"error: 3 subscriptions are bad; the first: {bad_subscriptions}:4 - - not JSON" in done.err
    assert done.err.count("\n") == 1


def test_a_bad_subscription_in_parquet_stops_the_run(events: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "expression": ["x = 1", "x ="]}), path)
    done = pipeline(path, events, tmp_path / "matches")
    assert (done.status, (tmp_path / "matches").exists()) == (2, False)
    assert f"error: 1 subscriptions are bad; the first: {path} b 1:4 the expression ends too early" in done.err
    pq.write_table(pa.table({"id": ["a", "a"], "expression": ["x = 1", "x = 2"]}), path)
    assert "the id 'a' occurs twice" in pipeline(path, events, tmp_path / "matches").err
    pq.write_table(pa.table({"id": ["a"], "expression": ["x = 1"], "valid_til": ["x"]}), path)
    assert "no column 'valid_til'" in pipeline(path, events, tmp_path / "matches").err


def test_an_event_that_cannot_be_read_stops_the_run(subscriptions: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"id": 1, "price": 150}\n{"id": 2, "price": broken}\n')
    done = pipeline(subscriptions, events, tmp_path / "matches")
    assert (done.status, (tmp_path / "matches").exists(), done.err.count("\n")) == (2, False, 1)
    assert re.match(r"error: Spark says: .*events\.jsonl; Malformed records.*; --on-error collect", done.err)


def test_a_column_of_a_type_that_the_language_has_not_stops_nobody(subscriptions: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"id": 1, "price": [1, 2]}\n')
    done = pipeline(subscriptions, events, tmp_path / "matches")
    assert (done.status, (tmp_path / "matches").exists()) == (0, True)
    assert "'price' is array<bigint>, which is foreign" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--keep", "prize"], "error: events have no column 'prize'; did you mean 'price'?"),
        (["--shards", "0"], "error: Invalid value for --shards: a positive number or 'auto', found '0'"),
        (["--trigger", "1 second"], "error: Invalid value for --trigger: is for --stream"),
        (["--stream"], "error: Invalid value for --events: a stream follows a folder"),
        (["--once"], "error: Invalid value for --once: is for --stream"),
        (["--rejects", "there"], "error: Invalid value for --rejects: is for --on-error collect"),
        (["--conf", "nonsense"], "error: Invalid value for --conf: like spark.executor.memory=8g"),
        (["--events", "absent"], "error: absent: there is no such file or folder"),
        (["--subscriptions", "absent.csv"], "error: absent.csv: there is no such file or folder"),
        (["--output", "mysql://here"], "error: a database sink takes sqlite:// and postgresql://"),
        (
            ["--output", "sqlite:///m.db", "--grouped"],
            "error: Invalid value for --grouped: a database takes pairs",
        ),
        (["--output", "sqlite:///m.db", "--master", "spark://h:7077"], "error: Invalid value for --subscriptions"),
        (["--output", "postgresql://h/d", "--stream"], "error: Invalid value for --checkpoint: say where"),
    ],
)
def test_bad_options_are_errors(
    subscriptions: Path, events: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = pipeline(subscriptions, events, tmp_path / "matches", *arguments)
    assert (done.status, done.out, (tmp_path / "matches").exists()) == (2, "", False)
    assert done.err.startswith(said), done.err


def test_without_pyspark_the_error_names_the_extra(
    subscriptions: Path, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    done = pipeline(subscriptions, events, tmp_path / "matches")
    assert (done.status, done.err) == (2, "error: Spark needs the extra 'spark'; pip install 'harken[spark]'\n")


def test_what_is_there_is_not_overwritten(subscriptions: Path, events: Path, tmp_path: Path) -> None:
    done = pipeline(subscriptions, events, tmp_path)
    assert (done.status, done.err) == (2, f"error: {tmp_path} exists; remove it, or write somewhere else\n")


def test_the_help_says_where_types_come_from() -> None:
    said = " ".join(run("pipeline", "--help").out.split())
    for part in ("are inferred except where --schema declares them", "--checkpoint", "sqlite://", "--stream"):
        assert part in said


# ---------------------------------------------------------------- databases and folders of subscriptions


def test_runs_of_one_moment_have_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken.cli.jobs.time.time_ns", lambda: 1_800_000_000_000_000_123)
    numbers = {jobs._number() for _ in range(20)}
    assert len(numbers) > 15  # drawn out of a million
    assert all(-(2**63) <= number < 0 for number in numbers)


def test_a_database_gets_every_pair_once_however_often_it_is_run(
    subscriptions: Path, events: Path, tmp_path: Path
) -> None:
    file = tmp_path / "matches.db"
    for _ in range(2):
        done = pipeline(subscriptions, events, f"sqlite:///{file}", "--table", "heard")
        assert (done.status, "3 matches" in done.err) == (0, True)
    with sqlite3.connect(file) as database:
        found = database.execute("select event, subscription from heard order by 1, 2").fetchall()
        runs = database.execute("select count(*) from heard_batches").fetchall()
    database.close()
    assert (found, runs) == (MATCHES, [(2,)])


def test_a_database_wants_events_with_ids(subscriptions: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"price": 150}\n')
    done = pipeline(subscriptions, events, f"sqlite:///{tmp_path / 'matches.db'}")
    assert done.err == "error: a database knows events by their ids; name their column with --event-id\n"


def test_a_folder_of_subscriptions_keeps_its_index_and_its_types(tmp_path: Path) -> None:
    store = Subscriptions.create(tmp_path / "store", schema={"price": "float", "day": "date"})
    store.append([("low", "price < 10"), ("new", "day > DATE '2026-01-01'")])
    events = tmp_path / "events.csv"
    events.write_text("id,price,day\n1,5,2026-02-01\n")
    assert pipeline(store.path, events, tmp_path / "first").status == 0
    assert pairs(tmp_path / "first") == [(1, "low"), (1, "new")]
    store.delete(["low"])
    assert pipeline(store.path, events, tmp_path / "second").status == 0
    assert pairs(tmp_path / "second") == [(1, "new")]
    assert "2 shards" in pipeline(store.path, events, tmp_path / "third", "--shards", 2).err
    assert pairs(tmp_path / "third") == [(1, "new")]
    schema = tmp_path / "schema.json"
    schema.write_text('{"price": "int"}')
    done = pipeline(store.path, events, tmp_path / "fourth", "--schema", schema)
    assert (done.status, "was made with another schema; leave --schema out" in done.err) == (2, True)


# ---------------------------------------------------------------- in a process of its own


def test_a_run_says_only_its_summary_and_leaves_no_process(
    subscriptions: Path, events: Path, tmp_path: Path
) -> None:
    process = apart("-s", subscriptions.name, "-e", events.name, "-o", "matches", folder=tmp_path)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, left_behind(process.pid)) == (0, "", [])
    assert [line.partition(":")[0].split()[0] for line in err.splitlines()] == ["3", "stages", "plan"]
    assert pairs(tmp_path / "matches") == MATCHES


@pytest.mark.long
def test_an_error_in_a_task_is_one_line_and_leaves_nothing(subscriptions: Path, tmp_path: Path) -> None:
    folder, events = tmp_path / "there", tmp_path / "events.parquet"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1], "price": [float("nan")]}), events)
    schema = tmp_path / "schema.json"
    types = {"item": "string", "price": "float", "destination": "string", "colour": "string"}
    schema.write_text(json.dumps(types))
    process = apart("-s", subscriptions, "-e", events, "-o", "matches", "--schema", schema, folder=folder)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, left_behind(process.pid)) == (2, "", [])
    assert re.fullmatch(r"error: event 1: attribute 'price' is declared float, found NaN\n", err)
    assert list(folder.iterdir()) == []


def test_where_java_does_not_start_its_reason_is_shown(subscriptions: Path, events: Path, tmp_path: Path) -> None:
    more = ("--conf", "spark.driver.memory=plenty")
    process = apart("-s", subscriptions, "-e", events, "-o", "matches", *more, folder=tmp_path)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (2, "")
    assert "Invalid maximum heap size: -Xmxplenty" in err
    assert err.endswith("error: Spark says: Java gateway process exited before sending its port number\n")


@pytest.mark.long
def test_an_interrupted_stream_tells_what_it_did_and_leaves_no_process(
    subscriptions: Path, events: Path, tmp_path: Path
) -> None:
    incoming, out = tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    (incoming / "1.jsonl").write_text(events.read_text())
    process = apart("-s", subscriptions, "-e", incoming, "-o", out, "--stream", folder=tmp_path)
    deadline = time.monotonic() + 300
    done = tmp_path / "matches.checkpoint" / "spark" / "commits" / "0"
    while not done.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)  # Spark reports a batch just after it has noted its end
    # As a terminal does it: to all of its processes.
    os.killpg(process.pid, signal.SIGINT)
    said, err = process.communicate(timeout=120)
    assert (process.returncode, said, left_behind(process.pid)) == (130, "", [])
    assert err.startswith("3 events in 1 batches, 3 matches, 0 rejects")
    assert "Traceback" not in err
    assert pairs(out) == MATCHES
