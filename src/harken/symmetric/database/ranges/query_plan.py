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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harken.symmetric.database.attributes import Attribute, Attributes, Cluster
from harken.symmetric.database.encodings import Decides, Found
from harken.symmetric.database.ranges.slots import (
    CROWD,
    JOINT_SLOT,
    OF_ATTRIBUTE,
    Digest,
    Digested,
    Family,
    IntervalForm,
    Part,
    digested,
    joint_value,
    keys_to_search,
    slots_to_search,
)
from harken.symmetric.database.ranges.statements import Search, Way
from harken.symmetric.database.rows import ShapePlace
from harken.symmetric.database.sides import OpenSide
from harken.symmetric.database.sql.dialect import Row
from harken.symmetric.semantics import Box

_TOGETHER = 2_000
"""Rows of what is asked that one statement takes where candidates need no verification."""

_JOINT = -1
"""In place of an attribute, for a joint value."""

_COUNTED = (CROWD, 4_096)
"""How far rows are counted to find the attribute that has the fewest: farther, if none has fewer than that."""


class _Lookup(NamedTuple):
    """In which slot to look for what, and how."""

    family: Family
    slot: int
    is_access: bool
    """Whether rows of the slot are the access path of their clause."""
    way: Way
    columns: Row

    def asked(self, query: _Query, attribute: int, *, access: bool) -> tuple[Family, Way, Row]:
        """The row that asks for it."""
        return self.family, self.way, (query.number, attribute, self.slot, access, *self.columns)


@dataclass(slots=True)
class _Query:
    """A box that is asked about in one cluster: where to look, attribute by attribute, or by the joint value."""

    number: int
    ask: int
    lookups: list[list[_Lookup]]
    selectivity: list[int]
    joint: _Lookup | None
    access: int | None = None
    """The attribute that is its access path, if it has one and those of what is asked decide."""

    @property
    def rows(self) -> int:
        """How many rows it takes to ask."""
        return sum(map(len, self.lookups)) + (self.joint is not None)

    def each(self) -> Iterator[tuple[int, _Lookup]]:
        """All lookups, each with its attribute."""
        for attribute, lookups in enumerate(self.lookups):
            for lookup in lookups:
                yield attribute, lookup

    def gives_access(self, attribute: int, lookup: _Lookup, decides: Decides) -> bool:
        """Whether what a lookup finds are candidates."""
        if decides == "asked":
            return attribute == self.access
        return lookup.is_access and self.joint is None


class RangeQueries:
    """Asks one side."""

    def __init__(self, side: OpenSide) -> None:
        self._side = side
        self._dialect = side.dialect

    def find(self, asked: Sequence[Box], decides: Decides, at: int) -> Iterator[Found]:
        """Candidates by one attribute, or by the joint value of some, verified by the others."""
        queries = self._queries(digested(asked))
        for chunk in self._portions(queries, decides):
            for number, held, id in self._matches(chunk, decides, at):
                yield queries[number].ask, held, id

    def _portions(self, queries: Sequence[_Query], decides: Decides) -> Iterator[list[_Query]]:
        """Queries that can match anything, as many as one statement takes, with their access paths."""
        together = self._dialect.explained
        if decides == "held":
            yield from _chunks([each for each in queries if any(each.lookups)], together)
            return
        # What nobody constrains, nobody matches.
        possible = [each for each in queries if all(each.lookups)]
        for chunk in _chunks([each for each in possible if len(each.lookups) == 1], _TOGETHER):
            for each in chunk:
                each.access = 0
            yield chunk
        for chunk in _chunks([each for each in possible if len(each.lookups) > 1], together):
            groups = [[each] for each in chunk if each.joint is None]
            fewest = self._fewest(groups, _COUNTED)
            for [each], (attribute, _) in zip(groups, fewest, strict=True):
                each.access = attribute
            yield chunk

    def fewest(self, boxes: Sequence[Digested]) -> list[tuple[str, float]]:
        """The attribute of each box that the fewest of what is held meet, and how many, as far as is counted."""
        groups: list[list[_Query]] = [[] for _ in boxes]
        for each in self._queries(boxes):
            groups[each.ask].append(each)
        several = [group for group in groups if len(group[0].lookups) > 1]
        found = [(next(iter(box)), 0.0) for box in boxes]
        counted = self._fewest(several, _COUNTED[:1])
        for group, (attribute, count) in zip(several, counted, strict=True):
            ask = group[0].ask
            found[ask] = list(boxes[ask])[attribute], count
        return found

    # ---------------------------------------------------------------- where to look

    def _queries(self, boxes: Sequence[Digested]) -> list[_Query]:
        clusters = Attributes(self._side).known({name for box in boxes for name in box})
        queries: list[_Query] = []
        for ask, box in enumerate(boxes):
            ranks = [each.selectivity for each in box.values()]
            for cluster in clusters.values():
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
        keys: Sequence[object] = (*keys_to_search(form, part.said), low, high)
        if part.family is Family.NUMBERS:
            keys = [self._dialect.number(each) for each in keys]  # type: ignore[arg-type]  # of keys
        segment = form is IntervalForm.SEGMENT
        return "near" if segment else "key", (segment, *keys[:3], low_closed, keys[3], high_closed)

    # ---------------------------------------------------------------- asking

    def _fewest(self, groups: Sequence[Sequence[_Query]], limits: Sequence[int]) -> list[tuple[int, int]]:
        """For each group of queries about one box, the attribute with the fewest rows, and how many it has."""
        fewest = [(0, 0)] * len(groups)
        pending = list(range(len(groups)))
        for most in limits:
            found = self._count([each for at in pending for each in groups[at]], most)
            for at in pending:
                ranked = [
                    (sum(found[each.number, attribute] for each in groups[at]), rank, attribute)
                    for attribute, rank in enumerate(groups[at][0].selectivity)
                ]
                count, _, attribute = min(ranked)
                fewest[at] = attribute, count
            pending = [at for at in pending if fewest[at][1] >= most]
        return fewest

    def _count(self, queries: Sequence[_Query], most: int) -> Counter[tuple[int, int]]:
        """By query and attribute, how many rows there are, counted up to a limit for each lookup."""
        search = Search(self._side)
        for query in queries:
            for attribute, lookup in query.each():
                search.add(*lookup.asked(query, attribute, access=True))
        found: Counter[tuple[int, int]] = Counter()
        for number, attribute, count in search.count(most):
            found[number, attribute] += count
        return found

    def _matches(self, queries: Sequence[_Query], decides: Decides, at: int) -> Iterator[Found]:
        """Candidates by the access paths of queries or by joint values, verified."""
        search = Search(self._side)
        for query in queries:
            for attribute, lookup in query.each():
                access = query.gives_access(attribute, lookup, decides)
                search.add(*lookup.asked(query, attribute, access=access))
            if query.joint is not None:
                search.add(*query.joint.asked(query, _JOINT, access=True))
        if decides == "held":
            return search.match(None, at)
        wanted = [
            (each.number, attribute)
            for each in queries
            for attribute in range(len(each.lookups))
            if attribute != each.access
        ]
        return search.match(wanted, at)


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
