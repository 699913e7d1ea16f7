"""Clauses as lists of numbers of one flat array, with owners; numbers of clauses are used again.

A clause's words are numbers of predicates plus 1; a clause that asks nothing has the one word EVERY. A free
number keeps its room in `words`, for clauses of the same width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import ALONE, LAST, Clauses

EVERY = 0
"""The word of a clause that asks nothing."""

NOBODY = 2**32 - 1
"""Instead of a slot: the number is free."""

Counters = npt.NDArray[np.unsignedinteger]
"""Numbers of predicates of clauses, in as many bits as the widest one needs."""


class Contents(NamedTuple):
    """By clause: its words, and whose it is."""

    first: npt.NDArray[np.uint32]
    """Its words are words[first : first + width]."""
    width: Counters
    """As wide an integer as the widest clause needs. 0 if the number is free and has no room."""
    slot: npt.NDArray[np.uint32]
    sibling: npt.NDArray[np.int32]
    """The next clause of the same subscription, ALONE or LAST; of a free number, the next one of its width."""
    words: npt.NDArray[np.uint32]
    head: npt.NDArray[np.int32]
    """By slot: its first clause, or -1."""
    free: npt.NDArray[np.int64]
    """By width: the first free number with so much room, or -1."""
    spare: npt.NDArray[np.int64]
    """Totals (below)."""


END, END_WORD, LIVE, FREE_WORDS, TOTALS = range(5)
"""Where unused numbers and words begin; how many clauses there are; how many words free numbers keep."""


@part
def new_clause(contents: Contents, width: int) -> int:
    """A number for a clause of this width, with room for its words."""
    free, spare = contents.free, contents.spare
    spare[LIVE] += 1
    clause = free[width]
    if clause >= 0:
        free[width] = contents.sibling[clause]
        spare[FREE_WORDS] -= width
        return clause
    clause = free[0]
    if clause >= 0:
        free[0] = contents.sibling[clause]
    else:
        clause = spare[END]
        spare[END] += 1
    contents.first[clause], contents.width[clause] = spare[END_WORD], width
    spare[END_WORD] += width
    return clause


@part
def own(contents: Contents, clause: int, slot: int, alone: bool) -> None:
    """Let a clause be one of a slot's."""
    following = contents.head[slot]
    contents.slot[clause] = slot
    contents.sibling[clause] = following if following >= 0 else ALONE if alone else LAST
    contents.head[slot] = clause


@part
def add_clause(contents: Contents, clauses: Clauses, new: int) -> int:
    """Write down a new clause, for which there is room; its number."""
    begin, end = clauses.first[new], clauses.first[new + 1]
    clause = new_clause(contents, max(1, end - begin))
    first = np.int64(contents.first[clause])
    contents.words[first] = EVERY
    for at in range(begin, end):
        contents.words[first + at - begin] = clauses.words[at] + 1
    own(contents, clause, clauses.slot[new], clauses.alone[new])
    return clause


@tight
def count_words(contents: Contents, slots: npt.NDArray[np.int64]) -> int:
    """In how many lists the clauses of these slots are."""
    total = 0
    for slot in slots:
        clause = np.int64(contents.head[slot])
        while clause >= 0:
            total += np.int64(contents.width[clause])
            clause = np.int64(contents.sibling[clause])
    return total


@tight
def read_clauses(
    contents: Contents,
    slots: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
    owner: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
) -> None:
    """Write down size, owner and predicates of all clauses of these slots, as far as they fit.

    `counts` says how many clauses and predicates there are.
    """
    counts[:] = 0
    for slot in slots:
        clause = np.int64(contents.head[slot])
        while clause >= 0:
            first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
            if contents.words[first] == EVERY:
                width = 0
            if counts[0] < len(size):
                size[counts[0]], owner[counts[0]] = width, slot
                for at in range(width):
                    words[counts[1] + at] = np.int64(contents.words[first + at]) - 1
            counts[0] += 1
            counts[1] += width
            clause = np.int64(contents.sibling[clause])


@part
def set_free(contents: Contents, clause: int) -> None:
    """Let the number of a clause be used again."""
    width = np.int64(contents.width[clause])
    contents.slot[clause] = NOBODY
    contents.sibling[clause] = contents.free[width]
    contents.free[width] = clause
    contents.spare[LIVE] -= 1
    contents.spare[FREE_WORDS] += width


@tight
def move_words(contents: Contents, into: npt.NDArray[np.uint32]) -> None:
    """Copy the words of all clauses side by side; free numbers lose their room."""
    free, spare = contents.free, contents.spare
    for width in range(len(free)):
        free[width] = -1
    end = 0
    for clause in range(spare[END]):
        first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
        if contents.slot[clause] == NOBODY:
            contents.width[clause], contents.sibling[clause] = 0, free[0]
            free[0] = clause
            continue
        for at in range(width):
            into[end + at] = contents.words[first + at]
        contents.first[clause] = end
        end += width
    spare[END_WORD], spare[FREE_WORDS] = end, 0


@tight
def contents_are_sound(
    contents: Contents,
    operator: npt.NDArray[np.int8],
    in_use: npt.NDArray[np.bool_],
    uses: npt.NDArray[np.int64],
    taken: npt.NDArray[np.bool_],
    listed: npt.NDArray[np.bool_],
) -> bool:
    """Whether clauses have words of their own, are of predicates that there are, and are somebody's or free.

    Counts the uses of predicates. `taken` is by word and `listed` by clause, both for those in use, and none is.
    """
    end, end_word = len(listed), len(taken)
    live, idle = 0, 0
    for clause in range(end):
        first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
        if width >= len(contents.free) or (width > 0 and first + width > end_word):
            return False
        for at in range(first, first + width):
            if taken[at]:
                return False
            taken[at] = True
        if contents.slot[clause] == NOBODY:
            idle += width
            continue
        live += 1
        if width == 0 or contents.slot[clause] >= len(in_use) or not in_use[contents.slot[clause]]:
            return False
        for at in range(first, first + width):
            number = np.int64(contents.words[at])
            if number == EVERY:
                continue
            if number > len(operator) or operator[number - 1] < 0:
                return False
            uses[number - 1] += 1
    if live != contents.spare[LIVE] or idle != contents.spare[FREE_WORDS]:
        return False
    return _chains_are_sound(contents, listed)


@part
def _chains_are_sound(contents: Contents, listed: npt.NDArray[np.bool_]) -> bool:
    """Whether every clause is in the list of its subscription, or if free of its width, and in no other."""
    for slot in range(len(contents.head)):
        clause, alone = np.int64(contents.head[slot]), True
        if clause == -1:
            continue
        while clause != LAST and not (clause == ALONE and alone):
            alone = clause == contents.head[slot]
            if clause < 0 or clause >= len(listed) or listed[clause] or contents.slot[clause] != slot:
                return False
            listed[clause] = True
            clause = np.int64(contents.sibling[clause])
    for width in range(len(contents.free)):
        clause = contents.free[width]
        while clause != -1:
            if clause < 0 or clause >= len(listed) or listed[clause]:
                return False
            if contents.slot[clause] != NOBODY or np.int64(contents.width[clause]) != width:
                return False
            listed[clause] = True
            clause = np.int64(contents.sibling[clause])
    known = 0
    for each in listed:
        known += each
    return known == len(listed)
