"""Under a schema, a value of another type is a fault of its event alone."""

from __future__ import annotations

import math

import pandas as pd
import pyarrow as pa
import pytest

from harken.errors import EventError
from tests.engine.engines import engine_of, pairs

pytestmark = pytest.mark.kernel

SCHEMA = {"price": "float", "stock": "int", "at": "timestamp", "item.id": "int"}


@pytest.mark.parametrize(
    ("event", "attribute", "said", "value"),
    [
        ({"price": "1"}, "price", "declared float, found string", "'1'"),
        ({"price": math.nan}, "price", "declared float, found NaN", "nan"),
        ({"stock": 2**63}, "stock", "declared int, found an integer past 64 bits", str(2**63)),
        ({"stock": [1, 2]}, "stock", "declared int, found a list", "[1, 2]"),
        ({"item": [{"id": 1}]}, "item.id", "declared int, found a list", "[{'id': 1}]"),
        ({"at": pd.NaT}, "at", "declared timestamp, found NaT", "NaT"),
    ],
)
def test_under_a_schema_a_value_of_another_type_is_a_fault_of_that_event(event, attribute, said, value, algorithm):
    engine = engine_of(algorithm, "price < 5", "TRUE", schema=SCHEMA)
    with pytest.raises(EventError, match=said) as caught:
        engine.match(event)
    assert (caught.value.attribute, caught.value.row, caught.value.value) == (attribute, None, value)
    batch = [{"price": 1}, event, {}]
    with pytest.raises(EventError, match="event 1: "):
        engine.match_batch(batch)
    matches, rejects = engine.match_batch(batch, on_error="collect")
    assert pairs(matches) == [(0, 0), (0, 1), (2, 1)]
    assert rejects.to_pylist() == [
        {"event": 1, "attribute": attribute, "reason": f"attribute {attribute!r} is {said}", "value": value}
    ]


def test_an_event_that_is_none_is_collected_too(algorithm):
    engine = engine_of(algorithm, "TRUE")
    batch = [5, {}, {1: 2}, {"a": {"b": 1}, "a.b": 2}, None]
    found = engine.match_batch(batch, on_error="collect")
    assert pairs(found.matches) == [(1, 0)]
    assert found.rejects.column("event").to_pylist() == [0, 2, 3, 4]
    assert found.rejects.column("attribute").to_pylist() == [None, None, "a.b", None]


def test_under_a_schema_a_column_is_at_fault_only_where_it_has_values(algorithm):
    engine = engine_of(algorithm, "price < 5", "price IS NULL", schema=SCHEMA)
    table = pa.table(
        {
            "price": [1.0, math.nan, None, None, 2.0],
            "stock": pa.array([None, None, "x", None, None]),
            "item": [None, None, None, [1], None],
        }
    )
    table = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    with pytest.raises(EventError, match="event 1: attribute 'price' is declared float, found NaN"):
        engine.match_batch(table)
    found = engine.match_batch(table, on_error="collect")
    assert pairs(found.matches) == [(0, 0), (4, 0)]
    assert found.rejects.column("event").to_pylist() == [1, 2, 3]
    assert found.rejects.column("attribute").to_pylist() == ["price", "stock", "item.id"]
    assert found.rejects.column("value").to_pylist() == ["nan", "'x'", "[1]"]
    reasons = found.rejects.column("reason").to_pylist()
    assert reasons[:2] == [
        "attribute 'price' is declared float, found NaN",
        "attribute 'stock' is declared int, found string",
    ]
    assert reasons[2].startswith("attribute 'item.id' is declared int, found list<")
    assert pairs(engine.match_batch(table.select(["stock"]).slice(0, 2))) == [(0, 1), (1, 1)]


def test_on_error_is_one_of_two_words():
    engine = engine_of("auto", "TRUE")
    with pytest.raises(ValueError, match="on_error is one of"):
        engine.match_batch([{}], on_error="ignore")


def test_learning_passes_over_events_that_cannot_be_matched():
    engine = engine_of("dynamic", *[f"stock = {number}" for number in range(50)], schema=SCHEMA)
    engine.learn([{"stock": "x"}, {"stock": 1}] * 50)
    assert engine.match({"stock": 1}) == [1]
