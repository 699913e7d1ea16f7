"""Compiled kernels on disk, in the place of numba's own cache.

A kernel lies in `<home>/<module>/<digest of its sources>/<name>-<digest of its types, options and machine>`. One
file holds one compiled kernel whole, with a checksum, and is put in place by a rename: processes may read and
write at once, a damaged file is compiled anew, and so is whatever cannot be read. Without a home that can be
written, kernels are compiled in every process, and one notice says so.

Homes are, in this order, the folder `NUMBA_CACHE_DIR` if that is set, and nothing else; or the package's own
`__pycache__`, and the user's cache folder. Kernels are read from any of them and written to the first that lets
us. Who can write there can run code here, as with Python's own `__pycache__`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import shutil
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from harken.jit import sources, turns

VARIANTS = 8
"""How many digests of one module's kernels are kept; beyond that, those least recently used go..."""

_AT_WORK = 60
"""... unless they were used in so many seconds: another process may be writing there."""

_CHECKSUM = 32
_LOG = logging.getLogger("harken")


class KeptKernels:
    """The compiled forms of one function, by the types of its arguments; what numba asks before it compiles.

    Its methods are those of numba's own cache. Compiling, and so all of this, happens under a lock of numba's.
    """

    def __init__(self, function: Callable[..., object], options: dict[str, Any]) -> None:
        self._function = function
        self._options = options
        self._enabled = True
        self._turn: Path | None = None
        """Where it is this process's turn to compile, while it does."""

    def in_turn(self, compiling: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Numba's way to compile, after which others have their turn: it may succeed, fail or be interrupted."""

        def compiled(signature: Any) -> Any:
            with global_compiler_lock:
                try:
                    return compiling(signature)
                finally:
                    turn, self._turn = self._turn, None
                    if turn is not None:
                        turns.give_up(turn)

        return compiled

    @property
    def cache_path(self) -> str | None:
        """The folder where kernels of this function are looked for first."""
        folder = self._folder()
        return None if folder is None else next((str(home / folder) for home in homes()), None)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """A kept kernel, ready to be called, or none: then numba compiles it."""
        context.refresh()
        place = self._place(signature, context) if self._enabled else None
        kept = None if place is None else _kept(place, signature, context)
        if kept is not None:
            return kept
        _announce()
        if place is not None:
            self._take_turn(place)
            kept = _kept(place, signature, context)  # another process may have compiled it meanwhile
        return kept

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what numba has compiled."""
        place = self._place(signature, compiled.target_context) if self._enabled else None
        if place is None or compiled.library.has_dynamic_globals:
            return
        data = dumps((signature, compiled._reduce()))  # type: ignore[no-untyped-call]
        if not any(write(home / place, data) for home in homes()):
            _tell_it_is_not_kept()
            turns.wait_no_more()

    def enable(self) -> None:
        """Read and write from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Forget all kernels of this module, in every home."""
        for home in homes():
            shutil.rmtree(home / self._function.__module__, ignore_errors=True)

    def _take_turn(self, place: Path) -> None:
        """Wait for others that compile what is to lie at a place, in the home where it will be written."""
        for home in homes():
            self._turn = home / place
            with contextlib.suppress(OSError):
                _make(self._turn.parent)
                turns.take(self._turn)
                return

    def _folder(self) -> Path | None:
        digest = sources.digest(self._function.__module__)
        return None if digest is None else Path(self._function.__module__) / digest

    def _place(self, signature: Any, context: Any) -> Path | None:
        """Where the kernel for some types lies in a home; none if it is made of what has no name."""
        folder = self._folder()
        cells = sources.rendered(tuple(cell.cell_contents for cell in self._function.__closure__ or ()))
        if folder is None or cells is None or " at 0x" in str(signature):
            return None
        code = self._function.__code__
        made_of = (str(signature), context.codegen().magic_tuple(), self._options, cells, code.co_firstlineno)
        name = hashlib.blake2b(repr(made_of).encode() + code.co_code, digest_size=16).hexdigest()
        return folder / f"{self._function.__name__}-{name}"


def _kept(place: Path, signature: Any, context: Any) -> Any:
    """The kernel that lies at a place, in the first home that has it."""
    for home in homes():
        found = _read(home / place)
        with contextlib.suppress(Exception):  # whatever is wrong with it, it can be compiled again
            known, compiled = pickle.loads(found or b"")
            if known == signature:
                return CompileResult._rebuild(context, *compiled)  # type: ignore[no-untyped-call]
    return None


def homes() -> list[Path]:
    """Where compiled kernels may lie."""
    return _homes(numba.config.CACHE_DIR)  # type: ignore[attr-defined]  # set from the environment


@functools.cache
def _homes(given: str) -> list[Path]:
    if given:
        return [Path(given) / "harken"]
    package = sys.modules[__name__.partition(".")[0]].__file__ or ""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = [Path(package).parent / "__pycache__" / "kernels", Path(user) / "harken" / "kernels"]
    return [home for home in found if home.is_absolute()]  # without a home the user's is "~"


def read(place: Path) -> bytes | None:
    """What was written to a place in the first home that has it, unless it was damaged since."""
    return next((found for home in homes() if (found := _read(home / place)) is not None), None)


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    _use(path.parent)
    checksum, data = data[:_CHECKSUM], data[_CHECKSUM:]
    return data if hashlib.blake2b(data, digest_size=_CHECKSUM).digest() == checksum else None


@functools.cache
def _use(folder: Path) -> None:
    """Mark a digest as used, once per process: the least recently used ones are removed first."""
    with contextlib.suppress(OSError):
        os.utime(folder)


def write(path: Path, data: bytes) -> bool:
    """Put a file in place, whole, unless nothing can be written there."""
    checksum = hashlib.blake2b(data, digest_size=_CHECKSUM).digest()
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        _make(path.parent)
        temporary.write_bytes(checksum + data)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        return False
    return True


def _make(folder: Path) -> None:
    """Make the folder of a digest, and remove those beside it that were not used for long.

    A process that still uses one of these compiles again what it finds missing.
    """
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    used = {}
    for each in folder.parent.iterdir():
        with contextlib.suppress(OSError):  # another process has removed it meanwhile
            used[each] = each.stat().st_mtime
    for each in sorted(used, key=used.__getitem__, reverse=True)[VARIANTS:]:
        if used[each] < time.time() - _AT_WORK:
            shutil.rmtree(each, ignore_errors=True)


@functools.cache
def _announce() -> None:
    """Tell once that kernels are being compiled, so that nobody wonders about the wait."""
    if any(_lets_write(home) for home in homes()):
        _LOG.warning("compiling kernels that this machine lacks, which takes up to a minute; they are kept")
    else:
        _tell_it_is_not_kept()


@functools.cache
def _tell_it_is_not_kept() -> None:
    tried = ", ".join(map(str, homes())) or "no folder"
    _LOG.warning(
        "compiling kernels, which takes up to a minute in every process, for they cannot be kept: "
        "%s cannot be written; set NUMBA_CACHE_DIR to a folder that can",
        tried,
    )


def _lets_write(home: Path) -> bool:
    trial = home / f"{uuid.uuid4().hex}.tmp"
    try:
        home.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except OSError:
        return False
    return True
