"""Putting clauses into a BE-Tree, cutting its space where it is crowded, and taking clauses out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.betree.kernels.layout import (
    END_ENTRY,
    END_NODE,
    NO_NODE,
    ROOT,
    SIZE,
    WANTED,
    Tree,
    is_cut_by,
)
from harken.matching.kernels.layout import HIGHEST, LOWEST, Clauses, PredicateArrays
from harken.matching.structures.kernels.attributes import (
    RANGE,
    WAYS,
    attribute_of,
    highest,
    is_needed,
    lowest,
)
from harken.matching.structures.kernels.clauses import Contents, add_clause, set_free
from harken.matching.structures.kernels.hashing import find, key_of, put
from harken.matching.structures.kernels.records import write_record

LEAST = 4
"""Entries that a node has room for at first."""

PER_ENTRY, AT_LEAST = 4, 4 * LEAST
"""Room that is taken at most while entries are moved one by one, each node having twice what it had when full."""

_WORTH = (4, 2, 2, 2, 1)
"""What an attribute is worth by its way of asking, if as many ask so: most events have what need only be there."""


@tight
def admit(
    tree: Tree,
    contents: Contents,
    predicates: PredicateArrays,
    clauses: Clauses,
    admitted: npt.NDArray[np.int64],
) -> None:
    """Write down new clauses, for which there is room, and their numbers; they are in no node yet."""
    for new in range(len(clauses.slot)):
        clause = add_clause(contents, clauses, new)
        learn(tree, contents, predicates, clause)
        admitted[new] = clause


@tight
def learn_all(tree: Tree, contents: Contents, predicates: PredicateArrays, clauses: npt.NDArray[np.int64]) -> None:
    """Note what clauses ask of that are there already."""
    for clause in clauses:
        learn(tree, contents, predicates, clause)


@part
def learn(tree: Tree, contents: Contents, predicates: PredicateArrays, clause: int) -> None:
    """Note what a clause asks of; it is in no node."""
    first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
    for at in range(first, first + width):
        word = np.int64(contents.words[at])
        if is_needed(predicates, word):
            tree.frequency[attribute_of(predicates, word - 1)] += 1
    tree.node_of[clause] = NO_NODE
    write_record(tree.records, contents, clause)


@tight
def insert(
    tree: Tree, contents: Contents, predicates: PredicateArrays, clauses: npt.NDArray[np.int64], start: int
) -> int:
    """Put clauses from `start` on into nodes; the first for which there is no room, WANTED says how much."""
    for at in range(start, len(clauses)):
        if not insert_one(tree, contents, predicates, clauses[at]):
            return at
    return len(clauses)


@part
def insert_one(tree: Tree, contents: Contents, predicates: PredicateArrays, clause: int) -> bool:
    """Put a clause into a node, whose space is cut if it is full; False if there is no room, and it is in none."""
    nodes, node = tree.nodes, find_node(tree, contents, predicates, clause)
    while has_room(tree, np.int64(nodes.length[node])):
        if nodes.length[node] < nodes.limit[node]:
            enter(tree, node, clause)
            return True
        cut(tree, contents, predicates, node)
        node = find_node(tree, contents, predicates, clause)
    return False


@part
def has_room(tree: Tree, entries: int) -> bool:
    """Whether there is room for what a cut makes of so many entries; WANTED says how many they are if not."""
    spare = tree.spare
    fits = spare[END_NODE] + 2 <= len(tree.nodes.start)
    fits &= spare[END_ENTRY] + PER_ENTRY * entries + AT_LEAST <= len(tree.entries)
    fits &= 2 * (tree.by_attribute.spare[0] + 1) <= len(tree.by_attribute.key)
    if not fits:
        spare[WANTED] = entries
    return fits


@tight
def cut(tree: Tree, contents: Contents, predicates: PredicateArrays, node: int) -> None:
    """Cut the space of a node, by value or else by attribute; if neither will do it may become larger."""
    if not halve(tree, contents, predicates, node) and not partition(tree, contents, predicates, node):
        tree.nodes.limit[node] = 2 * tree.nodes.length[node]


@part
def find_node(tree: Tree, contents: Contents, predicates: PredicateArrays, clause: int) -> int:
    """The node for a clause: down through what it asks of, the rarest first, as long as there are directories."""
    node = np.int64(ROOT)
    while tree.nodes.below[node] > 0:
        predicate = leading(tree, contents, predicates, clause, node)
        if predicate < 0:
            break
        top = find(tree.by_attribute, key_of(node, attribute_of(predicates, predicate)))
        node = half_for(tree, predicates, top, predicate)
    return node


@part
def leading(tree: Tree, contents: Contents, predicates: PredicateArrays, clause: int, node: int) -> int:
    """What a clause asks of the attribute, of those with a directory below a node, that asks for least; or -1."""
    first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
    best, least = np.int64(-1), np.int64(2**62)
    for at in range(first, first + width):
        word = np.int64(contents.words[at])
        if not is_needed(predicates, word):
            continue
        attribute = attribute_of(predicates, word - 1)
        cost = tree.frequency[attribute] + (np.int64(attribute % WAYS) << 40)
        if cost < least and find(tree.by_attribute, key_of(node, attribute)) >= 0:
            best, least = word - 1, cost
    return best


@part
def half_for(tree: Tree, predicates: PredicateArrays, top: int, predicate: int) -> int:
    """The smallest node of a directory, from one on, that is for all that a predicate asks for."""
    nodes, node = tree.nodes, np.int64(top)
    while nodes.lower[node] != NO_NODE:
        half = which_half(tree, predicates, node, predicate)
        if half < 0:
            break
        node = nodes.lower[node] + half
    return node


@part
def which_half(tree: Tree, predicates: PredicateArrays, node: int, predicate: int) -> int:
    """Whether a predicate asks for the lower half of a node (0), the upper one (1), or across both (-1)."""
    middle = tree.nodes.middle[node]
    if highest(predicates, predicate) <= middle:
        return 0
    return 1 if lowest(predicates, predicate) > middle else -1


@part
def enter(tree: Tree, node: int, clause: int) -> None:
    """Add an entry to a node, for which there is room somewhere."""
    nodes, entries, spare = tree.nodes, tree.entries, tree.spare
    length = np.int64(nodes.length[node])
    if length == nodes.room[node]:
        room = max(np.int64(LEAST), 2 * length)
        begin, start = spare[END_ENTRY], nodes.start[node]
        for at in range(length):
            entries[begin + at] = entries[start + at]
        nodes.start[node], nodes.room[node] = begin, room
        spare[END_ENTRY] += room
    keep(tree, node, length, clause)
    nodes.length[node] = length + 1


@part
def keep(tree: Tree, node: int, place: int, clause: int) -> None:
    """Let an entry of a node be a clause."""
    tree.entries[tree.nodes.start[node] + place] = clause
    tree.node_of[clause], tree.place_of[clause] = node, place


@part
def new_node(tree: Tree, above: int, attribute: int) -> int:
    """A node without entries."""
    nodes, spare = tree.nodes, tree.spare
    node = spare[END_NODE]
    spare[END_NODE] += 1
    nodes.start[node], nodes.length[node], nodes.room[node] = 0, 0, 0
    nodes.limit[node], nodes.attribute[node] = spare[SIZE], attribute
    nodes.middle[node], nodes.lower[node] = 0, NO_NODE
    nodes.above[node], nodes.below[node] = above, 0
    return node


@part
def asked_of(contents: Contents, predicates: PredicateArrays, clause: int, attribute: int) -> int:
    """What a clause asks of an attribute, or -1; if that is several things, the first."""
    first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
    for at in range(first, first + width):
        word = np.int64(contents.words[at])
        if is_needed(predicates, word) and attribute_of(predicates, word - 1) == attribute:
            return word - 1
    return np.int64(-1)


@part
def find_middle(tree: Tree, contents: Contents, predicates: PredicateArrays, node: int) -> bool:
    """Find the middle of what the entries of a node ask for; False if there is none.

    The entry that reaches furthest down is never in the upper half, nor the one furthest up in the lower: so no
    half takes all.
    """
    nodes, entries, attribute = tree.nodes, tree.entries, np.int64(tree.nodes.attribute[node])
    start, end = nodes.start[node], nodes.start[node] + np.int64(nodes.length[node])
    least, most = np.int64(HIGHEST), np.int64(LOWEST)
    for at in range(start, end):
        predicate = asked_of(contents, predicates, np.int64(entries[at]), attribute)
        low, high = lowest(predicates, predicate), highest(predicates, predicate)
        if low > LOWEST:
            least, most = min(least, low), max(most, low)
        if high < HIGHEST:
            least, most = min(least, high), max(most, high)
    if least >= most:
        return False
    nodes.middle[node] = least + (most - least) // 2
    for at in range(start, end):
        predicate = asked_of(contents, predicates, np.int64(entries[at]), attribute)
        if which_half(tree, predicates, node, predicate) >= 0:
            return True
    return False


@part
def halve(tree: Tree, contents: Contents, predicates: PredicateArrays, node: int) -> bool:
    """Cut by value: move entries into the halves of a node; False if it has halves, or none would move."""
    nodes, entries = tree.nodes, tree.entries
    attribute = np.int64(nodes.attribute[node])
    if node == ROOT or attribute % WAYS > RANGE or nodes.lower[node] != NO_NODE:
        return False
    if not find_middle(tree, contents, predicates, node):
        return False
    lower = new_node(tree, node, attribute)
    new_node(tree, node, attribute)
    nodes.lower[node] = lower
    start, length, kept = nodes.start[node], np.int64(nodes.length[node]), 0
    for at in range(start, start + length):
        clause = np.int64(entries[at])
        half = which_half(tree, predicates, node, asked_of(contents, predicates, clause, attribute))
        if half >= 0:
            enter(tree, lower + half, clause)
        else:
            keep(tree, node, kept, clause)
            kept += 1
    nodes.length[node] = kept
    return True


@part
def most_asked(tree: Tree, contents: Contents, predicates: PredicateArrays, node: int) -> int:
    """The attribute that it pays most to cut a node by, or -1: one that at least two of its entries ask of."""
    nodes, entries, tally = tree.nodes, tree.entries, tree.tally
    start, length = nodes.start[node], np.int64(nodes.length[node])
    best, most = np.int64(-1), np.int64(1)
    # Counted, chosen and forgotten: three times through the same words.
    for step in range(3):
        for at in range(start, start + length):
            clause = np.int64(entries[at])
            first, width = np.int64(contents.first[clause]), np.int64(contents.width[clause])
            for place in range(first, first + width):
                word = np.int64(contents.words[place])
                if not is_needed(predicates, word):
                    continue
                attribute = attribute_of(predicates, word - 1)
                if step == 0:
                    tally[attribute] += 1
                elif step == 2:
                    tally[attribute] = 0
                elif tally[attribute] > 1:
                    worth = np.int64(tally[attribute]) * _WORTH[attribute % WAYS]
                    if worth > most and not is_cut_by(nodes, node, attribute):
                        best, most = attribute, worth
    return best


@part
def partition(tree: Tree, contents: Contents, predicates: PredicateArrays, node: int) -> bool:
    """Cut by attribute: move entries into a new directory; False if no two ask of one that is not used above."""
    nodes, entries = tree.nodes, tree.entries
    attribute = most_asked(tree, contents, predicates, node)
    if attribute < 0:
        return False
    top = new_node(tree, node, attribute)
    put(tree.by_attribute, key_of(node, attribute), top)
    nodes.below[node] += 1
    start, length, kept = nodes.start[node], np.int64(nodes.length[node]), 0
    for at in range(start, start + length):
        clause = np.int64(entries[at])
        if asked_of(contents, predicates, clause, attribute) >= 0:
            enter(tree, top, clause)
        else:
            keep(tree, node, kept, clause)
            kept += 1
    nodes.length[node] = kept
    return True


@tight
def take_out(
    tree: Tree,
    contents: Contents,
    predicates: PredicateArrays,
    slots: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
) -> None:
    """Remove the clauses of these slots from nodes and altogether, and write down all their words."""
    count = 0
    for slot in slots:
        clause = np.int64(contents.head[slot])
        contents.head[slot] = -1
        while clause >= 0:
            following, first = np.int64(contents.sibling[clause]), np.int64(contents.first[clause])
            for at in range(first, first + np.int64(contents.width[clause])):
                word = np.int64(contents.words[at])
                words[count] = word
                count += 1
                if is_needed(predicates, word):
                    tree.frequency[attribute_of(predicates, word - 1)] -= 1
            leave(tree, clause)
            set_free(contents, clause)
            clause = following


@part
def leave(tree: Tree, clause: int) -> None:
    """Let a clause be in no node: the last entry takes its place."""
    nodes, node = tree.nodes, np.int64(tree.node_of[clause])
    last = np.int64(nodes.length[node]) - 1
    keep(tree, node, np.int64(tree.place_of[clause]), np.int64(tree.entries[nodes.start[node] + last]))
    tree.node_of[clause], nodes.length[node] = NO_NODE, last
    if last <= tree.spare[SIZE]:
        nodes.limit[node] = tree.spare[SIZE]
