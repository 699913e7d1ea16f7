"""Who takes part in an experiment, and how a workload gets into an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harken import Engine, algorithms
from harken.bench.measuring import Bench
from harken.workloads import Workload


@dataclass(frozen=True, slots=True)
class Contender:
    """An algorithm with its options, under the name it has in tables and plots."""

    name: str
    algorithm: str
    options: Mapping[str, object] = field(default_factory=dict)

    def engine(self) -> Engine:
        """A new, empty engine."""
        return Engine(self.algorithm, **self.options)  # type: ignore[arg-type]  # none has the name of another argument


_CONTENDERS = {
    each.name: each
    for each in (
        Contender("dynamic", "dynamic"),
        Contender("dynamic, no prefetch", "dynamic", {"prefetch": False}),
        Contender("static", "static"),
        Contender("propagation", "propagation"),
        Contender("propagation, no prefetch", "propagation", {"prefetch": False}),
        Contender("counting", "counting"),
        Contender("tree", "tree"),
        Contender("rapid", "rapid"),
        Contender("rapid, in order", "rapid", {"reorder": False}),
        Contender("be-tree", "be-tree"),
        Contender("siena", "siena"),
    )
}

WITH_TREES = ("tree", "rapid", "rapid, in order", "counting", "dynamic")
"""Those that match the events of Kale et al."""

EVERYONE = tuple(
    name
    for name, each in _CONTENDERS.items()
    if each.algorithm in ("dynamic", "static", "propagation", "counting")
)
"""Those that match the events of Fabret et al.: every event has every attribute, and none is light."""

ONE_OF_EACH = ("dynamic", "static", "propagation", "counting")
"""Prefetching changes neither what is stored nor how it gets there."""


def contenders(names: tuple[str, ...] = EVERYONE) -> list[Contender]:
    """The contenders of these names whose algorithm is registered."""
    known = algorithms()
    return [_CONTENDERS[name] for name in names if _CONTENDERS[name].algorithm in known]


def load(bench: Bench, made: Workload, contender: Contender, size: int) -> Engine:
    """A new engine with that many subscriptions of a workload, numbered from 0."""
    engine = contender.engine()
    with bench.progress.step(f"loading {size:,} into {contender.name}", size) as done:
        for table in made.subscriptions(size):
            engine.subscribe_many(table)
            done(len(engine))
    return engine
