"""The machine's own limit: scattered cache lines per second, so that results can be read as a part of it."""

from __future__ import annotations

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


def run(bench: Bench) -> Result:
    """Read scattered lines of a large array on one core: dependent, independent, and prefetched."""
    size, reads = bench.pick(1 << 20, 1 << 22), bench.pick(200_000, 4_000_000)
    chance = np.random.default_rng(bench.seed)
    words = np.zeros(size * LINE, np.uint32)
    words[::LINE] = chance.permutation(size)
    lines = chance.integers(0, size, reads)
    _read(words, lines[:100], AHEAD), _chase(words, 0, 100)  # compile or load the kernels first
    seconds = bench.in_turns(
        {
            "dependent": lambda: _chase(words, 0, reads // 10),
            "independent": lambda: _read(words, lines, 0),
            "prefetched": lambda: _read(words, lines, AHEAD),
        },
        "reading lines",
    )
    counts = {"dependent": reads // 10, "independent": reads, "prefetched": reads}
    figures = {
        name: Figure(name, "million lines/s", tuple(counts[name] / each / 1e6 for each in samples))
        for name, samples in seconds.items()
    }
    return Result(
        "Random reads of cache lines, one core",
        {"array": f"{words.nbytes / 2**20:,.0f} MiB", "lines read": f"{reads:,}"},
        list(figures.values()),
        [Ratio.of("prefetched / dependent", figures["prefetched"], figures["dependent"])],
        notes=[f"Prefetched: each line is asked for {AHEAD} reads ahead of its use."],
    )
