"""`harken check`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.running import run


def test_a_good_file_is_passed_in_silence(subscriptions: Path) -> None:
    done = run("check", subscriptions)
    assert (done.status, done.out) == (0, "")
    assert done.err == "3 subscriptions, 0 bad, 0 warnings\n"


def test_each_bad_subscription_has_its_line_with_place_id_position_and_reason(bad_subscriptions: Path) -> None:
    done = run("check", bad_subscriptions)
    assert done.status == 1
    assert done.out.splitlines() == [
        f"{bad_subscriptions}:2 2 2:11 the expression ends too early, expected a constant",
        f"{bad_subscriptions}:4 - - not JSON: Expecting value (column 1)",
        f"{bad_subscriptions}:5 1 - subscription 1 comes twice; "
        "pass replace=True to keep the last of those with one id",
        f"{bad_subscriptions}:6 4 - warning: never matches any event: it contradicts itself",
        f"{bad_subscriptions}:7 5 - warning: matches every event",
    ]
    assert done.err == "6 subscriptions, 3 bad, 2 warnings\n"


def test_findings_can_be_had_as_json(bad_subscriptions: Path) -> None:
    done = run("check", bad_subscriptions, "--json")
    said = json.loads(done.out)
    assert (done.status, done.err) == (1, "")
    assert (said["subscriptions"], said["bad"], len(said["findings"])) == (6, 3, 5)
    assert said["findings"][0] == {
        "severity": "error",
        "where": f"{bad_subscriptions}:2",
        "row": 1,
        "line": 2,
        "id": 2,
        "message": "the expression ends too early, expected a constant",
        "expression_line": 2,
        "expression_column": 11,
    }


def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,expression\na b,FALSE\nc,TRUE\n")
    done = run("check", path)
    assert (done.status, done.err) == (0, "2 subscriptions, 0 bad, 2 warnings\n")
    assert done.out.startswith(f"{path}:2 'a b' - warning: never matches")


def test_a_schema_is_held_against_every_expression(subscriptions: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"itm": "string", "price": "float"}')
    done = run("check", subscriptions, "--schema", schema)
    assert done.status == 1
    assert done.out == f"{subscriptions}:2 ann - the schema has no attribute 'item'; did you mean 'itm'?\n"


def test_a_parquet_file_has_rows_instead_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "expression": ["x = 1", "x ="]}), path)
    assert run("check", path).out == f"{path}:1 b 1:4 the expression ends too early, expected a constant\n"


def test_subscriptions_of_many_chunks_are_doubted_at_their_own_rows(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    rows = "".join(f"{n},{'FALSE' if n % 1000 == 7 else f'x = {n}'}\n" for n in range(3_000))
    path.write_text(f"id,expression\n{rows}")
    assert [line.split()[1] for line in run("check", path).out.splitlines()] == ["7", "1007", "2007"]


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"id": "\x1b[2Jx", "expression": "\x1b[31m = 1"}) + "\n")
    done = run("check", path)
    assert done.status == 1
    assert "\x1b" not in done.out + done.err


MISMATCHED = {
    "at > '2026-01-01'": "'at' is timestamp in the events and is compared with a string: never true; "
    "write TIMESTAMP '2026-01-01'",
    "price = '5'": "'price' is number in the events and is compared with a string: never true; "
    "write a number without quotes",
    "maker = 5 OR price < 5": "'maker' is string in the events and is compared with a number: never true; "
    "write a string in single quotes",
    "sold = 1": "'sold' is bool in the events and is compared with a number: never true; write TRUE or FALSE",
}
FITTING = (
    "at > TIMESTAMP '2026-01-01' AND price < 5 AND maker LIKE 'S%' AND sold",
    "unseen = 'x' AND at IS NOT NULL",
    "price < 90071992547409.93 AND empty = 1",
)


def _written(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"id": at, "expression": text}) + "\n" for at, text in enumerate(texts)))
    return path


def test_a_constant_of_a_kind_that_the_events_never_have_is_warned_of(tmp_path: Path) -> None:
    file = _written(tmp_path / "s.jsonl", [*MISMATCHED, *FITTING])
    events = tmp_path / "events.parquet"
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    table = pa.table({"at": [moment, None], "price": [1, 2], "maker": ["a", "b"], "sold": [True, None]})
    pq.write_table(table.append_column("empty", pa.nulls(2, pa.string())), events)
    done = run("check", file, "--events", events)
    wanted = [f"{file}:{at} {at - 1} - warning: {said}" for at, said in enumerate(MISMATCHED.values(), 1)]
    assert (done.status, done.out.splitlines()) == (0, wanted)
    assert done.err == "7 subscriptions, 0 bad, 4 warnings\n"
    assert run("check", file).out == ""


def test_events_of_several_kinds_are_warned_of_only_where_none_fits(tmp_path: Path) -> None:
    file = _written(tmp_path / "s.jsonl", ["x = 'a'", "x = 5", "x", "x IN (1, 'a')"])
    events = tmp_path / "events.jsonl"
    events.write_text('{"x": 5}\n{"x": "a", "d": {"x": 1}}\n')
    done = run("check", file, "--events", events)
    assert done.out.splitlines() == [
        f"{file}:3 2 - warning: 'x' is number or string in the events and is compared with a bool: never true"
    ]


def test_a_schema_types_the_events_too(tmp_path: Path) -> None:
    file = _written(tmp_path / "s.jsonl", ["at > TIMESTAMP '2026-01-01'"])
    events, schema = tmp_path / "events.jsonl", tmp_path / "schema.json"
    events.write_text('{"at": "2026-01-02 10:00"}\n')
    assert (
        "'at' is string in the events and is compared with a timestamp"
        in run("check", file, "--events", events).out
    )
    schema.write_text('{"at": "timestamp"}')
    assert run("check", file, "--events", events, "--schema", schema).out == ""
