"""Figure 4 of Fabret et al. 2000: throughput over time while subscriptions of one kind give way to another.

The paper's clock: 50 subscriptions come and the 50 oldest go every second, and what is left of the second is spent
on events. After two hours all that comes is of the new kind, 16 hours later nothing of the old is left, and the
system runs on for two hours. Here a step of two hours is done in a few rounds of updates and events, and the time
that the updates took is taken off the simulated time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from harken import Engine
from harken.bench.loading import contenders
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result, timed
from harken.bench.verifying import aimed, sample, verify
from harken.matching.clusters.dynamic import DynamicMatcher
from harken.model.expressions import Expression
from harken.workloads import Workload, workload

SCHEMA_PAPER = (
    "With the clustering left as it was, throughput had halved in the end. Dynamic went through a bumpy "
    "transition, for the cost of new tables, and then handled 350 events/s where no change handled 200."
)
SKEW_PAPER = (
    "With the clustering left as it was, throughput was 20% lower in the end. Dynamic was slightly behind early "
    "in the transition, ahead after 8 hours, and ended almost where it had begun; what was missing went into the "
    "larger number of matches."
)

PER_SECOND = 50
"""Subscriptions that come, and as many that go, in a simulated second."""

TRANSITION = 8
"""Steps until all subscriptions are of the new kind; one more before and one after."""

HOURS = 2
DYNAMIC, NO_CHANGE = "dynamic", "no change"


@dataclass(slots=True)
class _Step:
    """What one engine did in a step: events per second of every round, and the seconds its updates took."""

    rates: list[float] = field(default_factory=list)
    updating: list[float] = field(default_factory=list)

    def throughput(self, swapped: int) -> float:
        """Events per simulated second, when each round swapped so many subscriptions."""
        simulated = swapped / PER_SECOND * len(self.rates)
        return statistics.harmonic_mean(self.rates) * max(0.0, 1 - sum(self.updating) / simulated)


def run_schema(bench: Bench) -> Result:
    """Subscriptions move to the other 16 of 32 attributes; events stay as they are."""
    title = "Throughput over time while subscriptions move to other attributes"
    return _run(bench, "churn-schema", title, SCHEMA_PAPER, bench.target(1.5))


def run_skew(bench: Bench) -> Result:
    """One fixed attribute comes to have two values, in new subscriptions and in events."""
    title = "Throughput over time while subscriptions and events become skewed"
    return _run(bench, "churn-skew", title, SKEW_PAPER, bench.target(1.0))


def _run(bench: Bench, name: str, title: str, paper: str, target: float | None) -> Result:
    before, after = workload(name, bench.seed), workload(f"{name}-after", bench.seed)
    live, rounds, events = bench.pick(16_000, 3_000_000), bench.pick(4, 25), bench.pick(500, 4_000)
    churn, swapped = _Churn(bench, before, live), live // TRANSITION // rounds
    steps = []
    for step in range(1 + TRANSITION + 1):
        made = before if step == 0 else after
        with bench.progress.step(f"step {step + 1} of {TRANSITION + 2}", rounds) as done:
            steps.append(churn.step(made, swapped, rounds, events, done))
        churn.verify(made.events(100, part=1))
    last = {name: Figure(name, "events/s", tuple(steps[-1][name].rates)) for name in churn.engines}
    return Result(
        title,
        {
            "live subscriptions": f"{live:,}",
            "rounds per two hours": f"{rounds}, each {swapped:,} in, {swapped:,} out and {events:,} events",
        },
        [figure for name in churn.engines for figure in _figures(name, steps, swapped)],
        [Ratio.of("dynamic / no change, after the change", last[DYNAMIC], last[NO_CHANGE], target)],
        Plot("simulated hours", "events/s", tuple(_curve(name, steps, swapped) for name in churn.engines)),
        paper,
        [
            "Rounds take the place of repeats; the two engines take turns in each.",
            "Matches of a sample of events were compared with the reference semantics after every step.",
            *(f"Tables of {name}: {churn.tables(name)}." for name in churn.engines),
        ],
    )


def _curve(name: str, steps: list[dict[str, _Step]], swapped: int) -> Curve:
    """Throughput of each step, at its end."""
    hours = tuple(float(HOURS * (at + 1)) for at in range(len(steps)))
    return Curve(name, hours, tuple(step[name].throughput(swapped) for step in steps))


class _Churn:
    """Two engines with the same subscriptions; the oldest leave as new ones come."""

    def __init__(self, bench: Bench, made: Workload, live: int) -> None:
        (dynamic,) = contenders((DYNAMIC,))
        self.engines = {name: dynamic.engine() for name in (DYNAMIC, NO_CHANGE)}
        self._seed = bench.seed
        self._known: dict[int, Expression] = {}
        self._oldest, self._next, self._part = 0, live, 2
        with bench.progress.step(f"loading {live:,} into both", live) as done:
            for table in made.subscriptions(live):
                for engine in self.engines.values():
                    engine.subscribe_many(table)
                    engine.match_batch(made.events(2_000))  # so that tables are chosen by what events are like
                self._known |= sample(table, 16, self._seed)
                done(len(engine))
        _stop_adapting(self.engines[NO_CHANGE])

    def step(
        self, made: Workload, swapped: int, rounds: int, events: int, done: Callable[[int], None]
    ) -> dict[str, _Step]:
        """Swap subscriptions and match events, round by round, the engines in turns."""
        found = {name: _Step() for name in self.engines}
        for turn in range(rounds):
            coming = pa.concat_tables(made.subscriptions(swapped, first_id=self._next))
            going = range(self._oldest, self._oldest + swapped)
            batch = made.events(events, part=self._part)
            for name, engine in self.engines.items():
                found[name].updating.append(timed(partial(_swap, engine, going, coming)))
                found[name].rates.append(events / timed(partial(engine.match_batch, batch)))
            self._known |= sample(coming, 2, self._seed)
            self._oldest, self._next, self._part = going.stop, self._next + swapped, self._part + 1
            done(turn + 1)
        return found

    def verify(self, events: pa.Table) -> None:
        """Check both engines against the semantics on some that are there and some that have left."""
        left = {id: each for id, each in self._known.items() if id < self._oldest}
        self._known = {id: each for id, each in self._known.items() if id >= self._oldest}
        known = dict(list(self._known.items())[:: max(1, len(self._known) // 60)])
        gone = dict(list(left.items())[-30:])
        verify(self.engines, aimed(events, {**gone, **known}), known, gone)

    def tables(self, name: str) -> str:
        """How many the engine has made and dropped."""
        stats = self.engines[name].stats()
        return f"{stats.get('tables_made')} made, {stats.get('tables_dropped')} dropped"


def _stop_adapting(engine: Engine) -> None:
    """Leave the tables as they are from now on: no option of an engine, since nobody else would want it."""
    matcher = engine._matcher
    assert isinstance(matcher, DynamicMatcher)
    matcher.adapt = False


def _swap(engine: Engine, going: range, coming: pa.Table) -> None:
    engine.unsubscribe_many(going)
    engine.subscribe_many(coming)


def _figures(name: str, steps: list[dict[str, _Step]], swapped: int) -> list[Figure]:
    first, last = steps[0][name], steps[-1][name]
    updating = [seconds for step in steps for seconds in step[name].updating]
    return [
        Figure(f"{name}, before the change", "events/s", tuple(first.rates)),
        Figure(f"{name}, after the change", "events/s", tuple(last.rates)),
        Figure(f"{name}, updates", "subscriptions/s in and out", tuple(swapped / each for each in updating)),
    ]
