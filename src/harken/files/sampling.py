"""What the beginning of a file of events tells of all of it, for those who have others read the file.

Spark gives a column one type for all of a file, and has rules of its own for which. Told the types that are found
here it reads as `read_events` does; where it cannot, it can be said what will differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from harken.errors import EmptyFileError, InputFileError
from harken.files.cells import inferred, quick
from harken.files.formats import Format
from harken.files.lines import begins_over_lines, read_batches
from harken.files.tables import open_csv
from harken.model.values import INT_MAX, INT_MIN, Type

SAMPLE = 20_000
"""Objects of JSON that are looked at."""

_EXACT = 2**53
_KINDS = {bool: "booleans", int: "numbers", float: "numbers", str: "strings", list: "lists", dict: "objects"}


@dataclass(frozen=True, slots=True)
class CsvSample:
    """The columns of a CSV file with the types of their first values, None where all are empty."""

    types: dict[str, Type | None] = field(default_factory=dict)
    wide: frozenset[str] = frozenset()
    """Columns of whole numbers, some of which do not fit 64 bits."""
    over_lines: bool = False
    """Whether some record is longer than a line."""


def sample_csv(path: str) -> CsvSample:
    """Look at the part of a CSV file that types are inferred from."""
    try:
        with open_csv(path, on_bad=lambda _: None) as file:
            part = next(file.parts(), None)
            if part is None:
                return CsvSample(dict.fromkeys(file.names))
            columns = dict(zip(file.names, part.table.columns, strict=True))
            types = {name: inferred(column) for name, column in columns.items()}
            whole = (name for name, kind in types.items() if kind is Type.INT)
            wide = frozenset(name for name in whole if _is_wide(columns[name]))
            return CsvSample(types, wide, part.lines.over_lines)
    except EmptyFileError:
        return CsvSample()


def _is_wide(column: pa.ChunkedArray) -> bool:
    made = quick(column, Type.INT)
    return made is not None and pa.types.is_decimal(made.type)


@dataclass(frozen=True, slots=True)
class JsonSample:
    """Whether objects span lines, and what is to be said of attributes that one column cannot hold as they are."""

    over_lines: bool
    remarks: list[str]


def sample_json(path: str, *others: str) -> JsonSample:
    """Look at the first objects of a JSON file, and of others that are read together with it."""
    over_lines = begins_over_lines(path)
    seen: dict[str, _Seen] = {}
    for each in (path, *others):
        _see(each, over_lines, seen)
    remarks = ((name, each.remark()) for name, each in seen.items())
    return JsonSample(over_lines, [f"attribute {name!r} {said}" for name, said in remarks if said is not None])


def _see(path: str, over_lines: bool, seen: dict[str, _Seen]) -> None:
    try:
        batches = read_batches(path, Format.JSON if over_lines else Format.JSONL, lambda _: None)
        objects = (each for batch in batches for each in batch.objects)
        for each in islice(objects, SAMPLE):
            for name, value in _leaves(each, ""):
                seen.setdefault(name, _Seen()).note(value)
    except InputFileError:
        pass  # whoever reads all of it will come to it too


def _leaves(part: Mapping[str, object], prefix: str, depth: int = 1) -> Iterator[tuple[str, object]]:
    for key, value in part.items():
        if value is None:
            continue
        yield prefix + key, value
        if isinstance(value, dict) and depth < 8:
            yield from _leaves(value, f"{prefix}{key}.", depth + 1)


@dataclass(slots=True)
class _Seen:
    """The kinds of values that an attribute has had."""

    kinds: set[str] = field(default_factory=set)
    fractions: bool = False
    large: bool = False
    """Whole numbers that a float does not hold exactly."""
    huge: bool = False
    """Whole numbers past 64 bits."""

    def note(self, value: object) -> None:
        self.kinds.add(_KINDS[type(value)])
        if isinstance(value, float):
            self.fractions = True
        elif type(value) is int:
            self.large |= abs(value) > _EXACT
            self.huge |= not INT_MIN <= value <= INT_MAX

    def remark(self) -> str | None:
        if len(self.kinds) > 1:
            kinds = " and ".join(sorted(self.kinds))
            return f"holds {kinds}: one column cannot, and Spark reads all of it as text"
        if self.huge:
            return "holds whole numbers past 64 bits, which Spark reads as decimals"
        if self.fractions and self.large:
            return "holds fractions and whole numbers past 2^53, which Spark rounds to floats"
        return None
