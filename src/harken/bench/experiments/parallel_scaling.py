"""Figures 5 to 8, 11 and 12 of Farroukh et al. 2009: throughput and matching time against threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, NamedTuple

from harken import Engine, Parallel
from harken.bench.loading import contenders, load
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.bench.verifying import verify_workload
from harken.matching.parallel.options import Mode, Sync, available_cores
from harken.workloads import workload

WAYS: tuple[Sync, ...] = ("static", "lock", "stm")
BEYOND = 2
"""How many times as many threads as there are cores are tried too: they can only be slower."""

WORKLOAD = "parallel"

NOTES = [
    "One thread is the plain path, which shares nothing; the same batch from Arrow each time, encoding included.",
    "Every way was first compared, match by match, with one thread; a sample of events with the semantics.",
]


class Tried(NamedTuple):
    """A way of sharing, and what it took."""

    way: str
    threads: int
    parallel: Parallel
    seconds: tuple[float, ...]


class Scene:
    """An engine of the paper's workload, and events for it."""

    _last: ClassVar[tuple[tuple[str, int, int], Engine] | None] = None
    """The engine of the scene before: most experiments need the same, which takes minutes to load."""

    def __init__(self, bench: Bench, name: str, size: int, events: int, *, changes: bool = False) -> None:
        """Whoever changes what is subscribed says so, and has the engine for itself."""
        self.bench, self.size, self.made = bench, size, workload(name, bench.seed)
        self.engine = self._loaded(name)
        if changes:
            Scene._last = None
        self.events = self.made.events(events)
        verify_workload(self.made, {"dynamic": self.engine}, size, seed=bench.seed)
        self.engine.match_batch(self.events, parallel=ONE)  # arranges what was subscribed

    def _loaded(self, name: str) -> Engine:
        key = name, self.size, self.bench.seed
        if Scene._last is None or Scene._last[0] != key:
            Scene._last = None  # before another is loaded: both might not fit
            engine: Engine = load(self.bench, self.made, contenders(("dynamic",))[0], self.size)
            Scene._last = key, engine
        return Scene._last[1]

    def tried(self, ways: list[tuple[str, Parallel]], label: str) -> list[Tried]:
        """Match the events every way in turns, each compared with one thread before."""
        alone = _ordered(self.engine, self, ONE)
        for way, parallel in ways:
            if _ordered(self.engine, self, parallel) != alone:
                raise AssertionError(f"{way} with {parallel.count} threads gives other matches than one thread")
        work: dict[str, Callable[[], object]] = {
            f"{way}, {parallel.count}": partial(self.engine.match_batch, self.events, parallel=parallel)
            for way, parallel in ways
        }
        seconds = self.bench.in_turns(work, label)
        return [
            Tried(way, parallel.count, parallel, seconds[f"{way}, {parallel.count}"]) for way, parallel in ways
        ]

    def throughput(self, each: Tried) -> Figure:
        """Events per second."""
        rates = tuple(len(self.events) / took for took in each.seconds)
        return Figure(f"{each.way}, {told(each.threads)}", "events/s", rates)

    def matching_time(self, each: Tried, at_once: int) -> Figure:
        """How long one event takes, so many being matched at a time."""
        took = tuple(1e6 * at_once * seconds / len(self.events) for seconds in each.seconds)
        return Figure(f"{each.way}, {told(each.threads)}", "microseconds an event", took, lower_is_better=True)


ONE = Parallel(threads=1)


def _ordered(engine: Engine, scene: Scene, parallel: Parallel) -> list[tuple[int, int]]:
    found = engine.match_batch(scene.events.slice(0, 1_000), parallel=parallel)
    return sorted(zip(*found.to_pydict().values(), strict=True))


def told(threads: int) -> str:
    """A number of threads; more than there are cores come in each other's way."""
    said = "1 thread" if threads == 1 else f"{threads} threads"
    return said if threads <= available_cores() else f"{said} (oversubscribed)"


def thread_counts() -> list[int]:
    """From one to all cores, doubling, and some beyond."""
    counts, at = [1], 2
    while at < available_cores():
        counts.append(at)
        at *= 2
    return [*counts, max(2, available_cores()), BEYOND * max(2, available_cores())]


def _ways(mode: Mode) -> list[tuple[str, Parallel]]:
    return [
        (sync, Parallel(mode, threads, sync=sync)) for sync in WAYS for threads in dict.fromkeys(thread_counts())
    ]


def _scene(bench: Bench, events: int) -> Scene:
    return Scene(bench, WORKLOAD, bench.pick(20_000, 6_000_000), bench.pick(500, events))


def _scaled(
    scene: Scene,
    title: str,
    figure: Callable[[Tried], Figure],
    found: list[Tried],
    paper: str,
    ratios: list[Ratio],
    notes: list[str],
) -> Result:
    figures = {(each.way, each.threads): figure(each) for each in found}
    curves = tuple(
        Curve(
            way,
            tuple(float(at) for name, at in figures if name == way),
            tuple(each.median for (name, _), each in figures.items() if name == way),
        )
        for way in dict.fromkeys(each.way for each in found)
    )
    unit = next(iter(figures.values())).unit
    conditions = {"subscriptions": f"{scene.size:,}", "events": f"{len(scene.events):,}", "workload": WORKLOAD}
    axis = "threads per event" if "Hybrid" in title else "threads"
    plot = Plot(axis, unit, curves)
    return Result(title, conditions, list(figures.values()), ratios, plot, paper, [*NOTES, *notes])


def _gains(scene: Scene, found: list[Tried], asked: Mapping[str, float]) -> list[Ratio]:
    """How many times the throughput of one thread all cores have, way by way, and what is asked for."""
    many, rates = max(2, available_cores()), {(each.way, each.threads): scene.throughput(each) for each in found}
    return [
        Ratio.of(
            f"{way}: {many} threads / 1",
            rates[way, many],
            rates[way, 1],
            scene.bench.target(asked[way]) if way in asked else None,
        )
        for way in WAYS
    ]


FIG5 = (
    "ME-IP went from 263 events/s with one thread to over 1,600 with eight, nearly linearly, static, lock and STM "
    "alike (figure 5); the time of one event rose a little from one thread to two and then stayed (figure 6)."
)
FIG7 = (
    "SE-CP cut the matching time of an event by up to 78% from one thread to eight; most of it up to four, after "
    "which barriers and merging ate up what was gained. STM was slower than the others with one thread."
)
FIG11 = (
    "With eight threads, throughput fell from 1,562 events/s (lock) with one thread per event as more threads "
    "shared an event (figure 11), and the matching time of an event fell with it (figure 12)."
)


def run_fig5(bench: Bench) -> Result:
    """ME-IP: events per second."""
    scene = _scene(bench, 20_000)
    found = scene.tried(_ways("me-ip"), "ME-IP")
    ratios = _gains(scene, found, {"static": 1.75, "lock": 1.75, "stm": 1.5})
    title = "Throughput of ME-IP against threads"
    return _scaled(scene, title, scene.throughput, found, FIG5, ratios, [])


def run_fig6(bench: Bench) -> Result:
    """ME-IP: time of one event."""
    scene = _scene(bench, 20_000)
    found = scene.tried(_ways("me-ip"), "ME-IP")
    title = "Matching time of an event in ME-IP against threads"
    return _scaled(scene, title, lambda each: scene.matching_time(each, each.threads), found, FIG5, [], [])


def run_fig7(bench: Bench) -> Result:
    """SE-CP: time of one event."""
    scene = _scene(bench, 5_000)
    found = scene.tried(_ways("se-cp"), "SE-CP")
    title = "Matching time of an event in SE-CP against threads"
    ratios = _gains(scene, found, {})
    return _scaled(scene, title, lambda each: scene.matching_time(each, 1), found, FIG7, ratios, [])


def run_fig8(bench: Bench) -> Result:
    """SE-CP: events per second."""
    scene = _scene(bench, 5_000)
    found = scene.tried(_ways("se-cp"), "SE-CP")
    return _scaled(scene, "Throughput of SE-CP against threads", scene.throughput, found, FIG7, [], [])


def _hybrid(bench: Bench) -> tuple[Scene, list[Tried]]:
    """All cores, or four threads if there are fewer, in groups of one to all."""
    scene, threads = _scene(bench, 5_000), max(4, available_cores())
    groups = [size for size in (1, 2, 4, 8, 16, 32) if size <= threads]
    ways = [(f"{sync}, {size}", Parallel("hybrid", threads, size, sync)) for sync in WAYS for size in groups]
    found = scene.tried(ways, "Hybrid")
    by_group = [each._replace(way=each.parallel.sync, threads=each.parallel.group or 1) for each in found]
    return scene, by_group


def _hybrid_note(found: list[Tried]) -> str:
    return f"{found[0].parallel.count} threads on {available_cores()} cores; the axis is the threads of a group."


def run_fig11(bench: Bench) -> Result:
    """Hybrid: events per second."""
    scene, found = _hybrid(bench)
    title, notes = "Throughput of Hybrid against threads per event", [_hybrid_note(found)]
    return _scaled(scene, title, scene.throughput, found, FIG11, [], notes)


def run_fig12(bench: Bench) -> Result:
    """Hybrid: time of one event."""
    scene, found = _hybrid(bench)
    title, notes = "Matching time of an event in Hybrid against threads per event", [_hybrid_note(found)]

    def time(each: Tried) -> Figure:
        return scene.matching_time(each, -(-each.parallel.count // each.threads))

    return _scaled(scene, title, time, found, FIG11, [], notes)


def run_arrow(bench: Bench) -> Result:
    """W0 from Arrow, encoding included, all ways of ME-IP."""
    scene = Scene(bench, "w0", bench.pick(20_000, 6_000_000), bench.pick(5_000, 400_000))
    found = scene.tried(_ways("me-ip"), "ME-IP")
    ratios = _gains(scene, found, {"static": 1.7, "lock": 1.7, "stm": 1.5})
    title = "Throughput of ME-IP against threads (W0), from Arrow"
    result = _scaled(scene, title, scene.throughput, found, "", ratios, [])
    result.conditions = {**result.conditions, "workload": "w0", "attributes": scene.made.specification.attributes}
    return result


HEAVY = "One after the other in a batch, as in the paper; and by a call for each, which has to wake the threads."


def run_heavy(bench: Bench) -> Result:
    """SE-CP where an event opens hundreds of thousands of clauses: by one thread, and by all cores together."""
    scene = Scene(bench, "ranges", bench.pick(5_000, 6_000_000), bench.pick(10, 40))
    rows, many = scene.events.to_pylist(), max(2, available_cores())

    def batch(parallel: Parallel) -> None:
        scene.engine.match_batch(scene.events, parallel=parallel)

    def calls(parallel: Parallel) -> None:
        for row in rows:
            scene.engine.match_batch([row], parallel=parallel)

    figures, ratios = list[Figure](), list[Ratio]()
    for label, match, asked in (("in a batch", batch, bench.target(1 / 0.65)), ("by a call each", calls, None)):
        work = {told(count): partial(match, Parallel("se-cp", count)) for count in (1, many)}
        one, all_cores = (
            Figure(f"{label}, {name}", "ms an event", tuple(1e3 * each / len(rows) for each in took), None, True)
            for name, took in bench.in_turns(work, f"heavy events {label}").items()
        )
        figures += [one, all_cores]
        ratios.append(Ratio.of(f"{label}: time with 1 thread / with {many}", one, all_cores, asked))
    conditions = {"subscriptions": f"{scene.size:,}", "events": f"{len(rows):,}", "workload": "ranges"}
    return Result("Heavy events in SE-CP", conditions, figures, ratios, notes=[*NOTES, HEAVY])
