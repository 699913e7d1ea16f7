"""JSON Lines are read strictly, and every refusal names the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken.errors import InputFileError
from harken.files import lines
from harken.files.lines import read_objects


def written(folder: Path, content: bytes) -> str:
    path = folder / "input.jsonl"
    path.write_bytes(content)
    return str(path)


def test_each_object_comes_with_its_line_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"a": 1}\n\n  \r\n{"b": [2, null, "\xc3\xa9"]}')
    assert list(read_objects(path)) == [(1, {"a": 1}), (4, {"b": [2, None, "é"]})]


def test_a_byte_order_mark_is_not_part_of_the_first_object(tmp_path: Path) -> None:
    assert list(read_objects(written(tmp_path, b'\xef\xbb\xbf{"a": 1}\n'))) == [(1, {"a": 1})]


def test_an_empty_file_holds_no_objects(tmp_path: Path) -> None:
    assert list(read_objects(written(tmp_path, b""))) == []


def test_line_separators_inside_strings_do_not_end_a_line(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": "x\u2028y\x85z"}\n'.encode())
    assert list(read_objects(path)) == [(1, {"a": "x\u2028y\x85z"})]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        (b'{"o": {"k": 1, "k": 1}}', "the key 'k' occurs twice"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e999}', "1e999 does not fit a 64-bit float"),
        (b'{"a": "\xff"}', "not UTF-8: byte 0xff at position 8"),
        (b'{"a": 1', "not JSON: Expecting ',' delimiter (column 8)"),
        (b'{"a": 1} {"b": 2}', "not JSON: Extra data (column 10)"),
        (b"[1, 2]", "expected a JSON object, found an array"),
        (b"null", "expected a JSON object, found null"),
        (b"7", "expected a JSON object, found a number"),
        (b'"x"', "expected a JSON object, found a string"),
        (b"true", "expected a JSON object, found a boolean"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "a number of 5,000 digits is too long"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "the JSON nests too deeply"),
    ],
    ids=lambda value: repr(value[:40]),
)
def test_what_is_no_plain_json_object_is_refused_with_its_line(tmp_path: Path, line: bytes, said: str) -> None:
    path = written(tmp_path, b'{"fine": 1}\n\n' + line + b"\n")
    with pytest.raises(InputFileError) as caught:
        list(read_objects(path))
    assert said in str(caught.value)
    assert (caught.value.path, caught.value.line) == (path, 3)


def test_whoever_collects_bad_lines_gets_them_all_and_the_good_ones_too(tmp_path: Path) -> None:
    bad: list[InputFileError] = []
    path = written(tmp_path, b'{"a": 1}\nnope\n{"a": 2}\n[]\n')
    assert [value["a"] for _, value in read_objects(path, bad.append)] == [1, 2]
    assert [error.line for error in bad] == [2, 4]


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    with pytest.raises(InputFileError, match="line 2: the line is longer than 100 bytes"):
        list(read_objects(written(tmp_path, b"{}\n" + b"x" * 101)))
