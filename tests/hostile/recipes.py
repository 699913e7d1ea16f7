"""Hostile inputs as data: reading the cases, and making the inputs that are too large or too odd for JSON.

A recipe is an object with one of the keys below, anywhere in a case's `input`:

    {"repeat": ["(", 10000]}          a text again and again
    {"numbered": ["a# = 1 AND ", 9]}  the same, with # replaced by 0, 1, 2, ...
    {"join": [recipe, ...]}           texts one after the other
    {"digits": 400}                   an integer of so many digits
    {"nest": ["k", 100, 1]}           {"k": {"k": ... 1}}
    {"pairs": [[5, 1]]}               a mapping whose keys are no strings
    {"bytes": "00ff"}                 bytes, in hexadecimal
    {"parquet": {column: values}}     a Parquet file; "keep": its first bytes; "overwrite": [from, to)
    {"float": "nan"}, {"decimal": "1e9"}, {"complex": "1j"}, {"date": "..."}, {"datetime": "..."}
"""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pyarrow.parquet as pq

from harken import errors

PATIENCE = 20
"""Seconds in which every input must have been dealt with."""


@dataclass(frozen=True)
class Case:
    """One hostile input: where it goes, and how it must be refused (or, without an error, what it gives)."""

    name: str
    to: str
    input: object
    error: str | None = None
    says: str = ""
    expression: str = "TRUE"
    schema: dict[str, str] | None = None
    result: bool | None = None
    status: int = 2

    def make(self) -> object:
        """The input, its recipes followed."""
        return made(self.input)

    @property
    def error_class(self) -> type[errors.HarkenError]:
        """The class of the error that must be raised."""
        found: type[errors.HarkenError] = getattr(errors, str(self.error))
        return found


def cases(*places: str) -> list[Case]:
    """The cases that go to one of these places."""
    text = (Path(__file__).parent / "inputs.jsonl").read_text(encoding="utf-8")
    found = [Case(**json.loads(line)) for line in text.splitlines()]
    return [case for case in found if not places or case.to in places]


def made(value: object) -> object:
    """What a recipe makes; plain values are themselves."""
    if isinstance(value, list):
        return [made(each) for each in value]
    if not isinstance(value, dict):
        return value
    for key, make in _RECIPES.items():
        if key in value:
            return make(value)
    return {key: made(each) for key, each in value.items()}


def _nested(recipe: dict[str, object]) -> object:
    key, depth, value = recipe["nest"]  # type: ignore[misc]
    for _ in range(depth):
        value = {key: value}
    return value


def _parquet(recipe: dict[str, object]) -> bytes:
    columns = made(recipe["parquet"])
    assert isinstance(columns, dict)
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    content = bytearray(sink.getvalue())
    if "overwrite" in recipe:
        start, stop = recipe["overwrite"]  # type: ignore[misc]
        content[start:stop] = b"\xff" * (stop - start)
    return bytes(content[: recipe.get("keep", len(content))])  # type: ignore[misc]


_RECIPES = {
    "repeat": lambda recipe: made(recipe["repeat"][0]) * recipe["repeat"][1],
    "numbered": lambda recipe: "".join(
        recipe["numbered"][0].replace("#", str(n)) for n in range(recipe["numbered"][1])
    ),
    "join": lambda recipe: "".join(made(recipe["join"])),
    "digits": lambda recipe: 10 ** (recipe["digits"] - 1),
    "nest": _nested,
    "pairs": lambda recipe: dict(recipe["pairs"]),
    "bytes": lambda recipe: bytes.fromhex(recipe["bytes"]),
    "parquet": _parquet,
    "float": lambda recipe: float(recipe["float"]),
    "decimal": lambda recipe: Decimal(recipe["decimal"]),
    "complex": lambda recipe: complex(recipe["complex"]),
    "date": lambda recipe: date.fromisoformat(recipe["date"]),
    "datetime": lambda recipe: datetime.fromisoformat(recipe["datetime"]),
}


def write(folder: Path, name: str, content: object) -> Path:
    """A file with this content, text or bytes."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else str(content).encode())
    return path


@contextmanager
def promptly(patience: int = PATIENCE) -> Iterator[None]:
    """Fail what takes too long instead of waiting for it."""

    def stop(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"not done after {patience} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(patience)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
