"""Events that are looked up together, table by table, match what each of them matches alone."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from harken import Parallel
from harken.matching.kernels.layout import GROUP
from tests.matching.churning import index_of
from tests.matching.clusters.test_filters import (
    MANY,
    SPARSE,
    SPARSE_VALUES,
    a_sparse_event,
    a_sparse_text,
    of_thousands,
    sound,
    sparsely_filled,
)
from tests.matching.clusters.test_filters import always_narrow as always_narrow
from tests.matching.clusters.test_filters import usual_costs as usual_costs

pytestmark = [pytest.mark.kernel, of_thousands, pytest.mark.usefixtures("always_narrow")]


def table_of(events):
    """Events as Arrow has them: what one lacks is null."""
    return pa.Table.from_pylist(
        events, pa.schema([*((name, pa.int64()) for name in (*SPARSE, "t")), ("s", pa.string())])
    )


def some_events(chance, count):
    """Events of which some match: every tenth is aimed at three values that subscriptions ask for together."""
    events = [a_sparse_event(chance) for _ in range(count)]
    for event in events[::10]:
        event.update(dict.fromkeys(SPARSE, chance.randrange(SPARSE_VALUES)))
    return events


def pairs(found):
    return sorted(zip(*found.to_pydict().values(), strict=True))


def one_by_one(engine, events):
    return sorted((row, id) for row, event in enumerate(events) for id in engine.match(event))


def looked_up_together(engine):
    """Whether the last batch has found out what filters let through for groups of events."""
    return index_of(engine)._own.workspaces[0].scratch.group_first.any()


@pytest.mark.parametrize("count", [GROUP // 4, GROUP, GROUP + 1, 3 * GROUP + 17])
def test_groups_of_events_match_as_each_does_alone(count):
    chance = random.Random(f"groups of {count}")
    engine = sparsely_filled(chance)
    events = some_events(chance, count)
    found = pairs(engine.match_batch(table_of(events), parallel=Parallel(threads=1)))
    assert looked_up_together(engine)
    assert found
    assert found == one_by_one(engine, events)


def test_few_events_are_looked_up_alone():
    chance = random.Random("few")
    engine = sparsely_filled(chance)
    events = some_events(chance, GROUP // 4 - 1)
    assert pairs(engine.match_batch(table_of(events), parallel=Parallel(threads=1))) == one_by_one(engine, events)
    assert not looked_up_together(engine)


def test_what_comes_and_goes_is_found_and_missed_by_the_next_group():
    chance = random.Random("come and go")
    engine = sparsely_filled(chance)
    events = some_events(chance, 2 * GROUP)
    for step in range(4):
        engine.unsubscribe_many(chance.sample(sorted(engine), 300))
        come = [(MANY * (2 + step) + at, a_sparse_text(chance)) for at in range(300)]
        alike = [(MANY * (2 + step) + 400 + at, "a = 1 AND b = 1 AND c = 1") for at in range(5)]
        engine.subscribe_many([*come, *alike])
        sound(engine)
        found = pairs(engine.match_batch(table_of(events), parallel=Parallel(threads=1)))
        assert looked_up_together(engine)
        assert found == one_by_one(engine, events)


@pytest.mark.parametrize("sync", ["static", "lock", "stm"])
def test_threads_that_look_up_groups_find_the_same(sync):
    chance = random.Random(f"threads {sync}")
    engine = sparsely_filled(chance)
    events = some_events(chance, 4 * GROUP)
    wanted = one_by_one(engine, events)
    for block in (GROUP // 2, GROUP + 5):
        sharing = Parallel(mode="me-ip", threads=3, sync=sync, block=block)
        assert pairs(engine.match_batch(table_of(events), parallel=sharing)) == wanted


def test_sets_that_members_lead_to_let_through_what_they_hold():
    """No column and code say that a set holds: whatever asks for one is looked at, and too many end the groups."""
    chance = random.Random("sets")
    engine = sparsely_filled(chance)
    sets = [
        (MANY * 9 + at, f"{one} = {chance.randrange(9)} AND {two} IN (1, {2 + at % 7}) AND {three} IN (3, 4)")
        for at in range(MANY)
        for one, two, three in [chance.sample(SPARSE, 3)]
    ]
    engine.subscribe_many(sets)
    engine.learn([a_sparse_event(chance) for _ in range(40)])
    events = some_events(chance, 2 * GROUP)
    assert pairs(engine.match_batch(table_of(events), parallel=Parallel(threads=1))) == one_by_one(engine, events)


def test_results_that_run_full_in_the_middle_of_a_group_are_all_told():
    chance = random.Random("full")
    engine = sparsely_filled(chance)
    many = [(MANY * 9 + at, "a = 3 AND b = 3 AND c = 3") for at in range(50)]
    engine.subscribe_many(many)
    events = some_events(chance, 2 * GROUP)
    for event in events[::3]:
        event.update(a=3, b=3, c=3)
    found = pairs(engine.match_batch(table_of(events), parallel=Parallel(threads=1)))
    assert len(found) > 50 * len(events[::3])
    assert found == one_by_one(engine, events)


def test_codes_that_differ_in_their_higher_bits_only_are_told_apart():
    """A dimension with more constants than 16 bits can number: words of filters know only the lower ones."""
    chance = random.Random("many constants")
    engine = sparsely_filled(chance)
    count = (1 << 16) + 200
    engine.subscribe_many(
        pa.table({"id": np.arange(count) + MANY * 9, "expression": [f"z = {at}" for at in range(count)]})
    )
    engine.subscribe_many((MANY * 40 + at, f"a = 1 AND b = 2 AND z = {at}") for at in (3, 65_539, 65_700))
    events = [{"a": 1, "b": 2, "z": at} for at in (3, 65_539, 65_700, 164)] * (GROUP // 2)
    table = pa.Table.from_pylist(events)
    assert pairs(engine.match_batch(table, parallel=Parallel(threads=1))) == one_by_one(engine, events)
