"""A failure at every step of every changing call, on every algorithm: the engine is as before or as after it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

from harken import Engine, Parallel, algorithms, parse
from harken.bench.failing import FAILURES, Allocations, Steps
from harken.bench.measuring import Bench, Figure, Result
from harken.model.evaluation import truth
from harken.workloads.mixed import FlatEvent, Mixed

Texts = dict[int, str]

OPTIONS: dict[str, dict[str, object]] = {
    "auto": {"small": 30},
    "dynamic": {"margin": 0.01, "patience": 12},
    "rapid": {"waiting": 5},
    "tree": {"waiting": 5},
}
"""So that a few subscriptions are enough for an index, for tables and for trees."""

FOREVER = 10**9
WITHIN = ("engine.py", "changing.py", "locking.py", "intake.py", "persistence.py", "matching/")
"""Where steps can do harm: parsing and compiling touch nothing that an engine holds."""

HELD, MORE = 25, 20
"""Subscriptions there are, and those that come."""


@dataclass(frozen=True)
class Case:
    """A changing call, and what an engine holds before it and after it."""

    algorithm: str
    name: str
    seed: int

    def begin(self) -> tuple[Engine, Callable[[], object], list[Texts], list[FlatEvent]]:
        """An engine, the call, what it may hold after it, and events to ask for."""
        before, more, events = _drawn(self.seed)
        engine = engine_of(self.algorithm)
        engine.subscribe_many(_rows(before))
        engine.match_batch(events)
        fresh = {id: text for id, text in more.items() if id >= HELD}
        going = list(before)[::2]
        one = {HELD: more[HELD]}
        calls: dict[str, tuple[Callable[[], object], Texts]] = {
            "subscribe": (lambda: engine.subscribe(HELD, one[HELD], owner=f"of {one[HELD]}"), before | one),
            "replace": (lambda: _replace(engine, {0: more[HELD]}), before | {0: more[HELD]}),
            "subscribe_many": (lambda: engine.subscribe_many(_rows(fresh)), before | fresh),
            "replace_many": (lambda: _replace(engine, more), before | more),
            "unsubscribe": (lambda: engine.unsubscribe(3), {id: before[id] for id in before if id != 3}),
            "unsubscribe_many": (
                lambda: engine.unsubscribe_many(going),
                {id: before[id] for id in before if id not in going},
            ),
            "unsubscribe_all": (lambda: engine.unsubscribe_many(list(before)), {}),
            "learn": (lambda: engine.learn(events * 2), before),
        }
        call, after = calls[self.name]
        return engine, call, [before, after], events


@cache
def _drawn(seed: int) -> tuple[Texts, Texts, list[FlatEvent]]:
    """Subscriptions there are, those that come, and events."""
    mixed = Mixed(seed)
    before: Texts = {id: mixed.text() for id in range(HELD)}
    more: Texts = {id: mixed.text() for id in range(HELD - 5, HELD + MORE)}
    return before, more, [mixed.event() for _ in range(12)]


_tree = cache(parse)

CALLS = (
    "subscribe",
    "replace",
    "subscribe_many",
    "replace_many",
    "unsubscribe",
    "unsubscribe_many",
    "unsubscribe_all",
    "learn",
)


def _rows(texts: Texts) -> list[dict[str, object]]:
    return [{"id": id, "expression": text, "owner": f"of {text}"} for id, text in texts.items()]


def _replace(engine: Engine, texts: Texts) -> None:
    engine.subscribe_many(_rows(texts), replace=True)


def engine_of(algorithm: str, parallel: Parallel | None = None) -> Engine:
    """An engine that has an index, and tables, for a few subscriptions already."""
    options = cast("dict[str, Any]", OPTIONS.get(algorithm, {}))
    return Engine(algorithm, parallel=parallel, **options)


def cases(names: list[str], seed: int) -> list[Case]:
    """Every changing call on each of these algorithms."""
    return [Case(name, call, seed) for name in names for call in CALLS]


def steps_of(case: Case) -> int:
    """How many steps a call has that may fail."""
    _, call, _, _ = case.begin()
    return Steps(within=WITHIN).of(call).count


def allocations_of(case: Case) -> int:
    """How many arrays a call asks for, once it has been made: what is loaded the first time asks for others."""
    for _ in ("to have loaded what it takes", "to count"):
        _, call, _, _ = case.begin()
        counted = Allocations().of(call)
    return counted.count


def fail_at_step(case: Case, at: int) -> bool:
    """Let a call fail at a step, and check; whether it came as far. Kinds of failures take turns."""
    engine, call, possible, events = case.begin()
    steps = Steps(at, FAILURES[at % len(FAILURES)], WITHIN).of(call)
    check(engine, possible, events, f"{case} failing at step {at}")
    return steps.raised


def fail_at_allocation(case: Case, at: int, times: int) -> bool:
    """Let a call find no memory from a point on, and check; whether it came as far."""
    engine, call, possible, events = case.begin()
    allocations = Allocations(at, times).of(call)
    check(engine, possible, events, f"{case} failing at allocation {at}, {times} times")
    return allocations.raised


def check(engine: Engine, possible: list[Texts], events: list[FlatEvent], where: str) -> None:
    """The engine holds one of these, all of it, answers so, and goes on working."""
    held = next((texts for texts in possible if texts.keys() == set(engine)), None)
    if held is None:
        raise AssertionError(f"{where}: it holds {sorted(map(str, engine))}")
    if len(possible) > 1 and len({tuple(texts) for texts in possible}) < len(possible):
        owners = {id: engine.subscription(id).owner for id in engine}
        held = next(
            (texts for texts in possible if owners == {id: f"of {text}" for id, text in texts.items()}), None
        )
        if held is None:
            raise AssertionError(f"{where}: owners are those of neither")
    _check_answers(engine, held, events, where)
    _check_owners(engine, held, where)
    held = _go_on(engine, dict(held))
    _check_answers(engine, held, events, f"{where}, going on")


def _check_answers(engine: Engine, held: Texts, events: list[FlatEvent], where: str) -> None:
    trees = {id: _tree(text) for id, text in held.items()}
    batch = engine.match_batch(events).to_pydict()
    found = list(zip(*batch.values(), strict=True))
    for row, event in enumerate(events):
        wanted = sorted(id for id, tree in trees.items() if truth(tree, event) is True)
        if sorted(engine.match(event), key=int) != wanted:
            raise AssertionError(f"{where}: {event} matched {engine.match(event)}, not {wanted}")
        if sorted(id for at, id in found if at == row) != wanted:
            raise AssertionError(f"{where}: in a batch {event} did not match {wanted}")
    if len(engine) != len(held) or engine.stats()["subscriptions"] != len(held):
        raise AssertionError(f"{where}: it counts {len(engine)} and {engine.stats()['subscriptions']}")


def _check_owners(engine: Engine, held: Texts, where: str) -> None:
    for id, text in held.items():
        if engine.subscription(id).owner != f"of {text}":
            raise AssertionError(f"{where}: the owner of {id} is {engine.subscription(id).owner}")


def _go_on(engine: Engine, held: Texts) -> Texts:
    """Changes of each kind, as if nothing had been."""
    for id in list(held)[1:4]:
        engine.unsubscribe(id)
        del held[id]
    more: Texts = {1_000 + at: f"attribute_{at % 3} = {at} or not x > {at}" for at in range(8)}
    engine.subscribe_many(more.items())
    held |= more
    for id in list(held)[:2]:
        held[id] = "x < 5"
        engine.subscribe(id, held[id], replace=True)
    return held


def run(bench: Bench) -> Result:
    """Fail at one step of each case after the other, in random order, for some minutes or until all are done."""
    minutes = bench.minutes if bench.minutes is not None else bench.pick(0.02, 60.0)
    done: Counter[str] = Counter()
    turns = [_trials(case) for case in cases(list(algorithms()), bench.seed)]
    end = time.perf_counter() + 60 * minutes
    steps = sum(len(trials) for trials in turns)
    with bench.progress.step(f"failing on purpose for {minutes:g} minutes", steps) as tell:
        while turns and (not done or time.perf_counter() < end):
            for trials in turns:
                kind, trial = trials.pop()
                done[kind] += trial()
            turns = [trials for trials in turns if trials]
            tell(done.total())
    figures = [Figure("failures", "in all", (float(done.total()),))]
    figures += [Figure(name, "times", (float(count),)) for name, count in sorted(done.items())]
    return Result(
        "A failure at any step of every changing call",
        {
            "algorithms": ", ".join(algorithms()),
            "calls": ", ".join(CALLS),
            "subscriptions": f"{HELD}, and {MORE} more",
            "steps there are": f"{steps:,}",
        },
        figures,
        notes=[
            "A step is a line begun or a call done in the modules that can change an engine; there an exception, "
            "a KeyboardInterrupt or a MemoryError was raised in turn. Of arrays, one or all from one on could not "
            "be had. After each the engine held what it held before or what it was to hold after, answers were "
            "compared with the reference semantics, and changes of every kind went on; any difference would have "
            "ended the run.",
        ],
    )


def _trials(case: Case) -> list[tuple[str, Callable[[], bool]]]:
    """All that can fail in a call, in random order."""
    steps, allocations = range(1, steps_of(case) + 1), range(1, allocations_of(case) + 1)
    trials: list[tuple[str, Callable[[], bool]]] = []
    trials += [("at a step", partial(fail_at_step, case, at)) for at in steps]
    trials += [("for want of one array", partial(fail_at_allocation, case, at, 1)) for at in allocations]
    trials += [("for want of all arrays", partial(fail_at_allocation, case, at, FOREVER)) for at in allocations]
    random.Random(case.seed).shuffle(trials)
    return trials


def sampled(count: int, most: int, seed: int) -> list[int]:
    """Some of the numbers from 1 to a count."""
    return sorted(random.Random(seed).sample(range(1, count + 1), min(most, count)))
