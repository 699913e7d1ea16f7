"""Reading a sample of clauses out of the clusters, to judge by it which tables would pay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.clusters.kernels.choosing import choose_without_keys
from harken.matching.clusters.kernels.placing import clause_predicates
from harken.matching.kernels.layout import EQUAL, LENGTH, LINE, NEXT, Blocks, Chances, PredicateArrays, Tables


class Equalities(NamedTuple):
    """Where a sample is written: clause j has the equalities from first[j] to first[j + 1], by dimension."""

    first: npt.NDArray[np.int64]
    dimension: npt.NDArray[np.int64]
    chance: npt.NDArray[np.float64]
    otherwise: npt.NDArray[np.float64]
    """Of each clause: the chance of its best access path that is not a key table."""


@part
def _write_equalities(
    predicates: PredicateArrays, chances: Chances, clause: npt.NDArray[np.int64], into: Equalities, end: int
) -> int:
    """Write the equalities of a clause from `end` on, dimensions ascending; where they end."""
    start = end
    for word in clause:
        if predicates.operator[word] != EQUAL:
            continue
        dimension, at = predicates.dimension[word], end
        while at > start and into.dimension[at - 1] > dimension:
            into.dimension[at], into.chance[at] = into.dimension[at - 1], into.chance[at - 1]
            at -= 1
        into.dimension[at], into.chance[at] = dimension, chances.selectivity[word]
        end += 1
    return end


@tight
def sample_equalities(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    chances: Chances,
    every: int,
    clause: npt.NDArray[np.int64],
    into: Equalities,
) -> int:
    """Write down every so many-th entry, in the order of the directory; how many there are.

    Neighbours in the directory have much in common, so equal steps see all kinds of clauses in their proportion.
    `clause` has room for the longest clause, and `into` for a clause of that length at each step.
    """
    words = blocks.words
    count, end, skip = 0, 0, every // 2
    for first in blocks.directory:
        block = np.int64(first)
        while block > 0:
            base = block * LINE
            length = np.int64(words[base + LENGTH])
            while skip < length:
                if count == len(into.otherwise):
                    return count
                size = clause_predicates(predicates, tables, words, block, skip, clause)
                end = _write_equalities(predicates, chances, clause[:size], into, end)
                into.otherwise[count] = choose_without_keys(predicates, tables, chances, clause[:size])[2]
                count += 1
                into.first[count] = end
                skip += every
            skip -= length
            block = np.int64(words[base + NEXT])
    return count
