"""The machine's own limit: scattered cache lines per second, so that results can be read as a part of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.jit import tight
from harken.matching.kernels.layout import LINE
from harken.matching.kernels.prefetch import prefetch

AHEAD = 32


@tight
def _read(words: npt.NDArray[np.uint32], lines: npt.NDArray[np.int64], ahead: int) -> int:
    """Read one word of each line in turn; with `ahead`, lines are asked for that many turns before."""
    total = 0
    for at in range(len(lines)):
        if ahead > 0 and at + ahead < len(lines):
            prefetch(words, lines[at + ahead] * LINE)
        total += words[lines[at] * LINE]
    return total


@tight
def _chase(words: npt.NDArray[np.uint32], start: int, steps: int) -> int:
    """Follow a chain in which each line tells the next: nothing can be asked for ahead."""
    at = start
    for _ in range(steps):
        at = np.int64(words[at * LINE])
    return at


class ScatteredLines:
    """An array far larger than the processor's caches, and an order in which to read its lines."""

    def __init__(self, bench: Bench) -> None:
        self.size, self.reads = bench.pick(1 << 20, 1 << 22), bench.pick(200_000, 4_000_000)
        chance = np.random.default_rng(bench.seed)
        self._words = np.zeros(self.size * LINE, np.uint32)
        self._words[::LINE] = chance.permutation(self.size)
        self._lines = chance.integers(0, self.size, self.reads)
        _read(self._words, self._lines[:100], AHEAD), _chase(self._words, 0, 100)  # compile or load first

    def dependent(self) -> None:
        """Read a tenth of the lines, each found through the one before."""
        _chase(self._words, 0, self.reads // 10)

    def independent(self) -> None:
        """Read all lines, without asking for any ahead."""
        _read(self._words, self._lines, 0)

    def prefetched(self) -> None:
        """Read all lines, each asked for ahead: as fast as this machine can."""
        _read(self._words, self._lines, AHEAD)


def run(bench: Bench) -> Result:
    """Read scattered lines of a large array on one core: dependent, independent, and prefetched."""
    lines = ScatteredLines(bench)
    work: dict[str, Callable[[], object]] = {
        "dependent": lines.dependent,
        "independent": lines.independent,
        "prefetched": lines.prefetched,
    }
    seconds = bench.in_turns(work, "reading lines")
    counts = {"dependent": lines.reads // 10, "independent": lines.reads, "prefetched": lines.reads}
    figures = {
        name: Figure(name, "million lines/s", tuple(counts[name] / each / 1e6 for each in samples))
        for name, samples in seconds.items()
    }
    return Result(
        "Random reads of cache lines, one core",
        {"array": f"{lines.size * LINE * 4 / 2**20:,.0f} MiB", "lines read": f"{lines.reads:,}"},
        list(figures.values()),
        [Ratio.of("prefetched / dependent", figures["prefetched"], figures["dependent"])],
        notes=[f"Prefetched: each line is asked for {AHEAD} reads ahead of its use."],
    )
