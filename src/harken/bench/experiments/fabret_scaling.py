"""Figure 3a of Fabret et al. 2000: how matching time grows with the number of subscriptions (workload W0)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from harken import Engine
from harken.bench.experiments.yardstick import ScatteredLines
from harken.bench.loading import EVERYONE, contenders, load
from harken.bench.measuring import Bench, Figure, Plot, Ratio, Result
from harken.bench.throughput import curves, events_by_speed, match_in_turns, per_100_events
from harken.bench.verifying import verify_workload
from harken.matching.kernels.layout import LINE
from harken.workloads import Workload, workload

PAPER = (
    "100 events against 6,000,000 subscriptions took 90,377 ms (counting), 804 ms (propagation), 509 ms "
    "(propagation with prefetching) and 166 ms (dynamic) on a Pentium at 500 MHz: dynamic 544 times as fast as "
    "counting, 4.8 times as fast as propagation, 3.07 times as fast as propagation with prefetching, and "
    "independent of the number of subscriptions. Static was no more than a few ms apart from dynamic."
)

NOTES = [
    "Matches of a sample of events were compared with the reference semantics at every size.",
    "Alone: no other engine was in memory. All other figures: the contenders took turns.",
    "Part of the yardstick: the cache lines that events touch per second, as a part of the scattered lines that "
    "this machine reads per second with prefetch, measured in turns. Lines are counted by the engine or, if it "
    f"does not count them, estimated: one per key table, one per cluster, and one per {LINE} checks.",
]


class _AtSize(NamedTuple):
    """What was measured at one number of subscriptions."""

    alone: Figure
    memory: list[Figure]
    together: dict[str, Figure]


def run(bench: Bench) -> Result:
    """Load the same subscriptions into each algorithm, at growing numbers, and match the same events."""
    sizes = bench.pick((10_000, 50_000), (100_000, 1_000_000, 3_000_000, 6_000_000))
    made, lines = workload("w0", bench.seed), ScatteredLines(bench)
    found = {size: _at_size(bench, made, lines, size) for size in sizes}
    first, last = found[sizes[0]].alone, found[sizes[-1]].alone
    kept = Ratio.of(f"dynamic: at {sizes[-1]:,} / at {sizes[0]:,}", last, first, bench.target(0.5))
    points = {float(size): each.together for size, each in found.items()}
    events = events_by_speed(bench, _events(bench))
    return Result(
        "Matching time against the number of subscriptions (W0), one core, encoding included",
        {f"events per repeat, {each.name}": f"{events(each):,}" for each in contenders()},
        [figure for each in found.values() for figure in (each.alone, *each.memory, *each.together.values())],
        [ratio for size, each in found.items() for ratio in _ratios(each.together, size)] + [kept],
        Plot("subscriptions", "ms per 100 events", curves(points, per_100_events), log_x=True, log_y=True),
        PAPER,
        NOTES,
    )


def _at_size(bench: Bench, made: Workload, lines: ScatteredLines, size: int) -> _AtSize:
    dynamic, *others = contenders(EVERYONE)
    engine = load(bench, made, dynamic, size)
    alone, memory = _alone(bench, made, engine, lines, size)
    engines = {dynamic.name: engine} | {each.name: load(bench, made, each, size) for each in others}
    events, where = events_by_speed(bench, _events(bench)), f"{size:,} subscriptions"
    return _AtSize(alone, memory, match_in_turns(bench, made, size, [dynamic, *others], engines, events, where))


def _alone(
    bench: Bench, made: Workload, engine: Engine, lines: ScatteredLines, size: int
) -> tuple[Figure, list[Figure]]:
    """Dynamic with no other engine in memory, and how its reads compare with the machine's limit."""
    count, where = _events(bench), f"{size:,} subscriptions"
    verify_workload(made, {"dynamic": engine}, size, seed=bench.seed)
    match = partial(engine.match_batch, made.events(count))
    seconds = bench.in_turns({"alone": match, "limit": lines.prefetched}, f"matching alone: {where}")
    touched = _lines_per_event(engine)
    parts = tuple(
        (touched * count / matching) / (lines.reads / reading)
        for matching, reading in zip(seconds["alone"], seconds["limit"], strict=True)
    )
    rate = tuple(count / each for each in seconds["alone"])
    return Figure(f"dynamic alone, {where}", "events/s", rate, _asked(size, 500_000)), [
        Figure(f"clusters visited, {where}", "per event", (_number(engine, "clusters_per_event"),)),
        Figure(f"clauses checked, {where}", "per event", (_number(engine, "checks_per_event"),)),
        Figure(f"cache lines, {where}", "per event", (touched,)),
        Figure(f"part of the yardstick, {where}", "of 1", parts, _asked(size, 0.4)),
    ]


def _lines_per_event(engine: Engine) -> float:
    """Cache lines that an event touches in directory and clusters."""
    stats = engine.stats()
    if "lines_per_event" in stats:
        return _number(engine, "lines_per_event")
    tables = stats["tables"]
    assert isinstance(tables, list)
    keyed = sum(bool(table["access"]) and not table["access"].startswith("(") for table in tables)
    return keyed + _number(engine, "clusters_per_event") + _number(engine, "checks_per_event") / LINE


def _number(engine: Engine, name: str) -> float:
    value = engine.stats()[name]
    assert isinstance(value, int | float)
    return float(value)


def _events(bench: Bench) -> int:
    return bench.pick(4_000, 400_000)


def _asked(size: int, target: float) -> float | None:
    return target if size >= 6_000_000 else None


def _ratios(measured: dict[str, Figure], size: int) -> list[Ratio]:
    dynamic, propagation = measured["dynamic"], measured["propagation"]
    ratios = [
        Ratio.of(f"dynamic / propagation at {size:,}", dynamic, propagation, _asked(size, 20)),
        Ratio.of(f"prefetch in dynamic at {size:,}", dynamic, measured["dynamic, no prefetch"]),
        Ratio.of(f"prefetch in propagation at {size:,}", propagation, measured["propagation, no prefetch"]),
    ]
    if "counting" in measured:
        ratios.append(
            Ratio.of(f"dynamic / counting at {size:,}", dynamic, measured["counting"], _asked(size, 500))
        )
    if "static" in measured:
        ratios.append(Ratio.of(f"dynamic / static at {size:,}", dynamic, measured["static"]))
    return ratios
