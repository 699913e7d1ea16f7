"""A program that is interrupted again and again while it loads; it must survive, with all or nothing loaded.

Most interrupts come while one of the kernels runs, so that they wait when it returns. The others come whenever.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable

from harken import Engine
from harken.compiler import chunks
from harken.compiler.direct import compiling

KERNELS = {
    **dict.fromkeys(("scan", "same_shape", "decode", "fitting", "write"), chunks),
    **dict.fromkeys(("compile_from", "copy_strings"), compiling),
}
# Every other name is quoted: such texts are left to plans.
NAMES = ("name", '"name"')
ROWS = [(id, f"{NAMES[id % 2]} = '{'n' * 400}{id}' AND x = {id % 50} AND y < {id}") for id in range(6_000)]


def interrupt_within(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)


def interrupted(kernel: Callable[..., object], name: str, turn: dict[str, str | None]) -> Callable[..., object]:
    """A kernel that is interrupted while it runs, if it is its turn."""

    def run(*arguments: object) -> object:
        if turn["name"] == name:
            turn["name"] = None
            interrupt_within(0.0002)
        return kernel(*arguments)

    return run


def load(turn: str | None, delay: float) -> bool:
    """Whether a load came to its end; AssertionError if it left neither all nor nothing."""
    engine = Engine()
    engine.subscribe(-1, "x = 1")
    waiting["name"] = turn
    done = False
    try:
        if turn is None:
            interrupt_within(delay)
        engine.subscribe_many(ROWS)
        done = True
        interrupt_within(0.0)  # or never: what has not come by now would come outside
    except KeyboardInterrupt:
        pass
    assert len(engine) in ((1 + len(ROWS),) if done else (1, 1 + len(ROWS))), len(engine)
    assert -1 in engine.match({"x": 1})
    return done


waiting: dict[str, str | None] = {"name": None}
if __name__ == "__main__":
    Engine().subscribe_many(ROWS)  # loads the kernels
    for each, module in KERNELS.items():
        setattr(module, each, interrupted(getattr(module, each), each, waiting))
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    luck = random.Random(1)
    stopped = [not load(turn, luck.uniform(0.001, 0.05)) for turn in (*KERNELS, None) * 4]
    print(sum(stopped))
