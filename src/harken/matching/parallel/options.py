"""How many threads match, and how they share the work."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from harken.errors import ArgumentError, ArgumentTypeError

Mode: TypeAlias = Literal["me-ip", "se-cp", "hybrid"]
Sync: TypeAlias = Literal["static", "lock", "stm"]

MOST_THREADS = 256


@dataclass(frozen=True, slots=True)
class Parallel:
    """How several threads match (Farroukh et al. 2009); for `Engine` and `match_batch`.

    - "me-ip", multiple events, independent processing: each thread takes events, `block` of them at a time. For
      throughput, and the best choice for batches of any kind.
    - "se-cp", single event, collaborative processing: all threads work on one event, first on what it opens and
      then on what stands there, `block` pieces at a time. For single events that take a millisecond or more.
    - "hybrid": groups of `group` threads take an event each. With `target_latency_ms` groups grow while an event
      takes longer than that, and shrink again when it takes far less.

    Work is shared beforehand ("static"), block by block under a "lock", or by transactions ("stm"). `threads` are
    all the cores that this process may use, or as many as HARKEN_THREADS says, or a number. Matches are those of
    one thread, ordered by event. Within an event "me-ip" gives them in no order, as one thread does; the others by
    slot: in the order in which they were registered, as long as nobody has left.

    >>> Parallel(mode="hybrid", threads=4, group=2).threads
    4
    """

    mode: Mode = "me-ip"
    threads: int | Literal["all"] = "all"
    group: int | None = None
    sync: Sync = "lock"
    block: int | None = None
    target_latency_ms: float | None = None

    def __post_init__(self) -> None:
        for name, known in (("mode", get_args(Mode)), ("sync", get_args(Sync))):
            said = getattr(self, name)
            if not isinstance(said, str) or said not in known:
                raise ArgumentError.choice(name, said, known)
        if not isinstance(self.threads, str) or self.threads != "all":
            _check_count("threads", self.threads, MOST_THREADS, "'all' or ")
        for name in ("group", "block"):
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name), 2**31)
        self._check_hybrid()

    def _check_hybrid(self) -> None:
        target = self.target_latency_ms
        for name in ("group", "target_latency_ms"):
            if getattr(self, name) is not None and self.mode != "hybrid":
                raise ArgumentError(f"{name} is for groups of threads", argument=name, suggestion='mode="hybrid"')
        if target is None:
            return
        expected = "a number of milliseconds above 0 that is not infinite"
        if isinstance(target, bool) or not isinstance(target, int | float):
            raise ArgumentTypeError.of("target_latency_ms", expected, repr(target))
        if not 0 < target <= sys.float_info.max:
            raise ArgumentError.of("target_latency_ms", expected, repr(target))
        if self.group is not None:
            said = "group is what target_latency_ms is to find"
            raise ArgumentError(said, argument="group", suggestion="give one of the two")

    @property
    def count(self) -> int:
        """How many threads that is here and now."""
        return min(cores(), MOST_THREADS) if self.threads == "all" else self.threads


def checked_parallel(found: object) -> Parallel | None:
    """How threads share their work, if it is said."""
    if found is not None and not isinstance(found, Parallel):
        raise ArgumentTypeError.of("parallel", "a Parallel", type(found).__name__)
    return found


def cores() -> int:
    """The cores that this process may use, or as many as HARKEN_THREADS says."""
    said = os.environ.get("HARKEN_THREADS", "")
    if said:
        if not said.isdecimal() or not 1 <= int(said) <= MOST_THREADS:
            raise ArgumentError.of("HARKEN_THREADS", f"a whole number from 1 to {MOST_THREADS}", repr(said))
        return int(said)
    return available_cores()


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_count(name: str, value: object, most: int, other: str = "") -> None:
    expected = f"{other}a whole number from 1 to {most:,}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError.of(name, expected, repr(value))
    if not 1 <= value <= most:
        raise ArgumentError.of(name, expected, repr(value))
