"""Matching while subscriptions come and go: throughput, and the longest that a match had to wait."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from harken.bench.experiments.parallel_scaling import Scene
from harken.bench.measuring import Bench, Curve, Figure, Plot, Result

RATES = (0, 1_000, 10_000, 100_000)
"""Updates per second: half of them come, half leave."""

AT_A_TIME = 100
"""Times a second that some come, and that some leave."""


class Seen(NamedTuple):
    """What matching was like beside so many updates."""

    asked: int
    made: float
    """Updates per second, in truth."""
    rate: float
    """Events per second."""
    waits: dict[float, float]
    """Milliseconds that a match took: by the part of matches that took no longer."""


class _Updates(threading.Thread):
    """Subscriptions that come and go, so many a second, until it is told to stop."""

    def __init__(self, scene: Scene, rate: int, first_id: int) -> None:
        super().__init__(name=f"{rate} updates a second")
        self._scene, self._size, self.done = scene, rate // AT_A_TIME // 2, 0
        self._over, self._next, self._live = threading.Event(), first_id, deque[range]()
        self.goes_on = threading.Event()
        """Whether the first have come, which may have to be compiled for, or nobody will."""
        self.failed: BaseException | None = None
        several = max(self._size, 1) * AT_A_TIME * 10
        self._tables = list(scene.made.subscriptions(several, first_id=first_id)) if self._size else []

    def run(self) -> None:
        try:
            self._update()
        except BaseException as error:  # told by whoever stops it
            self.failed = error
        finally:
            self.goes_on.set()

    def _update(self) -> None:
        table, at = pa.concat_tables(self._tables) if self._tables else None, 0
        due = time.perf_counter()
        while table is not None and not self._over.is_set():
            some = table.slice(at % (table.num_rows - self._size + 1), self._size)
            ids = range(self._next, self._next + self._size)
            at, self._next = at + self._size, ids.stop
            self._scene.engine.subscribe_many(some.set_column(0, "id", pa.array(ids, pa.int64())))
            self._live.append(ids)
            if len(self._live) > AT_A_TIME:
                self._scene.engine.unsubscribe_many(self._live.popleft())
            self.done += 2 * self._size
            self.goes_on.set()
            due += 1 / AT_A_TIME
            time.sleep(max(0.0, due - time.perf_counter()))

    def stop(self) -> None:
        """Leave nothing of it behind."""
        self._over.set()
        self.join()
        if self.failed is not None:
            raise self.failed
        for ids in self._live:
            self._scene.engine.unsubscribe_many(ids)


def _seen(scene: Scene, rate: int, seconds: float, first_id: int) -> Seen:
    updates = _Updates(scene, rate, first_id)
    updates.start()
    updates.goes_on.wait()
    events, took, began = scene.events.to_pylist(), list[float](), time.perf_counter()
    while (before := time.perf_counter()) < began + seconds:
        scene.engine.match(events[len(took) % len(events)])
        took.append(time.perf_counter() - before)
    elapsed, made = time.perf_counter() - began, updates.done
    updates.stop()
    waits = {part: 1e3 * float(np.quantile(took, part)) for part in (0.5, 0.99, 0.999, 1.0)}
    return Seen(rate, made / elapsed, len(took) / elapsed, waits)


def run(bench: Bench) -> Result:
    """Match events, one after the other, while another thread changes what is subscribed."""
    live = bench.pick(20_000, 3_000_000)
    scene = Scene(bench, "w0", live, bench.pick(200, 2_000), changes=True)
    for event in scene.events.slice(0, 100).to_pylist():
        scene.engine.match(event)  # the first has kernels compiled, or read
    seconds = bench.pick(0.5, 20.0)
    found = list[Seen]()
    with bench.progress.step("matching while others change", len(RATES)) as done:
        for at, rate in enumerate(RATES):
            found.append(_seen(scene, rate, seconds, 10 * live + at * 10_000_000))
            done(at + 1)
    figures = list[Figure]()
    for each in found:
        beside = f"beside {each.asked:,} updates/s"
        asked = bench.target(2.0) if each.asked == 10_000 else None
        if each.asked:
            figures.append(Figure(f"updates made, of {each.asked:,}", "updates/s", (each.made,)))
        figures += [
            Figure(f"throughput {beside}", "events/s", (each.rate,)),
            Figure(f"a match, median, {beside}", "ms", (each.waits[0.5],), lower_is_better=True),
            Figure(f"a match, 99.9%, {beside}", "ms", (each.waits[0.999],), asked, lower_is_better=True),
            Figure(f"a match, longest, {beside}", "ms", (each.waits[1.0],), lower_is_better=True),
        ]
    rates = tuple(float(each.made) for each in found)
    curves = tuple(
        Curve(name, rates, tuple(each.waits[part] for each in found))
        for name, part in (("median", 0.5), ("99.9%", 0.999), ("longest", 1.0))
    )
    return Result(
        "Matching while subscriptions come and go, W0",
        {
            "live": f"{live:,}",
            "a match": "one event from a dictionary, by one thread; another one makes the updates",
            "updates": f"{AT_A_TIME} times a second, as many at once as it takes; half come, half leave",
        },
        figures,
        plot=Plot("updates per second", "ms", curves, log_y=True),
        notes=[
            "What a match takes is what its caller waits: for a change being entered, for the interpreter, "
            "and for the match itself.",
        ],
    )
