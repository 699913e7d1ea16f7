"""Changes of symmetric engines and auctions that are stopped at every one of their lines: all of it, or nothing.

Each call is made from the same state again and again, and stopped at its first line, its second, and so on: by an
error, an interrupt, or a lack of memory. What can be seen afterwards has to be what was there before the call, or
what is there after it, and the calls that come next have to work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from harken import Auction, SymmetricEngine
from harken.bench.interrupting import FAULTS, Tripwire, count_lines
from harken.bench.measuring import Bench, Figure, Result
from harken.bench.on_stores import databases
from harken.symmetric.contract import OTHER

WATCHED = ("symmetric",)
ALSO_BESIDE = ("symmetric", "engine.py")
"""With an engine beside the store, what that does is watched too."""

_PROBES = ["x = 1", "x BETWEEN 0 AND 9", "x > 3 AND y = 'a'", "TRUE"]
_EVENTS = pa.table({"x": [1, 4, 9], "y": ["a", "b", None]})
_MANY = [(f"many-{at}", f"x BETWEEN {at} AND {at + 3}") for at in range(6)]

Opened = Any
"""A SymmetricEngine or an Auction."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call that changes something, and how to see what it did."""

    name: str
    fill: Callable[[Opened], object]
    change: Callable[[Opened], object]
    seen: Callable[[Opened], object]
    after: Callable[[Opened], object]
    """Calls that come next; what they give has to be the same as if nothing had been stopped."""


def _fill_engine(market: SymmetricEngine) -> None:
    market.subscribe_many([(f"loaded-{at}", f"x >= {at} AND y IS NOT NULL") for at in range(5)])
    for at in range(3):
        market.subscribe(f"single-{at}", f"x = {at}")
        market.publish(f"offer-{at}", f"x BETWEEN {at} AND {at + 1}", notify=at == 1)
    market.match_batch(_EVENTS)  # so that what answers tables is there, and changes too


def _seen_in_engine(market: SymmetricEngine) -> object:
    store = market._store
    kept = {(side, id): store.get(side, id) for side in OTHER for id in store.ids(side)}
    one_by_one = [sorted(market.match(probe)) for probe in _PROBES]
    batches = [sorted(map(str, market.match_batch(each).to_pylist())) for each in (_PROBES, _EVENTS)]
    told = [(each.publication, each.subscription) for each in store.notices(1_000)]
    return kept, len(market), one_by_one, batches, sorted(told)


def _after_in_engine(market: SymmetricEngine) -> object:
    met = market.publish("later", "x BETWEEN 0 AND 5", notify=True)
    market.subscribe("last", "x = 1", replace=True)
    market.subscribe_many([(f"next-{at}", "x > 0") for at in range(3)])
    market.unsubscribe("loaded-0")
    return sorted(met), sorted(market.match("x = 1")), market.deliver(lambda notice: None)


def _of_engine(name: str, change: Callable[[SymmetricEngine], object]) -> Case:
    return Case(name, _fill_engine, change, _seen_in_engine, _after_in_engine)


ENGINE_CASES = [
    _of_engine("subscribe", lambda market: market.subscribe("new", "x = 1 AND y > 'a'", notify=True)),
    _of_engine("subscribe, replacing", lambda market: market.subscribe("single-1", "x < 9", replace=True)),
    _of_engine("subscribe_many", lambda market: market.subscribe_many(_MANY)),
    _of_engine("unsubscribe", lambda market: market.unsubscribe("loaded-3")),
    _of_engine("unsubscribe_many", lambda market: market.unsubscribe_many(["single-2", "loaded-1", "loaded-2"])),
    _of_engine(
        "unsubscribe_many, of all",
        lambda market: market.unsubscribe_many(list(market._store.ids("subscriptions"))[1:]),
    ),
    _of_engine("publish", lambda market: market.publish("new", {"x": 2, "y": "a"}, notify=True)),
    _of_engine("publish, replacing", lambda market: market.publish("offer-1", "x < 3", replace=True, notify=True)),
    _of_engine("retract", lambda market: market.retract("offer-1")),
]


def _fill_auction(auction: Auction) -> None:
    for at in range(3):
        auction.offer(f"offer-{at}", "pencils" if at else "pens", f"price >= {at}")
        auction.bid(f"bid-{at}", "pencils" if at else "pens", f"price <= {at + 2}")
    auction.cycle()
    auction.bid("high", "pencils", "price <= 9")


def _seen_in_auction(auction: Auction) -> object:
    def look(book: Any) -> object:
        entries = [(each.role, each.id, each.product) for each in book.entries()]
        kept = {side: sorted(book.store.ids(side)) for side in OTHER}
        return sorted(entries), book.leaders(), kept

    return auction._book.look("look at all there is", look)


def _after_in_auction(auction: Auction) -> object:
    auction.bid("last", "pencils", "price <= 11")
    auction.cycle()
    told: list[object] = []
    auction.deliver(lambda change: told.append((change.offer, change.before, change.now)))
    auction.withdraw("bid", "last")
    return sorted(map(str, told)), auction.close("pencils"), auction.close("pens")


def _of_auction(name: str, change: Callable[[Auction], object]) -> Case:
    return Case(name, _fill_auction, change, _seen_in_auction, _after_in_auction)


AUCTION_CASES = [
    _of_auction("offer", lambda auction: auction.offer("new", "pencils", "price >= 2")),
    _of_auction("bid", lambda auction: auction.bid("new", "pencils", "price <= 10")),
    _of_auction("withdraw", lambda auction: auction.withdraw("offer", "offer-1")),
    _of_auction("cycle", lambda auction: auction.cycle()),
    _of_auction("close", lambda auction: auction.close("pencils")),
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where engines and auctions are kept, and which cases are tried there."""

    name: str
    open: Callable[[], Opened]
    cases: list[Case]
    packages: tuple[str, ...] = WATCHED


def in_memory() -> Iterator[Place]:
    """In memory, with segments that are made and joined all the time."""
    restless: dict[str, Any] = {"waiting": 2, "growth": 1, "smallest_tree": 2}
    yield Place("engine, memory", lambda: SymmetricEngine(**restless), ENGINE_CASES)
    beside = partial(SymmetricEngine, covers="subscription", **restless)
    yield Place("engine, memory, covers subscription", beside, ENGINE_CASES, ALSO_BESIDE)
    yield Place("auction, memory", Auction, AUCTION_CASES)


def on_database(kind: str, options: dict[str, Any]) -> Iterator[Place]:
    """In the tables of a database, which are emptied each time."""

    def emptied(opened: Opened) -> Opened:
        store = opened._store if isinstance(opened, SymmetricEngine) else opened._book.store
        if isinstance(opened, Auction):
            for product in ("pencils", "pens"):
                opened.close(product)
            opened.deliver(lambda change: None)
        for side in OTHER:
            store.remove(side, store.ids(side))
        store.settle([each.number for each in store.notices(1_000)])
        return opened

    yield Place(f"engine, {kind}", lambda: emptied(SymmetricEngine(**options)), ENGINE_CASES)
    yield Place(f"auction, {kind}", lambda: emptied(Auction(**options)), AUCTION_CASES)


def stop_everywhere(place: Place, case: Case, stride: int = 1, first: int = 1) -> int:
    """Stop a call at every line, or every so many, by each fault in turn; how often.

    AssertionError if it left something in between, or if calls that come next go wrong.
    """
    before, after, lines = _expected(place, case)
    stops = range(first, lines + 1, stride)
    for turn, at in enumerate(stops):
        wire = Tripwire(place.packages, at, FAULTS[turn % len(FAULTS)])
        with place.open() as opened:
            case.fill(opened)
            wire.run(partial(case.change, opened))
            seen = case.seen(opened)
            if seen not in (before[0], after[0]):
                raise AssertionError(f"{place.name}: {case.name}, stopped at line {at} of {lines}, left {seen}")
            then = case.after(opened), case.seen(opened)
            if then != (before if seen == before[0] else after)[1]:
                raise AssertionError(f"{place.name}: after {case.name} was stopped at line {at}: {then}")
    return len(stops)


def _expected(place: Place, case: Case) -> tuple[tuple[object, object], tuple[object, object], int]:
    """What is seen before and after a call, each with what comes of it; and how many lines the call has."""
    pictures, lines = [], 0
    for changed in (False, True):
        with place.open() as opened:
            case.fill(opened)
            if changed:
                lines = count_lines(partial(case.change, opened), place.packages)
            seen = case.seen(opened)
            pictures.append((seen, (case.after(opened), case.seen(opened))))
    return pictures[0], pictures[1], lines


def run(bench: Bench) -> Result:
    """Stop all calls at all lines; in small, at a few."""
    figures = []
    with databases() as made:
        tried = [*in_memory(), *(place for kind, fresh in made.items() for place in on_database(kind, fresh()))]
        for place in tried:
            figures.append(Figure(place.name, "calls stopped", (float(_tried(bench, place)),)))
    return Result(
        "Changes stopped at every line",
        {"faults": ", ".join(fault.__name__ for fault in FAULTS), "calls": ", ".join(_names())},
        figures,
        notes=[
            "After each, everything that can be seen was what it was before the call or what it is after it, and "
            "the calls that came next gave the same as if nothing had been stopped; anything else would have "
            "ended the run.",
            "Watched were the lines of harken.symmetric and, where an engine is kept beside a store, of that "
            "engine. The three faults take turns from stop to stop. In memory calls were stopped at every line, "
            "on databases at every 101st.",
        ],
    )


def _tried(bench: Bench, place: Place) -> int:
    # On a database a call takes long, and all that it does before its COMMIT comes to the same.
    stride = bench.pick(149, 1) if "memory" in place.name else bench.pick(499, 101)
    cases = place.cases[: bench.pick(2, None)]
    total = 0
    with bench.progress.step(f"stopping {place.name}", len(cases)) as tell:
        for at, case in enumerate(cases):
            total += stop_everywhere(place, case, stride, first=1 + at % stride)
            tell(at + 1)
    return total


def _names() -> list[str]:
    return [case.name for case in ENGINE_CASES + AUCTION_CASES]
