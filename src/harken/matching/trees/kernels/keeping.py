"""Keeping clauses: taking them in, finding those of a slot, and letting them go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import ALONE, LAST, Clauses
from harken.matching.trees.kernels.layout import NOBODY, SEVERAL, SLOT, Contents

Integers = npt.NDArray[np.int64]


@part
def _is_behind(dimension: npt.NDArray[np.int32], one: int, other: int) -> bool:
    """Whether a predicate stands behind another one in a clause."""
    return dimension[one] > dimension[other] or (dimension[one] == dimension[other] and one > other)


@part
def _sort_words(words: npt.NDArray[np.int32], begin: int, end: int, dimension: npt.NDArray[np.int32]) -> None:
    """Sort what a clause asks, in gaps that shrink: most clauses are short, some are not."""
    gap = 1
    while 3 * gap + 1 < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(begin + gap, end):
            word, hole = words[at], at
            while hole - gap >= begin and _is_behind(dimension, words[hole - gap], word):
                words[hole] = words[hole - gap]
                hole -= gap
            words[hole] = word
        gap //= 3


@tight
def enter(contents: Contents, begin: int, clauses: Clauses, dimension: npt.NDArray[np.int32]) -> None:
    """Take in clauses as those from number `begin` on, for which there is room everywhere."""
    for new in range(len(clauses.slot)):
        clause, slot = begin + new, clauses.slot[new]
        first = np.int64(contents.first[clause])
        width = clauses.first[new + 1] - clauses.first[new]
        for at in range(width):
            contents.words[first + at] = clauses.words[clauses.first[new] + at]
        _sort_words(contents.words, first, first + width, dimension)
        contents.first[clause + 1] = first + width
        following = contents.head[slot]
        contents.owner[clause] = slot if clauses.alone[new] else slot | SEVERAL
        contents.sibling[clause] = following if following >= 0 else ALONE if clauses.alone[new] else LAST
        contents.head[slot] = clause


@tight
def read_clauses(
    contents: Contents, slots: Integers, counts: Integers, size: Integers, owner: Integers, words: Integers
) -> None:
    """Write down size, owner and predicates of all clauses of these slots, as far as they fit.

    `counts` says how many clauses and predicates there are.
    """
    counts[:] = 0
    for slot in slots:
        clause = np.int64(contents.head[slot])
        while clause >= 0:
            first = np.int64(contents.first[clause])
            width = np.int64(contents.first[clause + 1]) - first
            if counts[0] < len(size):
                size[counts[0]], owner[counts[0]] = width, slot
                for at in range(width):
                    words[counts[1] + at] = contents.words[first + at]
            counts[0] += 1
            counts[1] += width
            clause = np.int64(contents.sibling[clause])


@tight
def take_out(contents: Contents, slots: Integers) -> None:
    """Let the clauses of these slots go. In trees they stay, and nobody is told of them."""
    for slot in slots:
        clause = np.int64(contents.head[slot])
        contents.head[slot] = -1
        while clause >= 0:
            contents.owner[clause] = NOBODY
            clause = np.int64(contents.sibling[clause])


@tight
def move_clauses(contents: Contents, into: Contents) -> None:
    """Copy the clauses that have not left side by side, under new numbers; those of a slot keep their order."""
    count, end = 0, 0
    for clause in range(contents.end):
        if contents.owner[clause] == NOBODY:
            continue
        begin = np.int64(contents.first[clause])
        width = np.int64(contents.first[clause + 1]) - begin
        for at in range(width):
            into.words[end + at] = contents.words[begin + at]
        into.leader[count] = contents.leader[clause]
        _own(into, count, np.int64(contents.owner[clause]))
        end += width
        count += 1
        into.first[count] = end


@part
def _own(into: Contents, clause: int, owner: int) -> None:
    """Give a clause that has moved to its owner."""
    slot = owner & SLOT
    following = into.head[slot]
    into.owner[clause] = owner
    into.sibling[clause] = following if following >= 0 else LAST if owner >= SEVERAL else ALONE
    into.head[slot] = clause


@tight
def contents_are_sound(
    contents: Contents,
    operator: npt.NDArray[np.int8],
    dimension: npt.NDArray[np.int32],
    in_use: npt.NDArray[np.bool_],
    uses: Integers,
    listed: npt.NDArray[np.bool_],
) -> bool:
    """Whether clauses are of predicates that there are, in order, and are somebody's or have left.

    Counts the uses of predicates. `listed` is by clause, and none is.
    """
    for clause in range(contents.end):
        begin, end = np.int64(contents.first[clause]), np.int64(contents.first[clause + 1])
        if begin > end or end > len(contents.words):
            return False
        has_left, slot, latest = contents.owner[clause] == NOBODY, contents.owner[clause] & SLOT, -1
        if not has_left and (slot >= len(in_use) or not in_use[slot]):
            return False
        for at in range(begin, end):
            word = contents.words[at]
            if word < 0 or word >= len(operator):
                return False
            if has_left:
                continue
            if operator[word] < 0 or (latest >= 0 and not _is_behind(dimension, word, latest)):
                return False
            latest = word
            uses[word] += 1
    return _chains_are_sound(contents, listed)


@part
def _chains_are_sound(contents: Contents, listed: npt.NDArray[np.bool_]) -> bool:
    """Whether every clause that has not left is in the list of its subscription, and in no other."""
    for slot in range(len(contents.head)):
        clause, alone = np.int64(contents.head[slot]), True
        if clause == -1:
            continue
        while clause != LAST and not (clause == ALONE and alone):
            alone = clause == contents.head[slot]
            if clause < 0 or clause >= contents.end or listed[clause]:
                return False
            sibling = np.int64(contents.sibling[clause])
            if contents.owner[clause] != (slot if sibling == ALONE else slot | SEVERAL):
                return False
            listed[clause] = True
            clause = sibling
    unknown = 0
    for clause in range(contents.end):
        unknown += listed[clause] == (contents.owner[clause] == NOBODY)
    return unknown == 0
