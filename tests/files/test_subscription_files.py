"""Subscription files of all kinds give an engine the same rows."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken import Engine
from harken.compiler import Texts, compile_texts
from harken.errors import InputFileError
from harken.files import SubscriptionFile, read_subscriptions

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, 12, 30, tzinfo=UTC)


def as_csv(folder: Path) -> str:
    path = folder / "subscriptions.csv"
    path.write_text(
        "id,expression,owner,valid_from,valid_until\n"
        '"a","item = \'camera\'\n AND price < 300",Ann,2026-01-01,2027-01-01T12:30:00Z\n'
        "\n"
        "b,price > 5,,,\n"
    )
    return str(path)


def as_jsonl(folder: Path) -> str:
    path = folder / "subscriptions.jsonl"
    path.write_text(
        '{"id": "a", "expression": "item = \'camera\'\\n AND price < 300", "owner": "Ann",'
        ' "valid_from": "2026-01-01", "valid_until": "2027-01-01 14:30:00+02:00"}\n'
        "\n"
        '{"id": "b", "expression": "price > 5", "owner": null}\n'
    )
    return str(path)


def as_parquet(folder: Path) -> str:
    path = folder / "subscriptions.parquet"
    table = pa.table(
        {
            "expression": ["item = 'camera'\n AND price < 300", "price > 5"],
            "id": ["a", "b"],
            "owner": ["Ann", None],
            "valid_from": pa.array([START.replace(tzinfo=None), None], pa.timestamp("ms")),
            "valid_until": pa.array(["2027-01-01 12:30", None]),
        }
    )
    pq.write_table(table, path)
    return str(path)


def loaded(file: SubscriptionFile) -> Engine:
    engine = Engine("reference")
    engine.subscribe_many(file.rows)
    return engine


@pytest.mark.parametrize("write", [as_csv, as_jsonl, as_parquet])
def test_every_kind_of_file_says_the_same(write, tmp_path: Path) -> None:
    file = read_subscriptions(write(tmp_path))
    engine = loaded(file)
    assert (len(file), list(engine)) == (2, ["a", "b"])
    first = engine.subscription("a")
    assert (first.owner, first.validity.valid_from, first.validity.valid_until) == ("Ann", START, END)
    assert engine.subscription("b").owner is None
    assert engine.subscription("b").validity.is_always


@pytest.mark.parametrize(
    ("write", "places"),
    [(as_csv, [2, 5]), (as_jsonl, [1, 3]), (as_parquet, [0, 1])],
    ids=["csv", "jsonl", "parquet"],
)
def test_a_row_is_found_at_its_line_or_where_there_are_no_lines_at_its_row(
    write, places: list[int], tmp_path: Path
) -> None:
    file = read_subscriptions(write(tmp_path))
    assert [file.where(row) for row in range(2)] == [f"{file.path}:{place}" for place in places]


def csv_of(folder: Path, text: str | bytes) -> str:
    path = folder / "s.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ("1\n-2\n0", [1, -2, 0]),
        ("1\n007", ["1", "007"]),
        ("1\nx", ["1", "x"]),
        ("true\nfalse", ["true", "false"]),
        ("1.5\n2", ["1.5", "2"]),
        ("2026-01-01\n2026-01-02", ["2026-01-01", "2026-01-02"]),
        ("9223372036854775808\n1", ["9223372036854775808", "1"]),
        ("9223372036854775807\n1", [9223372036854775807, 1]),
    ],
)
def test_ids_in_csv_are_integers_only_if_all_are_written_as_integers(
    tmp_path: Path, written: str, ids: list[object]
) -> None:
    rows = "".join(f"{id},x = 1\n" for id in written.split("\n"))
    assert read_subscriptions(csv_of(tmp_path, f"id,expression\n{rows}")).ids == ids


@pytest.mark.parametrize("content", ["id,expression", "id,expression\n", "\n\nid,expression\n\n"])
def test_a_csv_file_with_a_header_alone_holds_no_subscriptions(tmp_path: Path, content: str) -> None:
    assert len(read_subscriptions(csv_of(tmp_path, content))) == 0


def test_an_empty_cell_is_missing_and_two_quotes_are_the_empty_string(tmp_path: Path) -> None:
    file = read_subscriptions(csv_of(tmp_path, 'id,expression,owner\na,x = 1,\nb,x = 1,""\n'))
    assert file.rows.column("owner").to_pylist() == [None, ""]


def test_a_moment_that_is_none_rejects_its_row_only(tmp_path: Path) -> None:
    text = "id,expression,valid_from\na,x = 1,tomorrow\nb,x = 1,2026-01-01\n"
    engine = Engine()
    report = engine.subscribe_many(read_subscriptions(csv_of(tmp_path, text)).rows, on_error="collect")
    (reject,) = report.rejects
    assert reject.row == 0
    assert reject.reason.startswith("valid_from is a timestamp, found str: 'tomorrow'; write a datetime")
    assert engine.subscription("b").validity.valid_from == START


def test_a_compiled_table_in_parquet_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "compiled.parquet"
    pq.write_table(compile_texts(Texts([7, 8], ["x = 1", "x > 5 OR y = 2"])).table, path)
    assert loaded(read_subscriptions(str(path))).match({"x": 9}) == [8]


def test_standard_input_is_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.BytesIO(b'{"id": 1, "expression": "x = 1"}\nnope\n')
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    bad: list[InputFileError] = []
    file = read_subscriptions("-", bad.append)
    assert (file.ids, file.where(0), bad[0].path) == ([1], "<stdin>:1", "<stdin>")


def test_one_subscription_is_picked_by_its_id_as_text(tmp_path: Path) -> None:
    file = read_subscriptions(csv_of(tmp_path, "id,expression\n1,x = 1\n2,x = 2\n"))
    picked = file.only("2")
    assert (picked.ids, picked.where(0)) == ([2], f"{file.path}:3")
    with pytest.raises(InputFileError, match=r"there is no subscription '20'; did you mean '2'\?"):
        file.only("20")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty; its first line should name the columns"),
        (b"id\n1\n", "subscriptions need the field 'expression', found id"),
        (b"id,expression,id\n1,x = 1,2\n", "the column 'id' occurs twice"),
        (b"id,expression,valid_untl\n1,x,\n", "no field 'valid_untl'; .*; did you mean 'valid_until'"),
        (b"id,expression\n1,x = 1\n2\n", r"s\.csv, line 3: expected 2 cells, as there are columns, found 1"),
        (
            b'id,expression\n1,"x\n= 1"\n\n2,y,z\n',
            r"s\.csv, line 5: expected 2 cells, .*, found 3",
        ),
        (b"id,expression\n1,x = '\xff'\n", r"s\.csv, line 2: not UTF-8: byte 0xff at position 8"),
        (b"id,\xff\n1,2\n", "the names of the columns are not UTF-8"),
        ("id,expression\n1,x\n".encode("utf-16"), r"s\.csv"),
    ],
)
def test_a_csv_file_that_cannot_be_understood_is_an_error(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(InputFileError, match=said):
        read_subscriptions(csv_of(tmp_path, content))


def test_a_long_field_is_no_trouble_for_the_counting_of_lines(tmp_path: Path) -> None:
    long = "x = 1 " + " " * 200_000
    file = read_subscriptions(csv_of(tmp_path, f"id,expression\n1,{long}\n2,{long}\n"))
    assert file.where(1) == f"{file.path}:3"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"expression": "x = 1"}', "subscriptions need the field 'id', found expression"),
        ('{"id": 1}', "subscriptions need the field 'expression', found id"),
        ("{}", "subscriptions need the field 'id', found none"),
        ('{"id": 1, "expression": "x", "ownr": "a"}', "no field 'ownr'; .*; did you mean 'owner'"),
    ],
)
def test_a_line_that_is_no_subscription_is_an_error_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"id": 5, "expression": "x = 5"}}\n{line}\n')
    with pytest.raises(InputFileError, match=said) as caught:
        read_subscriptions(str(path))
    assert caught.value.line == 2
    bad: list[InputFileError] = []
    assert read_subscriptions(str(path), bad.append).ids == [5]
    assert [error.line for error in bad] == [2]


def test_a_parquet_file_with_moments_finer_than_a_microsecond_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    moments = pa.array([1], pa.timestamp("ns", tz="UTC"))
    pq.write_table(pa.table({"id": [1], "expression": ["x"], "valid_from": moments}), path)
    with pytest.raises(InputFileError, match=r"column 'valid_from': .*would lose data"):
        read_subscriptions(str(path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent.csv", "there is no such file or folder"),
        ("absent.jsonl", "there is no such file or folder"),
        ("absent.parquet", "there is no such file or folder"),
        ("absent.json", "there is no such file or folder"),
        ("absent.CSV.gz", "there is no such file or folder"),
        (
            "s.txt",
            "'.txt' are not known; the kinds are .csv, .jsonl, .ndjson, .json, .*, also with .gz or .zst",
        ),
        ("s.txt.gz", "'.txt' are not known"),
        ("s.gz", "a file without an ending is not known"),
        ("s", "a file without an ending is not known"),
        ("bad\0name.csv", "a path cannot hold a NUL character"),
    ],
)
def test_a_path_that_names_no_readable_file_is_an_error(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputFileError, match=said):
        read_subscriptions(f"{tmp_path}/{name}")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(InputFileError, match="this is a folder, not a file"):
        read_subscriptions(str(folder))


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputFileError, match="cannot be read: Permission denied"):
        read_subscriptions(str(tmp_path / "s.csv"))
