"""Reading clauses from columns: what a column cannot see, because it looks at one predicate at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight


def repeated(
    clause: npt.NDArray[np.int64], attribute: npt.NDArray[np.int32], attributes: int
) -> npt.NDArray[np.int64]:
    """The clauses in which an attribute comes back after another one; each run of predicates is given once."""
    seen_in = np.full(attributes, -1, np.int64)
    found = np.empty(len(clause), np.int64)
    return found[: _find_repeated(clause, attribute, seen_in, found)]


@tight
def _find_repeated(
    clause: npt.NDArray[np.int64],
    attribute: npt.NDArray[np.int32],
    seen_in: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> int:
    count = 0
    for run in range(len(clause)):
        if seen_in[attribute[run]] == clause[run]:
            found[count] = clause[run]
            count += 1
        seen_in[attribute[run]] = clause[run]
    return count


@tight
def ascending_rows(
    first: npt.NDArray[np.int64], axis: npt.NDArray[np.int32], order: npt.NDArray[np.int64]
) -> None:
    """The order that brings the rows of each clause to ascending axes; clauses are short, so by insertion."""
    for clause in range(len(first) - 1):
        for row in range(first[clause], first[clause + 1]):
            place = row
            while place > first[clause] and axis[order[place - 1]] > axis[row]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = row
