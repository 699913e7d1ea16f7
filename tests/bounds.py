"""The run in which every index of every kernel is checked: `make test-bounds`.

numba compiles checks into kernels when NUMBA_BOUNDSCHECK is set, and counts negative indices from the end. No
kernel of ours means that: a negative index is a "there is none" that somebody forgot to look at, and refused too.
"""

from __future__ import annotations

import os
from typing import Any

IS_CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1" and os.environ.get("NUMBA_DISABLE_JIT") != "1"


def refuse_negative_indices() -> None:
    """Have kernels compiled from now on take a negative index for what it is. Only where indices are checked."""
    from numba.core import types
    from numba.np import arrayobj

    def as_it_is(context: Any, builder: Any, index_type: Any, index: Any, size: Any) -> Any:
        return context.cast(builder, index, index_type, types.intp)

    assert callable(arrayobj.fix_integer_index), "numba has moved what counts negative indices from the end"
    arrayobj.fix_integer_index = as_it_is
