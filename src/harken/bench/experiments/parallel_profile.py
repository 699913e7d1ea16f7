"""Figures 9, 10 and 13 to 15 of Farroukh et al. 2009: where the time of SE-CP goes, block sizes, and sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from harken import Parallel
from harken.bench.experiments.parallel_scaling import (
    ONE,
    WORKLOAD,
    Scene,
    thread_counts,
    told,
)
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.matching.parallel.options import Mode, available_cores

FIG9 = (
    "With more threads, the time of phase one and its wait stayed between 0.02 and 0.03 ms, as what was gained by "
    "sharing predicates was lost by merging bit vectors (figure 9); phase two fell with the threads (figure 10)."
)
FIG13 = (
    "With seven threads, blocks of 10 to 30 access predicates were best: smaller ones wait for the lock, larger "
    "ones leave threads idle at the end. The worst were 1 and 1,430, which is all."
)
FIG14 = (
    "From 1,000,000 to 5,000,000 subscriptions the throughput of one thread and of ME-IP fell alike (figure 14); "
    "the matching time of SE-CP with eight threads grew almost fivefold, that of one thread 1.5 times (figure 15)."
)

SIZES = (1, 4, 12, 35, 100, 1_430)
"""Pieces of clusters that are claimed together."""


def _profile(bench: Bench, wanted: tuple[str, ...], title: str) -> Result:
    """The times of phases and of waiting that the kernels count, per event and thread."""
    scene = Scene(bench, WORKLOAD, bench.pick(20_000, 6_000_000), bench.pick(500, 5_000))
    counts = list(dict.fromkeys(thread_counts()))[1:]
    figures: dict[str, dict[int, Figure]] = {name: {} for name in wanted}
    with bench.progress.step("SE-CP", len(counts) * bench.repeats) as done:
        for at, threads in enumerate(counts):
            samples: dict[str, list[float]] = {name: [] for name in wanted}
            for turn in range(bench.repeats):
                spent = _spent(scene, threads)
                for name in wanted:
                    samples[name].append(1e6 * spent[name] / (threads * len(scene.events)))
                done(at * bench.repeats + turn + 1)
            for name in wanted:
                said = f"{name}, {told(threads)}"
                figures[name][threads] = Figure(said, "microseconds an event", tuple(samples[name]))
    curves = tuple(
        Curve(name, tuple(map(float, by)), tuple(each.median for each in by.values()))
        for name, by in figures.items()
    )
    return Result(
        title,
        {"subscriptions": f"{scene.size:,}", "events": f"{len(scene.events):,}", "workload": WORKLOAD},
        [each for by in figures.values() for each in by.values()],
        plot=Plot("threads", "microseconds an event", curves),
        paper=FIG9,
        notes=["Counted by each thread with the processor's clock, within the kernels; lock-based."],
    )


def _spent(scene: Scene, threads: int) -> dict[str, float]:
    """Seconds of all threads together in one run."""
    before = _seconds(scene)
    scene.engine.match_batch(scene.events, parallel=Parallel("se-cp", threads, sync="lock"))
    return {name: seconds - before.get(name, 0.0) for name, seconds in _seconds(scene).items()}


def _seconds(scene: Scene) -> dict[str, float]:
    parallel = cast("dict[str, object]", scene.engine.stats().get("parallel", {}))
    return cast("dict[str, float]", parallel.get("seconds", {}))


def run_fig9(bench: Bench) -> Result:
    """Phase one and waiting."""
    return _profile(bench, ("phase one", "waiting"), "Time of phase one and of waiting in SE-CP, lock-based")


def run_fig10(bench: Bench) -> Result:
    """Phase two."""
    return _profile(bench, ("phase two",), "Time of phase two in SE-CP, lock-based")


def run_fig13(bench: Bench) -> Result:
    """Block sizes of phase two."""
    scene = Scene(bench, "parallel-blocks", bench.pick(20_000, 2_000_000), bench.pick(500, 5_000))
    threads = max(2, available_cores())
    ways = [(f"{size:,}", Parallel("se-cp", threads, sync="lock", block=size)) for size in SIZES]
    figures = {each.way: scene.matching_time(each, 1) for each in scene.tried(ways, "block sizes")}
    curve = Curve(
        f"lock, {threads} threads", tuple(map(float, SIZES)), tuple(each.median for each in figures.values())
    )
    return Result(
        "Matching time of an event against the size of blocks, SE-CP, lock-based",
        {"subscriptions": f"{scene.size:,}", "events": f"{len(scene.events):,}", "workload": "parallel-blocks"},
        list(figures.values()),
        plot=Plot("pieces of clusters in a block", "microseconds an event", (curve,), log_x=True),
        paper=FIG13,
        notes=["Pieces: clusters, and parts of those with more than 1,024 entries."],
    )


def _over_sizes(
    bench: Bench, mode: Mode, title: str, figure: Callable[[Scene, float], float], unit: str
) -> Result:
    sizes = bench.pick((5_000, 10_000), (1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000))
    many, figures = max(2, available_cores()), dict[tuple[str, int], Figure]()
    scene = Scene(bench, WORKLOAD, sizes[0], bench.pick(500, 5_000), changes=True)
    for size in sizes:
        for table in scene.made.subscriptions(size - len(scene.engine), first_id=len(scene.engine)):
            scene.engine.subscribe_many(table)
        scene.engine.match_batch(scene.events, parallel=ONE)
        ways = {"1 thread": ONE, f"{mode}, {many} threads": Parallel(mode, many)}
        work: dict[str, Callable[[], object]] = {
            name: partial(scene.engine.match_batch, scene.events, parallel=way) for name, way in ways.items()
        }
        for name, took in bench.in_turns(work, f"{size:,} subscriptions").items():
            samples = tuple(figure(scene, each) for each in took)
            figures[name, size] = Figure(f"{name}, {size:,} subscriptions", unit, samples)
    names = list(dict.fromkeys(name for name, _ in figures))
    curves = tuple(
        Curve(name, tuple(map(float, sizes)), tuple(figures[name, size].median for size in sizes))
        for name in names
    )
    alone, shared = names
    ratios = [
        Ratio.of(f"{shared} / {alone}, {size:,}", figures[shared, size], figures[alone, size]) for size in sizes
    ]
    conditions = {"events": f"{len(scene.events):,}", "workload": WORKLOAD}
    return Result(title, conditions, list(figures.values()), ratios, Plot("subscriptions", unit, curves), FIG14)


def run_fig14(bench: Bench) -> Result:
    """Throughput of ME-IP against the number of subscriptions."""

    def rate(scene: Scene, seconds: float) -> float:
        return len(scene.events) / seconds

    return _over_sizes(bench, "me-ip", "Throughput of ME-IP against the number of subscriptions", rate, "events/s")


def run_fig15(bench: Bench) -> Result:
    """Matching time of SE-CP against the number of subscriptions."""

    def each(scene: Scene, seconds: float) -> float:
        return 1e6 * seconds / len(scene.events)

    title = "Matching time of an event in SE-CP against the number of subscriptions"
    return _over_sizes(bench, "se-cp", title, each, "microseconds an event")
