"""Many integer ids at once: what is taken, replaced and rejected, as one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, Subscription, algorithms, parse
from harken.compiler import Texts, compile_texts
from harken.errors import (
    BulkLoadError,
    DuplicateSubscriptionError,
)
from harken.model.subscriptions import Validity
from tests.engine.registered import HOUR, NOON, seen

MANY = 1_500
"""More than are held in a dictionary."""


def compiled_of(ids, owners=None, starts=None):
    """A compiled table in two chunks: the subscription at place p asks for x = p."""
    texts = [f"x = {place}" for place in range(len(ids))]
    table = compile_texts(Texts(ids, texts, owners, starts)).table
    return pa.concat_tables([table.slice(0, len(ids) // 3), table.slice(len(ids) // 3)])


def texts_of(ids, owners=None, starts=None):
    columns = {"id": ids, "expression": [f"x = {place}" for place in range(len(ids))]}
    if owners is not None:
        columns["owner"] = pa.array(owners, pa.string())
    if starts is not None:
        columns["valid_from"] = pa.array(starts, pa.timestamp("us", tz="UTC"))
    return pa.table(columns)


@pytest.fixture(params=[compiled_of, texts_of], ids=["compiled", "texts"])
def table_of(request):
    return request.param


@pytest.fixture
def crowd():
    """An engine with integer ids from 0 to 2,998, even ones only."""
    engine = Engine("reference")
    engine.subscribe_many(compiled_of(range(0, 2 * MANY, 2)))
    return engine


@pytest.mark.kernel
def test_of_many_integer_ids_those_that_are_taken_are_rejected_with_their_rows(crowd, table_of):
    table = table_of([1, 2, 3, 1, 2, 5, 2**63 - 1, 5])
    with pytest.raises(BulkLoadError):
        crowd.subscribe_many(table)
    assert len(crowd) == MANY
    report = crowd.subscribe_many(table, on_error="collect")
    assert report.loaded == 4
    assert [(reject.row, reject.id) for reject in report.rejects] == [(1, 2), (3, 1), (4, 2), (7, 5)]
    for reject in report.rejects:
        assert isinstance(reject.error, DuplicateSubscriptionError)
        assert reject.error.subscription == reject.id
        assert isinstance(reject.id, int)
    assert [crowd.match({"x": place}) for place in (0, 2, 3, 5, 6)] == [
        [0, 1],
        [4, 3],
        [6],
        [10, 5],
        [12, 2**63 - 1],
    ]


@pytest.mark.kernel
def test_of_many_integer_ids_those_that_are_replaced_are_the_new_ones(crowd, table_of):
    report = crowd.subscribe_many(table_of([2, 1, 4, 2, 1, 2_998]), replace=True)
    assert report.loaded == 4
    assert len(crowd) == MANY + 1
    wanted = {2: 3, 1: 4, 4: 2, 2_998: 5, 6: 3, 0: 0}
    assert {id: crowd.subscription(id).expression for id in wanted} == {
        id: parse(f"x = {place}") for id, place in wanted.items()
    }


@pytest.mark.kernel
def test_a_string_among_many_integers_is_rejected(crowd, table_of):
    report = crowd.subscribe_many(table_of(["1", "a"]), on_error="collect")
    assert report.loaded == 0
    assert [(reject.row, reject.id) for reject in report.rejects] == [(0, "1"), (1, "a")]
    assert report.rejects[0].reason == "the id '1' is not like the ids of this engine, which are integers"
    assert "1" not in crowd


@pytest.mark.kernel
def test_among_many_each_keeps_its_own_owner_and_bounds(crowd, table_of):
    owners, starts = [None, "Ann", None, "Bob"], [NOON, None, None, NOON + HOUR]
    crowd.subscribe_many(table_of([1, 3, 5, 7], owners, starts))
    assert crowd.subscription(1) == Subscription(1, parse("x = 0"), None, Validity(NOON))
    assert crowd.subscription(3) == Subscription(3, parse("x = 1"), "Ann")
    assert crowd.subscription(5) == Subscription(5, parse("x = 2"))
    assert crowd.subscription(7) == Subscription(7, parse("x = 3"), "Bob", Validity(NOON + HOUR))
    assert crowd.match({"x": 3}, at=NOON) == [6]
    found = crowd.match_batch([{"x": 0}, {"x": 3}], at=NOON)
    assert found.to_pydict() == {"event": [0, 0, 1], "subscription": [0, 1, 6]}
    crowd.unsubscribe_many(np.array([1, 3, 7]))
    crowd.subscribe_many(table_of([1, 3, 7]))
    assert crowd.subscription(7) == Subscription(7, parse("x = 2"))
    assert crowd.match({"x": 0}, at=NOON - HOUR) == [0, 1]


@pytest.mark.kernel
def test_rejected_rows_take_no_owner_with_them(crowd, table_of):
    table = table_of([2, 1, 1, 3], ["no", "one", "no", "three"], [NOON, None, NOON, None])
    report = crowd.subscribe_many(table, on_error="collect")
    assert [reject.row for reject in report.rejects] == [0, 2]
    assert [crowd.subscription(id).owner for id in (1, 2, 3)] == ["one", None, "three"]
    assert all(crowd.subscription(id).validity.is_always for id in (1, 2, 3))


some_ids = st.lists(st.one_of(st.integers(0, 8), st.sampled_from([-(2**63), 2**62])), max_size=8)


@given(st.lists(some_ids, max_size=3), st.booleans(), st.sampled_from([compiled_of, texts_of, "rows"]))
@settings(max_examples=60)
def test_a_bulk_takes_what_one_by_one_would_take(bulks, replace, form):
    bulk, single = Engine("reference"), Engine("reference")
    for ids in bulks:
        expected, loaded = [], set()
        for place, id in enumerate(ids):
            try:
                single.subscribe(id, f"x = {place}", replace=replace)
                loaded.add(id)
            except DuplicateSubscriptionError as error:
                twice = f"subscription {id} comes twice; pass replace=True to keep the last of those with one id"
                expected.append((place, id, twice if id in loaded else str(error)))
        rows = [(id, f"x = {place}") for place, id in enumerate(ids)] if form == "rows" else form(ids)
        report = bulk.subscribe_many(rows, replace=replace, on_error="collect")
        assert [(reject.row, reject.id, str(reject.error)) for reject in report.rejects] == expected
        assert report.loaded == len(loaded)
    assert seen(bulk) == seen(single)


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", algorithms())
def test_the_bytes_of_ids_are_told_where_bytes_are(algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many(compiled_of(range(10)))
    stats = engine.stats()
    assert stats["algorithm"] == engine.algorithm
    if "bytes" in stats:
        assert stats["bytes"]["identities"] > 0
        assert set(engine._matcher.stats()["bytes"]) == set(stats["bytes"]) - {"identities", "texts"}
