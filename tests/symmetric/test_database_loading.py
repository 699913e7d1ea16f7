"""Tables are loaded into stores on databases as the reference reads them, all or nothing."""

from __future__ import annotations

import random

import pytest

from harken.compiler import Texts, compile_texts
from harken.errors import (
    ConstraintError,
    DuplicateSubscriptionError,
    SchemaError,
)
from harken.model.schema import Schema
from harken.symmetric.database.loading import held_of
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import boxes_of
from tests.strategies import TYPED, Generator
from tests.symmetric.checks import agree
from tests.symmetric.conftest import Backend
from tests.symmetric.databases import NOW, Make, held, orphans, sayable, state

LOADED = [
    "x = 1",
    "x > 1 and x <= 5 and x != 3",
    "x in (1, 2, 2.5) and name = 'it''s'",
    "x in (1, 'a') or y is not null",
    "name > 'a' and name < 'b'",
    "name starts with 'a' or not (x < 2)",
    "flag and day = date '2026-11-15' and at < timestamp '2026-11-15T12:00:00.000001Z'",
    "not flag or x = 1.5",
    "spot within box(0, 0, 1, 1) and area overlaps point(1, 2) and area contains box(0, 0, 1, 1)",
    "area = box(0, 0, 1, 1) or spot in (point(0, 0), point(1, 1))",
    "x < 1 and x > 2",
    "true",
    "x <= 1 or x > 1",
    '"odd name" = 1 and a.b = 2',
]


def test_a_compiled_table_is_read_as_the_reference_reads_it() -> None:
    ends = [NOW if at % 3 == 0 else None for at in range(len(LOADED))]
    table = compile_texts(Texts(list(range(len(LOADED))), LOADED, valid_until=ends)).table
    judge = ReferenceStore()
    judge.load("subscriptions", table, None)
    assert list(held_of(table, None)) == [judge.get("subscriptions", id) for id in range(len(LOADED))]
    assert list(held_of(table.slice(3, 5), None)) == [judge.get("subscriptions", id) for id in range(3, 8)]


def test_random_compiled_tables_are_read_as_the_reference_reads_them() -> None:
    made = Generator("loading", TYPED)
    texts = [text for _, text in sayable(made, 300)]
    table = compile_texts(Texts(list(range(300)), texts)).table
    judge = ReferenceStore()
    judge.load("subscriptions", table, None)
    assert list(held_of(table, None)) == [judge.get("subscriptions", id) for id in range(300)]


def test_a_schema_makes_whole_numbers_of_what_is_loaded() -> None:
    schema = Schema({"n": "int"})
    table = compile_texts(Texts([1], ["n > 1 and n < 4"]), schema=schema).table
    [loaded] = held_of(table, schema)
    assert loaded.boxes == boxes_of("n >= 2 and n <= 3", schema)
    with pytest.raises(SchemaError):
        list(held_of(compile_texts(Texts([1], ["m = 1"])).table, schema))


def test_loading_many_makes_indexes_that_find_them(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are written together, so that indexes are made anew; then some more, with indexes in place."""
    monkeypatch.setattr("harken.symmetric.database.store._AT_ONCE", 300)
    store, judge = make(), ReferenceStore()
    first, more = 1_000, 200
    made = random.Random(5)
    texts = [f"x = {made.randint(0, 500)} and y < {made.randint(0, 50)}" for _ in range(first + more)]
    table = compile_texts(Texts(list(range(first + more)), texts)).table
    store.load("subscriptions", table.slice(0, first), None)
    store.load("subscriptions", table.slice(first), None)
    assert store.count("subscriptions") == first + more
    judge.put("subscriptions", [held(at, text) for at, text in enumerate(texts)], "publication")
    agree(store, judge, [boxes_of(f"x between {at} and {at + 3} and y = {at % 40}") for at in range(0, 500, 50)])


@pytest.mark.parametrize(
    ("ids", "texts", "error"),
    [
        ([1, 2, 0], ["x = 1", "x = 2", "x = 3"], DuplicateSubscriptionError),
        ([1, 2], ["x = 1", "y is null"], ConstraintError),
    ],
)
def test_a_load_that_fails_leaves_nothing(
    make: Make, backend: Backend, ids: list[int], texts: list[str], error: type[Exception]
) -> None:
    store = make()
    store.put("subscriptions", [held(0, "x = 0")], "publication")
    before = state(store)
    with pytest.raises(error):
        store.load("subscriptions", compile_texts(Texts(ids, texts)).table, None)
    assert state(store) == before
    assert orphans(backend) == 0
