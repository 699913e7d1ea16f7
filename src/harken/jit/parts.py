"""Functions that others are built of, compiled for these alone.

Left to itself, numba optimises every function with all that it calls, and makes machine code of it, before it
hands it on to whoever calls it, where all of that is done once more. For what is never called by itself this would
be a third of the time that compiling takes. Here such a function stays as it was translated, and the kernel that
it becomes a part of is optimised once, as a whole.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoEnvironment:
    """A code generator for what has no machine code, and so no place for the address of its surroundings."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, environment: object) -> None:
        """Leave it: kernels that are read from disk never learn those of their parts either."""


class _PartLibrary(JITCodeLibrary):
    """The translation of a part, to be linked into others."""

    @property
    def codegen(self) -> _NoEnvironment:
        return _NoEnvironment(self._codegen)

    def _optimize_final_module(self) -> None:
        return

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._verify_declare_only_symbols()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None, as for a function without the means to be called from Python."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


class PartCompiler(Compiler):
    """Compiles a function no further than others need it."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        own: Any = library or _PartLibrary(target.codegen(), "part")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, own, *others)  # type: ignore[no-untyped-call]
