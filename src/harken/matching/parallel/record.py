"""What threads have done together, for people to read; and how many of them the next event should have."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harken.locking import SharedLock
from harken.matching.parallel.kernels.atomics import HAS_CYCLES
from harken.matching.parallel.kernels.sharing import (
    ABORTS,
    COMMITS,
    FIRST_TIME,
    SECOND_TIME,
    SHARE,
    WAITED,
    Member,
    cycles,
)
from harken.matching.parallel.latency import GroupSize
from harken.matching.parallel.options import Parallel

CALIBRATED = 0.02
"""Seconds that the clock of the kernels is compared with the usual one."""

PROMISES = 16
"""Promises of latency that are remembered, with what was learned of each."""

USUAL_GROUP = 2
"""Threads of a group, if nobody says how many."""


class Record:
    """Of one matcher, or of those that follow each other. Any thread may write it."""

    def __init__(self) -> None:
        self._seen = np.zeros(SHARE, np.int64)
        self._events = 0
        self._last: tuple[Parallel, int] | None = None
        self._sizes: dict[Parallel, GroupSize] = {}
        self._ready = set[str]()
        """Modes that have been used: the first time, kernels are loaded, and nothing can be learned from it."""
        self._lock = SharedLock()

    def group_for(self, parallel: Parallel, threads: int) -> int:
        """How many threads work on one event."""
        if parallel.mode == "se-cp":
            return threads
        if parallel.target_latency_ms is None:
            return min(threads, parallel.group or USUAL_GROUP)
        with self._lock.lock:
            size = self._sizes.get(parallel)
            if size is None:
                self._sizes = dict([*self._sizes.items()][1 - PROMISES :])
                # Of all threads asked for, though this call may have to do with fewer.
                size = self._sizes[parallel] = GroupSize(parallel.target_latency_ms, parallel.count)
            return min(threads, size.threads)

    def note(
        self, parallel: Parallel, threads: int, events: int, each: float = 0.0, members: Sequence[Member] = ()
    ) -> None:
        """Take note of events that so many threads have matched, each of which took so many seconds."""
        with self._lock.lock:
            for member in members:
                self._seen += member.share
            self._events += events
            self._last = parallel, threads
            size = self._sizes.get(parallel)
            # Of a call that had to go on alone there is nothing to learn.
            if size is not None and parallel.mode in self._ready and threads == parallel.count:
                size.saw(each)
            self._ready.add(parallel.mode)

    def stats(self) -> dict[str, object]:
        """How threads shared their work last, and what came of it so far."""
        with self._lock.lock:
            if self._last is None:
                return {}
            (parallel, threads), seen = self._last, self._seen.copy()
            size = self._sizes.get(parallel)
            told: dict[str, object] = {
                "mode": parallel.mode,
                "sync": parallel.sync,
                "threads": threads,
                "events": self._events,
                "transactions": {"committed": int(seen[COMMITS]), "begun anew": int(seen[ABORTS])},
                **({} if size is None else size.stats()),
            }
        if parallel.mode != "me-ip" and HAS_CYCLES:
            told["seconds"] = {name: seconds(seen[at]) for name, at in _TIMES.items()}
        return {"parallel": told}


_TIMES = {"phase one": FIRST_TIME, "phase two": SECOND_TIME, "waiting": WAITED}


def seconds(of_cycles: npt.NDArray[np.int64] | np.int64) -> float:
    """Cycles of the clock of the kernels, in seconds."""
    return float(of_cycles) / _frequency()


@functools.cache
def _frequency() -> float:
    """How often the clock of the kernels goes on in a second."""
    began, first = time.perf_counter(), cycles()
    time.sleep(CALIBRATED)
    return (cycles() - first) / (time.perf_counter() - began)
