"""Files of every ending, compressed or not, say the same; what is damaged or strange is named."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken.errors import InputFileError
from harken.files import arrays, read_events, read_subscriptions
from harken.files.blocks import Blocks
from harken.files.records import read_records

EVENTS = [{"id": 1, "name": 'Zoë, "the" first', "price": 1.5}, {"id": 2, "name": "two\nlines", "price": 2.5}]
LINES = "".join(f"{json.dumps(event)}\n" for event in EVENTS)
CSV = 'id,name,price\r\n1,"Zoë, ""the"" first",1.5\r\n2,"two\nlines",2.5\r\n'


def zstd(content: bytes, path: Path) -> bytes:
    with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as stream:
        stream.write(content)
    return path.read_bytes()


def written(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    content = content.encode() if isinstance(content, str) else content
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(content[:20]) + gzip.compress(content[20:]))  # two members
    elif name.endswith(".zst"):
        zstd(content, path)
    else:
        path.write_bytes(content)
    return str(path)


def all_events(path: str, **options: object) -> list[dict[str, object]]:
    events: list[dict[str, object]] = []
    for chunk in read_events(path, **options):  # type: ignore[arg-type]
        events += chunk.events.to_pylist() if isinstance(chunk.events, pa.Table) else chunk.events
    return events


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.csv", CSV),
        ("e.jsonl", LINES),
        ("e.ndjson", LINES),
        ("e.json", LINES),
        ("e.json", "\ufeff\n" + LINES),
        ("e.json", json.dumps(EVENTS)),
        ("e.json", "\ufeff  " + json.dumps(EVENTS, indent=2) + "\n\n"),
        ("e.json", "\n".join(json.dumps(event, indent=1) for event in EVENTS)),
        ("odd name ü [1]*.JSON", json.dumps(EVENTS)),
    ],
)
@pytest.mark.parametrize("compressed", ["", ".gz", ".zst"])
def test_every_ending_is_read_also_compressed(tmp_path: Path, name: str, content: str, compressed: str) -> None:
    assert all_events(written(tmp_path, name + compressed, content)) == EVENTS


def test_parquet_is_read_as_it_is_and_in_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(pa.Table.from_pylist(EVENTS), path)
    assert all_events(str(path)) == EVENTS
    assert all_events(written(tmp_path, "e.parquet.gz", path.read_bytes())) == EVENTS


def test_subscriptions_are_read_from_the_same_kinds_of_files(tmp_path: Path) -> None:
    rows = [{"id": "a", "expression": "x = 1"}, {"id": "b", "expression": "x = 2"}]
    text = "id,expression\na,x = 1\nb,x = 2\n"
    for name, content in (
        ("s.csv.gz", text),
        ("s.csv.zst", text),
        ("s.json", json.dumps(rows, indent=2)),
        ("s.ndjson.zst", "\n".join(map(json.dumps, rows))),
    ):
        assert read_subscriptions(written(tmp_path, name, content)).ids == ["a", "b"]


def test_the_line_of_an_object_in_an_array_is_the_one_it_begins_on(tmp_path: Path) -> None:
    first, rest = (
        '{"id": "a", "expression": "x = 1"}',
        '{"id": "b",\n "expression": "x = 2"}, {"id": 3, "expression": "y"}',
    )
    text = f"[\n  {first},\n\n  {rest}]"
    file = read_subscriptions(written(tmp_path, "s.json", text))
    assert [file.line(row) for row in range(3)] == [2, 4, 5]


def test_what_a_file_holds_can_be_said(tmp_path: Path) -> None:
    for format, content in (("csv", CSV), ("jsonl", LINES), ("json", json.dumps(EVENTS))):  # noqa: A001
        assert all_events(written(tmp_path, "events.data", content), format=format) == EVENTS
        assert all_events(written(tmp_path, "events.data.gz", content), format=format) == EVENTS


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[{"a": 1}\n {"a": 2}]', 2, "not JSON: expected ',', found '{'"),
        ('[{"a": 1},\n {"a": 2}', 2, "not JSON: expected ',', found the end"),
        ('[{"a": 1},\n {"a": }]', 2, "not JSON: Expecting value"),
        ('[{"a": 1}]\n\n]', 3, "not JSON: expected the end, found ']'"),
        ('[{"a": 1},]', 1, "not JSON"),
        ('[\n{"a": "never closed}]', 2, "not JSON: Unterminated string"),
        ("[" * 100_000, 1, "not JSON: it nests too deeply"),
        ('{\n"a": 1,\n}', 3, "not JSON"),
    ],
)
def test_json_that_is_broken_is_an_error_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(InputFileError) as caught:
        list(read_events(written(tmp_path, "e.json", text), on_bad=lambda _: None))
    assert (caught.value.line, said in str(caught.value)) == (line, True), caught.value


def test_values_of_an_array_that_are_no_objects_are_told_and_the_others_read(tmp_path: Path) -> None:
    bad: list[InputFileError] = []
    text = '[{"a": 1},\n 7,\n {"a": 1, "a": 2},\n {"a": 1e999}, {"a": NaN},\n{"a": 3}]'
    assert all_events(written(tmp_path, "e.json", text), on_bad=bad.append) == [{"a": 1}, {"a": 3}]
    assert [(error.line, error.message.partition(": ")[2]) for error in bad] == [
        (2, "expected a JSON object, found a number"),
        (3, "the key 'a' occurs twice"),
        (4, "1e999 does not fit a 64-bit float"),
        (4, "not JSON: NaN is not a JSON number"),
    ]


def test_an_array_is_not_read_into_memory_as_a_whole(tmp_path: Path) -> None:
    path = written(
        tmp_path, "e.json", "[" + ",\n".join(f'{{"n": {n}, "s": "{"é" * 500}"}}' for n in range(5_000)) + "]"
    )
    events = read_events(path, chunk=10)
    assert [event["n"] for event in next(events).events] == list(range(10))
    assert sum(len(chunk) for chunk in events) == 4_990


def test_an_object_that_never_ends_is_not_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "MAX_VALUE", 1_000)
    with pytest.raises(InputFileError, match="line 1: not JSON: Unterminated string"):
        list(read_events(written(tmp_path, "e.json", '[{"a": "' + "x" * 5_000_000)))


@pytest.mark.parametrize("name", ["e.csv.gz", "e.jsonl.zst"])
def test_compressed_data_that_is_cut_or_changed_is_an_error_that_names_the_file(tmp_path: Path, name: str) -> None:
    path = Path(written(tmp_path, name, (CSV if "csv" in name else LINES) * 500))
    whole = path.read_bytes()
    kind = "gzip" if name.endswith("gz") else "zstd"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputFileError, match=f"{path.name}: the {kind} data is damaged: it ends too early"):
        list(read_events(str(path), on_bad=lambda _: None))
    path.write_bytes(whole + b"junk")
    with pytest.raises(InputFileError, match=f"{path.name}: the {kind} data is damaged"):
        list(read_events(str(path), on_bad=lambda _: None))
    path.write_bytes(b"id,x\n1,2\n")
    with pytest.raises(InputFileError, match=f"{path.name}: this is not {kind}, which its name says"):
        list(read_events(str(path)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "e.csv",
            b"id;price\n1;2\n",
            "line 1: the only column is 'id;price', .*by semicolons",
        ),
        ("e.csv", b"\nid\tprice\n1\t2\n", "line 2: the only column is .*tabs; columns are separated by commas"),
        ("e.csv", bytes(range(256)), "this is not text: it holds NUL bytes"),
        ("e.csv", "id,x\n1,2\n".encode("utf-16"), "not UTF-8 but UTF-16"),
        ("e.csv", b"PAR1....", "this is Parquet, not CSV"),
        ("e.csv", b'id,x\n1,"a\n\n2,3\n', "line 2: a quoted value that begins here is never closed"),
        ("e.csv", b'"id', "line 1: a quoted value that begins here is never closed"),
        ("e.jsonl", bytes(range(256)), "line 1: not JSON"),
        ("e.jsonl", '{"a": 1}\n'.encode("utf-16"), "not UTF-8 but UTF-16"),
        ("e.csv", b'{"id": 1, "x": 2}\n', "this is JSON, not CSV"),
        ("e.csv", b' [\n {"id": 1}]', "this is JSON, not CSV"),
        ("e.csv", b",,x\n1,2,3\n", "line 1: two columns have no name"),
        ("e.parquet", b"id,x\n1,2\n", r"e\.parquet: .*[Pp]arquet"),
    ],
)
def test_what_is_something_else_is_said_so(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    with pytest.raises(InputFileError, match=said):
        list(read_events(written(tmp_path, name, content)))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_csv_may_have_any_line_ends_blank_lines_and_a_mark_at_its_start(
    tmp_path: Path, end: str, last: bool
) -> None:
    text = end.join(["\ufeffid,x", "1,a", "", '2,"b,c"', '3,"d\nd"', '4,5" wide']) + (end if last else "")
    assert [tuple(event.values()) for event in all_events(written(tmp_path, "e.csv", text))] == [
        (1, "a"),
        (2, "b,c"),
        (3, "d\nd"),
        (4, '5" wide'),
    ]


def test_every_bad_row_of_csv_is_told_with_its_line_and_all_others_are_read(tmp_path: Path) -> None:
    content = b'id,x,s\n1,1,a\n2\n\n3,2,"b\nb"\n4,5,6,7\n5,3,\xff\n\xfe\n6,4,c\n'
    bad: list[InputFileError] = []
    chunks = list(read_events(written(tmp_path, "e.csv", content), on_bad=bad.append))
    assert [name for chunk in chunks for name in chunk.names()] == [1, 3, 6]
    assert [row for chunk in chunks for row in chunk.rows] == [0, 2, 6]
    assert sorted(error.line or 0 for error in bad) == [3, 7, 8, 9]


def test_a_late_value_of_another_type_rejects_its_row_and_a_fraction_among_whole_numbers_is_fine(
    tmp_path: Path,
) -> None:
    rows = "".join(f"{n},5\n" for n in range(1_500_000))  # more than the part that types are inferred from
    path = written(tmp_path, "e.csv", f"id,x\n{rows}a,7\n8,2.5\n9,none\n")
    bad: list[InputFileError] = []
    last = {}
    for chunk in read_events(path, on_bad=bad.append):
        last = chunk.events.to_pylist()[-1]
    assert [error.line for error in bad] == [1_500_002, 1_500_004]
    assert last == {"id": 8, "x": 2.5}


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["007", "12"], ["007", "12"]),
        (["1", "-0", ""], [1, 0, None]),
        (["9223372036854775808", "1"], [9223372036854775808, 1]),
        (["1", "2.5", ".5", "1e3", "3."], [1.0, 2.5, 0.5, 1000.0, 3.0]),
        (["0x1F"], ["0x1F"]),
        (["+5", "5"], ["+5", "5"]),
        (["true", "FALSE"], [True, False]),
        (["true", "1"], ["true", "1"]),
        (["10:30:00"], ["10:30:00"]),
        (["2026-02-30"], ["2026-02-30"]),
        (["2026-1-5"], ["2026-1-5"]),
        (["9" * 40], ["9" * 40]),
    ],
)
def test_a_column_of_csv_is_of_the_type_of_which_all_its_cells_are(
    tmp_path: Path, cells: list[str], values: list[object]
) -> None:
    path = written(tmp_path, "e.csv", "x,y\n" + "".join(f"{cell},\n" for cell in cells))
    assert [event["x"] for event in all_events(path)] == values


def test_ids_that_do_not_fit_64_bits_are_names(tmp_path: Path) -> None:
    path = written(tmp_path, "e.csv", "id\n1\n9223372036854775808\n")
    assert [chunk.names() for chunk in read_events(path)] == [["1", "9223372036854775808"]]


class Dripping:
    """A file of which a few bytes come at a time, and that knows who reads it."""

    def __init__(self, content: bytes, step: int) -> None:
        self._pieces = [content[at : at + step] for at in range(0, len(content), step)]
        self.readers: set[int] = set()

    def read1(self, _: int) -> bytes:
        self.readers.add(threading.get_ident())
        return self._pieces.pop(0) if self._pieces else b""

    def fileno(self) -> int:
        raise OSError


def test_records_are_the_same_however_the_bytes_come() -> None:
    content = ('\ufeffa,b\r\n1,"x ""y""\r\n z"\r\n\r\n2,5" w\r3,\n4,"é"\n' * 3).encode()

    def records(step: int) -> Iterator[tuple[bytes, int]]:
        for part in read_records("e.csv", Blocks("e.csv", Dripping(content, step))):
            lines = part.lines
            yield from zip([part.text], [lines[0]], strict=True)

    whole = list(records(10_000))
    assert all(list(records(step)) == whole for step in range(1, 12))


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.jsonl", "e.json", "e.parquet"])
def test_only_the_thread_that_asks_reads_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A thread of Arrow's that reads a Python file while the interpreter ends takes the process down."""
    path = written(tmp_path, name, CSV if "csv" in name else LINES)
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(EVENTS), path)
    readers: set[int] = set()
    plain = open

    class Watched:
        def __init__(self, *arguments: object) -> None:
            self._file = plain(*arguments)  # type: ignore[call-overload]  # as it was called

        def __enter__(self) -> Watched:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def __getattr__(self, asked: str) -> object:
            readers.add(threading.get_ident())
            return getattr(self._file, asked)

    monkeypatch.setattr("builtins.open", Watched)
    assert len(all_events(path)) == 2
    assert readers <= {threading.get_ident()}
