"""Subscription ids and the small integers (slots) that stand for them inside an engine.

Many ids are an Arrow array of int64 or string, as they stand in a table of subscriptions, and a few a list, which
is sooner made; many slots are a numpy array. Of integers by the million, no Python object is kept or made.
"""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.errors import DuplicateSubscriptionError, SubscriptionError, UnknownSubscriptionError
from harken.matching.contract import NO_SLOTS, Slots
from harken.matching.growing import places_for
from harken.matching.saving import State, require
from harken.model import capacity
from harken.model.subscriptions import SubscriptionId
from harken.model.values import INT_MAX, INT_MIN
from harken.portions import ALONE, AT_ONCE, BESIDE, DONE, Pace, Portions, done_at_once, in_parts

_STRINGS = pa.schema([("id", pa.string())])

FEW = 1_000
"""Up to so many ids, a dictionary is quicker than loading the kernels."""

PORTION = 1_000
"""Ids that become Python objects at a time, and ids whose sizes are taken for those of all."""

SHORT = 8
"""Fewer ids are looked up one by one sooner than they become an Arrow array, and fewer slots listed sooner."""

NONE = -1
"""In place of a slot: there is no such id."""

Ids: TypeAlias = pa.Array | list[SubscriptionId]
"""Several ids, all of one type."""

NO_IDS: Ids = pa.nulls(0, pa.string())  # to make an array of a list, pyarrow would import pandas

_INTEGER, _STRING = pa.int64(), pa.string()


class Exchange(NamedTuple):
    """Slots that go and ids that come in one change, and what it takes to tell at any time who stays."""

    leaving: Slots
    ids: Ids
    coming: Slots
    """The slots that the ids get: free ones first."""
    slots: int
    """Slots there were, free ones included."""
    unused: array[int]
    """The list of free slots there were. Making the exchange changes it, but for those that stay free."""
    still: int
    """How many of them stay free, from the first on."""
    reused: int
    """How many get an id: the first so many of those coming."""

    @property
    def slots_after(self) -> int:
        """Slots there will be."""
        return self.slots + len(self.ids) - self.reused


class Identities:
    """A two-way map between ids, all integers or all strings, and slots. Slots of removed ids are used again.

    More than `few` integers take at most 16 bytes each. Any number of threads may look up at once while none
    admits or dismisses.
    """

    def __init__(self, few: int = FEW) -> None:
        self._few = few
        self._start_anew()

    def _start_anew(self) -> None:
        held: _PlainIds | _IntegerIds = _PlainIds()
        self._held, self._slots, self._free = held, 0, array("I")

    def __len__(self) -> int:
        return self._slots - len(self._free)

    def __contains__(self, id: object) -> bool:
        return self._found(id) != NONE

    def __iter__(self) -> Iterator[SubscriptionId]:
        """All ids there are now, whatever is admitted or dismissed before the last has been asked for."""
        return _portioned(self.id_array(self.slots()))

    @property
    def arrow_type(self) -> pa.DataType:
        """How Arrow holds the ids: int64 or string (also while there are none)."""
        return self._held.arrow_type

    @property
    def nbytes(self) -> int:
        """Bytes taken, room to spare included."""
        return self._held.nbytes + sys.getsizeof(self._free)

    def slots(self) -> Slots:
        """All slots in use, ascending."""
        in_use = np.ones(self._slots, np.bool_)
        in_use[np.array(self._free, np.int64)] = False
        return np.flatnonzero(in_use)

    def state(self) -> State:
        """Strings in the order of their slots, or integers by slot, and the slots that are free."""
        free = np.array(self._free, np.uint32)
        if isinstance(self._held, _IntegerIds):
            return State({"by_slot": True}, {"free": free, "ids": self._held.by_slot(self._slots)})
        slots = self.slots()
        ids = self.id_array(slots)
        if not pa.types.is_integer(ids.type):
            return State({}, {"free": free}, {"ids": pa.table({"id": ids})})
        by_slot = np.zeros(self._slots, np.int64)
        by_slot[slots] = ids.to_numpy()
        return State({"by_slot": True}, {"free": free, "ids": by_slot})

    def restore(self, state: State) -> None:
        """Hold the ids that others held, under the same slots. Only if empty."""
        free = state.array("free", np.uint32)
        if "ids" in state.tables:
            ids = _joined(state.table("ids", _STRINGS).column("id"))
            require(not ids.null_count, "an id is missing")
            self._hold(ids, len(ids) + len(free), free)
            return
        by_slot = state.array("ids", np.int64)
        if len(by_slot) - len(free) > self._few:
            self._slots, self._free = _checked_slots(len(by_slot), free), array("I", free.tobytes())
            self._held = _IntegerIds.of(by_slot, free)
        elif state.facts.get("by_slot"):
            slots = _checked_slots(len(by_slot), free)
            self._hold(pa.array(np.delete(by_slot, free)), slots, free)
        else:  # up to version 3, a few lay without gaps
            self._hold(pa.array(by_slot), len(by_slot) + len(free), free)

    def _hold(self, ids: pa.Array, slots: int, free: npt.NDArray[np.uint32]) -> None:
        """Hold ids under the slots, of so many, that are not free, ascending."""
        self._slots, self._free = _checked_slots(slots, free), array("I", free.tobytes())
        self._held.put(ids, self.slots())

    def accepts(self, id_type: pa.DataType) -> bool:
        """Whether ids of this Arrow type may join: the first may be of either, all others are like them."""
        return not len(self) or id_type == self.arrow_type

    def unlike(self, id: SubscriptionId) -> SubscriptionError:
        """What to say of an integer among strings, or a string among integers."""
        wanted = "integers" if isinstance(id, str) else "strings"
        return SubscriptionError(f"the id {id!r} is not like the ids of this engine, which are {wanted}")

    def slot(self, id: SubscriptionId) -> int:
        """The slot of an id."""
        slot = self._found(id)
        if slot == NONE:
            raise UnknownSubscriptionError(id)
        return slot

    def slots_of(self, ids: Ids) -> Slots:
        """The slot of each id, or -1. None of the ids is null."""
        if not len(self) or type_of(ids) != self.arrow_type:
            return np.full(len(ids), NONE, np.int64)
        return self._held.slots_of(ids)

    def slots_in_use(self, ids: Iterable[SubscriptionId]) -> Slots:
        """The slots of ids, ascending, each once; UnknownSubscriptionError if one of the ids has none.

        Arrow columns, and numpy arrays of integers, cost no Python object for each id.
        """
        return _distinct(self._slots_of_all(batch_of(ids)))

    def exchange(self, leaving: Slots = NO_SLOTS, ids: Ids = NO_IDS) -> Exchange:
        """What it takes that distinct slots in use go, and new ids get others. Changes nothing yet.

        CapacityError if there are not slots enough for both.
        """
        if not len(ids):
            return Exchange(leaving, ids, NO_SLOTS, self._slots, self._free, len(self._free), 0)
        capacity.check("subscriptions", len(self) + len(ids), capacity.SLOTS)
        still = max(0, len(self._free) - len(ids))
        reused = len(self._free) - still
        fresh = range(self._slots, self._slots - reused + len(ids))
        if len(ids) < SHORT:
            coming = np.array([*self._free[still:], *fresh], np.int64)
        else:
            coming = np.arange(fresh.start - reused, fresh.stop)
            coming[:reused] = self._free[still:]
        return Exchange(leaving, ids, coming, self._slots, self._free, still, reused)

    def make(self, exchange: Exchange) -> None:
        """Make an exchange as it was prepared just before."""
        done_at_once(self.name_in_portions(exchange, AT_ONCE))
        done_at_once(self.free_in_portions(exchange, AT_ONCE))

    def name_in_portions(self, exchange: Exchange, pace: Pace) -> Portions:
        """Have the ids that come stand for their slots, as the first half of an exchange.

        Those that go are no ids any more, but their slots still have them, for those who have found these.
        """
        leaving, ids = exchange.leaving, exchange.ids
        if self._wants_flat(exchange):
            self._flatten()
        if not pace.is_at_once(max(len(leaving), len(ids))):
            return self._name_part_by_part(exchange, pace)
        if len(leaving):
            self._held.drop(leaving)
        if len(ids):
            self._held.put(ids, exchange.coming)
        return DONE

    def _name_part_by_part(self, exchange: Exchange, pace: Pace) -> Portions:
        leaving, ids = exchange.leaving, exchange.ids
        yield from in_parts(len(leaving), pace, lambda part: self._held.drop(leaving[part]))
        if not pace.is_at_once(len(ids)):
            yield BESIDE
            self.make_room(exchange)
            yield ALONE
        yield from in_parts(len(ids), pace, lambda part: self._held.put(ids[part], exchange.coming[part]))

    def _wants_flat(self, exchange: Exchange) -> bool:
        """Whether there will be so many that integers are to be flat."""
        leaving, ids = exchange.leaving, exchange.ids
        return len(self) - len(leaving) + len(ids) > self._few and type_of(ids) == _INTEGER

    def rehearse(self, exchange: Exchange) -> None:
        """Have ready what flat integers change with, once in a process: it may have to be loaded, or compiled."""
        if isinstance(self._held, _IntegerIds) or self._wants_flat(exchange):
            _rehearse()

    def make_room(self, exchange: Exchange) -> None:
        """Make room for what an exchange brings, which takes long now and then. Others may look up meanwhile."""
        self._held.make_room(exchange.slots_after)

    def free_in_portions(self, exchange: Exchange, pace: Pace) -> Portions:
        """Let slots that were left be used again, as the second half of an exchange."""
        if not pace.is_at_once(len(exchange.leaving)):
            return self._free_part_by_part(exchange, pace)
        self._held.clear(exchange.leaving)
        self._have_freed(exchange)
        return DONE

    def _free_part_by_part(self, exchange: Exchange, pace: Pace) -> Portions:
        leaving = exchange.leaving
        yield from in_parts(len(leaving), pace, lambda part: self._held.clear(leaving[part]))
        self._have_freed(exchange)

    def _have_freed(self, exchange: Exchange) -> None:
        del self._free[exchange.still :]
        if len(exchange.leaving):
            self._free.frombytes(exchange.leaving.astype(np.uint32).tobytes())
        self._slots = exchange.slots_after
        if not len(self):
            self._start_anew()

    def after(self, exchange: Exchange) -> Identities:
        """What there is after an exchange, told from these though making it may have failed at any step."""
        free = np.array(exchange.unused[: exchange.still], np.int64)
        in_use = np.ones(exchange.slots, np.bool_)
        for slots in (free, exchange.coming[: exchange.reused], exchange.leaving):
            in_use[slots] = False
        kept = np.flatnonzero(in_use)
        settled = Identities(self._few)
        if len(kept) or len(exchange.ids):
            coming = exchange.ids
            if isinstance(coming, list):
                coming = pa.array(coming, type_of(coming))
            ids = pa.concat_arrays([each for each in (self.id_array(kept), coming) if len(each)])
            settled._slots = exchange.slots_after
            settled._free = array("I", np.concatenate([free, exchange.leaving]).astype(np.uint32).tobytes())
            if pa.types.is_integer(ids.type) and len(ids) > self._few:
                settled._held = _IntegerIds()
            settled._held.put(ids, np.concatenate([kept, exchange.coming]))
        return settled

    def admit(self, ids: Ids) -> Slots:
        """Give each id a slot; none, if one of them has a slot already or comes twice."""
        exchange = self.exchange(ids=ids)
        try:
            self.make(exchange)
        except DuplicateSubscriptionError:
            if not len(self):
                self._start_anew()  # the next to come may be strings
            raise
        return exchange.coming

    def dismiss(self, ids: Iterable[SubscriptionId]) -> Slots:
        """Take the slots of ids back; none, if one of the ids has no slot. An id that comes twice counts once."""
        slots = self.slots_in_use(ids)
        self.release(slots)
        return slots

    def release(self, slots: Slots) -> None:
        """Take back distinct slots, all of them in use."""
        self.make(self.exchange(slots))

    def ids(self, slots: Slots) -> list[SubscriptionId]:
        """The ids of slots."""
        return self._held.ids(slots)

    def id_array(self, slots: Slots) -> pa.Array:
        """The ids of slots, as Arrow holds them."""
        return self._held.id_array(slots)

    def _found(self, id: object) -> int:
        """The slot of what may be an id. True and 1.0 are none, though Python holds them equal to 1."""
        if isinstance(id, str) or (isinstance(id, int | np.integer) and not isinstance(id, bool)):
            return self._held.slot_of(id)
        return NONE

    def _slots_of_all(self, ids: pa.Array | list[SubscriptionId]) -> Slots:
        if isinstance(ids, list):
            return np.array([self.slot(id) for id in ids], np.int64)
        slots = self.slots_of(ids)
        if len(slots) and slots.min() == NONE:
            raise UnknownSubscriptionError(ids[int(slots.argmin())].as_py())
        return slots

    def _flatten(self) -> None:
        """Hold integers flat from now on, under the slots they have."""
        if isinstance(self._held, _PlainIds):
            flat = _IntegerIds()
            flat.put(*self._held.pairs())
            self._held = flat


class _PlainIds:
    """A dictionary and a list: for strings, and for a few integers."""

    def __init__(self) -> None:
        self._slots: dict[SubscriptionId, int] = {}
        self._ids: list[SubscriptionId] = []  # what stands at slots that are not in use means nothing
        self.arrow_type = pa.string()

    @property
    def nbytes(self) -> int:
        some = list(islice(self._slots.items(), PORTION))
        objects = sum(sys.getsizeof(id) + sys.getsizeof(slot) for id, slot in some)
        return (
            sys.getsizeof(self._slots) + sys.getsizeof(self._ids) + objects * len(self._slots) // max(len(some), 1)
        )

    def slot_of(self, id: SubscriptionId | np.integer) -> int:
        return self._slots.get(id, NONE)  # type: ignore[arg-type]  # numpy's integers are found like Python's

    def slots_of(self, ids: Ids) -> Slots:
        return np.array([self._slots.get(id, NONE) for id in _listed(ids)], np.int64)

    def put(self, ids: Ids, slots: Slots) -> None:
        added: dict[SubscriptionId, int] = {}
        for id, slot in zip(_listed(ids), slots.tolist(), strict=True):
            if id in self._slots or id in added:
                raise DuplicateSubscriptionError(id)
            added[id] = slot
        self._slots |= added
        self._ids += [""] * (max(added.values(), default=-1) + 1 - len(self._ids))
        for id, slot in added.items():
            self._ids[slot] = id
        self.arrow_type = type_of(ids)

    def drop(self, slots: Slots) -> None:
        for slot in slots.tolist():
            del self._slots[self._ids[slot]]

    def clear(self, slots: Slots) -> None:
        for slot in slots.tolist():
            self._ids[slot] = ""

    def make_room(self, slots: int) -> None:
        """A list and a dictionary make room for themselves."""

    def pairs(self) -> tuple[pa.Array, Slots]:
        return pa.array(list(self._slots), self.arrow_type), np.array(list(self._slots.values()), np.int64)

    def ids(self, slots: Slots) -> list[SubscriptionId]:
        ids = self._ids
        return [ids[slot] for slot in slots.tolist()]

    def id_array(self, slots: Slots) -> pa.Array:
        return pa.array(self.ids(slots), self.arrow_type)


class _IntegerIds:
    """Integers in one flat array by slot, and a hash table from them to slots (kernels/identifying.py)."""

    arrow_type = pa.int64()

    def __init__(self) -> None:
        from harken.matching.kernels import identifying  # loads numba

        self._kernels = identifying
        self._seed = np.uint64(random.getrandbits(64))
        self._ids = np.zeros(16, np.uint64)
        self._table: npt.NDArray[np.uint32] | None = np.zeros(32, np.uint32)
        self._unused: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)

    @classmethod
    def of(cls, by_slot: npt.NDArray[np.int64], free: npt.NDArray[np.uint32]) -> _IntegerIds:
        """Ids as they lie. Their table is made when one is first looked up: whoever only matches needs none."""
        held = cls()
        _refuse_repeated(np.delete(by_slot, free) if len(free) else by_slot)
        held._ids, held._table, held._unused = by_slot.view(np.uint64), None, free
        return held

    def by_slot(self, slots: int) -> npt.NDArray[np.int64]:
        """The ids of the first slots; what stands at free ones means nothing."""
        return self._ids[:slots].view(np.int64)

    @property
    def _places(self) -> npt.NDArray[np.uint32]:
        if self._table is None:
            in_use = np.ones(len(self._ids), np.bool_)
            in_use[self._unused] = False
            slots = np.flatnonzero(in_use)
            table = np.zeros(len(in_use) + len(in_use) // 4 + 1, np.uint32)
            done = self._kernels.insert(table, self._ids, self._seed, self._ids[slots], slots)
            if done < len(slots):
                raise DuplicateSubscriptionError(int(self._ids[slots[done]].view(np.int64)))
            self._table = table
        return self._table

    @property
    def nbytes(self) -> int:
        return self._ids.nbytes + (0 if self._table is None else self._table.nbytes)

    def slot_of(self, id: SubscriptionId | np.integer) -> int:
        if isinstance(id, str) or not INT_MIN <= id <= INT_MAX:
            return NONE
        return int(self._kernels.find(self._places, self._ids, self._seed, np.uint64(int(id) % 2**64)))

    def slots_of(self, ids: Ids) -> Slots:
        slots = np.empty(len(ids), np.int64)
        self._kernels.find_many(self._places, self._ids, self._seed, _unsigned(ids), slots)
        return slots

    def put(self, ids: Ids, slots: Slots) -> None:
        self.make_room(places_for(slots))
        done = self._kernels.insert(self._places, self._ids, self._seed, _unsigned(ids), slots)
        if done < len(slots):
            self._kernels.take_out(self._places, self._ids, self._seed, slots[:done])
            raise DuplicateSubscriptionError(_listed(ids[done : done + 1])[0])

    def drop(self, slots: Slots) -> None:
        self._kernels.take_out(self._places, self._ids, self._seed, slots)

    def clear(self, slots: Slots) -> None:
        """What stands at slots that are not in use means nothing."""

    def ids(self, slots: Slots) -> list[SubscriptionId]:
        return self._ids[slots].view(np.int64).tolist()  # type: ignore[no-any-return]

    def id_array(self, slots: Slots) -> pa.Array:
        return pa.array(self._ids.take(slots).view(np.int64))  # which is quicker than by index

    def make_room(self, slots: int) -> None:
        """Room for so many slots; four of five places may be taken. Growing by little keeps memory small.

        Nothing that others read is changed.
        """
        room, places = len(self._ids), len(self._places)
        if slots > room:
            ids = np.zeros(max(slots, room + room // 8), np.uint64)
            ids[:room] = self._ids
            self._ids = ids
        if 5 * slots > 4 * places:
            larger = np.zeros(max(slots + slots // 4 + 1, places + places * 3 // 8), np.uint32)
            self._kernels.move(self._places, self._ids, self._seed, larger)
            self._table = larger


@cache
def _rehearse() -> None:
    held, slots = _IntegerIds(), np.arange(2)
    held.put([1, 2], slots)
    held.make_room(64)
    held.drop(slots)


def _portioned(ids: pa.Array) -> Iterator[SubscriptionId]:
    for start in range(0, len(ids), PORTION):
        yield from ids[start : start + PORTION].to_pylist()


def _checked_slots(slots: int, free: npt.NDArray[np.uint32]) -> int:
    """So many slots, of which these are free; ValueError if they cannot be."""
    require(not len(free) or int(free.max()) < slots, "a slot is free that there is not")
    ascending = np.sort(free)
    require(bool((ascending[1:] != ascending[:-1]).all()), "a slot is free twice")
    return slots


def _refuse_repeated(ids: npt.NDArray[np.int64]) -> None:
    """ValueError if an id comes twice. Those that were given out ascending are seen not to at once."""
    if not (ids[1:] > ids[:-1]).all():
        ids = np.sort(ids)
        require(bool((ids[1:] != ids[:-1]).all()), "an id comes twice")


def type_of(ids: Ids) -> pa.DataType:
    """How Arrow holds several ids: int64 or string (also if there are none)."""
    if isinstance(ids, list):
        return _INTEGER if ids and isinstance(ids[0], int) else _STRING
    return ids.type


def _listed(ids: Ids) -> list[SubscriptionId]:
    """Several ids, as Python holds them."""
    return ids if isinstance(ids, list) else ids.to_pylist()


def _unsigned(ids: Ids) -> npt.NDArray[np.uint64]:
    """Integers for kernels: the same bits, copied, as kernels would be compiled again for what is read-only."""
    held = ids if isinstance(ids, list) else ids.to_numpy(zero_copy_only=False)
    return np.array(held, np.int64).view(np.uint64)


def _distinct(slots: Slots) -> Slots:
    """Each slot once, ascending. numpy's `unique` hashes, which takes far longer than sorting."""
    if len(slots) < 2:
        return slots
    ascending = np.sort(slots)
    repeated = ascending[1:] == ascending[:-1]
    return np.delete(ascending, np.flatnonzero(repeated)) if repeated.any() else ascending


def batch_of(ids: Iterable[SubscriptionId]) -> pa.Array | list[SubscriptionId]:
    """Ids as Arrow holds them; if they are few or not all alike, a list to be looked at one by one."""
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        return _conformed(ids)
    if isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu":
        return _conformed(pa.array(ids))
    listed = list(ids)
    if len(listed) < SHORT or set(map(type, listed)) not in ({int}, {str}):
        return listed
    try:
        return pa.array(listed)
    except (OverflowError, UnicodeEncodeError):  # more than 64 bits, or half a character
        return listed


def _conformed(ids: pa.Array | pa.ChunkedArray) -> pa.Array | list[SubscriptionId]:
    if isinstance(ids, pa.ChunkedArray):
        ids = _joined(ids)
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    is_string = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    try:
        if pa.types.is_integer(ids.type) and not ids.null_count:
            return ids.cast(pa.int64())
        if any(test(ids.type) for test in is_string) and not ids.null_count:
            return ids.cast(pa.string())
    except pa.ArrowInvalid:  # more than 63 bits
        pass
    return ids.to_pylist()


def _joined(ids: pa.ChunkedArray) -> pa.Array:
    return ids.chunk(0) if ids.num_chunks == 1 else ids.combine_chunks()
