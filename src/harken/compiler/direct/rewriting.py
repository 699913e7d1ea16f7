"""From nodes in postfix order to clauses: NOT pushed inward, equal connectives joined, products multiplied out.

Two walks. The first goes from the last node, which is the root, to the first, and notes on each whether NOTs above
negate it and which connective it stands under. The second goes forward with a stack of terms: a connective under
one of its own kind leaves its terms to that one; any other is **sealed**, its terms becoming a list of clauses.
This is what the rules of `normal.rules` and the products of `normal.form` come to, without TRUE and FALSE.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.compiler.direct.clauses import add_entry, add_to_list, clause_of, met
from harken.compiler.direct.constraints import add_value, constraint, none_of, one_of, tidy
from harken.compiler.direct.layout import (
    ABOVE,
    ABSENT,
    AND,
    ATTRIBUTE,
    COMPARED,
    DECLINED,
    DEPTH,
    EMPTY,
    EQ,
    FIRST,
    FLAGS,
    FORM,
    GE,
    GT,
    HIGH,
    HIGH_CLOSED,
    HIGH_IN,
    LE,
    LISTED,
    LISTS,
    LOW,
    LOW_CLOSED,
    LOW_IN,
    LT,
    NE,
    NEGATED,
    NODES,
    NOT,
    NOTHING,
    OR,
    PRESENCE,
    PRESENT,
    RANGED,
    ROOT,
    SECOND,
    SORT,
    VALUES_TAKEN,
    Work,
    add_node,
    kind_of,
)
from harken.jit import called


@called
def rewritten(work: Work, data: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """The clauses of the text that was read: where in `listed` they are, and how many."""
    _push_negation(work)
    terms, runs = NOTHING, NOTHING
    for at in range(work.tops[NODES]):
        if work.tops[DECLINED]:
            return 0, 0
        sort, above = work.node[at, SORT], work.node[at, ABOVE]
        if sort == NOT:
            continue
        if sort in (AND, OR):
            added = 0
            for _ in range(work.node[at, ATTRIBUTE]):
                runs -= 1
                added += work.run[runs, 0]
            terms -= added
        else:
            added = _add_leaf(work, at, terms)
            sort = OR  # a negated range has become two terms
        if added > 1 and sort != above:
            _seal(work, data, sort, terms, added)
            added = 1
        terms += added
        work.run[runs, 0] = added
        runs += 1
    return _options(work, data, NOTHING)


@called
def _push_negation(work: Work) -> None:
    """Leave on each node what NOTs above make of it, and on connectives which they become."""
    node, frame = work.node, work.run
    frame[0, 0], frame[0, 1], frame[0, 2] = 1, 0, ROOT  # terms to come, whether negated, the connective
    depth, inner = 1, 1
    for at in range(work.tops[NODES] - 1, -1, -1):
        negated, above = frame[depth - 1, 1], frame[depth - 1, 2]
        frame[depth - 1, 0] -= 1
        depth -= frame[depth - 1, 0] == 0
        sort = node[at, SORT]
        node[at, NEGATED], node[at, ABOVE] = negated, above
        if sort < AND:
            continue
        inner += 1
        if sort == NOT:
            negated = 1 - negated
        else:
            above = AND + OR - sort if negated else sort
            node[at, SORT] = above
        frame[depth, 0], frame[depth, 1], frame[depth, 2] = node[at, ATTRIBUTE], negated, above
        depth += 1
    if inner > work.limits[DEPTH]:
        work.tops[DECLINED] = 1


@called
def _add_leaf(work: Work, at: int, terms: int) -> int:
    """Put a leaf among the terms, a range that is negated as two; how many they are."""
    node = work.node
    if node[at, SORT] != RANGED or not node[at, NEGATED]:
        work.term[terms, 0] = at
        return 1
    attribute, flags = node[at, ATTRIBUTE], node[at, FLAGS]
    below, above = LT if flags & LOW_CLOSED else LE, GT if flags & HIGH_CLOSED else GE
    work.term[terms, 0] = add_node(work, COMPARED, attribute, below, node[at, FIRST], NOTHING)
    work.term[terms + 1, 0] = add_node(work, COMPARED, attribute, above, node[at, SECOND], NOTHING)
    return 2


@called
def _seal(work: Work, data: npt.NDArray[np.uint8], sort: int, terms: int, count: int) -> None:
    """Make clauses of the last terms, and put one term for them."""
    if sort == AND:
        first, found = _product(work, data, terms, count)
    else:
        first, found = _alternatives(work, data, terms, count)
    work.term[terms, 0], work.term[terms, 1], work.term[terms, 2] = -1, first, found


@called
def _options(work: Work, data: npt.NDArray[np.uint8], term: int) -> tuple[int, int]:
    """The clauses of a term: where in `listed` they are, and how many."""
    node = work.term[term, 0]
    if node < 0:
        return work.term[term, 1], work.term[term, 2]
    asked = _constraint(work, data, node)
    return _boxed(work, work.node[node, ATTRIBUTE], asked)


@called
def _boxed(work: Work, attribute: int, asked: int) -> tuple[int, int]:
    """A list of one clause that asks one thing; of none if nothing satisfies it."""
    first = work.tops[LISTS]
    if asked == EMPTY:
        return first, 0
    clause = clause_of(work)
    add_entry(work, clause, attribute, asked)
    add_to_list(work, first, clause)
    return first, work.tops[LISTS] - first


@called
def _product(work: Work, data: npt.NDArray[np.uint8], terms: int, count: int) -> tuple[int, int]:
    """AND: each clause of a term with each of the others."""
    nothing = clause_of(work)
    first = work.tops[LISTS]
    add_to_list(work, first, nothing)
    found = work.tops[LISTS] - first
    for term in range(terms, terms + count):
        option, options = _options(work, data, term)
        begin = work.tops[LISTS]
        for one in range(first, first + found):
            for other in range(option, option + options):
                both = met(work, data, work.listed[one], work.listed[other])
                if both != EMPTY:
                    add_to_list(work, begin, both)
                if work.tops[DECLINED]:
                    return 0, 0
        first, found = begin, work.tops[LISTS] - begin
    return first, found


@called
def _alternatives(work: Work, data: npt.NDArray[np.uint8], terms: int, count: int) -> tuple[int, int]:
    """OR: the clauses of all terms, where those that ask one attribute to equal something are one."""
    # Lists of terms come to lie one after the other, between others; so they are made first and copied then.
    for term in range(terms, terms + count):
        node = work.term[term, 0]
        if node < 0:
            continue
        if work.node[node, SORT] == PRESENCE:
            _decline_tautology(work, terms, term)
        before, option, options = _joins(work, node), 0, 0
        if not before:
            option, options = _options(work, data, term)
        elif not _earlier(work, terms, term):
            option, options = _boxed(work, work.node[node, ATTRIBUTE], _joined(work, data, term, terms + count))
        work.term[term, 1], work.term[term, 2] = option, options
    first = work.tops[LISTS]
    for term in range(terms, terms + count):
        for at in range(work.term[term, 1], work.term[term, 1] + work.term[term, 2]):
            add_to_list(work, first, work.listed[at])
    return first, work.tops[LISTS] - first


@called
def _joins(work: Work, node: int) -> bool:
    """Whether a leaf asks its attribute to equal something."""
    if node < 0:
        return False
    sort, negated = work.node[node, SORT], work.node[node, NEGATED]
    if sort == COMPARED:
        return bool(work.node[node, FIRST] == (NE if negated else EQ))
    return bool(sort == LISTED and not negated)


@called
def _earlier(work: Work, first: int, term: int) -> bool:
    """Whether an earlier term joins this one."""
    attribute = work.node[work.term[term, 0], ATTRIBUTE]
    for other in range(first, term):
        node = work.term[other, 0]
        if _joins(work, node) and work.node[node, ATTRIBUTE] == attribute:
            return True
    return False


@called
def _joined(work: Work, data: npt.NDArray[np.uint8], term: int, past: int) -> int:
    """One constraint for a term and all later ones that it joins; of several kinds it would take several."""
    leaf, values = work.term[term, 0], work.tops[VALUES_TAKEN]
    for other in range(term, past):
        node = work.term[other, 0]
        if _joins(work, node) and work.node[node, ATTRIBUTE] == work.node[leaf, ATTRIBUTE]:
            _add_values(work, node)
    kind = kind_of(work, work.node[leaf, SECOND if work.node[leaf, SORT] == COMPARED else FIRST])
    for at in range(values, work.tops[VALUES_TAKEN]):
        if kind_of(work, work.value[at]) != kind:
            work.tops[DECLINED] = 1
            return EMPTY
    return one_of(work, data, kind, values)


@called
def _add_values(work: Work, leaf: int) -> None:
    """The values that a leaf compares with, in one run."""
    first, count = work.node[leaf, SECOND], 1
    if work.node[leaf, SORT] == LISTED:
        first, count = work.node[leaf, FIRST], work.node[leaf, SECOND]
    for literal in range(first, first + count):
        add_value(work, literal)


@called
def _decline_tautology(work: Work, first: int, term: int) -> None:
    """There or not there is always true; that is rare, and left to others."""
    leaf = work.term[term, 0]
    for other in range(first, term):
        node = work.term[other, 0]
        if (
            node >= 0
            and work.node[node, SORT] == PRESENCE
            and work.node[node, ATTRIBUTE] == work.node[leaf, ATTRIBUTE]
            and _asks_presence(work, node) != _asks_presence(work, leaf)
        ):
            work.tops[DECLINED] = 1


@called
def _asks_presence(work: Work, leaf: int) -> bool:
    return bool(work.node[leaf, FIRST] != work.node[leaf, NEGATED])


@called
def _constraint(work: Work, data: npt.NDArray[np.uint8], leaf: int) -> int:
    """What a leaf asks of its attribute."""
    node, row, values = work.node, work.constraint, work.tops[VALUES_TAKEN]
    sort, first, second = node[leaf, SORT], node[leaf, FIRST], node[leaf, SECOND]
    if sort == PRESENCE:
        number = constraint(work, NOTHING, values)
        row[number, FORM] = PRESENT if _asks_presence(work, leaf) else ABSENT
        return number
    kind = kind_of(work, second if sort == COMPARED else first)
    comparator = first if sort == COMPARED else EQ
    if node[leaf, NEGATED]:
        comparator = _opposite(comparator)
    if sort != RANGED and (comparator in (EQ, NE)):
        _add_values(work, leaf)
        return one_of(work, data, kind, values) if comparator == EQ else none_of(work, data, kind, values)
    number = constraint(work, kind, values)
    if sort == RANGED:
        row[number, LOW], row[number, LOW_IN] = first, int(node[leaf, FLAGS] & LOW_CLOSED != 0)
        row[number, HIGH], row[number, HIGH_IN] = second, int(node[leaf, FLAGS] & HIGH_CLOSED != 0)
    elif comparator in (LT, LE):
        row[number, HIGH], row[number, HIGH_IN] = second, int(comparator == LE)
    else:
        row[number, LOW], row[number, LOW_IN] = second, int(comparator == GE)
    return tidy(work, data, number)


@called
def _opposite(comparator: int) -> int:
    """NOT (x op c) is x opposite c."""
    if comparator == EQ:
        return NE
    if comparator == NE:
        return EQ
    if comparator == LT:
        return GE
    if comparator == GE:
        return LT
    return GT if comparator == LE else LE
