"""Clauses that come and go, and the lists that a table is made of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.layout import Clauses
from harken.matching.structures.kernels.clauses import END, NOBODY, Contents, add_clause, set_free
from harken.matching.structures.kernels.counters import Lists


@tight
def enter(contents: Contents, clauses: Clauses) -> None:
    """Take in clauses, for which there is room."""
    for new in range(len(clauses.slot)):
        add_clause(contents, clauses, new)


@tight
def take_out(contents: Contents, slots: npt.NDArray[np.int64], words: npt.NDArray[np.int64]) -> None:
    """Remove the clauses of these slots, and write down all their words."""
    count = 0
    for slot in slots:
        clause = np.int64(contents.head[slot])
        contents.head[slot] = -1
        while clause >= 0:
            following = np.int64(contents.sibling[clause])
            first = np.int64(contents.first[clause])
            for at in range(first, first + np.int64(contents.width[clause])):
                words[count] = contents.words[at]
                count += 1
            set_free(contents, clause)
            clause = following


@tight
def count_filters(
    contents: Contents,
    ends: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    lacking: npt.NDArray[np.int64],
) -> None:
    """Count, by list, its filters, and by filter its constraints: a word is as many as `ends` says."""
    for clause in range(contents.spare[END]):
        if contents.slot[clause] != NOBODY:
            first = np.int64(contents.first[clause])
            for at in range(first, first + np.int64(contents.width[clause])):
                length[contents.words[at]] += 1
                lacking[clause] += ends[contents.words[at]]


@tight
def fill_lists(contents: Contents, lists: Lists) -> None:
    """Write filters into lists, whose length is 0 before."""
    for clause in range(contents.spare[END]):
        if contents.slot[clause] != NOBODY:
            first = np.int64(contents.first[clause])
            for at in range(first, first + np.int64(contents.width[clause])):
                number = contents.words[at]
                lists.clause[lists.start[number] + lists.length[number]] = clause
                lists.length[number] += 1
