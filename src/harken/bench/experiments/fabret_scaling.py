"""Figure 3a of Fabret et al. 2000: how matching time grows with the number of subscriptions (workload W0)."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from harken import Engine
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.model.evaluation import truth
from harken.workloads import Workload, workload

PAPER = (
    "100 events against 6,000,000 subscriptions took 90,377 ms (counting), 804 ms (propagation), 509 ms "
    "(propagation with prefetching) and 166 ms (dynamic) on a Pentium at 500 MHz: dynamic 4.8 times as fast as "
    "propagation, 3.07 times as fast as propagation with prefetching, and independent of the number of "
    "subscriptions."
)

CONTENDERS: dict[str, tuple[str, bool]] = {
    "dynamic": ("dynamic", True),
    "dynamic, no prefetch": ("dynamic", False),
    "propagation": ("propagation", True),
    "propagation, no prefetch": ("propagation", False),
}


def run(bench: Bench) -> Result:
    """Load the same subscriptions into each algorithm, at growing numbers, and match the same events."""
    sizes = [10_000, 50_000] if bench.scale == "small" else [100_000, 1_000_000, 3_000_000, 6_000_000]
    made = workload("w0", bench.seed)
    figures: list[Figure] = []
    ratios: list[Ratio] = []
    for size in sizes:
        measured = _at_size(bench, made, size)
        figures += measured.values()
        ratios += _ratios(measured, size)
    curves = tuple(
        Curve(name, tuple(map(float, sizes)), tuple(_time_per_100(figures, name, size) for size in sizes))
        for name in CONTENDERS
    )
    first, last = (_named(figures, "dynamic", size) for size in (sizes[0], sizes[-1]))
    ratios.append(Ratio.of(f"dynamic: at {sizes[-1]:,} / at {sizes[0]:,}", last, first, 0.5))
    return Result(
        "Matching time against the number of subscriptions (W0), one core, encoding included",
        {"events": f"{_events(bench, 'dynamic'):,} per repeat; {_events(bench, 'propagation'):,} for propagation"},
        figures,
        ratios,
        Plot("subscriptions", "ms per 100 events", curves, log_x=True, log_y=True),
        PAPER,
        ["Matches of a sample of events were compared with the reference semantics at every size."],
    )


def _at_size(bench: Bench, made: Workload, size: int) -> dict[str, Figure]:
    engines = {name: _loaded(bench, made, name, size) for name in CONTENDERS}
    _verify(made, engines, size)
    work: dict[str, Callable[[], object]] = {}
    for name, (algorithm, _) in CONTENDERS.items():
        events = made.events(_events(bench, algorithm))
        work[name] = partial(engines[name].match_batch, events)
    seconds = bench.in_turns(work, f"matching against {size:,}")
    target = 500_000 if size >= 6_000_000 else None
    return {
        name: Figure(
            f"{name}, {size:,} subscriptions",
            "events/s",
            tuple(_events(bench, CONTENDERS[name][0]) / each for each in samples),
            target if name == "dynamic" else None,
        )
        for name, samples in seconds.items()
    }


def _loaded(bench: Bench, made: Workload, name: str, size: int) -> Engine:
    algorithm, prefetch = CONTENDERS[name]
    engine = Engine(algorithm, prefetch=prefetch)
    with bench.progress.step(f"loading {size:,} into {name}", size) as done:
        for table in made.subscriptions(size):
            engine.subscribe_many(table)
            done(len(engine))
    return engine


def _verify(made: Workload, engines: dict[str, Engine], size: int) -> None:
    """All contenders agree on a sample of events, and with the semantics on a sample of subscriptions."""
    events = made.events(200, part=1)
    found = [_pairs(engine, events) for engine in engines.values()]
    if any(each != found[0] for each in found):
        raise AssertionError("the algorithms disagree")
    matched, engine = set(found[0]), engines["dynamic"]
    sampled = {id for _, id in found[0][:50]} | set(random.Random(size).sample(range(size), 200))
    for id in sampled:
        expression = engine.subscription(id).expression
        for row, event in enumerate(events.to_pylist()):
            if ((row, id) in matched) != (truth(expression, event) is True):
                raise AssertionError(f"subscription {id} and event {row}: not what the reference says")


def _pairs(engine: Engine, events: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(*engine.match_batch(events).to_pydict().values(), strict=True))


def _events(bench: Bench, algorithm: str) -> int:
    return bench.pick(2_000, 400_000) if algorithm == "dynamic" else bench.pick(500, 4_000)


def _named(figures: list[Figure], name: str, size: int) -> Figure:
    return next(each for each in figures if each.name == f"{name}, {size:,} subscriptions")


def _time_per_100(figures: list[Figure], name: str, size: int) -> float:
    return 100_000 / _named(figures, name, size).median


def _ratios(measured: dict[str, Figure], size: int) -> list[Ratio]:
    dynamic, propagation = measured["dynamic"], measured["propagation"]
    return [
        Ratio.of(f"dynamic / propagation at {size:,}", dynamic, propagation, 20 if size >= 6_000_000 else None),
        Ratio.of(f"prefetch in dynamic at {size:,}", dynamic, measured["dynamic, no prefetch"]),
        Ratio.of(f"prefetch in propagation at {size:,}", propagation, measured["propagation, no prefetch"]),
    ]
