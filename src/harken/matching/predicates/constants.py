"""What a constant leads to: the equality with it, and the sets that hold it.

Constants have places: each dimension owns a region of them, and codes count from where that begins.

    place = first[dimension] + code     equal[place]: the predicate `dimension = constant`, or -1
                                        members.head[place]: the first of the sets that hold it, or -1

A dimension that has outgrown its region gets another one, twice as large, at the end; the old one stays empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harken.matching.growing import GrowingArray
from harken.matching.saving import Arrays, State, require


class Members:
    """The sets of each constant: linked lists, by place. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self.head = GrowingArray(np.int32, fill=-1)
        self.next = GrowingArray(np.int32, fill=-1)
        self.predicate = GrowingArray(np.int32)
        self._free: list[int] = []

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return self.head.nbytes + self.next.nbytes + self.predicate.nbytes

    def make_room(self, places: int, more: int) -> None:
        """Have room for so many places, and for so many more constants in sets."""
        self.head.make_room(places)
        for array in (self.next, self.predicate):
            array.make_room(len(array) + more)

    def state(self) -> State:
        """The lists as they are."""
        free = np.array(self._free, np.int64)
        lists = {"head": self.head.values, "next": self.next.values, "predicate": self.predicate.values}
        return State({}, {**lists, "free": free})

    def restore(self, state: State) -> None:
        """Have the lists that others had."""
        self.head.hold(state.array("head", np.int32))
        self.next.hold(state.array("next", np.int32))
        self.predicate.hold(state.array("predicate", np.int32, size=len(self.next)))
        self._free = state.array("free", np.int64).tolist()
        self._check_free()

    def _check_free(self) -> None:
        """ValueError if the lists do not end, or a node that is free is in one."""
        following, free = self.next.values.tolist(), set(self._free)
        require(len(free) == len(self._free) <= len(following), "a place for a set is free twice")
        require(all(0 <= node < len(following) for node in free), "a place for a set is free that there is not")
        seen: set[int] = set()
        for node in self.head.values[self.head.values >= 0].tolist():
            while node >= 0:
                require(node < len(following) and node not in seen and node not in free, "a list does not end")
                seen.add(node)
                node = following[node]

    def add(self, place: int, predicate: int) -> None:
        """A set holds the constant at this place."""
        if self._free:
            node = self._free.pop()
        else:
            node = self.next.append(-1)
            self.predicate.append(0)
        self.predicate.values[node] = predicate
        self.next.values[node] = self.head.values[place]
        self.head.values[place] = node

    def discard(self, place: int, predicate: int) -> None:
        """It no longer does."""
        before, node = -1, int(self.head.values[place])
        while self.predicate.values[node] != predicate:
            before, node = node, int(self.next.values[node])
        following = self.next.values[node]
        if before < 0:
            self.head.values[place] = following
        else:
            self.next.values[before] = following
        self._free.append(node)


class ConstantIndex:
    """What constants lead to, by their places. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self.first = GrowingArray(np.int64)
        self.room: list[int] = []
        """Of each dimension: the codes that it has places for, those below."""
        self.equal = GrowingArray(np.int32, fill=-1)
        self.members = Members()

    @property
    def nbytes(self) -> int:
        """Bytes taken by what has a place."""
        return self.equal.nbytes + self.members.nbytes

    def state(self) -> Arrays:
        """The places of dimensions, and the equalities there; the sets have a state of their own."""
        room = np.array(self.room, np.int64)
        return {"equal_first": self.first.values, "equal_room": room, "equal": self.equal.values}

    def restore(self, state: State, members: State) -> None:
        """Lead to what another one led to."""
        self.first.hold(state.array("equal_first", np.int64))
        self.room = state.array("equal_room", np.int64).tolist()
        self.equal.hold(state.array("equal", np.int32))
        self.members.restore(members)

    def have_dimensions(self, count: int) -> None:
        """Have a region for this many dimensions; new ones begin without room."""
        if count > len(self.room):
            self.first.grow_to(count)
            self.room.extend([0] * (count - len(self.room)))

    def make_room(self, more: int, constants: Sequence[int]) -> None:
        """Have room for so many more constants of dimensions that have these. Nothing that others read changes."""
        moving = (
            _room_for(held + more) for held, room in zip(constants, self.room, strict=False) if held + more > room
        )
        places = len(self.equal) + max(moving, default=0) + 2 * more
        self.equal.make_room(places)
        self.members.make_room(places, more)

    def place(self, dimension: int, code: int) -> int:
        """The place of a constant; a dimension that has outgrown its region moves to another."""
        if code >= self.room[dimension]:
            self._move(dimension, _room_for(code))
        return int(self.first.values[dimension]) + code

    def _move(self, dimension: int, room: int) -> None:
        by_place = (self.equal, self.members.head)
        start, old, used = len(self.equal), int(self.first.values[dimension]), self.room[dimension]
        for array in by_place:
            array.grow_to(start + room)
        for array in by_place:
            array.values[start : start + used] = array.values[old : old + used]
        # Whatever fails from here on, the keys of clusters can be read.
        self.first.values[dimension] = start
        self.room[dimension] = room
        for array in by_place:
            array.values[old : old + used] = -1


def _room_for(code: int) -> int:
    """The places that a dimension gets which has come to have a code."""
    return max(16, 2 * code)
