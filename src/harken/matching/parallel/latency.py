"""How many threads work on one event, so that it takes no longer than was promised (section 7 of the paper)."""

from __future__ import annotations

from collections import deque

SLACK = 0.4
"""Half as many threads take up to twice as long: who stays below this part of what was promised can spare them."""

REMEMBERED = 16
"""Decisions that are told."""


class GroupSize:
    """Threads per event: more when events take too long, fewer, for throughput, when they need not be so fast.

    >>> size = GroupSize(target_ms=1.0, threads=8)
    >>> size.saw(0.003); size.saw(0.0018); size.saw(0.0009)
    >>> size.threads
    4
    >>> size.saw(0.0003)
    >>> size.threads, size.stats()["decisions"][-1]
    (2, '0.300 ms an event: 4 -> 2 threads')
    """

    def __init__(self, target_ms: float, threads: int) -> None:
        self._target, self._most = target_ms, threads
        self.threads = 1
        self._last = 0.0
        self._decisions: deque[str] = deque(maxlen=REMEMBERED)

    def saw(self, seconds: float) -> None:
        """Take note of how long an event took with the threads it had."""
        self._last = took = 1e3 * seconds
        wanted = self.threads
        if took > self._target:
            wanted = min(self._most, 2 * self.threads)
        elif took < SLACK * self._target:
            wanted = max(1, self.threads // 2)
        if wanted != self.threads:
            self._decisions.append(f"{took:.3f} ms an event: {self.threads} -> {wanted} threads")
            self.threads = wanted

    def stats(self) -> dict[str, object]:
        """What was promised, what is so, and what was decided."""
        return {
            "target_latency_ms": self._target,
            "latency_ms": self._last,
            "group": self.threads,
            "decisions": list(self._decisions),
        }
