"""Data frames of every maker go straight in."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from harken import Engine
from harken.errors import EventError, SubscriptionError
from tests.engine.engines import engine_of, pairs

pytestmark = pytest.mark.kernel


class Frame:
    """What Polars and others hand over: nothing but the Arrow stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("make", [Frame, lambda table: table.to_pandas(), lambda table: table.to_reader()])
def test_data_frames_go_straight_in(make, algorithm):
    engine = Engine(algorithm)
    subscriptions = pa.table({"id": ["a", "b"], "expression": ["price < 5", "item = 'x' OR price IS NULL"]})
    assert engine.subscribe_many(make(subscriptions)).loaded == 2
    events = pa.table({"price": [1.0, None, 9.0], "item": ["x", "y", None]})
    engine.learn(make(events))
    assert pairs(engine.match_batch(make(events))) == [(0, "a"), (0, "b"), (1, "b")]
    found = engine.match_batch(make(events), on_error="collect")
    assert (pairs(found.matches), found.rejects.num_rows) == ([(0, "a"), (0, "b"), (1, "b")], 0)


def test_a_frame_in_polars_types_is_read(algorithm):
    engine = engine_of(algorithm, "s = 'a'", "t > TIMESTAMP '2026-01-01'", "c = 'x'", "EXISTS l")
    table = pa.table(
        {
            "s": pa.array(["a", None], pa.string_view()),
            "t": pa.array([datetime(2026, 2, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "c": pa.DictionaryArray.from_arrays(
                pa.array([0, None], pa.uint32()), pa.array(["x", "y"], pa.string_view())
            ),
            "l": pa.array([[1], None], pa.large_list(pa.int64())),
        }
    )
    assert pairs(engine.match_batch(Frame(table))) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    engine = engine_of(
        algorithm, "s = 'a'", "c = 'x'", "EXISTS s", schema={"s": "string", "c": "string", "n": "int"}
    )
    events = pa.concat_tables([table.slice(0, 1)] * 3).append_column(
        "n", pa.array([None, "x", None], pa.string_view())
    )
    found = engine.match_batch(Frame(events), on_error="collect")
    assert pairs(found.matches) == [(row, id) for row in (0, 2) for id in (0, 1, 2)]
    assert found.rejects.column("value").to_pylist() == ["'x'"]
    nobody = engine.match_batch(Frame(events.slice(1, 1)), on_error="collect")
    assert (nobody.matches.num_rows, nobody.rejects.num_rows) == (0, 1)


def test_the_compiled_form_may_come_as_a_frame():
    from harken.compiler import Texts, compile_texts

    engine = Engine()
    engine.subscribe_many(Frame(compile_texts(Texts([1], ["x = 1"])).table))
    assert engine.match({"x": 1}) == [1]


def test_a_frame_that_cannot_be_read_says_why():
    engine = engine_of("auto", "x = 1")
    twice = pd.DataFrame([[1, 2]], columns=["x", "x"])
    with pytest.raises(EventError, match="a DataFrame that cannot be read as an Arrow table"):
        engine.match_batch(twice)
    with pytest.raises(SubscriptionError, match="needs the columns id and expression"):
        engine.subscribe_many(Frame(pa.table({"id": [1]})))


class Rows:
    """What makers of record batches hand over: nothing but the Arrow array interface."""

    def __init__(self, array):
        self._array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self._array.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("make", [Rows, lambda array: array])
def test_arrays_of_structs_are_events_and_subscriptions_as_they_are(make, algorithm):
    engine = Engine(algorithm)
    wanted = pa.array([{"id": "a", "expression": "price < 5"}, {"id": "b", "expression": "seller.rank = 1"}])
    assert engine.subscribe_many(make(wanted)).loaded == 2
    events = pa.array([{"price": 9, "seller": None}, {"price": 1, "seller": {"rank": 1}}])
    assert pairs(engine.match_batch(make(events))) == [(1, "a"), (1, "b")]
    assert pairs(engine.match_batch(make(events.slice(1)))) == [(0, "a"), (0, "b")]


def test_an_array_that_is_no_rows_says_why():
    engine = engine_of("auto", "x = 1")
    with pytest.raises(EventError, match="a StructArray that cannot be read as an Arrow table: row 1 is null"):
        engine.match_batch(pa.array([{"x": 1}, None]))
    with pytest.raises(EventError, match="a Int64Array that cannot be read as an Arrow table"):
        engine.match_batch(pa.array([1, 2]))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("algorithm", ["dynamic", "counting", "reference"])
def test_what_lies_under_nulls_is_nobodys_value(kind, algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many([("equal", "x = 5"), ("below", "x < 9"), ("other", "x != 7"), ("none", "x IS NULL")])
    under = np.array([5, 5, 5, np.iinfo(kind).min, np.iinfo(kind).max, 5], kind)
    validity = pa.array([True, True, False, False, False, True]).buffers()[1]
    column = pa.Array.from_buffers(pa.from_numpy_dtype(kind), 6, [validity, pa.py_buffer(under)]).slice(1)
    found = engine.match_batch(pa.table({"x": column}))
    told = [
        sorted(ids)
        for ids in found.group_by("event")
        .aggregate([("subscription", "list")])
        .sort_by("event")["subscription_list"]
        .to_pylist()
    ]
    there = ["below", "equal", "other"]
    assert told == [there, ["none"], ["none"], ["none"], there]
