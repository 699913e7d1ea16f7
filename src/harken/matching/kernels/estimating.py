"""How likely predicates are, from how likely constants are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harken.jit import tight
from harken.matching.kernels.layout import PredicateArrays


@tight
def add_constants(
    predicates: PredicateArrays, likely: npt.NDArray[np.float32], selectivity: npt.NDArray[np.float32]
) -> None:
    """Set the chance of each equality to that of its constant, and of each set to the sum over its members.

    `likely` and the heads of sets go by the constants' places.
    """
    for place in range(len(predicates.equal)):
        if predicates.equal[place] >= 0:
            selectivity[predicates.equal[place]] = likely[place]
        node = predicates.member_head[place]
        while node >= 0:
            selectivity[predicates.member[node]] += likely[place]
            node = predicates.member_next[node]
