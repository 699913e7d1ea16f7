"""What was written: the text of each subscription, kept so that people are shown their own words.

An index knows of a subscription what its clauses ask for, where `price < 100 AND price > 200` is FALSE. Its text
is kept beside it, packed: texts that came together lie in one **block** of up to a thousand, compressed, as they
have most of their words in common. Only the block of the latest is open. A text of five equalities, 59 characters,
takes 18 bytes and half a microsecond, which is a twentieth of what it takes to subscribe.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.errors import HarkenError
from harken.language import parse, to_text
from harken.matching.contract import Slots
from harken.matching.growing import GrowingArray, places_for
from harken.matching.saving import DAMAGE, State
from harken.model.expressions import Expression, Node
from harken.model.limits import Limits
from harken.portions import ALONE, AT_ONCE, BESIDE, Pace, Portions, done_at_once, in_parts

BLOCK = 1_024
"""Texts of a block, at most."""

MOST_CHARACTERS = 1 << 18
"""Characters of a block, at most; a longer text has one for itself, uncompressed."""

_MOST_PACKED = 4 * BLOCK + 4 * MOST_CHARACTERS
"""Bytes that a compressed block can have before that."""

_TALLY_BYTES = 128
"""Bytes that it takes to know of a block what is known of it, about."""

_NONE = 0
"""Instead of the number of a text, which count from 1: there is none."""

_CODEC = pa.Codec("zstd", compression_level=1)
"""Without a state of its own: for all threads, and not among what is pickled."""

_MOST_IDLE = 4
"""Blocks of texts that are nobody's, over and above those that are somebody's, before all are packed anew."""

_MOST_GONE = 64
"""Blocks that are gone, over and above as many as are not, before all are packed anew and numbered from 1."""

Packed: TypeAlias = bytes | npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Block:
    """Texts that are packed: their lengths, then all of them, compressed if that makes them smaller."""

    packed: Packed
    size: int
    """Bytes before that."""
    count: int
    lengths: npt.NDArray[np.uint32] | None = None
    """The lengths once more, where there are few texts as some are long; None if not, or if it was loaded."""

    def share(self, places: list[int]) -> float:
        """Which part of it some texts are, if all are about as long where that is not known."""
        if self.lengths is None:
            return len(places) / self.count
        return float(self.lengths[places].sum() / max(self.lengths.sum(), 1))

    def check(self) -> None:
        """ValueError if unpacking would take more than packing can have taken."""
        length = len(self.packed)
        if not 0 <= self.count <= BLOCK or not (self.size == length or length < self.size <= _MOST_PACKED):
            raise ValueError("a block of texts is larger than any can be")


_GONE = _Block(b"", 0, 0)
"""Instead of a block of texts none of which is anybody's any more."""


@dataclass(slots=True)
class _Tally:
    """What is known of the texts of a block, or of all, without unpacking any."""

    live: int = 0
    """How many are somebody's."""
    count: int = 0
    """How many there are."""
    size: float = 0
    """Bytes they take; characters, as long as the block is open."""
    idle: float = 0
    """Those of them that are nobody's."""


class Written:
    """Texts by slot. Changes must not run beside anything else; any number of threads may read at once."""

    def __init__(self) -> None:
        self._numbers = GrowingArray(np.uint32)
        self._blocks: list[_Block | None] = []
        self._tallies: list[_Tally] = []
        self._total = _Tally()
        """Of all blocks together."""
        self._gone = 0
        """Blocks of texts none of which is anybody's any more."""
        self._open: list[str] = []
        """The texts of the last block, which is not packed yet."""
        self._latest: tuple[_Block, list[str]] | None = None
        """A block that was unpacked: whoever asks for one text of it often asks for the next."""
        self.is_loaded = False
        """Whether some of the texts come from a file, and may be none."""
        self._begin()

    def __len__(self) -> int:
        """How many texts there are."""
        return self._total.live

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return int(self._total.size) + self._numbers.nbytes + len(self._blocks) * _TALLY_BYTES

    def text(self, slot: int) -> str | None:
        """What was written under a slot; None if that is not known, or was loaded and cannot be read."""
        if slot >= len(self._numbers) or self._numbers.values[slot] == _NONE:
            return None
        block, place = divmod(int(self._numbers.values[slot]) - 1, BLOCK)
        packed = self._blocks[block]
        if packed is None:
            return self._open[place]
        latest = self._latest
        if latest is None or latest[0] is not packed:
            latest = self._latest = packed, self._unpacked(packed)
        return latest[1][place] if place < len(latest[1]) else None

    def admit_in_portions(self, slots: Slots, expressions: Sequence[object], pace: Pace) -> Portions:
        """Keep texts, or what trees print as, under slots that have none. Linear in their length."""
        return in_parts(len(slots), pace, lambda part: self.admit(slots[part], expressions[part]))

    def admit(self, slots: Slots, expressions: Sequence[object]) -> None:
        """As `admit_in_portions`, at once."""
        texts: Sequence[str] = expressions  # type: ignore[assignment]  # what is no tree has been read as a text
        if set(map(type, expressions)) - {str}:
            texts = [to_text(each) if isinstance(each, Node) else each for each in expressions]  # type: ignore[arg-type, misc]
        self._keep(slots, texts)

    def _keep(self, slots: Slots, texts: Sequence[str]) -> None:
        self._numbers.grow_to(places_for(slots))
        done = 0
        while done < len(texts):
            some = self._that_fit(texts, done)
            first = 1 + (len(self._blocks) - 1) * BLOCK + len(self._open)
            if len(texts) == 1:  # as mostly
                self._numbers.values[slots[0]] = first
            else:
                self._numbers.values[slots[done : done + len(some)]] = np.arange(first, first + len(some))
            self._open += some
            self._count(-1, live=len(some), count=len(some), size=sum(map(len, some)))
            done += len(some)
            if done < len(texts) or len(self._open) == BLOCK:
                self._close()

    def forget_in_portions(self, slots: Slots, pace: Pace) -> Portions:
        """Let go of the texts of slots.

        A block of which nothing is left goes at once. The others are packed anew once the larger part of them is
        nobody's, by the number of texts or by the room they take.
        """
        if places_for(slots) > len(self._numbers):
            slots = slots[slots < len(self._numbers)]
        yield from in_parts(len(slots), pace, lambda part: self._forget(slots[part]))
        if self._is_wasteful():
            yield BESIDE
            packed = self.only(np.flatnonzero(self._numbers.values))
            yield ALONE
            self.__dict__ = packed.__dict__

    def forget(self, slots: Slots) -> None:
        """As `forget_in_portions`, at once."""
        done_at_once(self.forget_in_portions(slots, AT_ONCE))

    def _forget(self, slots: Slots) -> None:
        values = self._numbers.values
        if len(slots) == 1:  # as mostly, and the rest takes a while to set up
            number, values[slots[0]] = int(values[slots[0]]), _NONE
            if number != _NONE:
                block, place = divmod(number - 1, BLOCK)
                self._let_go(block, [place])
            return
        numbers = values[slots]
        values[slots] = _NONE
        for block, places in _by_block(numbers[numbers != _NONE]):
            self._let_go(block, places)

    def _let_go(self, block: int, places: list[int]) -> None:
        """Some texts of a block are nobody's any more; without any that is somebody's, it goes."""
        packed, tally = self._blocks[block], self._tallies[block]
        self._count(block, live=-len(places))
        if packed is None:
            idle: float = sum(len(self._open[place]) for place in places)
        else:
            idle = tally.size * packed.share(places)
        if tally.live:
            self._count(block, idle=idle)
            return
        self._count(block, count=-tally.count, size=-tally.size, idle=-tally.idle)
        if packed is None:
            self._open = []
        else:  # its number stays until all is packed anew
            self._blocks[block], self._latest = _GONE, None
            self._gone += 1

    def _count(self, block: int, live: int = 0, count: int = 0, size: float = 0, idle: float = 0) -> None:
        """Take note of what has changed in a block."""
        for tally in (self._tallies[block], self._total):
            tally.live += live
            tally.count += count
            tally.size += size
            tally.idle += idle

    def _is_wasteful(self) -> bool:
        """Whether what is nobody's is the larger part, by far."""
        total, blocks = self._total, len(self._blocks)
        by_count = total.count - total.live > total.live + _MOST_IDLE * BLOCK
        return (
            by_count
            or 2 * self._gone > blocks + _MOST_GONE
            or total.idle > total.size - total.idle + _MOST_IDLE * MOST_CHARACTERS
        )

    def state(self) -> State:
        """The texts as they are packed."""
        blocks = [self._packed(self._open) if block is None else block for block in self._blocks]
        packed = np.concatenate(
            [np.zeros(0, np.uint8), *(np.frombuffer(each.packed, np.uint8) for each in blocks)]
        )
        arrays = {
            "numbers": self._numbers.values,
            "packed": packed,
            "ends": np.cumsum([len(each.packed) for each in blocks], dtype=np.int64),
            "sizes": np.array([each.size for each in blocks], np.int64),
            "counts": np.array([each.count for each in blocks], np.int64),
        }
        return State({}, arrays)

    def restore(self, state: State, slots: Slots) -> None:
        """Hold the texts that others held, of these slots. Only if empty; unpacked when asked for."""
        numbers, packed = state.array("numbers", np.uint32), state.array("packed", np.uint8)
        ends = state.array("ends", np.int64)
        sizes, counts = (state.array(name, np.int64, size=len(ends)) for name in ("sizes", "counts"))
        starts = np.concatenate([np.zeros(1, np.int64), ends])
        if (np.diff(starts) < 0).any() or starts[-1] != len(packed):
            raise ValueError("texts are not where they should be")
        self._blocks = []
        columns = (each.tolist() for each in (starts[:-1], ends, sizes, counts))
        for begin, end, size, count in zip(*columns, strict=True):
            block = _Block(packed[begin:end], size, count)
            block.check()
            self._blocks.append(block)
        self.is_loaded = True
        self._tallies = []
        by_block = zip(
            _live(numbers, counts, slots).tolist(), counts.tolist(), np.diff(starts).tolist(), strict=True
        )
        for live, count, size in by_block:
            self._tallies.append(_Tally())
            self._count(-1, live, count, size, size * (1 - live / max(count, 1)))
            self._gone += not live
        self._numbers = GrowingArray.of(numbers)
        self._begin()

    def _begin(self) -> None:
        """Have another block for texts to come."""
        self._open = []
        self._blocks.append(None)
        self._tallies.append(_Tally())

    def _that_fit(self, texts: Sequence[str], start: int) -> list[str]:
        """Texts from a place on that the open block has room for; one at least, if it is empty."""
        some = list(texts[start : start + BLOCK - len(self._open)])
        room = MOST_CHARACTERS - int(self._tallies[-1].size)
        if sum(map(len, some)) > room:
            fitting = sum(size <= room for size in accumulate(map(len, some)))
            some = some[: max(fitting, not self._open)]
        return some

    def _close(self) -> None:
        """Pack the open block, and have another."""
        block = self._blocks[-1] = self._packed(self._open)
        tally, size = self._tallies[-1], len(block.packed)
        self._count(-1, size=size - tally.size, idle=tally.idle * (size / max(tally.size, 1) - 1))
        self._begin()

    def _packed(self, texts: list[str]) -> _Block:
        lengths = np.fromiter(map(len, texts), np.uint32, len(texts))
        known = lengths if len(texts) < BLOCK else None
        plain = lengths.tobytes() + "".join(texts).encode("utf-8", "surrogatepass")
        if len(plain) <= _MOST_PACKED:
            packed = _CODEC.compress(plain, asbytes=True)
            if len(packed) < len(plain):
                return _Block(packed, len(plain), len(texts), known)
        return _Block(plain, len(plain), len(texts), known)

    def _unpacked(self, block: _Block) -> list[str]:
        """The texts of a block; none if it was loaded, by whoever trusted it, and is not as it was written."""
        try:
            plain = bytes(block.packed)
            if len(plain) < block.size:
                plain = _CODEC.decompress(plain, block.size, asbytes=True)
            lengths = np.frombuffer(plain, np.uint32, block.count).tolist()
            text = plain[4 * block.count :].decode("utf-8", "surrogatepass")
        except DAMAGE:
            return []
        return [text[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]

    def only(self, slots: Slots) -> Written:
        """The texts of these slots, packed anew, though a change of others may have failed at any step."""
        slots = slots[slots < len(self._numbers)]
        slots = slots[np.argsort(self._numbers.values[slots])]
        fresh = Written()
        fresh.is_loaded = self.is_loaded
        for start in range(0, len(slots), BLOCK):
            texts = {slot: self.text(slot) for slot in slots[start : start + BLOCK].tolist()}
            known = {slot: text for slot, text in texts.items() if text is not None}
            fresh._keep(np.array(list(known), np.int64), list(known.values()))
        return fresh


def _by_block(numbers: npt.NDArray[np.uint32]) -> Iterator[tuple[int, list[int]]]:
    """The places of texts in their blocks, block by block."""
    blocks, places = np.divmod(np.sort(numbers).astype(np.int64) - 1, BLOCK)
    going, first = np.unique(blocks, return_index=True)
    for block, some in zip(going.tolist(), np.split(places, first[1:]), strict=False):
        yield block, some.tolist()


def _live(numbers: npt.NDArray[np.uint32], counts: npt.NDArray[np.int64], slots: Slots) -> npt.NDArray[np.int64]:
    """How many texts of each block are somebody's; ValueError if one is of two, or of a slot not in use."""
    held = np.flatnonzero(numbers)
    block, place = np.divmod(numbers[held].astype(np.int64) - 1, BLOCK)
    if not np.isin(held, slots, assume_unique=True).all():
        raise ValueError("a text is of a subscription that there is not")
    if len(block) and (block.max() >= len(counts) or (place >= counts[block]).any()):
        raise ValueError("a text is in no block")
    taken = np.sort(numbers[held])
    if (taken[1:] == taken[:-1]).any():
        raise ValueError("a text is of two subscriptions")
    return np.bincount(block, minlength=len(counts)).astype(np.int64)


def expression_of(text: str | None, limits: Limits) -> Expression | None:
    """The expression of a kept text; None without one, or if it was loaded and is none."""
    if text is None:
        return None
    try:
        return parse(text, limits=limits_of_kept(limits))
    except HarkenError:
        return None


def limits_of_kept(limits: Limits) -> Limits:
    """The limits to read texts with that are kept of what was taken in: trees may print as more than allowed."""
    unbounded = dict.fromkeys(("max_length", "max_regexes", "max_work"), sys.maxsize)
    return replace(limits, max_depth=2 * limits.max_depth + 4, **unbounded)
