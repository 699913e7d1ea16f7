"""Words whose bits stand for things that are there or not."""

from __future__ import annotations

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from harken.jit import part

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment

    def lowest(word: np.uint64) -> int:
        """The number of the lowest bit that is set. There must be one."""
        return (int(word) & -int(word)).bit_length() - 1

else:

    @part
    def lowest(word: np.uint64) -> int:
        """The number of the lowest bit that is set. There must be one."""
        return np.int64(trailing_zeros(word))  # type: ignore[call-arg]  # the compiler gives it the rest
