"""The query plan of the range encoding: by which access path candidates are found, and how they are verified.

Say that `price BETWEEN 1 AND 9 AND maker = 'Sony'` is asked, and its attributes decide. The plan is:

1. Each attribute becomes lookups, one for each slot in use that may have what meets it (`slots.py`): of `price`
   the points, the intervals without an upper bound and so on, each with the range of keys to look at there.
2. One statement counts the rows that each attribute finds, up to a limit. Say `maker` finds fewer: it is the
   **access path**. (If those of what is held decide, each clause has had an access path since it was added, and
   nothing is counted. If there are clusters, the joint value of what is asked is the access path there.)
3. Another statement takes the rows that the access path finds as candidates, and keeps those that meet what is
   asked in all other attributes, here `price` (`statements.py`).

What is asked travels with the statement, as rows: many boxes go together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from harken.symmetric.contract import Side
from harken.symmetric.database.attributes import Attribute, Attributes, Cluster
from harken.symmetric.database.encodings import PLACE, Decides, Found
from harken.symmetric.database.ranges.slots import (
    CROWD,
    JOINT_SLOT,
    OF_ATTRIBUTE,
    Digest,
    Digested,
    Digests,
    Family,
    IntervalForm,
    Part,
    joint_value,
    keys_to_search,
    slots_to_search,
)
from harken.symmetric.database.ranges.statements import (
    FAMILY_KEYS,
    Search,
    Way,
    counting_statement,
    matching_statement,
    source_name,
)
from harken.symmetric.database.rows import ShapePlace
from harken.symmetric.database.schema import Layout
from harken.symmetric.database.sql.dialect import Row, Source, Word
from harken.symmetric.semantics import Box

if TYPE_CHECKING:
    from sqlalchemy import Connection, TextClause

_TOGETHER = 2_000
"""Rows of what is asked that one statement takes where candidates need no verification."""

_JOINT = -1
"""In place of an attribute, for a joint value."""

_COUNTED = (CROWD, 4_096)
"""How far rows are counted to find the attribute that has the fewest: farther, if none has fewer than that."""


def span_columns(keys: Word) -> dict[str, Word]:
    """The columns of an interval."""
    return {"low": keys, "low_closed": "truth", "high": keys, "high_closed": "truth"}


def _columns(family: Family) -> dict[str, Word]:
    common: dict[str, Word] = {"ask": "whole", "attribute": "whole", "slot": "whole", "access": "truth"}
    keys = FAMILY_KEYS[family]
    if keys is None:
        return {**common, "near": "truth", **PLACE}
    return {**common, "segment": "truth", "key_low": keys, "key_high": keys, **span_columns(keys)}


class _Lookup(NamedTuple):
    """In which slot to look for what, and how."""

    family: Family
    slot: int
    is_access: bool
    """Whether rows of the slot are the access path of their clause."""
    way: Way
    columns: Row


@dataclass(slots=True)
class _Query:
    """A box that is asked about in one cluster: where to look, attribute by attribute, or by the joint value."""

    number: int
    ask: int
    lookups: list[list[_Lookup]]
    selectivity: list[int]
    joint: _Lookup | None

    @property
    def rows(self) -> int:
        """How many rows it takes to ask."""
        return sum(map(len, self.lookups)) + (self.joint is not None)


class RangeQueries:
    """Asks one database. Has no state but statements; threads may share it."""

    def __init__(self, layout: Layout, attributes: Attributes) -> None:
        self._layout = layout
        self._dialect = layout.dialect
        self._attributes = attributes
        self._text = lru_cache(maxsize=1_000)(_text)

    def find(
        self, connection: Connection, side: Side, asked: Sequence[Box], decides: Decides, at: int
    ) -> Iterator[Found]:
        """Candidates by one attribute, or by the joint value of some, verified by the others."""
        digests = Digests()
        queries = self._queries(connection, side, [digests.of(box) for box in asked])
        for number, held, id in self._find(connection, side, queries, decides, at):
            yield queries[number].ask, held, id

    def _find(
        self, connection: Connection, side: Side, queries: Sequence[_Query], decides: Decides, at: int
    ) -> Iterator[Found]:
        together = self._dialect.explained
        if decides == "held":
            for chunk in _chunks([each for each in queries if any(each.lookups)], together):
                yield from self._by_held(connection, side, chunk, at)
            return
        # What nobody constrains, nobody matches.
        possible = [each for each in queries if all(each.lookups)]
        for chunk in _chunks([each for each in possible if len(each.lookups) == 1], _TOGETHER):
            yield from self._by_asked(connection, side, chunk, {each.number: 0 for each in chunk}, at)
        for chunk in _chunks([each for each in possible if len(each.lookups) > 1], together):
            groups = [[each] for each in chunk if each.joint is None]
            fewest = self._fewest(connection, side, groups, _COUNTED)
            access = {each.number: attribute for [each], (attribute, _) in zip(groups, fewest, strict=True)}
            yield from self._by_asked(connection, side, chunk, access, at)

    def fewest(self, connection: Connection, side: Side, boxes: Sequence[Digested]) -> list[tuple[str, float]]:
        """The attribute of each box that the fewest of what is held meet, and how many, as far as is counted."""
        groups: list[list[_Query]] = [[] for _ in boxes]
        for each in self._queries(connection, side, boxes):
            groups[each.ask].append(each)
        several = [group for group in groups if len(group[0].lookups) > 1]
        found = [(next(iter(box)), 0.0) for box in boxes]
        for group, (attribute, count) in zip(
            several, self._fewest(connection, side, several, _COUNTED[:1]), strict=True
        ):
            found[group[0].ask] = list(boxes[group[0].ask])[attribute], count
        return found

    # ---------------------------------------------------------------- where to look

    def _queries(self, connection: Connection, side: Side, boxes: Sequence[Digested]) -> list[_Query]:
        clusters = self._attributes.known(connection, side, {name for box in boxes for name in box})
        queries: list[_Query] = []
        for ask, box in enumerate(boxes):
            ranks = [each.selectivity for each in box.values()]
            for cluster in clusters:
                known = cluster.attributes
                lookups = [list(self._lookups(known.get(name), each)) for name, each in box.items()]
                joint = self._joint(cluster, box) if cluster.used else None
                queries.append(_Query(len(queries), ask, lookups, ranks, joint))
        return queries

    def _joint(self, cluster: Cluster, box: Digested) -> _Lookup | None:
        value = joint_value(box, cluster.key)
        if value is None:
            return None
        key = self._dialect.number(value)
        slot = cluster.number * OF_ATTRIBUTE + JOINT_SLOT
        return _Lookup(Family.NUMBERS, slot, True, "key", (False, key, key, key, True, key, True))

    def _lookups(self, attribute: Attribute | None, digest: Digest) -> Iterator[_Lookup]:
        if attribute is None:
            return
        for part in digest.parts:
            for place, form, is_access in slots_to_search(attribute.used, part):
                way, columns = self._lookup(form, part)
                yield _Lookup(part.family, attribute.number * OF_ATTRIBUTE + place, is_access, way, columns)

    def _lookup(self, form: IntervalForm, part: Part) -> tuple[Way, Row]:
        if isinstance(part.said, ShapePlace):
            near = part.said.bounded or form is IntervalForm.BOUNDED
            return "near" if near else "all", (near, *part.said.columns)
        low, low_closed, high, high_closed = part.said
        keys = self._keys(part.family, *keys_to_search(form, part.said), low, high)
        segment = form is IntervalForm.SEGMENT
        return "near" if segment else "key", (segment, *keys[:3], low_closed, keys[3], high_closed)

    def _keys(self, family: Family, *keys: object) -> Sequence[object]:
        return [self._dialect.number(each) for each in keys] if family is Family.NUMBERS else keys  # type: ignore[arg-type]

    # ---------------------------------------------------------------- asking

    def _fewest(
        self, connection: Connection, side: Side, groups: Sequence[Sequence[_Query]], limits: Sequence[int]
    ) -> list[tuple[int, int]]:
        """For each group of queries about one box, the attribute with the fewest rows, and how many it has."""
        fewest = [(0, 0)] * len(groups)
        pending = list(range(len(groups)))
        for most in limits:
            if not pending:
                break
            found = self._count(connection, side, [each for at in pending for each in groups[at]], most)
            for at in pending:
                ranked = [
                    (sum(found[each.number, attribute] for each in groups[at]), rank, attribute)
                    for attribute, rank in enumerate(groups[at][0].selectivity)
                ]
                count, _, attribute = min(ranked)
                fewest[at] = attribute, count
            pending = [at for at in pending if fewest[at][1] >= most]
        return fewest

    def _count(
        self, connection: Connection, side: Side, queries: Sequence[_Query], most: int
    ) -> Counter[tuple[int, int]]:
        given = _Input()
        for query, attribute, lookup in _all_lookups(queries):
            given.add(query, attribute, lookup, access=True)
        found: Counter[tuple[int, int]] = Counter()
        if given.ways:
            statement = counting_statement(self._layout, Search(side, tuple(sorted(given.ways)), ()))
            for number, attribute, count in self._execute(connection, statement, given.sources(), most=most):
                found[number, attribute] += count
        return found

    def _by_asked(
        self, connection: Connection, side: Side, queries: Sequence[_Query], access: dict[int, int], at: int
    ) -> Iterator[Found]:
        """By one attribute of each, its access path, or by the joint value; the other attributes are wanted."""
        given = _Input()
        for query, attribute, lookup in _all_lookups(queries):
            given.add(query, attribute, lookup, access=access.get(query.number) == attribute)
        for each in queries:
            if each.number not in access and each.joint is not None:
                given.add(each, _JOINT, each.joint, access=True)
        wanted = [
            (each.number, attribute)
            for each in queries
            for attribute in range(len(each.lookups))
            if attribute != access.get(each.number)
        ]
        sources = given.sources()
        if wanted:
            sources.append(Source("wanted", {"ask": "whole", "attribute": "whole"}, wanted))
        search = Search(side, tuple(sorted(given.ways)), tuple(given.rows) if wanted else ())
        statement = matching_statement(self._layout, search, "asked")
        yield from self._execute(connection, statement, sources, at=at)

    def _by_held(self, connection: Connection, side: Side, queries: Sequence[_Query], at: int) -> Iterator[Found]:
        """By the access paths of what is held, or by the joint value."""
        given = _Input()
        for query, attribute, lookup in _all_lookups(queries):
            given.add(query, attribute, lookup, access=lookup.is_access and query.joint is None)
        for each in queries:
            if each.joint is not None:
                given.add(each, _JOINT, each.joint, access=True)
        if given.ways:
            search = Search(side, tuple(sorted(given.ways)), tuple(given.rows))
            statement = matching_statement(self._layout, search, "held")
            yield from self._execute(connection, statement, given.sources(), at=at)

    def _execute(
        self, connection: Connection, statement: str, sources: Sequence[Source], **parameters: int
    ) -> Iterator[tuple[int, int, Any]]:
        with_asked, arrays = self._dialect.ask(connection, sources)
        for row in connection.execute(self._text(f"{with_asked} {statement}"), {**arrays, **parameters}):
            yield row[0], row[1], row[2]


class _Input:
    """Rows of what is asked, by family, and the ways to take for those that give access."""

    def __init__(self) -> None:
        self.rows: dict[Family, list[Row]] = {}
        self.ways: set[tuple[Family, Way]] = set()

    def add(self, query: _Query, attribute: int, lookup: _Lookup, *, access: bool) -> None:
        """A row."""
        row = (query.number, attribute, lookup.slot, access, *lookup.columns)
        self.rows.setdefault(lookup.family, []).append(row)
        if access:
            self.ways.add((lookup.family, lookup.way))

    def sources(self) -> list[Source]:
        """All rows, for statements to read."""
        return [Source(source_name(family), _columns(family), rows) for family, rows in self.rows.items()]


def _all_lookups(queries: Iterable[_Query]) -> Iterator[tuple[_Query, int, _Lookup]]:
    for query in queries:
        for attribute, lookups in enumerate(query.lookups):
            for lookup in lookups:
                yield query, attribute, lookup


def _chunks(queries: Sequence[_Query], rows: int) -> Iterator[list[_Query]]:
    """Questions that go together: as many as fit so many rows, and at least one."""
    chunk: list[_Query] = []
    size = 0
    for each in queries:
        if chunk and size + each.rows > rows:
            yield chunk
            chunk, size = [], 0
        chunk.append(each)
        size += each.rows
    if chunk:
        yield chunk


def _text(statement: str) -> TextClause:
    from sqlalchemy import text

    return text(statement)
