"""The kernel that takes texts one after the other, and stops where room is short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harken.compiler.direct.clauses import without_redundant
from harken.compiler.direct.layout import DECLINED, MOST, NODES, Work
from harken.compiler.direct.names import Names
from harken.compiler.direct.parsing import Grammar, parsed
from harken.compiler.direct.rewriting import rewritten
from harken.compiler.direct.writing import Output, written
from harken.jit import tight

DONE, MORE_NAMES, MORE_OUTPUT = range(3)
_MOST_NAMES = MOST[NODES]


@tight
def compile_from(
    grammars: Sequence[Grammar],
    names: Names,
    works: Sequence[Work],
    out: Output,
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    text: int,
) -> tuple[int, int]:
    """Compile texts from this one on; where it stopped, and what it was short of there."""
    grammar, work = grammars[0], works[0]
    while text < len(offsets) - 1:
        at, past = offsets[text], offsets[text + 1]
        most_names = min((past - at) // 2, _MOST_NAMES) + 1
        if not names.closed and names.used[0] + most_names > len(names.begin):
            return text, MORE_NAMES
        if parsed(grammar, names, work, data, at, past):
            first, count = rewritten(work, data)
            if not work.tops[DECLINED]:
                first, count = without_redundant(work, data, first, count)
            if not work.tops[DECLINED] and not written(work, out, text, first, count):
                return text, MORE_OUTPUT
        text += 1
    return text, DONE
