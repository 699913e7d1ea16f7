"""Making search trees: clauses go in, sorted by what they ask in the order of a tree; its entries come out.

Sorting looks at what is asked first, and only where that is equal at what comes next (multikey quicksort); equal
beginnings of neighbours become common branches.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.kernels.layout import FALSE, PredicateArrays
from harken.matching.trees.kernels.layout import (
    NO_PREDICATE,
    NOBODY,
    NODE,
    ONE,
    WORTH_A_NODE,
    ZERO,
    Contents,
    Order,
)

Integers = npt.NDArray[np.int64]
Entries = npt.NDArray[np.int32]

WORD, PLACE = 2**32 - 1, 2**31 - 1
"""The bits of a key that are the predicate, and of a group that are where it begins."""

FEW = 12
"""So many or fewer are sorted by putting each in its place."""

STACK = 512
"""Room for what is left to sort: of three parts the smallest comes first, so that they halve."""


@part
def key_of(predicates: PredicateArrays, roles: npt.NDArray[np.int8], order: Order, word: int) -> int:
    """A number that says when a tree asks a predicate, and in its lower half which one it is.

    What phase one does not find comes late, for it has to be evaluated. What is in the dimensions that are skipped
    comes last: there, all but events that lack a value pass.
    """
    away = np.int64(predicates.dimension[word]) - order.begin
    if away < 0:
        away += order.dimensions
    when = 0
    if away >= order.length:
        when = 3
    elif predicates.initial[word] != FALSE:
        when = 2
    elif order.ones_first and roles[word] != ONE:
        when = 1
    return (np.int64(when) << 60) | (away << 32) | np.int64(word)


@part
def sort_keys(keys: Integers, begin: int, end: int) -> None:
    """Sort a run of keys in place, in gaps that shrink: most runs are short, some are not."""
    gap = 1
    while 3 * gap + 1 < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(begin + gap, end):
            key, hole = keys[at], at
            while hole - gap >= begin and keys[hole - gap] > key:
                keys[hole] = keys[hole - gap]
                hole -= gap
            keys[hole] = key
        gap //= 3


@tight
def lay_keys(
    predicates: PredicateArrays,
    roles: npt.NDArray[np.int8],
    contents: Contents,
    order: Order,
    members: Integers,
    offset: Integers,
    keys: Integers,
) -> None:
    """Write down what each of some clauses asks, in the order of a tree: clause i from offset[i] on."""
    for member in range(len(members)):
        source = np.int64(contents.first[members[member]])
        for at in range(offset[member], offset[member + 1]):
            keys[at] = key_of(predicates, roles, order, contents.words[source + at - offset[member]])
        sort_keys(keys, offset[member], offset[member + 1])


@part
def key_at(keys: Integers, offset: Integers, member: int, depth: int) -> int:
    """What a clause asks at a depth; -1 behind its last."""
    at = offset[member] + depth
    return keys[at] if at < offset[member + 1] else -1


@part
def comes_before(keys: Integers, offset: Integers, one: int, other: int, depth: int) -> bool:
    """Whether a clause comes before another one that is equal up to a depth."""
    while True:
        mine, its = key_at(keys, offset, one, depth), key_at(keys, offset, other, depth)
        if mine != its:
            return mine < its
        if mine < 0:
            return False
        depth += 1


@part
def sort_few(keys: Integers, offset: Integers, index: Integers, low: int, high: int, depth: int) -> None:
    """Sort a short run, of clauses that are equal up to a depth."""
    for at in range(low + 1, high):
        member, hole = index[at], at
        while hole > low and comes_before(keys, offset, member, index[hole - 1], depth):
            index[hole] = index[hole - 1]
            hole -= 1
        index[hole] = member


@part
def push(stack: Integers, top: int, low: int, high: int, depth: int) -> int:
    """Leave a run to be sorted, if there is anything to sort; how much is left then."""
    if high - low < 2:
        return top
    stack[top], stack[top + 1], stack[top + 2] = low, high, depth
    return top + 3


@part
def push_parts(
    stack: Integers, top: int, low: int, below: int, above: int, high: int, depth: int, ends: bool
) -> int:
    """Leave three parts, the largest at the bottom; that of equal ones is equal one step further."""
    first, middle, last = below - low, above - below, high - above
    if ends:
        middle = 0
    for _ in range(3):
        if first >= middle and first >= last:
            top = push(stack, top, low, below, depth)
            first = -1
        elif middle >= last:
            if not ends:
                top = push(stack, top, below, above, depth + 1)
            middle = -1
        else:
            top = push(stack, top, above, high, depth)
            last = -1
    return top


@tight
def sort_members(keys: Integers, offset: Integers, index: Integers, stack: Integers) -> None:
    """Sort clauses by what they ask. `index` has their numbers, in any order at first."""
    top = push(stack, 0, 0, len(index), 0)
    while top > 0:
        top -= 3
        low, high, depth = stack[top], stack[top + 1], stack[top + 2]
        if high - low <= FEW:
            sort_few(keys, offset, index, low, high, depth)
            continue
        pivot = key_at(keys, offset, index[(low + high) // 2], depth)
        below, above, at = low, high, low
        while at < above:
            member = index[at]
            key = key_at(keys, offset, member, depth)
            if key < pivot:
                index[at], index[below] = index[below], member
                below += 1
                at += 1
            elif key > pivot:
                above -= 1
                index[at], index[above] = index[above], member
            else:
                at += 1
        top = push_parts(stack, top, low, below, above, high, depth, pivot < 0)


@part
def list_groups(
    predicates: PredicateArrays,
    keys: Integers,
    offset: Integers,
    index: Integers,
    low: int,
    high: int,
    depth: int,
    groups: Integers,
) -> int:
    """Where clauses begin that ask the same at a depth: first those who ask what phase one finds, by predicate."""
    count, begin = 0, low
    while begin < high:
        key = key_at(keys, offset, index[begin], depth)
        end = begin + 1
        while end < high and key_at(keys, offset, index[end], depth) == key:
            end += 1
        evaluated = np.int64(predicates.initial[key & WORD] != FALSE)
        for at in range(begin, end if end - begin < WORTH_A_NODE else begin + 1):
            groups[count] = (evaluated << 62) | ((key & WORD) << 31) | np.int64(at)
            count += 1
        begin = end
    sort_keys(groups, 0, count)
    return count


@part
def write_tail(
    keys: Integers, offset: Integers, member: int, depth: int, clause: int, entries: Entries, end: int
) -> int:
    """Write what a clause asks from a depth on; where that ends."""
    for at in range(offset[member] + depth, offset[member + 1]):
        entries[end] = keys[at] & WORD
        end += 1
    entries[end] = ~clause
    return end + 1


@tight
def plant(
    predicates: PredicateArrays,
    keys: Integers,
    offset: Integers,
    index: Integers,
    members: Integers,
    groups: Integers,
    left: Integers,
    entries: Entries,
) -> tuple[int, int]:
    """Write the entries of a tree of sorted clauses; how many these are, and how many nodes there are.

    `groups` has room for a number by clause, `left` for four: the nodes that are still to be written.
    """
    end, nodes, top = 0, 0, 4
    left[0], left[1], left[2], left[3] = 0, len(index), 0, -1
    while top > 0:
        top -= 4
        low, high, depth, place = left[top], left[top + 1], left[top + 2], left[top + 3]
        if place >= 0:
            entries[place] = end
        first = low
        while first < high and key_at(keys, offset, index[first], depth) < 0:
            first += 1
        count = list_groups(predicates, keys, offset, index, first, high, depth, groups)
        branch, found = end + NODE, 0
        for at in range(count):
            found += groups[at] >> 62 == 0
        entries[end], entries[end + 1], entries[end + 2] = found, count - found, first - low
        end = branch + 2 * count
        for at in range(low, first):
            entries[end] = members[index[at]]
            end += 1
        for at in range(count):
            begin = groups[at] & PLACE
            key, stop = key_at(keys, offset, index[begin], depth), begin + 1
            if at + 1 == count or (groups[at + 1] ^ groups[at]) >> 31 != 0:
                while stop < high and key_at(keys, offset, index[stop], depth) == key:
                    stop += 1
            entries[branch] = key & WORD
            if stop - begin < WORTH_A_NODE:
                entries[branch + 1] = ~end
                end = write_tail(keys, offset, index[begin], depth + 1, members[index[begin]], entries, end)
            else:
                left[top], left[top + 1], left[top + 2], left[top + 3] = begin, stop, depth + 1, branch + 1
                top += 4
            branch += 2
        nodes += 1
    return end, nodes


@tight
def find_leaders(
    predicates: PredicateArrays, roles: npt.NDArray[np.int8], contents: Contents, order: Order, begin: int
) -> None:
    """Find the first predicate of each clause from `begin` on."""
    for clause in range(begin, contents.end):
        least, leader = np.int64(2**62), NO_PREDICATE
        for at in range(contents.first[clause], contents.first[clause + 1]):
            key = key_of(predicates, roles, order, contents.words[at])
            if key < least:
                least, leader = key, contents.words[at]
        contents.leader[clause] = leader


@tight
def count_zeros(contents: Contents, roles: npt.NDArray[np.int8], members: Integers) -> int:
    """How many predicates of role ZERO some clauses have."""
    count = 0
    for clause in members:
        for at in range(contents.first[clause], contents.first[clause + 1]):
            count += roles[contents.words[at]] == ZERO
    return count


@tight
def list_blocks(
    predicates: PredicateArrays,
    roles: npt.NDArray[np.int8],
    contents: Contents,
    dimensions: int,
    light: int,
    members: Integers,
    blocks: Integers,
) -> int:
    """The blocks in which clauses ask ONE, for events of so many properties: a bit for each; -1 if none matches.

    Returns in how many trees they are together. A clause is in the set of such events if it asks ONE of no more
    dimensions, and ZERO of no more than the others (section 4.1.1); and in the tree of each block where it asks
    ONE of none (section 4.1.2).
    """
    trees = 0
    for member in range(len(members)):
        clause = members[member]
        ones, zeros, mask, latest = 0, 0, np.int64(0), -1
        for at in range(contents.first[clause], contents.first[clause + 1]):
            word = contents.words[at]
            if roles[word] == ONE:
                dimension = np.int64(predicates.dimension[word])
                # Several of one dimension are one property, and stand side by side.
                ones += dimension != latest
                latest = dimension
                mask |= np.int64(1) << (dimension * (light + 1) // dimensions)
            zeros += roles[word] == ZERO
        if ones > light or zeros > dimensions - light:
            mask = np.int64(-1)
        else:
            for block in range(light + 1):
                trees += 1 - ((mask >> block) & 1)
        blocks[member] = mask
    return trees


@tight
def list_members(contents: Contents, begin: int, end: int, members: Integers) -> int:
    """Write down the clauses of a run that have not left; how many there are."""
    count = 0
    for clause in range(begin, end):
        if contents.owner[clause] != NOBODY:
            members[count] = clause
            count += 1
    return count
