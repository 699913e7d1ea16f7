"""From integer ids to slots: an open-addressing hash table of 32-bit places, probed one after the other.

**Layout.** `ids[slot]` is the id of a slot, its 64 bits taken as unsigned. A place holds 0 if it is empty, and
otherwise slot + 1 in its low bits and a **tag** above them: as many bits of the id's hash as there is room for.
The number of places bounds the slots, and so says where the tag begins. With a tag, an id that is not there is
nearly always seen not to be without a look at `ids`, which lies elsewhere in memory.

**Invariant.** Between the place where an id would like to stand and the one where it does, none is empty.
Taking one out moves later ones up (Knuth, volume 3, 6.4, algorithm R), so that nothing is left to clear away.

The hash is that of SplitMix64 (Steele et al. 2014), begun with a seed of the table's own: nobody can prepare
ids that all want the same place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.prefetch import prefetch

AHEAD = 12
"""Ids that are looked for at the same time, so that the wait for memory is shared."""

_ONE, _HALF = np.uint64(1), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_FIRST, _SECOND, _THIRD = np.uint64(30), np.uint64(27), np.uint64(31)
_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@tight
def hash_of(id: np.uint64, seed: np.uint64) -> np.uint64:
    """The hash of SplitMix64."""
    mixed = id ^ seed
    mixed = (mixed ^ (mixed >> _FIRST)) * _MULTIPLIER
    mixed = (mixed ^ (mixed >> _SECOND)) * _SECOND_MULTIPLIER
    return mixed ^ (mixed >> _THIRD)


@tight
def home_of(hashed: np.uint64, size: int) -> int:
    """The place that an id would like, by the upper half of its hash: any number of places will do."""
    return np.int64(((hashed >> _HALF) * np.uint64(size)) >> _HALF)


@tight
def _slot_bits(size: int) -> np.uint64:
    """The bits of a place that say the slot; fewer slots than places are in use."""
    mask = _ONE
    while mask < np.uint64(size):
        mask = (mask << _ONE) | _ONE
    return mask


@tight
def _place_of(
    places: npt.NDArray[np.uint32], ids: npt.NDArray[np.uint64], hashed: np.uint64, mask: np.uint64, id: np.uint64
) -> int:
    """The place where an id stands, or the empty one where it would."""
    size = len(places)
    tag = hashed & _LOW & ~mask
    place = home_of(hashed, size)
    while True:
        held = np.uint64(places[place])
        if held == 0 or ((held & ~mask) == tag and ids[np.int64(held & mask) - 1] == id):
            return place
        place = place + 1 if place + 1 < size else 0


@tight
def find(places: npt.NDArray[np.uint32], ids: npt.NDArray[np.uint64], seed: np.uint64, id: np.uint64) -> int:
    """The slot of one id, or -1."""
    mask = _slot_bits(len(places))
    held = np.uint64(places[_place_of(places, ids, hash_of(id, seed), mask, id)])
    return np.int64(held & mask) - 1


@tight
def _ask_ahead(places: npt.NDArray[np.uint32], seed: np.uint64, ids: npt.NDArray[np.uint64], at: int) -> None:
    """Have the cache line fetched that a later id of a batch will be looked for in."""
    if at + AHEAD < len(ids):
        prefetch(places, home_of(hash_of(ids[at + AHEAD], seed), len(places)))


@tight
def find_many(
    places: npt.NDArray[np.uint32],
    ids: npt.NDArray[np.uint64],
    seed: np.uint64,
    wanted: npt.NDArray[np.uint64],
    slots: npt.NDArray[np.int64],
) -> None:
    """The slot of each id, or -1."""
    mask = _slot_bits(len(places))
    for at in range(len(wanted)):
        _ask_ahead(places, seed, wanted, at)
        held = np.uint64(places[_place_of(places, ids, hash_of(wanted[at], seed), mask, wanted[at])])
        slots[at] = np.int64(held & mask) - 1


@tight
def insert(
    places: npt.NDArray[np.uint32],
    ids: npt.NDArray[np.uint64],
    seed: np.uint64,
    new: npt.NDArray[np.uint64],
    slots: npt.NDArray[np.int64],
) -> int:
    """Put ids under slots that are not in use; the first that is there already, or their number."""
    mask = _slot_bits(len(places))
    for at in range(len(new)):
        _ask_ahead(places, seed, new, at)
        hashed = hash_of(new[at], seed)
        place = _place_of(places, ids, hashed, mask, new[at])
        if places[place] != 0:
            return at
        places[place] = (hashed & _LOW & ~mask) | np.uint64(slots[at] + 1)
        ids[slots[at]] = new[at]
    return len(new)


@tight
def take_out(
    places: npt.NDArray[np.uint32],
    ids: npt.NDArray[np.uint64],
    seed: np.uint64,
    slots: npt.NDArray[np.int64],
) -> None:
    """Take out the ids of slots that are in use."""
    mask = _slot_bits(len(places))
    for at in range(len(slots)):
        if at + AHEAD < len(slots):
            prefetch(places, home_of(hash_of(ids[slots[at + AHEAD]], seed), len(places)))
        id = ids[slots[at]]
        _empty(places, ids, seed, mask, _place_of(places, ids, hash_of(id, seed), mask, id))


@tight
def _empty(
    places: npt.NDArray[np.uint32], ids: npt.NDArray[np.uint64], seed: np.uint64, mask: np.uint64, hole: int
) -> None:
    """Empty a place; those after it that may stand there, or where the hole has gone since, move up."""
    size = len(places)
    place = hole
    while True:
        place = place + 1 if place + 1 < size else 0
        held = np.uint64(places[place])
        if held == 0:
            break
        home = home_of(hash_of(ids[np.int64(held & mask) - 1], seed), size)
        from_home = place - home if home <= place else place - home + size
        from_hole = place - hole if hole <= place else place - hole + size
        if from_home >= from_hole:
            places[hole] = places[place]
            hole = place
    places[hole] = 0


@tight
def move(
    places: npt.NDArray[np.uint32], ids: npt.NDArray[np.uint64], seed: np.uint64, into: npt.NDArray[np.uint32]
) -> None:
    """Fill an empty table of another size. Homes keep their order, so it is written from front to back."""
    mask, new_mask, size = _slot_bits(len(places)), _slot_bits(len(into)), len(into)
    for at in range(len(places)):
        if at + AHEAD < len(places) and places[at + AHEAD] != 0:
            prefetch(ids, np.int64(np.uint64(places[at + AHEAD]) & mask) - 1)
        if places[at] == 0:
            continue
        slot = np.int64(np.uint64(places[at]) & mask) - 1
        hashed = hash_of(ids[slot], seed)
        place = home_of(hashed, size)
        while into[place] != 0:
            place = place + 1 if place + 1 < size else 0
        into[place] = (hashed & _LOW & ~new_mask) | np.uint64(slot + 1)
