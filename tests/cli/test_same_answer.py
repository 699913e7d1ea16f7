"""`harken match` and `harken pipeline` give one answer for one file, or it is said why not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.running import run

pytestmark = pytest.mark.usefixtures("spark")

CELLS = """\
id,zip,whole,huge,part,flag,day,moment,offset,clock,name,empty,odd,mixed,loose
1,007,5,9223372036854775808,2.5,true,2026-01-01,2026-01-01 10:00:00,2026-01-01T10:00:00+02,10:30:00,"",,+5,1,2026-1
2,12,-3,1,1e3,False,2026-12-31,2026-01-01 23:59:59.5,2026-01-01T10:00:00Z,23:59:59,"a ""quoted"", b",,5,x,2026-2
3,00,0,-9,-0.5,TRUE,2024-02-29,1969-12-31 23:59:59,2026-06-01T00:00:00-05:00,00:00:00, padded ,,1d,true,2026-3
4,99,9007199254740993,12,inf,,,,,,Zoë,,0x1F,2026-01-01,
5,1,1,3,NaN,false,2026-01-01,2026-01-01 10:00,2026-01-01T10:00:00Z,1:00,5" wide,,1,1.5,2026-1
"""
CONDITIONS = [
    *("zip = '007'", "zip = 7", "zip = '12'", "zip < '1'"),
    *("whole > 0", "whole = 9007199254740993", "whole = 9007199254740992", "whole = -3"),
    *("huge > 9223372036854775807", "huge = 1", "huge < 0", "huge > 5"),
    *("part > 2", "part = 1000", "part < 0", "part IS NULL", "part IS NOT NULL", "part = 2.5"),
    *("flag", "NOT flag", "flag IS NULL", "flag = 'true'"),
    *("day = DATE '2026-01-01'", "day < DATE '2026-01-01'", "day = '2026-01-01'", "day IS NULL"),
    *("moment = TIMESTAMP '2026-01-01 10:00:00Z'", "moment > TIMESTAMP '2026-01-01 23:59:59Z'"),
    *("moment < TIMESTAMP '1970-01-01'", "offset = TIMESTAMP '2026-01-01 08:00:00Z'"),
    *("offset = TIMESTAMP '2026-06-01 05:00:00Z'", "offset IS NULL", "clock = '10:30:00'", "clock IS NULL"),
    *("name = ''", "name IS NULL", "name = ' padded '", "name CONTAINS '\"'", "name = 'Zoë'"),
    *("empty IS NULL", "empty = ''", "odd = '5'", "odd = 5", "odd = '1d'", "odd = '0x1F'", "odd = '+5'"),
    *("mixed = '1'", "mixed = 1", "mixed = 'true'", "mixed = '2026-01-01'", "mixed = '1.5'"),
    "loose = '2026-1'",
]


def asked(folder: Path, conditions: list[str]) -> Path:
    path = folder / "conditions.jsonl"
    path.write_text("".join(json.dumps({"id": each, "expression": each}) + "\n" for each in conditions))
    return path


def both(subscriptions: Path, events: Path, *more: object) -> tuple[set[tuple[object, object]], ...]:
    """What `match` finds, and what `pipeline` does."""
    alone = run("match", "-s", subscriptions, "-e", events, *more)
    assert alone.status == 0, alone.err
    out = events.with_suffix(".matches")
    spread = run("pipeline", "-s", subscriptions, "-e", events, "-o", out, *more)
    assert spread.status == 0, spread.err
    table = pq.read_table(out)
    lines = map(json.loads, alone.out.splitlines())
    return (
        {(line["event"], line["subscription"]) for line in lines},
        set(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)),
    )


def test_cells_of_csv_mean_the_same(tmp_path: Path) -> None:
    events = tmp_path / "nasty.csv"
    events.write_text(CELLS)
    conditions = [each for each in CONDITIONS if not each.startswith("part")]
    alone, spread = both(asked(tmp_path, conditions), events)
    assert alone == spread
    never = {"zip = 7", "whole = 9007199254740992", "flag = 'true'", "day = '2026-01-01'", "empty = ''"}
    assert {id for _, id in alone} == set(conditions) - never - {"odd = 5", "mixed = 1", "name IS NULL"}


def test_fractions_of_csv_mean_the_same(tmp_path: Path) -> None:
    events = tmp_path / "parts.csv"
    events.write_text("\n".join(line for line in CELLS.splitlines() if "NaN" not in line))
    alone, spread = both(asked(tmp_path, [each for each in CONDITIONS if each.startswith("part")]), events)
    assert alone == spread
    assert {id for event, id in alone if event == 4} == {"part > 2", "part IS NOT NULL"}


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_mark_at_the_start_and_values_over_lines_are_no_trouble(tmp_path: Path, end: str) -> None:
    events = tmp_path / "lines.csv"
    text = end.join(["\ufeffid,note,price", '1,"over', 'lines",5', "", "2,plain,6", ""])
    events.write_bytes(text.encode())
    alone, spread = both(asked(tmp_path, ["price > 4", "note CONTAINS 'lines'", "note = 'plain'"]), events)
    assert alone == spread
    assert len(alone) == 4


def test_ids_past_64_bits_are_names_to_both(tmp_path: Path) -> None:
    events = tmp_path / "ids.csv"
    events.write_text("id,x\n1,1\n9223372036854775808,2\n")
    alone, spread = both(asked(tmp_path, ["x > 0"]), events)
    assert alone == spread == {("1", "x > 0"), ("9223372036854775808", "x > 0")}


OBJECTS = [
    {"id": 1, "day": "2026-01-01", "n": 5, "deep": {"er": True}, "text": "007"},
    {"id": 2, "n": -1, "deep": {"er": None}, "text": ""},
    {"id": 3, "n": 9007199254740993, "text": "Zoë\n"},
]
ASKED = [
    "day = '2026-01-01'",
    "n > 0",
    "n = 9007199254740993",
    "deep.er",
    "deep.er IS NULL",
    "text = ''",
    "text = '007'",
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["o.json", "o.json.gz"])
def test_objects_mean_the_same_also_in_an_array(tmp_path: Path, indent: int | None, name: str) -> None:
    events = tmp_path / name
    content = json.dumps(OBJECTS, indent=indent).encode()
    events.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    alone, spread = both(asked(tmp_path, ASKED), events)
    assert alone == spread
    assert {id for _, id in alone} == set(ASKED)


def test_what_one_column_cannot_hold_is_said(tmp_path: Path) -> None:
    events, out = tmp_path / "mixed.jsonl", tmp_path / "matches"
    events.write_text(
        '{"id": 1, "a": {"x": 1}, "y": 1.5, "z": 1}\n'
        '{"id": 2, "a": {"x": "one"}, "y": 9007199254740993, "z": 9223372036854775808}\n'
    )
    done = run("pipeline", "-s", asked(tmp_path, ["a.x = '1'"]), "-e", events, "-o", out)
    assert done.status == 0
    said = [line for line in done.err.splitlines() if line.startswith("note: ")]
    assert [line.split()[2] for line in said] == ["'a.x'", "'y'", "'z'"]
    assert (
        "attribute 'a.x' holds numbers and strings: one column cannot, and Spark reads all of it as text"
        in said[0]
    )
    schema = tmp_path / "schema.json"
    schema.write_text('{"a.x": "string", "y": "float", "z": "float"}')
    done = run("pipeline", "-s", asked(tmp_path, ["a.x = '1'"]), "-e", events, "-o", f"{out}2", "--schema", schema)
    assert "note: " not in done.err
