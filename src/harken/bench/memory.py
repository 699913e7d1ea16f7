"""How much memory an engine takes: by its own account, and by the system's."""

from __future__ import annotations

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from harken import Engine

_STATM = Path("/proc/self/statm")


def index_bytes(engine: Engine) -> int | None:
    """Bytes by the engine's own account; None if its algorithm keeps none."""
    parts = engine.stats().get("bytes")
    return sum(parts.values()) if isinstance(parts, dict) else None


def resident_bytes() -> int | None:
    """Memory of this process that is in RAM, after what is idle has been given back; None if nobody tells."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # not all C libraries can; what compiling took would be counted then
        ctypes.CDLL(None).malloc_trim(0)
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
