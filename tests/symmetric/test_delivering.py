"""Delivery: one deliverer has each notice, and what one leaves behind comes back."""

from __future__ import annotations

import asyncio
import functools
import gc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from harken import Auction, SymmetricEngine
from harken.errors import HarkenError
from tests.symmetric.conftest import BACKENDS, Backend

NOTICES = 30


@pytest.fixture(
    params=[(kind, where) for kind in ("market", "auction") for where in ("memory", *BACKENDS)], ids="-".join
)
def source(request, tmp_path):
    """An engine, or an auction, with something to deliver."""
    kind, where = request.param
    backend, options = None, {}
    if where != "memory":
        url = f"sqlite:///{tmp_path}/told.db" if where == "sqlite" else request.getfixturevalue("postgres")
        backend = Backend(where, url)
        backend.empty()
        options = {"url": url, "schema_name": backend.schema}
    with SymmetricEngine(**options) if kind == "market" else Auction(**options) as opened:
        fill(opened)
        yield opened
    if backend is not None:
        backend.clean()


def fill(source):
    if isinstance(source, SymmetricEngine):
        source.subscribe_many((f"s{at:02}", "x > 0") for at in range(NOTICES))
        source.publish("offer", "x = 1", notify=True)
        return
    for at in range(NOTICES):
        source.offer(f"o{at:02}", "pencils", "price >= 1")
    source.bid("one", "pencils", "price <= 2")
    source.cycle()


def test_several_deliverers_hand_each_notice_over_once(source):
    taken: list[int] = []

    def deliver(_: int) -> int:
        return source.deliver(lambda notice: taken.append(notice.number))

    with ThreadPoolExecutor(3) as threads:
        delivered = sum(threads.map(deliver, range(3)))
    assert delivered == NOTICES
    assert set(Counter(taken).values()) == {1}
    assert len(taken) == NOTICES


def test_a_deliverer_inside_another_gets_what_the_other_has_not(source):
    outer: list[int] = []
    inner: list[int] = []

    def handler(notice):
        outer.append(notice.number)
        if len(outer) == 1:
            source.deliver(lambda notice: inner.append(notice.number))

    source.deliver(handler, limit=5)
    assert len(outer) == 5
    assert sorted(outer + inner) == sorted(set(outer + inner))
    assert len(inner) == NOTICES - 5


def test_what_a_handler_failed_on_comes_again_at_once_and_in_order(source):
    taken: list[int] = []

    def fails_at_third(notice):
        if len(taken) == 2:
            raise KeyboardInterrupt
        taken.append(notice.number)

    with pytest.raises(KeyboardInterrupt):
        source.deliver(fails_at_third)
    assert source.deliver(lambda notice: taken.append(notice.number)) == NOTICES - 2
    assert taken == sorted(set(taken))
    assert source.deliver(taken.append) == 0


def test_a_limit_is_how_many_are_handed_over(source):
    taken: list[int] = []
    assert source.deliver(lambda notice: taken.append(notice.number), limit=7) == 7
    assert source.deliver(lambda notice: taken.append(notice.number), limit=1_000) == NOTICES - 7
    assert taken == sorted(set(taken))


async def taking(taken, notice):
    await asyncio.sleep(0)
    taken.append(notice.number)


class Takes:
    async def __call__(self, notice):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "handler",
    [functools.partial(taking, []), Takes(), lambda notice: taking([], notice)],
    ids=["function", "object", "one that gives a coroutine"],
)
def test_an_async_handler_is_refused_and_the_async_verb_named(source, handler):
    with pytest.raises(TypeError, match="deliver_async") as caught:
        source.deliver(handler)
    assert isinstance(caught.value, HarkenError)
    del caught
    gc.collect()
    assert source.deliver(lambda notice: None) == NOTICES, "nothing was settled"


def test_an_async_handler_is_awaited(source):
    taken: list[int] = []
    assert asyncio.run(source.deliver_async(functools.partial(taking, taken), limit=10)) == 10
    assert len(taken) == 10
    assert asyncio.run(source.deliver_async(lambda notice: taken.append(notice.number))) == NOTICES - 10
    assert taken == sorted(set(taken))


def test_several_async_deliverers_hand_each_notice_over_once(source):
    taken: list[int] = []

    async def all_at_once():
        return await asyncio.gather(
            *(source.deliver_async(functools.partial(taking, taken), limit=12) for _ in range(4))
        )

    assert sum(asyncio.run(all_at_once())) == NOTICES
    assert sorted(taken) == sorted(set(taken))


def test_what_was_awaited_when_a_task_is_cancelled_comes_again(source):
    taken: list[int] = []

    async def third_hangs(notice):
        if len(taken) == 2:
            hanging.set()
            await asyncio.sleep(60)
        taken.append(notice.number)

    async def cancel():
        task = asyncio.create_task(source.deliver_async(third_hangs))
        await hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    hanging = asyncio.Event()
    asyncio.run(cancel())
    assert source.deliver(lambda notice: taken.append(notice.number)) == NOTICES - 2
    assert taken == sorted(set(taken))


def test_an_async_deliverer_checks_its_arguments(source):
    for arguments in ({"handler": 5}, {"handler": print, "limit": 0}, {"handler": print, "lease": -1}):
        with pytest.raises(HarkenError):
            asyncio.run(source.deliver_async(**arguments))


def test_what_a_crashed_deliverer_had_comes_back_after_its_lease(engine_of):
    market = engine_of()
    market.subscribe("one", "x > 0")
    market.publish("offer", "x = 1", notify=True)
    now = datetime.now(UTC)
    (claimed,) = market._store.claim(10, now + timedelta(seconds=60), at=now)
    assert market.deliver(print) == 0, "another one has it"
    assert market._store.claim(10, now + timedelta(seconds=90), at=now + timedelta(seconds=59)) == []
    late = now + timedelta(seconds=60)
    assert market._store.claim(10, now + timedelta(seconds=120), at=late) == [claimed]
    market._store.release([claimed.number], now + timedelta(seconds=60))
    assert market.deliver(print) == 0, "whose lease is over has nothing to give back"
    market._store.release([claimed.number], now + timedelta(seconds=120))
    taken = []
    assert market.deliver(taken.append) == 1
    assert taken == [claimed]


def test_a_deliverer_hands_over_nothing_after_its_lease(source, monkeypatch):
    moments = iter([0.0, *(float(at) for at in range(0, 1000, 25))])
    begin = datetime(2100, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(
        "harken.symmetric.delivering.moment_of", lambda at: begin + timedelta(seconds=next(moments))
    )
    taken: list[int] = []
    assert source.deliver(lambda notice: taken.append(notice.number), limit=10, lease=60) == 10
    assert taken == sorted(set(taken)), "what was not handed over in time was claimed again"


def test_a_process_that_died_in_a_handler_leaves_its_notices_to_others(tmp_path):
    url = f"sqlite:///{tmp_path}/market.db"
    with SymmetricEngine(url) as market:
        market.subscribe("one", "x > 0")
        market.publish("offer", "x = 1", notify=True)
        market._store.claim(10, datetime.now(UTC) - timedelta(seconds=1), at=datetime(2020, 1, 1, tzinfo=UTC))
    with SymmetricEngine(url) as market:
        assert market.deliver(print) == 1
