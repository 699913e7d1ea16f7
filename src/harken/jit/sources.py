"""What a kernel is made of, as one digest: if anything of it changes, so does the digest, and nothing stale runs.

That is the text of its module and of every module of the same package whose functions, classes or intrinsics that
one has, and so on; the values of all constants in these, wherever they come from; the versions of Python, numba,
llvmlite and numpy; and numba's settings, such as NUMBA_BOUNDSCHECK. Texts come from whatever the modules were
loaded from, be it a folder or a zip file.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Set
from types import ModuleType

import llvmlite
import numba
import numpy as np

_NO_MATTER = {
    "CACHE_DIR",
    "CACHE_LOCATOR_CLASSES",
    "COLOR_SCHEME",
    "DEBUG_CACHE",
    "NUMBA_DEFAULT_NUM_THREADS",
    "NUMBA_NUM_THREADS",
}
"""Settings of numba that make no difference to compiled code. Any other might."""

_VERSIONS = f"{sys.version} numba {numba.__version__} llvmlite {llvmlite.__version__} numpy {np.__version__}"


_noted: set[str] = set()
"""Modules whose texts have been read, with those of all that they are made of."""


def note(function: Callable[..., object]) -> None:
    """Read the texts of a function's module and of those it is made of now, while they are what was loaded."""
    for name in _reached(function.__module__, without=_noted):
        _noted.add(name)
        _text(name)


def digest(module: str) -> str | None:
    """A digest of all that kernels of a module are made of; none if the text of any of it is not to be had."""
    return _digest(module, _settings())


def rendered(value: object) -> str | None:
    """A constant as text that is the same in every process; none if it is not of a kind that kernels freeze."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.dtype):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"array {value.dtype.str} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, tuple):
        items = [rendered(item) for item in value]
        return None if None in items else f"{type(value).__name__} {items}"
    return None


def _settings() -> str:
    found = vars(numba.config)
    return repr([(name, found[name]) for name in sorted(found) if name.isupper() and name not in _NO_MATTER])


@functools.cache
def _digest(module: str, settings: str) -> str | None:
    hasher = hashlib.blake2b(f"{_VERSIONS} {settings}".encode(), digest_size=16)
    for name, found in sorted(_reached(module).items()):
        text = _text(name)
        if text is None:
            return None
        hasher.update(text)
        for constant, value in sorted(vars(found).items()):
            if not constant.startswith("__"):  # those say where the module is
                hasher.update(f"{constant} {rendered(value)}".encode())
    return hasher.hexdigest()


def _reached(start: str, without: Set[str] = frozenset()) -> dict[str, ModuleType]:
    """A module, and those of the same package that it has anything of, directly or through others.

    Those without which it is asked for are passed over, and what is reached through them alone.
    """
    package = start.partition(".")[0]
    reached: dict[str, ModuleType] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if (
            name not in reached
            and name not in without
            and name.partition(".")[0] == package
            and name in sys.modules
        ):
            reached[name] = sys.modules[name]
            waiting.extend(_named(vars(reached[name])))
    return reached


def _named(names: dict[str, object]) -> Iterator[str]:
    """The modules that values come from, if they know; numbers do not."""
    for value in names.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            home = each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None)
            if isinstance(home, str):
                yield home


@functools.cache
def _text(name: str) -> bytes | None:
    """A digest of the text of a loaded module; of one without a file, such as a mere folder, nothing."""
    spec = getattr(sys.modules[name], "__spec__", None)
    if spec is None or spec.loader is None:
        return None
    if not spec.has_location:
        return b""
    try:
        return hashlib.blake2b(spec.loader.get_data(spec.origin)).digest()
    except (AttributeError, OSError):
        return None
