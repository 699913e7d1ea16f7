"""What events look like to search trees: how many properties they have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.layout import MISSING, UNLISTED, Events, PredicateArrays
from harken.matching.trees.kernels.layout import ONE


@tight
def count_properties(
    predicates: PredicateArrays,
    roles: npt.NDArray[np.int8],
    events: Events,
    step: int,
    seen: npt.NDArray[np.int64],
) -> None:
    """Count one in so many events by its properties; the last of `seen` is for more than there are places for.

    Tests of texts and shapes are left out: what comes of this is a guess anyway.
    """
    for event in range(0, events.code.shape[0], step):
        properties = 0
        for column in range(1, events.code.shape[1]):
            code = events.code[event, column]
            if code in (MISSING, UNLISTED):
                continue
            at = predicates.equal_first[events.dimension[column]] + code
            has = predicates.equal[at] >= 0 and roles[predicates.equal[at]] == ONE
            node = predicates.member_head[at]
            while node >= 0 and not has:
                has = roles[predicates.member[node]] == ONE
                node = predicates.member_next[node]
            properties += has
        seen[min(properties, len(seen) - 1)] += 1
