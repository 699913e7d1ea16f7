"""Threads: any call at any time, and a match sees all of a change or nothing of it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pytest

from harken import Auction, SymmetricEngine
from harken.errors import EngineBusyError
from harken.symmetric.guarding import Guard

STABLE = [(f"stable-{at}", f"x BETWEEN {at} AND {at + 40}") for at in range(60)]
EXPECTED = {f"stable-{at}" for at in range(10, 51)}
TABLE = pa.table({"x": [50]})


@pytest.fixture(autouse=True)
def eager_switches() -> Iterator[None]:
    """Threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@contextmanager
def meanwhile(work: Callable[[int], object], threads: int = 2) -> Iterator[None]:
    """Have threads do something again and again; what they raise is raised in the end."""
    over = threading.Event()

    def repeat(number: int) -> None:
        turn = number
        while not over.is_set():
            work(turn)
            turn += threads

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(repeat, number) for number in range(threads)]
        try:
            yield
        finally:
            over.set()
        for each in running:
            each.result()


@pytest.mark.parametrize("covers", ["publication", "subscription"])
def test_matches_see_all_of_a_change_or_nothing(covers):
    market = SymmetricEngine(covers=covers, waiting=4, growth=2, smallest_tree=2)
    market.subscribe_many(STABLE)

    def change(turn: int) -> None:
        pair = [f"pair-{turn}-{at}" for at in range(2)]
        market.subscribe_many([(id, "x = 50") for id in pair])
        market.unsubscribe_many(pair)
        market.subscribe(f"single-{turn}", "x = 50", replace=True)
        market.unsubscribe(f"single-{turn}")

    with meanwhile(change):
        for _ in range(25):
            found = [market.match("x = 50"), market.match({"x": 50}), market.match("x = 50", order_by="x")]
            found += [market.match_batch(each).column("subscription").to_pylist() for each in (["x = 50"], TABLE)]
            for each in found:
                ids = set(each)
                assert ids >= EXPECTED
                assert len(ids) == len(each)
                halves = [id for id in ids if id.startswith("pair")]
                assert sorted(halves) == sorted({id[:-1] + end for id in halves for end in "01"})
    assert len(market) == len(STABLE)


def test_publishers_and_subscribers_find_each_other_once(engine_of):
    market = engine_of()

    def meet(number: int) -> list[tuple[int, int]]:
        met = [(number, int(id)) for id in market.publish(number, "x = 1", notify=True)]
        return met + [(int(id), number) for id in market.subscribe(number, "x = 1", notify=True)]

    with ThreadPoolExecutor(4) as threads:
        met = [pair for pairs in threads.map(meet, range(12)) for pair in pairs]
    assert sorted(met) == [(publication, subscription) for publication in range(12) for subscription in range(12)]
    told: list[tuple[int, int]] = []
    market.deliver(lambda notice: told.append((notice.publication, notice.subscription)))
    assert sorted(told) == sorted(met)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_auction_is_shared_by_threads(kind, tmp_path):
    with Auction(None if kind == "memory" else f"sqlite:///{tmp_path}/auction.db") as auction:
        auction.offer("seller", "pencils", "price >= 1")

        def bid(turn: int) -> None:
            auction.bid(f"bid-{turn}", "pencils", f"price <= {2 + turn % 7}")
            auction.cycle()
            auction.withdraw("bid", f"bid-{turn}")

        with meanwhile(bid):
            for at in range(10):
                auction.offer(f"seller-{at}", "pencils", "price >= 1")
                auction.cycle()
                auction.best("seller")
        assert set(auction.close("pencils").values()) == {None}


def test_who_changes_is_alone_and_not_kept_waiting_for_ever():
    guard = Guard()
    inside: list[str] = []
    seen: list[int] = []

    def see() -> None:
        assert not inside

    def look(_: int) -> None:
        guard.look(see)

    def change() -> None:
        inside.append("here")
        seen.append(len(inside))
        inside.clear()

    with meanwhile(look, 3):
        for _ in range(300):
            guard.alone(change)
    assert seen == [1] * 300


def test_a_ranked_match_never_fails_because_a_match_goes(engine_of):
    market = engine_of()
    market.subscribe_many(STABLE[:20])

    def change(turn: int) -> None:
        market.subscribe(f"passing-{turn}", "x < 90")
        market.unsubscribe(f"passing-{turn}")

    with meanwhile(change, 1):
        for _ in range(15):
            market.match("x >= 0", order_by="x desc", limit=3)


# ---------------------------------------------------------------- the same thread again, and forks


def works(market: SymmetricEngine) -> bool:
    before = len(market.match({"x": 50}))
    market.subscribe("another", "x = 50")
    found = len(market.match({"x": 50}))
    market.unsubscribe("another")
    return found == before + 1 and len(market.match_batch(TABLE)) == before


def in_child(check: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            os._exit(0 if check() else 3)
        except BaseException:
            os._exit(4)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("covers", ["publication", "subscription"])
def test_a_forked_process_has_a_whole_engine_though_others_look_and_change(covers):
    market = SymmetricEngine(covers=covers)
    market.subscribe_many(STABLE)

    def use(turn: int) -> None:
        market.match({"x": 50})
        market.subscribe(f"passing-{turn}", "x = 50")
        market.match_batch(TABLE)
        market.unsubscribe(f"passing-{turn}")

    assert works(market), "and all kernels are compiled, which takes longer than a child is waited for"
    with meanwhile(use, 3):
        assert all(in_child(lambda: works(market)) for _ in range(5))
    assert works(market)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_while_others_look_can_change_something():
    market = SymmetricEngine()
    market.subscribe_many(STABLE)
    inside, over = threading.Event(), threading.Event()

    def look() -> None:
        inside.set()
        over.wait(60)

    with ThreadPoolExecutor(7) as threads:
        for _ in range(7):
            threads.submit(market._store.look, look)
        inside.wait(60)
        try:
            assert in_child(lambda: works(market))
        finally:
            over.set()


def test_a_signal_handler_may_match_while_its_thread_matches():
    market = SymmetricEngine()
    market.subscribe_many(STABLE)
    assert set(market._store.look(lambda: market.match({"x": 50}))) == EXPECTED


def test_a_signal_handler_that_would_see_half_a_change_or_make_one_in_between_is_told_so():
    market = SymmetricEngine()
    market.subscribe_many(STABLE)
    store = market._store
    for busy in (
        lambda: store.look(lambda: market.subscribe("within", "x = 1")),
        lambda: store.together(lambda _: market.match({"x": 50})),
        lambda: store.together(lambda _: market.subscribe("within", "x = 1")),
    ):
        with pytest.raises(EngineBusyError, match="this very thread"):
            busy()
    assert works(market)
    assert len(market) == len(STABLE)


def test_what_an_interrupt_leaves_of_a_change_is_taken_back_by_the_next_to_come():
    market = SymmetricEngine()
    market.subscribe_many(STABLE)
    store, put_back = market._store, list[str]()

    def change(_: object) -> None:
        store.journal.note(put_back.append, "first")
        store.journal.note(interrupted)
        raise ValueError

    def interrupted() -> None:
        if not interruptions:
            interruptions.append(True)
            raise KeyboardInterrupt

    interruptions: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        store.together(change)
    assert put_back == []
    assert set(market.match({"x": 50})) == EXPECTED
    assert put_back == ["first"]
