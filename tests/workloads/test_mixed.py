"""The mixed workload asks whatever the language can ask, and goes out of fashion."""

from __future__ import annotations

import re

import pytest

from harken import Engine, parse
from harken.model.evaluation import truth
from harken.workloads.mixed import IN_FASHION, KEYS, Mixed, event_table


def texts(count, seed=1):
    mixed = Mixed(seed)
    return [mixed.text() for _ in range(count)]


def test_every_text_is_of_the_language():
    assert all(parse(text) is not None for text in texts(1_000))


@pytest.mark.parametrize(
    "form",
    [
        *(r" = \d", " OR ", "NOT \\(", " IN \\(", "NOT IN", "BETWEEN", "IN RANGE", "!=", "IS NULL", "EXISTS"),
        *("STARTS WITH", "ENDS WITH", "CONTAINS", "LIKE", "MATCHES", "DATE", "TIMESTAMP", "WITHIN BOX", "O''Hara"),
    ],
)
def test_every_form_of_predicate_occurs(form):
    assert any(re.search(form, text) for text in texts(2_000))


def test_the_same_seed_makes_the_same():
    one, other = Mixed(4), Mixed(4)
    assert [(one.text(), one.event()) for _ in range(20)] == [(other.text(), other.event()) for _ in range(20)]
    assert texts(20, seed=4) != texts(20, seed=5)


def test_fashion_changes_which_keys_are_asked_for():
    mixed, asked = Mixed(2), []
    for _ in range(2):
        asked.append({key for _ in range(400) for key in KEYS if mixed.text().startswith(f"{key} = ")})
        mixed.drift()
    before, after = asked
    assert len(before) <= IN_FASHION
    assert after - before


def test_orders_are_never_asked_for_twice():
    orders = re.findall(r"order = (\d+)", "\n".join(texts(1_000)))
    assert len(orders) > 50
    assert len(set(orders)) == len(orders)


def test_rows_and_columns_are_the_same_events():
    mixed = Mixed(3)
    engine = Engine("reference")
    engine.subscribe_many(enumerate(mixed.text() for _ in range(200)))
    events = [mixed.event() for _ in range(40)]
    assert event_table(events).num_rows == 40
    assert engine.match_batch(event_table(events)).equals(engine.match_batch(events))
    assert engine.match_batch(events).num_rows > 0


def test_some_subscriptions_are_satisfied_and_some_attributes_missing():
    mixed = Mixed(9)
    expressions = [parse(mixed.text()) for _ in range(300)]
    events = [mixed.event() for _ in range(30)]
    assert any(truth(each, event) is True for each in expressions for event in events)
    assert any("maker" not in event for event in events)
