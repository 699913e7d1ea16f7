"""`harken pipeline --stream`: what comes later is matched as what came before."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.pipelines import MATCHES, pairs, pipeline, rows, stream
from tests.cli.running import Outcome, run

pytestmark = pytest.mark.usefixtures("spark")


def test_a_stream_collects_events_at_fault(tmp_path: Path) -> None:
    subscriptions, incoming, schema = tmp_path / "s.jsonl", tmp_path / "incoming", tmp_path / "schema.json"
    subscriptions.write_text('{"id": "low", "expression": "price < 3"}\n')
    schema.write_text('{"price": "float"}')
    incoming.mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3], "price": [1.0, float("nan"), 2.0]}), incoming / "a.parquet")
    out, rejects = tmp_path / "matches", tmp_path / "rejects"
    more = ("--on-error", "collect", "--rejects", rejects, "--schema", schema, "--stream", "--once")
    done = pipeline(subscriptions, incoming, out, *more)
    assert done.status == 0, done.err
    assert "rejects: 0 subscriptions, 1 events" in done.err
    assert pairs(out) == [(1, "low"), (3, "low")]
    assert [
        (each["event"], each["attribute"], each["value"]) for each in rows(rejects / "faults" / "batch=0")
    ] == [(2, "price", "nan")]


def test_a_stream_does_not_put_rejects_among_its_matches(subscriptions: Path, tmp_path: Path) -> None:
    incoming, out = tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    (incoming / "a.jsonl").write_text('{"id": 1, "price": 1}\n')
    done = pipeline(subscriptions, incoming, out, "--on-error", "collect", "--rejects", out, "--stream", "--once")
    assert done.status == 2
    assert "rejects and output lie in each other" in done.err


def test_a_stream_goes_on_with_new_files_only(subscriptions: Path, events: Path, tmp_path: Path) -> None:
    incoming, out = tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    (incoming / "1.jsonl").write_text(events.read_text())
    first = pipeline(subscriptions, incoming, out, "--stream", "--once")
    assert first.status == 0, first.err
    assert "3 events in 1 batches, 3 matches, 0 rejects" in first.err
    assert pairs(out) == MATCHES
    (incoming / "2.jsonl").write_text('{"id": "e4", "item": "camera", "price": 250}\n')
    second = pipeline(subscriptions, incoming, out, "--stream", "--once")
    assert "1 events in 1 batches, 2 matches, 0 rejects" in second.err
    assert pairs(out) == [*MATCHES, ("e4", "ann"), ("e4", "bob")]
    third = pipeline(subscriptions, incoming, out, "--stream", "--once")
    assert (third.status, "0 events in 0 batches, 0 matches" in third.err) == (0, True)
    # As if the last batch had been written, and the process killed before Spark took note.
    (tmp_path / "matches.checkpoint" / "spark" / "commits" / "1").unlink()
    again = pipeline(subscriptions, incoming, out, "--stream", "--once")
    assert again.status == 0, again.err
    assert "1 events in 1 batches, 2 matches" in again.err
    assert len(pairs(out)) == 5
    os.rename(out / "batch=0", out / "batch=-1")
    for name in ("0", ".0.crc", "1", ".1.crc"):
        (tmp_path / "matches.checkpoint" / "spark" / "offsets" / name).unlink(missing_ok=True)
    lost = pipeline(subscriptions, incoming, out, "--stream", "--once")
    assert "older copy" in lost.err, lost.err
    other = pipeline(subscriptions, incoming, out, "--stream", "--once", "--checkpoint", tmp_path / "other")
    assert (other.status, f"error: {out} exists" in other.err) == (2, True)


def test_files_of_long_ago_are_new_to_a_stream(subscriptions: Path, tmp_path: Path) -> None:
    """As copies that keep their times are: Spark passes over what is a week older than others."""
    incoming, out = tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    for name, days in enumerate((0, 8, 4_000)):
        file = incoming / f"{name}.jsonl"
        file.write_text(f'{{"id": "e{name}", "price": 150}}\n')
        os.utime(file, (time.time() - days * 86_400,) * 2)
        done = stream(subscriptions, incoming, out)
        assert done.status == 0, done.err
    assert pairs(out) == [("e0", "bob"), ("e1", "bob"), ("e2", "bob")]


def test_columns_are_known_as_soon_as_a_batch_came_out(subscriptions: Path, tmp_path: Path) -> None:
    incoming, out, keep = tmp_path / "incoming", tmp_path / "matches", ("--keep", "price")
    incoming.mkdir()
    (incoming / "1.jsonl").write_text('{"id": "e1", "price": 150}\n')
    assert stream(subscriptions, incoming, out, *keep).status == 0
    # As if the process had been killed when the first batch was written, before Spark took note.
    for name in ("0", ".0.crc"):
        (tmp_path / "matches.checkpoint" / "spark" / "commits" / name).unlink(missing_ok=True)
    (incoming / "2.jsonl").write_text('{"id": "e2", "price": "odd"}\n{"id": "e3", "price": 160}\n')
    done = stream(subscriptions, incoming, out, *keep, "--on-error", "collect")
    assert done.status == 0, done.err
    assert pairs(out) == [("e1", "bob"), ("e3", "bob")]


def test_what_cannot_be_read_is_passed_over_by_itself(subscriptions: Path, tmp_path: Path) -> None:
    """Both queries come to a damaged file, each in a batch of its own."""
    incoming, out, rejects = tmp_path / "incoming", tmp_path / "matches", tmp_path / "rejects"
    incoming.mkdir()

    def arrives(name: str) -> Path:
        pq.write_table(
            pa.table({"id": [name], "price": [150.0]}), incoming / f"{name}.parquet", compression="gzip"
        )
        return incoming / f"{name}.parquet"

    def goes_on() -> Outcome:
        return stream(subscriptions, incoming, out, "--on-error", "collect", "--rejects", rejects)

    def passed_over(*more: str) -> Outcome:
        return run("stream", "skip", f"{out}.checkpoint", "--reason", "damaged", *more)

    arrives("e1")
    assert goes_on().status == 0
    assert "nothing is pending" in passed_over("--unread").err
    damaged = arrives("e2")
    content = bytearray(damaged.read_bytes())
    content[4:60] = bytes(56)  # the footer is sound
    damaged.write_bytes(content)
    assert goes_on().status == 2
    assert "batch 1 will be passed over" in passed_over().err
    arrives("e3")
    stopped = goes_on()
    assert (stopped.status, "e2.parquet" in stopped.err) == (2, True)
    said = run("stream", "status", f"{out}.checkpoint").out
    assert said.endswith("of what cannot be read, batch 1 is pending\n")
    assert passed_over("--unread").err == "of what cannot be read, batch 1 will be passed over\n"
    done = goes_on()
    assert done.status == 0, done.err
    assert pairs(out) == [("e1", "bob"), ("e3", "bob")]


def test_a_file_that_would_make_text_of_numbers_does_not_change_a_stream(
    subscriptions: Path, tmp_path: Path
) -> None:
    incoming, out, schema = tmp_path / "incoming", tmp_path / "matches", tmp_path / "schema.json"
    incoming.mkdir()
    (incoming / "1.jsonl").write_text('{"id": 1, "price": 150}\n')
    assert stream(subscriptions, incoming, out).status == 0
    (incoming / "2.jsonl").write_text('{"id": 2, "price": "dear"}\n')
    (incoming / "3.jsonl").write_text('{"id": 3, "price": 150}\n')
    stopped = stream(subscriptions, incoming, out)
    assert stopped.status == 2
    assert "note: attribute 'price' holds numbers and strings" in stopped.err
    assert "warning: 'price' is read as number, as when the stream began, though it is string" in stopped.err
    collected = stream(subscriptions, incoming, out, "--on-error", "collect")
    assert "2 events in 1 batches, 1 matches, 1 rejects" in collected.err, collected.err
    assert pairs(out) == [(1, "bob"), (3, "bob")]
    schema.write_text('{"price": "float", "item": "string"}')
    (incoming / "4.jsonl").write_text('{"id": 4, "price": 149.5}\n')
    declared = stream(subscriptions, incoming, out, "--on-error", "collect", "--schema", schema)
    assert "1 events in 1 batches, 1 matches, 0 rejects" in declared.err, declared.err
    anew = stream(subscriptions, incoming, tmp_path / "anew")
    assert "warning: 'price' is string in the events and is compared with a number: never true" in anew.err


def wishes(folder: Path, **conditions: str) -> Path:
    """Subscriptions, by their ids."""
    file = folder / "wishes.jsonl"
    file.write_text("".join(json.dumps({"id": id, "expression": text}) + "\n" for id, text in conditions.items()))
    return file


def noted(file: Path) -> dict[str, object]:
    """The columns that a stream remembers, and their types."""
    return {each["name"]: each["type"] for each in json.loads(file.read_text())["fields"]}


def test_a_stream_keeps_its_columns_though_no_file_has_them_when_it_goes_on(tmp_path: Path) -> None:
    subscriptions = wishes(
        tmp_path,
        nested="seller.rating > 4",
        price="price < 10",
        code="code = '123'",
        later="later > 1",
        near="at WITHIN BOX(0, 0, 3, 3)",
    )
    incoming, out, columns = tmp_path / "incoming", tmp_path / "matches", "matches.checkpoint/harken/columns.json"
    incoming.mkdir()
    without = '"later": null, "at": [], "none": {"x": null}'
    (incoming / "1.jsonl").write_text(
        f'{{"id": 1, "seller": {{"rating": 4.8}}, "price": 9, "code": "A12", {without}}}\n'
    )
    assert stream(subscriptions, incoming, out).status == 0
    assert pairs(out) == [(1, "nested"), (1, "price")]
    assert noted(tmp_path / columns).keys() == {"code", "id", "price", "seller"}, "what had a value"
    (incoming / "1.jsonl").unlink()
    # Some columns are missing in the files of now, or null, or of wider numbers; some had no type so far.
    (incoming / "2.jsonl").write_text('{"id": 2, "price": 9.5, "later": 2, "code": null, "at": [1.5, 2]}\n')
    done = stream(subscriptions, incoming, out)
    assert done.status == 0, done.err
    assert pairs(out)[2:] == [(2, "later"), (2, "near"), (2, "price")]
    (incoming / "2.jsonl").unlink()
    (incoming / "3.jsonl").write_text('{"id": 3}\n')
    before = noted(tmp_path / columns)
    assert stream(subscriptions, incoming, out).status == 0
    assert noted(tmp_path / columns) == before
    assert before["price"] == "double"


@pytest.mark.parametrize(
    ("first", "then", "said", "status"),
    [
        ('{"id": 1, "x": {"y": 4}}', '{"id": 2, "x": "none"}', "'x.y' is read as number", 2),
        ('{"id": 1, "x": "A12"}', '{"id": 2, "x": 123}', "'x' is read as string", 0),
        ('{"id": 1, "x": "A12"}', '{"id": 2, "x": {"y": 1}}', "'x' is read as string", 0),
        ('{"id": 1, "x": 1}', '{"id": 2, "x": [1, 2]}', "though it is array<numbers>", 2),
        ("id,x\n1,2026-01-01\n", "id,x\n2,2026-01-01T10:00:00Z\n", "'x' is read as date", 2),
        ("id,x\n1,A12\n", "id,x\n2,123\n", "'x' is read as string", 0),
    ],
)
def test_columns_of_a_stream_stay_of_the_kind_that_they_began_with(
    first: str, then: str, said: str, status: int, tmp_path: Path
) -> None:
    subscriptions = wishes(tmp_path, a="x IS NOT NULL OR x.y IS NOT NULL")
    incoming, out = tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    name = "csv" if first.startswith("id,") else "jsonl"
    (incoming / f"1.{name}").write_text(first)
    assert stream(subscriptions, incoming, out).status == 0
    (incoming / f"1.{name}").unlink()
    (incoming / f"2.{name}").write_text(then)
    done = stream(subscriptions, incoming, out)
    assert (done.status, said in done.err) == (status, True), done.err
    collected = stream(subscriptions, incoming, out, "--on-error", "collect")
    assert f"{1 if status else 0} rejects" in collected.err, collected.err
    assert pairs(out) == ([(1, "a")] if status else [(1, "a"), (2, "a")]), "none is lost or taken for another"


def test_a_line_that_could_not_be_read_is_a_reject_though_nobody_wrote_it_in_time(tmp_path: Path) -> None:
    subscriptions, incoming, out = wishes(tmp_path, low="price < 10"), tmp_path / "incoming", tmp_path / "matches"
    rejects = tmp_path / "rejects"
    incoming.mkdir()
    (incoming / "1.jsonl").write_text('{"id": 1, "price": 9, "a`b": 1}\n')
    more = ("--on-error", "collect", "--rejects", rejects)
    assert stream(subscriptions, incoming, out, *more).status == 0
    (incoming / "2.jsonl").write_text('{"id": 2, "price": 9.5}\n')
    assert stream(subscriptions, incoming, out, *more).status == 0
    # As if the process had been killed when the matches were written, and the rejects were not.
    (tmp_path / "matches.checkpoint" / "rejects").rename(tmp_path / "old checkpoint")
    (rejects / "events").rename(tmp_path / "old rejects")
    assert stream(subscriptions, incoming, out, *more).status == 0
    assert pairs(out) == [(1, "low")]
    assert [json.loads(each["record"])["id"] for each in rows(rejects / "events")] == [2]


def test_a_first_batch_that_failed_tells_of_no_types(tmp_path: Path) -> None:
    subscriptions, incoming, out = wishes(tmp_path, low="price < 10"), tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    (incoming / "1.jsonl").write_text('{"id": 1, "price": "dear"}\nno event\n')
    assert stream(subscriptions, incoming, out).status == 2
    (incoming / "1.jsonl").write_text('{"id": 1, "price": 9}\n')
    done = stream(subscriptions, incoming, out)
    assert (done.status, pairs(out)) == (0, [(1, "low")]), done.err


def test_types_are_known_as_soon_as_one_of_two_queries_has_done_a_batch(tmp_path: Path) -> None:
    subscriptions, incoming, out = wishes(tmp_path, a="code = 'A'"), tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    (incoming / "5.csv").write_text("id,code\n1,A\n")
    more = ("--on-error", "collect", "--rejects", tmp_path / "rejects")
    assert stream(subscriptions, incoming, out, *more).status == 0
    # As if the process had been killed when the lines were looked at, and the matches were not written.
    checkpoint = tmp_path / "matches.checkpoint"
    for place in (checkpoint / "spark" / "commits" / "0", checkpoint / "spark" / "commits" / ".0.crc"):
        place.unlink(missing_ok=True)
    shutil.rmtree(out / "batch=0")
    (incoming / "0.csv").write_text("id,code\n2,7\n")
    done = stream(subscriptions, incoming, out, *more)
    assert (done.status, pairs(out)) == (0, [(1, "a")]), done.err


def test_what_was_declared_once_stays_so(tmp_path: Path) -> None:
    subscriptions, incoming, out = (
        wishes(tmp_path, a="g LIKE '%lat%'"),
        tmp_path / "incoming",
        tmp_path / "matches",
    )
    schema = tmp_path / "schema.json"
    schema.write_text('{"g": "string"}')
    incoming.mkdir()
    (incoming / "1.jsonl").write_text('{"id": 1, "g": {"lat": 1}}\n')
    assert stream(subscriptions, incoming, out, "--schema", schema).status == 0
    (incoming / "2.jsonl").write_text('{"id": 2, "g": {"lat": 2}}\n')
    assert stream(subscriptions, incoming, out).status == 0
    assert pairs(out) == [(1, "a"), (2, "a")]


def test_a_start_that_is_refused_changes_no_column(tmp_path: Path) -> None:
    subscriptions, incoming, out = wishes(tmp_path, low="price < 10"), tmp_path / "incoming", tmp_path / "matches"
    schema = tmp_path / "schema.json"
    schema.write_text('{"price": "string"}')
    incoming.mkdir()
    (incoming / "1.jsonl").write_text('{"id": 1, "price": 9}\n')
    assert stream(subscriptions, incoming, out).status == 0
    (incoming / "2.jsonl").write_text('{"id": 2, "price": 8}\n')
    assert stream(subscriptions, incoming, out, "--schema", schema).status == 2
    assert stream(subscriptions, incoming, out).status == 0
    assert pairs(out) == [(1, "low"), (2, "low")]
    (tmp_path / "matches.checkpoint" / "harken" / "columns.json").write_text("{")
    torn = stream(subscriptions, incoming, out)
    assert (torn.status, "columns.json is damaged" in torn.err and "remove it" in torn.err) == (2, True), torn.err


def test_what_is_declared_within_an_attribute_counts_though_it_was_found_to_be_text(tmp_path: Path) -> None:
    subscriptions, events, schema = tmp_path / "s.jsonl", tmp_path / "events.jsonl", tmp_path / "schema.json"
    subscriptions.write_text('{"id": "good", "expression": "seller.rating > 4"}\n')
    events.write_text('{"id": 1, "seller": {"rating": 4.8}}\n{"id": 2, "seller": "none"}\n')
    schema.write_text('{"seller.rating": "float"}')
    done = pipeline(subscriptions, events, tmp_path / "out", "--schema", schema, "--on-error", "collect")
    assert "2 events, 1 matches, 1 rejects" in done.err, done.err


def test_a_stream_of_the_command_line_is_refused_where_others_are(subscriptions: Path, tmp_path: Path) -> None:
    incoming, out = tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    (incoming / "1.jsonl").write_text('{"id": 1, "price": 150}\n')
    assert pipeline(subscriptions, incoming, out).status == 0
    beside = stream(subscriptions, incoming, out)
    assert (beside.status, "has files that are those of no stream" in beside.err) == (2, True), beside.err
    out = tmp_path / "table"
    assert stream(subscriptions, incoming, out).status == 0
    other = stream(subscriptions, incoming, out, "--format", "json")
    assert (other.status, "is a table of parquet, not of json" in other.err) == (2, True), other.err
    wider = stream(subscriptions, incoming, out, "--keep", "price")
    assert (wider.status, "has the columns event, subscription" in wider.err) == (2, True), wider.err


def test_a_stream_into_a_database_writes_its_rejects_beside(subscriptions: Path, tmp_path: Path) -> None:
    incoming, file, rejects = tmp_path / "incoming", tmp_path / "matches.db", tmp_path / "rejects"
    incoming.mkdir()
    (incoming / "1.csv").write_text("id,price\n1,150\n2\n3,50\n")
    schema = tmp_path / "schema.json"
    schema.write_text('{"price": "float", "item": "string"}')
    more = ("--stream", "--once", "--on-error", "collect", "--rejects", rejects, "--schema", schema)
    done = pipeline(subscriptions, incoming, f"sqlite:///{file}", *more)
    assert done.status == 0, done.err
    assert "3 events in 1 batches, 1 matches, 1 rejects" in done.err
    aside = tmp_path / "aside.csv"
    aside.write_text("id,price\n9,150\n")
    assert pipeline(subscriptions, aside, f"sqlite:///{file}").status == 0, "a job that is run once beside it"
    # A loss of power tears what Spark has noted of the lines that it could not read; nothing is lost or repeated.
    torn = tmp_path / "matches.db.checkpoint" / "rejects"
    for name in ("commits/0", "offsets/1", "sources/0/1"):
        assert (torn / name).parent.is_dir()
        (torn / name).write_bytes(b"")
        (torn / name).with_name(f".{Path(name).name}.crc").unlink(missing_ok=True)
    (incoming / "2.csv").write_text("id,price\n4\n5,150\n")
    assert (
        "2 events in 1 batches, 1 matches, 1 rejects"
        in pipeline(subscriptions, incoming, f"sqlite:///{file}", *more).err
    )
    with sqlite3.connect(file) as database:
        found = database.execute("select event, subscription from notifications order by 1").fetchall()
    database.close()
    assert found == [(1, "bob"), (5, "bob"), (9, "bob")]
    assert sorted(each["record"] for each in rows(rejects / "events")) == ["2", "4"]
    (torn / "offsets" / "1").write_bytes(b"")
    told = pipeline(subscriptions, incoming, f"sqlite:///{file}", *more)
    assert (told.status, "Spark has lost what it noted of the lines" in told.err) == (2, True), told.err
    for each in (torn, rejects / "events"):
        assert str(each) in told.err
        each.rename(tmp_path / f"old {each.name}")
    assert pipeline(subscriptions, incoming, f"sqlite:///{file}", *more).status == 0
    assert sorted(each["record"] for each in rows(rejects / "events")) == ["2", "4"]
    # Rejects may go elsewhere from now on, as long as no batch is pending.
    elsewhere = (*more[:5], tmp_path / "elsewhere", *more[6:])
    (incoming / "3.csv").write_text("id,price\n6\n")
    moved = pipeline(subscriptions, incoming, f"sqlite:///{file}", *elsewhere)
    assert moved.status == 0, moved.err
    assert [each["record"] for each in rows(tmp_path / "elsewhere" / "events")] == ["6"]


def test_a_stream_that_fails_says_why_in_one_line(subscriptions: Path, tmp_path: Path) -> None:
    incoming, out = tmp_path / "incoming", tmp_path / "matches"
    incoming.mkdir()
    pq.write_table(pa.table({"id": [1], "price": [[2]]}), incoming / "1.parquet")
    schema = tmp_path / "schema.json"
    schema.write_text('{"item": "string", "price": "float"}')
    done = pipeline(subscriptions, incoming, out, "--stream", "--once", "--schema", schema)
    assert (done.status, done.err) == (2, "error: attribute 'price' is declared float, found array<bigint>\n")
    assert list(out.glob("batch=*")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "2026-01-01"], "error: Invalid value for --at: a stream matches as of the time of each batch"),
        (["--once", "--trigger", "1 second"], "error: Invalid value for --trigger: there is nothing to wait for"),
        (["--trigger", "soon"], "error: Spark says: Error parsing 'soon' to interval"),
    ],
)
def test_bad_options_of_a_stream_are_errors(
    subscriptions: Path, events: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    events.rename(incoming / events.name)
    done = pipeline(subscriptions, incoming, tmp_path / "matches", "--stream", *arguments)
    assert (done.status, done.out, (tmp_path / "matches").exists()) == (2, "", False)
    assert done.err.startswith(said), done.err


def test_a_stream_needs_to_know_its_columns(subscriptions: Path, tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    more = ("--stream", "--once", "--events-format", "json")
    done = pipeline(subscriptions, incoming, tmp_path / "matches", *more)
    assert (done.status, "put a first file there, or declare them in a schema" in done.err) == (2, True)
    schema = tmp_path / "schema.json"
    schema.write_text('{"id": "string", "price": "float", "item": "string", "seller.rating": "float"}')
    done = pipeline(subscriptions, incoming, tmp_path / "matches", *more, "--schema", schema)
    assert (done.status, "0 events in 0 batches" in done.err) == (0, True)
    (incoming / "1.json").write_text('{"id": "e", "price": 200, "seller": {"rating": 4.5}}\n')
    pipeline(subscriptions, incoming, tmp_path / "matches", *more, "--schema", schema)
    assert pairs(tmp_path / "matches") == [("e", "bob")]
