"""Running on fewer cores than there are, with all that a process has started."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process and all its descendants, with their threads, on one core. Linux only."""
    before = os.sched_getaffinity(0)
    _bind({min(before)})
    try:
        yield
    finally:
        _bind(before)


def _bind(cores: set[int]) -> None:
    for process in _family(os.getpid()):
        for thread in _threads(process):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.sched_setaffinity(thread, cores)


def _family(process: int) -> Iterator[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            _state, parent, *_ = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            children[int(parent)].append(int(folder.name))
    waiting = [process]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += children[each]


def _threads(process: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return []
