"""The options that kernels are compiled with, and whether numba still does with them what is assumed.

Two of them are not part of numba's documented interface. The first process that needs them compiles a small kernel
and looks at what came out; the verdict is kept beside the compiled kernels. If numba refuses an option or ignores
it, kernels are compiled without any: they give the same answers, more slowly, and one notice says so.
"""

from __future__ import annotations

import functools
import logging
import re
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from harken.jit import keeping, sources

try:
    from harken.jit.parts import PartCompiler
except ImportError:  # numba is made otherwise inside: then compiling takes longer, and that is all
    PartCompiler = None  # type: ignore[assignment, misc]

COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

Options: TypeAlias = dict[str, Any]

UNCOUNTED: Options = {"_nrt": False, "no_cfunc_wrapper": True}
"""No references to arrays are counted, no array can be made, and nothing but Python can call the function."""

HOLDING: Options = {**UNCOUNTED, "nogil": False}
"""Besides, the interpreter's lock is kept. That much can be relied on."""

CALLED: Options = {**UNCOUNTED, "no_cpython_wrapper": True, "pipeline_class": PartCompiler}
"""Besides, nothing is made to call the function by itself."""

BUILT_IN: Options = {**CALLED, "forceinline": True}
"""Besides, the function is built into its callers."""

_HOLD = "hold"


class Pair(NamedTuple):
    """Two arrays that travel together, as they do in kernels."""

    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]


@functools.cache
def hold() -> bool:
    """Whether the options do what is assumed. A second on a new machine, a file to read afterwards."""
    said = _kept_verdict()
    if said != _HOLD:
        logging.getLogger("harken").warning(
            "kernels are compiled without the options that make them fast, and matching is slower: "
            "numba %s %s; use a version that this one of Harken was tested with",
            numba.__version__,
            said,
        )
    return said == _HOLD


def trusted(options: Options) -> Options:
    """Those of some options that do what is assumed: all, or the documented ones."""
    if not options or hold():
        return options
    return {name: option for name, option in options.items() if name in COMMON}


def _kept_verdict() -> str:
    digest = sources.digest(__name__)
    if digest is None:
        return verdict()
    place = Path(__name__) / digest / "verdict"
    kept = keeping.read(place)
    if kept is not None:
        return kept.decode()
    said = verdict()
    any(keeping.write(home / place, said.encode()) for home in keeping.homes())
    return said


def verdict() -> str:
    """What numba does with the options: they hold, or what is wrong."""
    pair = Pair(np.arange(9, dtype=np.int64), np.arange(9, dtype=np.int64) * 10)
    try:
        kernel = compiled(UNCOUNTED, BUILT_IN)
        answer = kernel(pair)
    except Exception as error:  # numba may refuse an option in any way
        return f"refuses them ({type(error).__name__}: {error})"
    if answer != _total(pair):
        return "gives wrong answers with them"
    (code,) = kernel.inspect_llvm().values()
    if "NRT_" in code:
        return "counts references all the same"
    return "leaves calls in place all the same" if calls_remain(code) else _HOLD


def compiled(uncounted: Options, built_in: Options) -> Any:
    """The kernel of the trial. Compiled without options, it counts references and calls its part."""
    picked: Any = numba.njit(**COMMON, **built_in)(_picked)

    def total(pair: Pair) -> Any:
        result = 0
        for at in range(len(pair.left)):
            result += picked(pair, at) + picked(pair, at >> 1)
        return result + picked(pair, result & 3)

    return numba.njit(**COMMON, **uncounted)(total)


def calls_remain(code: str) -> bool:
    """Whether a kernel's code still calls the part."""
    return re.search(rf"\bcall\b[^\n]*{_picked.__name__}", code) is not None


def _picked(pair: Pair, at: int) -> int:
    """More than a compiler would build in of its own accord."""
    result = 0
    for step in range(at):
        chosen = pair.left if (at ^ step) & 1 else pair.right
        other = pair.right if (at ^ step) & 2 else pair.left
        for back in range(step, -1, -1):
            if chosen[back] & 1:
                result += chosen[at] ^ other[back]
            elif other[back] & 2:
                result -= other[step] | chosen[back]
                for more in range(step):
                    result ^= other[more] // (1 + (chosen[more] & 7)) - other[at] % (3 + more)
            elif other[back] & 4:
                for more in range(at):
                    if chosen[more] > other[back]:
                        result -= chosen[more] % (5 + step) + other[more] // 7
                    else:
                        result += (other[more] << 1) % (9 + back) - chosen[at] // 11
            else:
                result ^= chosen[back] + other[step] * step
                for more in range(back):
                    result += chosen[more] * other[more] + (chosen[back] ^ other[at]) // 3
    return result


def _total(pair: Pair) -> int:
    result = sum(_picked(pair, at) + _picked(pair, at >> 1) for at in range(len(pair.left)))
    return result + _picked(pair, result & 3)
