"""The laws of symmetric matching, as named checks that any store can be put to.

A check takes a function that opens an empty store and a seed, and asserts one law, mostly by comparing with the
slow reference.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from harken.compiler import Texts, compile_texts
from harken.errors import (
    ClosedError,
    ConstraintError,
    DuplicateSubscriptionError,
    SubscriptionError,
    UnknownSubscriptionError,
)
from harken.symmetric.contract import Held, Side, Store
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import DIRECTIONS, Boxes, boxes_of
from tests.symmetric.constraints import Constraints

Make = Callable[[], Store]
SIDES: tuple[Side, ...] = ("subscriptions", "publications")
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def held(made: Constraints, id: int | str, valid_until: datetime | None = None) -> Held:
    text, boxes = made.boxes()
    return Held(id, boxes, text, valid_until)


def several(made: Constraints, count: int, first: int = 0) -> list[Held]:
    return [held(made, first + at) for at in range(count)]


def asked(made: Constraints, count: int) -> list[Boxes]:
    return [made.boxes()[1] for _ in range(count)]


def agree(store: Store, judge: Store, boxes: list[Boxes], *, at: datetime = NOW) -> None:
    """Both stores give the same on both sides, in both directions, and places ascend."""
    for side in SIDES:
        for covers in DIRECTIONS:
            found = store.match(side, boxes, covers, at=at)
            assert [place for place, _ in found] == sorted(place for place, _ in found)
            assert len(found) == len(set(found))
            assert set(found) == set(judge.match(side, boxes, covers, at=at))


def both(make: Make) -> tuple[Store, Store]:
    return make(), ReferenceStore()


def check_agrees_with_the_reference(make: Make, seed: int) -> None:
    made = Constraints(f"agrees-{seed}")
    for_both = {side: several(made, 25) for side in SIDES}
    store, judge = both(make)
    for side, each in for_both.items():
        store.put(side, each, "publication", at=NOW)
        judge.put(side, each, "publication", at=NOW)
    agree(store, judge, asked(made, 15))


def check_putting_says_what_is_met_on_the_other_side(make: Make, seed: int) -> None:
    made = Constraints(f"meets-{seed}")
    store, judge = both(make)
    for side in (*SIDES, *SIDES):
        for covers in DIRECTIONS:
            first = store.count(side)
            coming = several(made, 6, first)
            assert set(store.put(side, coming, covers, at=NOW)) == set(judge.put(side, coming, covers, at=NOW))


def check_a_batch_gives_what_a_loop_gives(make: Make, seed: int) -> None:
    made = Constraints(f"batch-{seed}")
    store = make()
    store.put("subscriptions", several(made, 20), "publication")
    boxes = asked(made, 10)
    one_by_one = [
        (place, id)
        for place, each in enumerate(boxes)
        for _, id in store.match("subscriptions", [each], "publication")
    ]
    assert sorted(store.match("subscriptions", boxes, "publication")) == sorted(one_by_one)
    assert store.match("subscriptions", [], "publication") == []


def check_loading_is_like_putting(make: Make, seed: int) -> None:
    made = Constraints(f"loading-{seed}")
    texts = [made.text() for _ in range(40)]
    table = compile_texts(Texts(list(range(40)), texts)).table
    before = several(made, 5, 1_000)
    store, judge = both(make)
    for each in (store, judge):
        each.put("subscriptions", before, "publication")
        each.load("subscriptions", table, None)
    assert store.count("subscriptions") == 45
    agree(store, judge, asked(made, 15))


def check_adding_and_removing_leaves_no_trace(make: Make, seed: int) -> None:
    made = Constraints(f"trace-{seed}")
    store, judge = both(make)
    staying, passing = several(made, 12), several(made, 12, 100)
    store.put("subscriptions", staying, "publication")
    judge.put("subscriptions", staying, "publication")
    for _ in range(2):
        store.put("subscriptions", passing, "publication")
        store.remove("subscriptions", [each.id for each in passing])
    assert store.count("subscriptions") == 12
    assert sorted(store.ids("subscriptions")) == list(range(12))
    agree(store, judge, asked(made, 15))


def check_random_changes_never_confuse(make: Make, seed: int) -> None:
    made, chance = Constraints(f"random-{seed}"), random.Random(seed)
    store, judge = both(make)
    for step in range(12):
        side = chance.choice(SIDES)
        coming = [held(made, chance.randrange(30)) for _ in range(chance.randint(1, 5))]
        for each in (store, judge):
            each.put(side, coming, "publication", replace=True, at=NOW)
        if judge.count(side) > 5 and step % 3 == 0:
            going = chance.sample(judge.ids(side), 3)
            store.remove(side, going)
            judge.remove(side, going)
        agree(store, judge, asked(made, 4))


def check_a_taken_id_is_refused_and_nothing_changes(make: Make, seed: int) -> None:
    made = Constraints(f"taken-{seed}")
    store = make()
    store.put("subscriptions", several(made, 3), "publication")
    with pytest.raises(DuplicateSubscriptionError):
        store.put("subscriptions", [held(made, 7), held(made, 1)], "publication")
    with pytest.raises(DuplicateSubscriptionError):
        store.put("publications", [held(made, 7), held(made, 7)], "publication")
    assert sorted(store.ids("subscriptions")) == [0, 1, 2]
    assert store.ids("publications") == []


def check_an_unknown_id_is_refused_and_nothing_changes(make: Make, seed: int) -> None:
    made = Constraints(f"unknown-{seed}")
    store = make()
    store.put("subscriptions", several(made, 3), "publication")
    with pytest.raises(UnknownSubscriptionError):
        store.remove("subscriptions", [0, 99])
    assert sorted(store.ids("subscriptions")) == [0, 1, 2]
    assert store.get("subscriptions", 99) is None


def check_what_was_put_can_be_had_again(make: Make, seed: int) -> None:
    made = Constraints(f"again-{seed}")
    store = make()
    end = NOW + timedelta(hours=1)
    coming = [held(made, "a"), held(made, "b", end)]
    store.put("publications", coming, "publication")
    for each in coming:
        known = store.get("publications", each.id)
        assert known is not None
        assert (known.id, known.boxes, known.text, known.valid_until) == (
            each.id,
            each.boxes,
            each.text,
            each.valid_until,
        )


def check_what_has_expired_does_not_match(make: Make, seed: int) -> None:
    made = Constraints(f"expired-{seed}")
    store, judge = both(make)
    coming = [held(made, at, NOW + timedelta(minutes=at - 5)) for at in range(10)]
    coming += [
        Held(at, each.boxes, each.text, None, NOW + timedelta(minutes=at - 15))
        for at, each in enumerate(coming, 10)
    ]
    for each in (store, judge):
        each.put("publications", coming, "publication", at=NOW)
        each.put("subscriptions", coming, "publication", at=NOW)
    agree(store, judge, asked(made, 10), at=NOW)
    agree(store, judge, asked(made, 5), at=NOW + timedelta(minutes=3))


def check_notices_wait_until_they_are_settled(make: Make, seed: int) -> None:
    made = Constraints(f"notices-{seed}")
    store = make()
    store.put("subscriptions", several(made, 15), "publication")
    pairs = store.put("publications", several(made, 5), "publication", notify=True, at=NOW)
    waiting = store.notices(1_000)
    assert {(each.publication, each.subscription) for each in waiting} == set(pairs)
    numbers = [each.number for each in waiting]
    assert numbers == sorted(set(numbers))
    assert store.notices(2) == waiting[:2]
    store.settle(numbers[:2])
    store.settle(numbers[:2])
    assert store.notices(1_000) == waiting[2:]


def check_claimed_notices_are_nobody_elses_until_the_claim_ends(make: Make, seed: int) -> None:
    store, judge = both(make)
    for each in (store, judge):
        each.put("subscriptions", [Held(at, boxes_of("x > 0"), "x > 0") for at in range(8)], "publication")
        each.put("publications", [Held("p", boxes_of("x = 1"), "x = 1")], "publication", notify=True, at=NOW)
    chance, settled = random.Random(seed), set[int]()
    waiting = {which: each.notices(100) for which, each in enumerate((store, judge))}
    place = [{notice.number: at for at, notice in enumerate(waiting[which])} for which in (0, 1)]
    for minute in range(20):
        moment, end = NOW + timedelta(minutes=minute), NOW + timedelta(minutes=minute + chance.randint(1, 4))
        limit = chance.randint(1, 3)
        claimed = [each.claim(limit, end, at=moment) for each in (store, judge)]
        places = [[place[which][notice.number] for notice in claimed[which]] for which in (0, 1)]
        assert places[0] == places[1] == sorted(places[0])
        assert settled.isdisjoint(places[0])
        act = chance.choice(["settle", "release", "crash"])
        for each, found in zip((store, judge), claimed, strict=True):
            numbers = [notice.number for notice in found]
            if act == "settle":
                each.settle(numbers)
            elif act == "release":
                each.release(numbers, end)
                each.release(numbers, end)
        settled |= set(places[0]) if act == "settle" else set()


def check_ids_of_subscriptions_are_of_one_kind(make: Make, seed: int) -> None:
    made = Constraints(f"kinds-{seed}")
    store = make()
    table = compile_texts(Texts(["two"], ["x = 1"])).table
    with pytest.raises(SubscriptionError, match="of one kind"):
        store.put("subscriptions", [held(made, 1), held(made, "one")], "publication")
    store.put("subscriptions", [held(made, 1)], "publication")
    with pytest.raises(SubscriptionError, match="of one kind"):
        store.put("subscriptions", [held(made, "one")], "publication", replace=True)
    with pytest.raises(SubscriptionError, match="of one kind"):
        store.load("subscriptions", table, None)
    store.put("publications", [held(made, 1), held(made, "one")], "publication")
    assert store.ids("subscriptions") == [1]
    store.remove("subscriptions", [1])
    store.load("subscriptions", table, None)
    assert store.ids("subscriptions") == ["two"]


def check_matches_come_with_their_boxes(make: Make, seed: int) -> None:
    made = Constraints(f"boxes-{seed}")
    store = make()
    several_held = several(made, 15)
    store.put("subscriptions", several_held, "publication")
    for boxes in asked(made, 5):
        found = store.matched("subscriptions", boxes, "publication")
        assert set(found) == {id for _, id in store.match("subscriptions", [boxes], "publication")}
        assert all(found[each.id] == each.boxes for each in several_held if each.id in found)
    names = {name for each in several_held for box in each.boxes.boxes for name in box}
    assert names <= store.attributes("subscriptions")


def check_a_closed_store_refuses_everything(make: Make, seed: int) -> None:
    made = Constraints(f"closed-{seed}")
    store = make()
    store.put("subscriptions", several(made, 3), "publication")
    store.close()
    store.close()
    for call in (
        lambda: store.put("subscriptions", [], "publication"),
        lambda: store.put("subscriptions", [held(made, 9)], "publication"),
        lambda: store.load("subscriptions", compile_texts(Texts([9], ["x = 1"])).table, None),
        lambda: store.remove("subscriptions", [1]),
        lambda: store.remove("subscriptions", []),
        lambda: store.match("subscriptions", asked(made, 1), "publication"),
        lambda: store.matched("subscriptions", asked(made, 1)[0], "publication"),
        lambda: store.attributes("subscriptions"),
        lambda: store.get("subscriptions", 1),
        lambda: store.ids("subscriptions"),
        lambda: store.count("subscriptions"),
        lambda: store.notices(1),
        lambda: store.claim(1, NOW),
        lambda: store.release([1], NOW),
        lambda: store.settle([1]),
        lambda: store.settle([]),
    ):
        with pytest.raises(ClosedError):
            call()


def check_a_load_that_cannot_be_said_changes_nothing(make: Make, seed: int) -> None:
    store = make()
    table = compile_texts(Texts([1, 2], ["x = 1", "x IS NULL"])).table
    with pytest.raises(ConstraintError):
        store.load("subscriptions", table, None)
    assert store.count("subscriptions") == 0


CHECKS: tuple[Callable[[Make, int], None], ...] = tuple(
    check for name, check in list(globals().items()) if name.startswith("check_")
)
