"""Event files come in chunks, typed by the schema, and every complaint says where."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken import Box, Engine, Point, Schema
from harken.errors import EventError, InputFileError
from harken.files import EventChunk, match_chunk, read_event, read_events, read_schema

SCHEMA = Schema({"day": "date", "at": "timestamp", "where": "point", "area": "box", "n": "int", "a.day": "date"})


def written(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def tabled(folder: Path, columns: dict[str, object]) -> str:
    path = folder / "events.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


def names(path: str, chunk: int = 2) -> list[list[object]]:
    return [each.names() for each in read_events(path, chunk=chunk)]


def test_events_of_json_lines_come_in_chunks_named_by_id_or_else_by_row(tmp_path: Path) -> None:
    path = written(tmp_path, "e.jsonl", '{"id": "a"}\n{"x": 1}\n\n{"id": 7}\n{"id": null}\n')
    assert names(path) == [["a", 1], [7, 4]]


def test_events_of_csv_come_in_chunks_named_by_id_or_else_by_row(tmp_path: Path) -> None:
    assert names(written(tmp_path, "e.csv", "x\n1\n2\n3\n")) == [[0, 1], [2]]
    assert names(written(tmp_path, "f.csv", "x,id\n1,a\n2,\n3,c\n")) == [["a", 1], ["c"]]


def test_events_of_parquet_come_in_chunks_named_by_id_or_else_by_row(tmp_path: Path) -> None:
    assert names(tabled(tmp_path, {"x": [1, 2, 3]})) == [[0, 1], [2]]
    assert names(tabled(tmp_path, {"id": [10, None, 30]})) == [[10, 1], [30]]


@pytest.mark.parametrize("content", ["", "a,b\n", "a,b"])
def test_a_csv_file_without_rows_holds_no_events(tmp_path: Path, content: str) -> None:
    assert [chunk for chunk in read_events(written(tmp_path, "e.csv", content)) if len(chunk)] == []


def test_an_empty_file_of_json_lines_holds_no_events(tmp_path: Path) -> None:
    assert list(read_events(written(tmp_path, "e.jsonl", ""))) == []


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("1.5", "the id of an event is a string or an integer, found float"),
        ("true", "found bool"),
        ("[1]", "found list"),
        ('{"x": 1}', "found dict"),
        ('"\\ud800"', "bad event id: a string holds a lone surrogate"),
        ("9223372036854775808", "bad event id: 9223372036854775808 does not fit"),
    ],
)
def test_an_event_id_that_is_none_is_an_error(tmp_path: Path, id: str, said: str) -> None:
    (chunk,) = read_events(written(tmp_path, "e.jsonl", f'{{"x": 1}}\n{{"id": {id}}}\n'))
    with pytest.raises(EventError, match=said) as caught:
        chunk.names()
    assert caught.value.row == 1


def events_of(chunk: EventChunk) -> list[dict[str, object]]:
    return chunk.events.to_pylist() if isinstance(chunk.events, pa.Table) else chunk.events


def test_declared_types_turn_json_text_and_lists_into_values_also_in_nested_objects(tmp_path: Path) -> None:
    line = (
        '{"day": "2026-11-15", "at": "2026-11-15T10:30+02:00", "where": [1, 2.5], "area": [0, 0, 1, 1],'
        ' "a": {"day": "2026-01-01"}, "other": "2026-11-15", "n": 3}'
    )
    (chunk,) = read_events(written(tmp_path, "e.jsonl", line), SCHEMA)
    assert events_of(chunk) == [
        {
            "day": date(2026, 11, 15),
            "at": datetime(2026, 11, 15, 8, 30, tzinfo=UTC),
            "where": Point(1, 2.5),
            "area": Box(0, 0, 1, 1),
            "a": {"day": date(2026, 1, 1)},
            "other": "2026-11-15",
            "n": 3,
        }
    ]


def test_declared_types_turn_csv_cells_into_values(tmp_path: Path) -> None:
    text = 'day,at,where,area,n\n2026-11-15,2026-11-15 10:30,"[1, 2.5]","[0, 0, 1, 1]",3\n,,,,\n'
    (chunk,) = read_events(written(tmp_path, "e.csv", text), SCHEMA)
    assert chunk.events.schema.types == [
        pa.date32(),
        pa.timestamp("us", tz="UTC"),
        pa.list_(pa.float64(), 2),
        pa.list_(pa.float64(), 4),
        pa.int64(),
    ]
    engine = Engine("reference", SCHEMA)
    engine.subscribe("near", "where WITHIN BOX(0, 0, 3, 3) AND day = DATE '2026-11-15' AND n = 3")
    engine.subscribe("early", "at < TIMESTAMP '2026-11-15 10:31' AND area CONTAINS POINT(1, 1)")
    assert engine.match_batch(chunk.events).to_pydict() == {"event": [0, 0], "subscription": ["near", "early"]}


def test_declared_types_turn_parquet_text_and_lists_into_values(tmp_path: Path) -> None:
    path = tabled(tmp_path, {"day": ["2026-11-15"], "where": [[1.0, 2.0]], "n": [1]})
    (chunk,) = read_events(path, SCHEMA)
    assert chunk.events.to_pydict() == {"day": [date(2026, 11, 15)], "where": [[1.0, 2.0]], "n": [1]}


def test_without_a_schema_csv_types_are_inferred(tmp_path: Path) -> None:
    text = "i,f,s,b,d,t\n1,1.5,x,true,2026-01-01,2026-01-01 10:00:00\n"
    (chunk,) = read_events(written(tmp_path, "e.csv", text))
    kinds = [str(kind) for kind in chunk.events.schema.types]
    assert kinds == ["int64", "double", "string", "bool", "date32[day]", "timestamp[us, tz=UTC]"]


BAD_VALUES = [
    ("day", '"2026-02-30"', "no such moment: '2026-02-30'"),
    ("at", '"2026-11-15 24:00"', "no such moment"),
    ("where", "[1, 2, 3]", "a point has 2 coordinates, found 3"),
    ("where", '[1, "x"]', "a point needs finite numbers, found 'x'"),
    ("area", "[1, 1, 0, 0]", "a box needs min <= max on both axes"),
    ("area", "[]", "a box has 4 coordinates, found 0"),
]


@pytest.mark.parametrize(("name", "value", "said"), BAD_VALUES)
def test_a_json_value_that_says_nothing_of_its_declared_type_is_an_error_with_its_line(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    path = written(tmp_path, "e.jsonl", f'{{"n": 1}}\n{{"{name}": {value}}}\n{{"n": 2}}\n')
    with pytest.raises(InputFileError, match=f"line 2: attribute '{name}': {said}"):
        list(read_events(path, SCHEMA))
    bad: list[InputFileError] = []
    (chunk,) = read_events(path, SCHEMA, on_bad=bad.append)
    assert (chunk.names(), len(bad)) == ([0, 2], 1)


@pytest.mark.parametrize(("name", "value", "said"), [*BAD_VALUES, ("where", '"Paris"', "'Paris' is not a point")])
def test_a_csv_cell_that_says_nothing_of_its_declared_type_is_an_error_with_its_line(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    cell = value.strip('"').replace('"', '""')
    path = written(tmp_path, "e.csv", f'{name},n\n,1\n"{cell}",2\n,3\n')
    with pytest.raises(InputFileError, match=f"line 3: attribute '{name}': {said}"):
        list(read_events(path, SCHEMA))
    bad: list[InputFileError] = []
    (chunk,) = read_events(path, SCHEMA, on_bad=bad.append)
    assert (chunk.names(), len(bad)) == ([0, 2], 1)


@pytest.mark.parametrize(
    ("content", "schema", "said"),
    [
        (b"n\n1\nx\n", SCHEMA, r"e\.csv, line 3: attribute 'n': 'x' is not an int"),
        (b"n,n\n1,2\n", None, "line 1: the column 'n' occurs twice"),
        (b"a,b\n1\n", None, "line 2: expected 2 cells, as there are columns, found 1"),
        (b"a\n\xff\xfe\n", None, "line 2: not UTF-8: byte 0xff at position 1"),
        (b'a,b\n"never closed,1\n', None, "line 2: a quoted value that begins here is never closed"),
    ],
)
def test_a_csv_file_that_cannot_be_read_is_an_error(
    tmp_path: Path, content: bytes, schema: Schema | None, said: str
) -> None:
    with pytest.raises(InputFileError, match=said):
        list(read_events(written(tmp_path, "e.csv", content), schema))


def test_a_late_value_of_another_type_suggests_a_schema(tmp_path: Path) -> None:
    rows = "1,2\n" * 3_000_000  # more than the block that types are inferred from
    with pytest.raises(InputFileError, match=r"line 3000002: attribute 'b': 'x' is not a number; .*declare it"):
        list(read_events(written(tmp_path, "e.csv", f"a,b\n{rows}1,x\n")))


def test_a_truncated_parquet_file_is_an_error(tmp_path: Path) -> None:
    whole = Path(tabled(tmp_path, {"x": list(range(1000))})).read_bytes()
    for content in (b"", b"PAR1", whole[:-10], whole[10:]):
        with pytest.raises(InputFileError, match=r"cut\.parquet"):
            list(read_events(written(tmp_path, "cut.parquet", content)))


def test_a_fault_of_an_event_is_told_with_its_line_and_others_are_matched(tmp_path: Path) -> None:
    engine = Engine(schema={"x": "int"})
    engine.subscribe("s", "x > 1")
    lines = "\n".join(f'{{"x": {"[]" if row in (3, 4, 9) else row}}}' for row in range(12))
    path = written(tmp_path, "e.jsonl", lines)
    (chunk,) = read_events(path)
    with pytest.raises(InputFileError, match=r"e\.jsonl, line 4: attribute 'x' is declared int, found a list"):
        list(match_chunk(engine, chunk))
    bad: list[InputFileError] = []
    parts = list(match_chunk(engine, chunk, on_bad=bad.append))
    found = [called[at] for called, matches in parts for at in matches.column("event").to_pylist()]
    assert [error.line for error in bad] == [4, 5, 10]
    assert found == [row for row in range(2, 12) if row not in (3, 4, 9)]


def test_a_column_of_another_type_than_declared_is_a_fault_of_the_events_that_have_a_value(tmp_path: Path) -> None:
    engine = Engine(schema={"x": "int"})
    engine.subscribe("s", "x IS NULL")
    (chunk,) = read_events(tabled(tmp_path, {"x": [[1], None, [2]]}))
    with pytest.raises(InputFileError, match=r"row 0: attribute 'x' is declared int, found list<"):
        list(match_chunk(engine, chunk))
    bad: list[InputFileError] = []
    ((names, matches),) = match_chunk(engine, chunk, on_bad=bad.append)
    assert [names[at] for at in matches.column("event").to_pylist()] == [1]
    assert [str(error).partition("row ")[2][:1] for error in bad] == ["0", "2"]


def test_a_name_that_occurs_twice_ends_the_matching_even_where_faults_are_collected(tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("s", "a.b > 1")
    (chunk,) = read_events(tabled(tmp_path, {"a.b": [1], "a": [{"b": 1}]}))
    with pytest.raises(InputFileError, match=r"attribute 'a\.b' occurs twice"):
        list(match_chunk(engine, chunk, on_bad=lambda _: None))


def test_one_event_is_read_from_text_or_from_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "event.json", '{\n  "day": "2026-11-15"\n}\n')
    assert read_event('{"x": 1}') == {"x": 1}
    assert read_event(f"@{path}", SCHEMA) == {"day": date(2026, 11, 15)}
    with pytest.raises(InputFileError, match="the event: not JSON"):
        read_event("{x: 1}")
    with pytest.raises(InputFileError, match="there is no such file"):
        read_event(f"@{path}.absent")


def test_a_schema_file_declares_types(tmp_path: Path) -> None:
    path = written(tmp_path, "schema.json", '\ufeff{"price": "float", "a.b": "DATE"}')
    assert read_schema(path) == Schema({"price": "float", "a.b": "date"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty; a schema looks like"),
        ("[]", "expected a JSON object, found an array"),
        ('{"a": "int", "a": "int"}', "the key 'a' occurs twice"),
        ('{"a": "decimal"}', "attribute 'a' is declared 'decimal'; the types are int, float"),
        ('{"a": "flaot"}', "did you mean 'float'"),
        ('{"a": 5}', "attribute 'a' is declared 5"),
        ("{", "not JSON"),
    ],
)
def test_a_schema_file_that_declares_none_is_an_error(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(InputFileError, match=said):
        read_schema(written(tmp_path, "schema.json", content))
