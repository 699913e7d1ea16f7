"""Stores on databases commit all or nothing, and lose nothing that was acknowledged, whoever writes beside."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest

from harken.errors import (
    ClosedError,
    DuplicateSubscriptionError,
)
from harken.symmetric.contract import Side
from harken.symmetric.semantics import boxes_of
from tests.symmetric.checks import SIDES
from tests.symmetric.conftest import Backend
from tests.symmetric.databases import NOW, Make, held, orphans, state


def test_a_store_that_is_opened_again_has_everything(
    make: Make, backend: Backend, request: pytest.FixtureRequest
) -> None:
    store = make()
    store.put("publications", [held("p", "x = 1 or y < 'b'", NOW + timedelta(days=1))], "publication")
    store.put("subscriptions", [held("s", "x > 0 and y = 'a'")], "publication", notify=True, at=NOW)
    before = state(store)
    store.close()
    with pytest.raises(ClosedError, match="it was closed"):
        store.count("publications")
    assert state(backend.again(encoding=request.node.callspec.params["make"])) == before


def test_a_failure_in_the_middle_leaves_nothing(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The match fails after the constraints are written; then the notices, after the match."""
    store = make()
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    before = state(store)

    def fail(*_: object) -> None:
        raise OSError("out of paper")

    for step in ("_matches", "_notify"):
        with monkeypatch.context() as patch:
            patch.setattr(store, step, fail)
            for replace in (False, True):
                coming = [held("p", "x = 1"), held("q", "x = 2 and y = 'a'")]
                with pytest.raises(OSError, match="out of paper"):
                    store.put("publications", coming, "publication", replace=replace, notify=True)
        assert state(store) == before
    assert orphans(backend) == 0


def test_a_replacement_that_fails_leaves_what_was_there(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make()
    store.put("subscriptions", [held("s", "x = 1"), held("t", "x = 2")], "publication")
    before = state(store)
    monkeypatch.setattr(store, "_add", lambda *_: (_ for _ in ()).throw(OSError("out of paper")))
    with pytest.raises(OSError, match="out of paper"):
        store.put("subscriptions", [held("s", "x = 3")], "publication", replace=True)
    assert state(store) == before


def test_what_is_removed_or_replaced_leaves_no_rows(make: Make, backend: Backend) -> None:
    store = make()
    for text in ("x = 1 and name > 'a' or place within box(0, 0, 1, 1)", "y is not null", "true"):
        store.put("subscriptions", [held("s", text), held("t", text)], "publication", replace=True)
        assert orphans(backend) == 0
    store.remove("subscriptions", ["s"])
    assert orphans(backend) == 0
    assert store.ids("subscriptions") == ["t"]


def test_notices_never_have_the_number_of_one_that_is_settled(make: Make) -> None:
    store = make()
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    numbers: list[int] = []
    for at in range(3):
        store.put("publications", [held(at, "x = 1")], "publication", notify=True)
        numbers += [each.number for each in store.notices(10)]
        store.settle(numbers)
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 3


def test_writers_at_the_same_time_miss_no_match_and_tell_none_twice(
    make: Make, backend: Backend, request: pytest.FixtureRequest
) -> None:
    make().count("subscriptions")
    rounds, width = 12, 4
    failures: list[BaseException] = []

    def write(side: Side, writer: int) -> None:
        try:
            store = backend.again(encoding=request.node.callspec.params["make"])
            for at in range(rounds):
                store.put(
                    side,
                    [held(f"{side}-{writer}-{at}", f"x = {at % 3} and k = 'all'")],
                    "publication",
                    notify=True,
                )
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=write, args=(side, writer)) for side in SIDES for writer in range(width // 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    told = Counter(
        (each.publication, each.subscription)
        for each in backend.again(encoding=request.node.callspec.params["make"]).notices(10_000)
    )
    wanted = {
        (f"publications-{p}-{at}", f"subscriptions-{s}-{other}")
        for p in range(width // 2)
        for s in range(width // 2)
        for at in range(rounds)
        for other in range(rounds)
        if at % 3 == other % 3
    }
    assert told == Counter(wanted)


def test_of_several_that_want_an_id_one_gets_it(
    make: Make, backend: Backend, request: pytest.FixtureRequest
) -> None:
    store = make()
    store.count("subscriptions")
    got: list[object] = []

    def want(replace: bool) -> None:
        try:
            for _ in range(5):
                store.put("subscriptions", [held("s", "x = 1 and y = 2")], "publication", replace=replace)
            got.append("put")
        except DuplicateSubscriptionError:
            got.append("taken")

    def run(replace: bool) -> None:
        threads = [threading.Thread(target=want, args=(replace,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(replace=True)
    assert got == ["put"] * 4
    assert store.ids("subscriptions") == ["s"]
    store.remove("subscriptions", ["s"])
    got.clear()
    run(replace=False)
    assert got == ["taken"] * 4  # each at its second attempt at the latest
    assert store.ids("subscriptions") == ["s"]
    assert orphans(backend) == 0


def test_readers_see_nothing_of_a_transaction_that_is_not_done(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    seen: list[object] = []
    really = store._notify

    def look(*arguments: object) -> None:
        seen.append((store.ids("publications"), store.match("publications", [boxes_of("x = 1")], "publication")))
        really(*arguments)  # type: ignore[arg-type]
        seen.append(store.notices(10))

    monkeypatch.setattr(store, "_notify", look)
    store.put("publications", [held("p", "x = 1")], "publication", notify=True)
    assert seen == [([], []), []]
    assert store.match("publications", [boxes_of("x = 1")], "publication") == [(0, "p")]
