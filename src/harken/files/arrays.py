"""JSON that is not one object per line: an array of objects, or objects over several lines one after the other.

Values are read one by one as the text comes in, so that a file larger than memory can be read.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from harken.errors import InputFileError
from harken.files.formats import OnBad, raise_or_tell, shown
from harken.files.json_text import DECODER, expect_object

MAX_VALUE = 64 * 2**20
"""Characters of one value: what never ends is not read into memory."""

_SPACE = re.compile(r"[ \t\r\n]*")
_LENIENT = json.JSONDecoder(parse_int=str)


def objects_in_text(
    path: str, pieces: Iterator[bytes], on_bad: OnBad | None
) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects with the lines on which they begin. A text that is no JSON ends the reading."""
    text = _Text(path, pieces)
    closing = "]" if text.next() == "[" else ""
    if closing:
        text.skip()
    first = True
    while text.next() != closing:
        if closing and not first:
            text.expect(",")
        first = False
        line = text.line_here()
        try:
            value = expect_object(text.value())
        except InputFileError:
            raise
        except ValueError as error:
            raise_or_tell(InputFileError(shown(path), str(error), line=line), on_bad)
        else:
            yield line, value
    if closing:
        text.skip()
        text.expect("")


class _Text:
    """The text of a file, as far as it has been read, and the place in it that has been reached."""

    def __init__(self, path: str, pieces: Iterator[bytes]) -> None:
        self._path = shown(path)
        self._pieces = pieces
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text = ""
        self._at = 0
        self._line = 1
        self._over = False

    def next(self) -> str:
        """The next character that is no space; nothing at the end."""
        while True:
            self._move(_SPACE.match(self._text, self._at).end())  # type: ignore[union-attr]  # matches nothing too
            if self._at < len(self._text) or self._over:
                return self._text[self._at : self._at + 1]
            self._more()

    def line_here(self) -> int:
        """The line of the next character that is no space."""
        self.next()
        return self._line

    def skip(self) -> None:
        """Go past one character."""
        self._move(self._at + 1)

    def expect(self, wanted: str) -> None:
        """Go past a character that has to come next, or the end."""
        found = self.next()
        if found != wanted:
            raise self._broken(f"expected {_quoted(wanted)}, found {_quoted(found)}")
        self._move(self._at + len(wanted))

    def value(self) -> object:
        """The JSON value that comes next."""
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._over or not self._may_go_on(error):
                    raise self._broken(error.msg, error.pos) from None
            except RecursionError:
                raise self._broken("it nests too deeply") from None
            except ValueError:  # it is JSON, but not as strictly as we read it
                self._move(_LENIENT.raw_decode(self._text, self._at)[1])
                raise
            else:
                if end < len(self._text) or self._over:  # a number might go on
                    self._move(end)
                    return value
            self._more()

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether what comes could still make it JSON; if not, there is no need to read all of it."""
        if len(self._text) - self._at > MAX_VALUE:
            return False
        return error.msg.startswith("Unterminated") or error.pos > len(self._text) - len("\\ud800\\udc00")

    def _more(self) -> None:
        """Read on, twice as far as what is begun, so that a long value is not parsed over and over."""
        kept = self._text[self._at :]
        parts, length = [kept], 0
        while length <= len(kept) and not self._over:
            piece = next(self._pieces, b"")
            self._over = not piece
            try:
                parts.append(self._decode(piece, self._over))
            except UnicodeDecodeError:
                raise InputFileError(self._path, "not UTF-8, from here on", line=self._line) from None
            length += len(parts[-1])
        self._text, self._at = "".join(parts), 0

    def _move(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _broken(self, said: str, at: int | None = None) -> InputFileError:
        line = self._line + (0 if at is None else self._text.count("\n", self._at, at))
        return InputFileError(self._path, f"not JSON: {said}", line=line)


def _quoted(character: str) -> str:
    return repr(character) if character else "the end"
