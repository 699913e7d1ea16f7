"""Slots: under what the rows of the range encoding are found.

A slot is an attribute, what the row is about, the form of its interval, and whether it is the access path of its
clause. Databases keep a row under its slot and its place in it, so that one look into an index finds what meets an
interval:

| form | interval | found by |
|---|---|---|
| POINT | one key | the key, between the bounds of what is asked |
| UP | unbounded above | its lower bound, up to the upper bound of what is asked |
| DOWN | unbounded below | its upper bound, from the lower bound of what is asked |
| SEGMENT | bounded | an index of ranges |
| BOUNDED, OPEN | shapes that lie within something, or not | an index of boxes |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple, TypeAlias

from harken.model.values import Kind
from harken.symmetric.contract import Side
from harken.symmetric.database.rows import (
    ALL_NUMBERS,
    ALL_STRINGS,
    Key,
    KeySpan,
    ShapePlace,
    Sort,
    all_keys,
    places_of,
    sort_of,
    spans_of,
)
from harken.symmetric.database.sql.dialect import Keys
from harken.symmetric.pointsets import Anything, Intervals, Lying, PointSet, Shapes, is_single
from harken.symmetric.semantics import Box

_FORMS, _ACCESS = 4, 2
OF_ATTRIBUTE = 64
"""An attribute has so many slots, and a bit for each in what is known of it."""


CROWD = 64
"""So many clauses that an attribute does not tell apart are worth a cluster."""


class IntervalForm(IntEnum):
    """How an interval, or a set of shapes, is bounded. Numbers are stored: they must not change."""

    POINT = 0
    UP = 1
    DOWN = 2
    SEGMENT = 3
    BOUNDED = 0
    OPEN = 1


class Family(StrEnum):
    """Tables of rows that compare alike."""

    NUMBERS = "numbers"
    STRINGS = "strings"
    SHAPES = "shapes"

    @property
    def keys(self) -> Keys | None:
        """What its keys are; shapes have none."""
        return None if self is Family.SHAPES else "bytes" if self is Family.STRINGS else "number"

    @property
    def asked(self) -> str:
        """Under which name statements read what is asked."""
        return f"asked_{self}"

    def table(self, side: Side) -> str:
        """The table of what is held."""
        return f"{side}_{self}"


FAMILY: dict[Sort, Family] = {
    **dict.fromkeys((Sort.NUMBER, Sort.BOOL, Sort.DATE, Sort.TIMESTAMP), Family.NUMBERS),
    Sort.STRING: Family.STRINGS,
    Sort.SHAPE: Family.SHAPES,
}


class Part(NamedTuple):
    """One alternative of a set of points, as a row of its family has it."""

    family: Family
    sort: Sort
    form: IntervalForm
    said: KeySpan | ShapePlace


def parts_of(points: PointSet) -> Iterator[Part]:
    """The alternatives of a set. Anything is a row in every family, so that each can be searched alone."""
    match points:
        case Anything():
            yield Part(Family.NUMBERS, Sort.ANYTHING, IntervalForm.DOWN, ALL_NUMBERS)
            yield Part(Family.STRINGS, Sort.ANYTHING, IntervalForm.DOWN, ALL_STRINGS)
            yield Part(Family.SHAPES, Sort.ANYTHING, IntervalForm.OPEN, places_of(points)[0])
        case Intervals():
            sort = sort_of(points)
            for span in spans_of(points):
                yield Part(FAMILY[sort], sort, _form(span), span)
        case Shapes() | Lying():
            for place in places_of(points):
                form = IntervalForm.BOUNDED if place.bounded else IntervalForm.OPEN
                yield Part(Family.SHAPES, Sort.SHAPE, form, place)


def _form(span: KeySpan) -> IntervalForm:
    if span.is_point:
        return IntervalForm.POINT
    if not span.has_low:
        return IntervalForm.DOWN
    return IntervalForm.SEGMENT if span.has_high else IntervalForm.UP


def slot(sort: Sort, form: IntervalForm, *, is_access: bool) -> int:
    """A slot among those of its attribute."""
    return (sort * _FORMS + form) * _ACCESS + is_access


JOINT_SLOT = slot(Sort.NUMBER, IntervalForm.POINT, is_access=True)
"""The slot of the joint values of a cluster."""


def sort_of_slot(number: int) -> Sort:
    """What rows of a slot are about."""
    return Sort(number % OF_ATTRIBUTE // (_FORMS * _ACCESS))


def slots_to_search(used: int, part: Part) -> Iterator[tuple[int, IntervalForm, bool]]:
    """The slots in use that may have what meets a part, each with its form and whether it has access paths.

    Part of what is asked for anything at all has to be sought among all that its family has.
    """
    for number in [bit for bit in range(used.bit_length()) if used >> bit & 1]:
        sort, form = Sort(number // (_FORMS * _ACCESS)), IntervalForm(number // _ACCESS % _FORMS)
        if sort in (part.sort, Sort.ANYTHING) or (part.sort is Sort.ANYTHING and FAMILY[sort] is part.family):
            yield number, form, bool(number % _ACCESS)


def keys_to_search(form: IntervalForm, span: KeySpan) -> tuple[Key, Key]:
    """Between what keys a slot of this form has what may meet an interval."""
    least, _, greatest, _ = all_keys(span.low)
    return least if form is IntervalForm.UP else span.low, greatest if form is IntervalForm.DOWN else span.high


@dataclass(frozen=True, slots=True)
class Digest:
    """A set of points, as rows need it."""

    parts: tuple[Part, ...]
    selectivity: int
    """How little it is likely to allow, by its form alone: least is best."""
    value: str | None
    """Its value, if it is a single one of an ordered kind: the same text for equal values."""

    @classmethod
    def of(cls, points: PointSet) -> Digest:
        """All there is to know of a set."""
        parts = tuple(parts_of(points))
        return cls(parts, _selectivity(points), _value(parts[0]) if is_single(points) else None)


Digested: TypeAlias = Mapping[str, Digest]
"""A box of digests."""


def digested(boxes: Sequence[Box]) -> list[Digested]:
    """Digests of boxes, each made once: among many constraints the same set is often the same object."""
    # With the set itself, so that no other gets its place in memory.
    known: dict[int, tuple[PointSet, Digest]] = {}
    for box in boxes:
        for points in box.values():
            if id(points) not in known:
                known[id(points)] = points, Digest.of(points)
    return [{name: known[id(points)][1] for name, points in box.items()} for box in boxes]


def joint_value(box: Digested, key: Sequence[str]) -> int | None:
    """One number for the single values of attributes, the same for equal values; None if one is not single."""
    values = [box[name].value if name in box else None for name in key]
    if None in values:
        return None
    digest = hashlib.blake2b(json.dumps(values).encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def _value(part: Part) -> str:
    low = part.said[0]  # type: ignore[index]  # a span
    if isinstance(low, bytes):
        return low.decode()
    return f"{part.sort:d} {int(low) if isinstance(low, float) and low.is_integer() else low}"


def _selectivity(points: PointSet) -> int:
    match points:
        case Intervals(kind=kind, intervals=intervals):
            if all(each.is_point for each in intervals):
                return 0 if len(intervals) == 1 and kind is not Kind.BOOL else 1
            bounded = all(each.low is not None and each.high is not None for each in intervals)
            return 2 if bounded else 3
        case Shapes(values=values):
            return min(len(values), 2) - 1
        case Lying():
            return 2
    return 4
