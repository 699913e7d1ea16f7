"""Events per second of several engines in turns: what most of the papers' figures show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from harken import Engine
from harken.bench.loading import Contender, load
from harken.bench.measuring import Bench, Curve, Figure
from harken.bench.verifying import verify_workload
from harken.workloads import Workload

Events = Callable[[Contender], int]
"""How many events a contender is given: a slow one fewer, or it would hold up the others."""


def events_by_speed(bench: Bench, quick: int) -> Events:
    """`quick` events for algorithms with keys of several attributes; for others, what they can do in a second."""
    few = {"propagation": bench.pick(500, 4_000), "counting": bench.pick(50, 200)}
    return lambda contender: min(quick, few.get(contender.algorithm, quick))


def compete(
    bench: Bench, made: Workload, size: int, taking_part: list[Contender], events: Events, where: str
) -> dict[str, Figure]:
    """Load the same subscriptions into each, verify, and match in turns."""
    engines = {each.name: load(bench, made, each, size) for each in taking_part}
    return match_in_turns(bench, made, size, taking_part, engines, events, where)


def match_in_turns(
    bench: Bench,
    made: Workload,
    size: int,
    taking_part: list[Contender],
    engines: Mapping[str, Engine],
    events: Events,
    where: str,
) -> dict[str, Figure]:
    """Events per second of loaded engines, by name of the contender, verified."""
    verify_workload(made, engines, size, seed=bench.seed)
    counts = {each.name: events(each) for each in taking_part}
    work: dict[str, Callable[[], object]] = {
        name: partial(engines[name].match_batch, made.events(count)) for name, count in counts.items()
    }
    seconds = bench.in_turns(work, f"matching: {where}")
    return {
        name: Figure(f"{name}, {where}", "events/s", tuple(counts[name] / each for each in samples))
        for name, samples in seconds.items()
    }


def curves(points: Mapping[float, Mapping[str, Figure]], y: Callable[[Figure], float]) -> tuple[Curve, ...]:
    """A line per contender through what was measured at each x."""
    names = next(iter(points.values()))
    return tuple(
        Curve(name, tuple(points), tuple(y(measured[name]) for measured in points.values())) for name in names
    )


def per_100_events(figure: Figure) -> float:
    """Milliseconds for 100 events, the paper's unit."""
    return 100_000 / figure.median
