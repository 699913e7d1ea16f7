"""Where the clauses of the range encoding are kept: in which cluster, and by which access path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harken.symmetric.contract import Side
from harken.symmetric.database.attributes import Attributes
from harken.symmetric.database.encodings import Spread
from harken.symmetric.database.ranges.query_plan import RangeQueries
from harken.symmetric.database.ranges.slots import CROWD, JOINT_SLOT, Digested, joint_value

if TYPE_CHECKING:
    from sqlalchemy import Connection

_CLUSTERS = 8
"""Every cluster is one more place to look."""

Key = tuple[str, ...]


class Placement(NamedTuple):
    """The place of a clause: the attribute that is its access path, its cluster, and its joint value there."""

    access: str
    cluster: int = 0
    joint: int | None = None


class Placements:
    """Chooses places. Has no state: threads may share it."""

    def __init__(self, attributes: Attributes, queries: RangeQueries) -> None:
        self._attributes = attributes
        self._queries = queries

    def choose(
        self, connection: Connection, side: Side, boxes: Sequence[Digested], spread: Spread | None
    ) -> list[Placement]:
        """A place for each clause; without `spread`, what is there already tells what is selective.

        Those that no attribute tells apart from many others go into clusters, as long as there are few of these.
        """
        if spread is None:
            crowds = self._queries.fewest(connection, side, boxes)
        else:
            crowds = [(_access(box, spread), spread.crowd(box)) for box in boxes]
        if all(crowd < CROWD for _, crowd in crowds):
            return [Placement(access) for access, _ in crowds]
        numbers = {each.key: each.number for each in self._attributes.known(connection, side, ()) if each.key}
        keys = [
            _key(box, numbers, spread) if crowd >= CROWD else ()
            for box, (_, crowd) in zip(boxes, crowds, strict=True)
        ]
        for key in sorted(set(keys) - {()}):
            numbers[key] = self._attributes.register_cluster(connection, side, key, 1 << JOINT_SLOT)
        return [
            Placement(access, numbers[key], joint_value(box, key)) if key else Placement(access)
            for box, key, (access, _) in zip(boxes, keys, crowds, strict=True)
        ]


def _access(box: Digested, spread: Spread) -> str:
    return min(box, key=lambda name: (box[name].selectivity, -spread.values.get(name, 0)))


def _key(box: Digested, numbers: dict[Key, int], spread: Spread | None) -> Key:
    """The longest of the keys of which a box has single values, or a new one, if there may be another."""
    single = {name for name, found in box.items() if found.value is not None}
    known = max((key for key in numbers if single.issuperset(key)), key=len, default=())
    if known or len(numbers) >= _CLUSTERS:
        return known
    common = single if spread is None else single & spread.common
    if len(common) < 2:
        return ()
    fresh = tuple(sorted(common))
    numbers[fresh] = 0  # until it is registered
    return fresh
