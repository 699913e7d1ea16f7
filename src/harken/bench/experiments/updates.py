"""Subscriptions that come and go in an engine full of others: in batches, and one by one."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from harken import Engine, to_text
from harken.bench.loading import contenders, load
from harken.bench.measuring import Bench, Curve, Figure, Plot, Result, timed
from harken.bench.verifying import Known, aimed, sample, verify
from harken.compiler import read_expression
from harken.model.limits import DEFAULT_LIMITS
from harken.normal.decompiled import expressions_of
from harken.workloads import Workload, workload

ROUNDS = 16
"""Batches per repeat: enough that dynamic, which looks at its tables when a tenth has changed, does so within."""

BATCHED, SINGLE = 50_000, 1_000
"""Asked for: subscriptions per second in and out by the batch, and microseconds for one."""


class _Swapping:
    """An engine whose oldest subscriptions leave as new ones come, checked after every batch."""

    def __init__(self, bench: Bench, made: Workload, live: int) -> None:
        self.engine = load(bench, made, contenders(("dynamic",))[0], live)
        self.incoming: list[float] = []
        self.outgoing: list[float] = []
        self._made, self._seed = made, bench.seed
        self._oldest, self._next = 0, live

    def round(self, size: int) -> None:
        """One batch in and one out, each followed by events."""
        table = pa.concat_tables(self._made.subscriptions(size, first_id=self._next))
        came = sample(table, 20, self._seed)
        self.incoming.append(timed(partial(self.engine.subscribe_many, table)))
        self._check(came, {})
        going = range(self._oldest, self._oldest + size)
        left = {id: self.engine.subscription(id).expression for id in going[:: max(1, size // 20)]}
        self.outgoing.append(timed(partial(self.engine.unsubscribe_many, going)))
        self._check(came, left)
        self._oldest, self._next = going.stop, self._next + size

    def _check(self, known: Known, gone: Known) -> None:
        events = aimed(self._made.events(60, part=self._next), {**known, **gone})
        verify({"dynamic": self.engine}, events, known, gone)


def run(bench: Bench) -> Result:
    """Swap batches in an engine of 3,000,000, with checked matches in between; then single ones."""
    live, size, singles = bench.pick(20_000, 3_000_000), bench.pick(500, 10_000), bench.pick(100, 2_000)
    made = workload("w0", bench.seed)
    swapping = _Swapping(bench, made, live)
    with bench.progress.step("swapping batches", bench.repeats * ROUNDS) as done:
        for turn in range(bench.repeats * ROUNDS):
            swapping.round(size)
            done(turn + 1)
    with bench.progress.step("one by one"):
        beyond = range(live * 3, live * 3 + bench.repeats * singles, singles)  # ids that no batch has used
        found = [_one_by_one(swapping.engine, made, first_id, singles) for first_id in beyond]
    return Result(
        "Updates of a full engine, one core",
        {
            "live subscriptions": f"{live:,}",
            "per repeat": f"{ROUNDS} batches of {size:,} in and {size:,} out, and {singles:,} texts one by one",
        },
        [*_batch_figures(bench, swapping, size), *_single_figures(bench, found)],
        plot=Plot(
            "batch",
            "ms",
            (_curve(f"{size:,} in", swapping.incoming), _curve(f"{size:,} out", swapping.outgoing)),
        ),
        notes=[
            "In and out: whole repeats, so that reorganising, which now and then prolongs a batch, is counted.",
            "After every batch, events aimed at subscriptions that had come and at some that had left were "
            "matched and compared with the reference semantics.",
        ],
    )


def _curve(label: str, seconds: list[float]) -> Curve:
    return Curve(label, tuple(map(float, range(len(seconds)))), tuple(1e3 * each for each in seconds))


def _batch_figures(bench: Bench, swapping: _Swapping, size: int) -> list[Figure]:
    both = [sum(pair) for pair in zip(swapping.incoming, swapping.outgoing, strict=True)]
    rates: Callable[[Sequence[float]], tuple[float, ...]] = partial(_rates, size)
    asked = bench.target(BATCHED)
    return [
        Figure("batches in", "subscriptions/s", rates(swapping.incoming), asked),
        Figure("batches out", "subscriptions/s", rates(swapping.outgoing), asked),
        Figure("batches swapped, one in for one out", "subscriptions/s", rates(both)),
        Figure(f"longest of all batches ({size:,} in and out)", "ms", (1e3 * max(both),), lower_is_better=True),
    ]


def _rates(size: int, seconds: Sequence[float]) -> tuple[float, ...]:
    """Subscriptions per second, repeat by repeat."""
    return tuple(size * ROUNDS / sum(seconds[at : at + ROUNDS]) for at in range(0, len(seconds), ROUNDS))


def _one_by_one(engine: Engine, made: Workload, first_id: int, count: int) -> dict[str, list[float]]:
    """Seconds for each of some texts to be parsed, to be subscribed, and to be unsubscribed."""
    seconds: dict[str, list[float]] = {"parse": [], "subscribe": [], "unsubscribe": []}
    table = pa.concat_tables(made.subscriptions(count, first_id=first_id))
    expressions = dict(zip(table.column("id").to_pylist(), expressions_of(table), strict=True))
    for id, expression in expressions.items():
        text = to_text(expression)
        seconds["parse"].append(timed(partial(read_expression, text, None, DEFAULT_LIMITS)))
        seconds["subscribe"].append(timed(partial(engine.subscribe, id, text)))
    some = dict(list(expressions.items())[:40])
    verify({"dynamic": engine}, aimed(made.events(40, part=1), some), some)
    for id in expressions:
        seconds["unsubscribe"].append(timed(partial(engine.unsubscribe, id)))
    verify({"dynamic": engine}, aimed(made.events(40, part=1), some), {}, some)
    return seconds


def _single_figures(bench: Bench, found: list[dict[str, list[float]]]) -> list[Figure]:
    asked = bench.target(SINGLE)

    def figure(name: str, times: list[list[float]], target: float | None = None) -> Figure:
        medians = tuple(1e6 * statistics.median(each) for each in times)
        return Figure(name, "microseconds, median", medians, target, lower_is_better=True)

    parse, subscribe, unsubscribe = ([each[name] for each in found] for name in found[0])
    beyond = [
        [one - other for one, other in zip(*pair, strict=True)] for pair in zip(subscribe, parse, strict=True)
    ]
    return [
        figure("one text parsed", parse),
        figure("one text subscribed, parsing included", subscribe),
        figure("one text subscribed, beyond parsing", beyond, asked),
        figure("one unsubscribed", unsubscribe, asked),
    ]
