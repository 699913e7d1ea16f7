"""Data frames with columns that Arrow has no type for: their events are those of the same rows as dictionaries."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from harken import Engine, SymmetricEngine, algorithms
from harken.errors import EventError, SubscriptionError

pytestmark = pytest.mark.kernel

ODD = {
    "an integer past 64 bits": [2**70, 1, None],
    "texts and numbers": ["a", 7, 2.5],
    "lists and mappings": [[1], {"a": 1}, "a"],
    "mappings of different kinds": [{"a": 1}, {"a": "x"}, {"b": [1]}],
    "texts and bytes": ["a", b"a", None],
    "bytes and numbers": [b"a", 1, None],
    "truths and numbers": [True, 1, 0],
    "dates and moments": [date(2026, 1, 1), datetime(2026, 1, 1, 5, tzinfo=UTC), None],
    "complex numbers": [1j, 2j, 1],
    "objects": [object(), "a", 1],
    "half a surrogate": ["\ud800", "a", None],
    "arrays": [np.zeros((2, 2)), np.zeros(2), 1],
    "numbers of numpy": [np.int64(1), "a", np.float64(2.5)],
}
QUESTIONS = (
    "x = 1",
    "x = 'a'",
    "x > 2",
    "x IS NULL",
    "EXISTS x",
    "x.a = 1",
    "EXISTS x.a",
    "x = DATE '2026-01-01'",
    "x > TIMESTAMP '2026-01-01'",
    "x != 'b'",
    "x = TRUE",
    "y = 2 AND x = 1",
    "NOT x = 1",
)


def engine_of(algorithm, *written, **options):
    engine = Engine(algorithm, **options)
    engine.subscribe_many(enumerate(written))
    return engine


def pairs(table):
    return sorted(zip(*table.to_pydict().values(), strict=True))


def objects(values):
    return pd.Series(values, dtype=object)


@pytest.mark.parametrize("algorithm", algorithms())
@pytest.mark.parametrize("what", ODD)
def test_a_frame_gives_what_its_rows_as_dictionaries_give_whatever_a_column_holds(what, algorithm):
    engine = engine_of(algorithm, *QUESTIONS)
    rows = [{"x": value, "y": row} for row, value in enumerate(ODD[what])]
    frame = pd.DataFrame({"x": objects(ODD[what]), "y": range(len(rows))})
    engine.learn(frame)
    expected = pairs(engine.match_batch(rows))
    counted = dict(engine.stats()["foreign"])
    assert pairs(engine.match_batch(frame)) == expected
    assert engine.stats()["foreign"] == {name: 2 * count for name, count in counted.items()}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_column_that_nobody_asks_about_changes_nothing(what):
    engine = engine_of("auto", "y = 2")
    frame = pd.DataFrame({"y": [2, 2, 3], "note": objects(ODD[what])})
    for index in (
        pd.RangeIndex(3),
        pd.Index([5, "a", None]),
        pd.Index([1, "b", 3], name="k"),
        pd.Index([1, 2, 3], name="y"),
    ):
        found = engine.match_batch(frame.set_axis(index), on_error="collect")
        assert (pairs(found.matches), found.rejects.num_rows) == ([(0, 0), (1, 0)], 0)
    assert engine.stats()["foreign"] == {}


def test_an_odd_index_with_a_name_is_a_column_as_others_are():
    engine = engine_of("auto", "k = 'b'")
    frame = pd.DataFrame({"y": [2, 3]}, index=pd.Index([1, "b"], name="k"))
    assert pairs(engine.match_batch(frame)) == [(1, 0)]


def test_an_odd_column_is_held_to_the_schema_event_by_event():
    engine = Engine(schema={"x": "int", "y": "int", "z.a": "int"})
    engine.subscribe("s", "y >= 0")
    columns = {"x": [1, "a", 2**70, 5], "y": [1, 2, 3, "b"], "z": [{"a": "x"}, 1, None, None]}
    frame = pd.DataFrame({name: objects(values) for name, values in columns.items()})
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    found, expected = (engine.match_batch(each, on_error="collect") for each in (frame, rows))
    assert found.rejects.column("event").to_pylist() == [0, 1, 2, 3]
    assert found.rejects == expected.rejects
    with pytest.raises(EventError) as caught:
        engine.match_batch(frame)
    assert caught.value.row == 0
    found = engine.match_batch(frame.assign(z=None, x=[1, "a", 2, None]), on_error="collect")
    assert pairs(found.matches) == [(0, "s"), (2, "s")]
    assert found.rejects.column("attribute").to_pylist() == ["x", "y"]
    assert found.rejects.column("event").to_pylist() == [1, 3]


def test_an_attribute_that_an_odd_column_gives_once_more_is_refused():
    engine = engine_of("auto", "x.a = 1")
    frame = pd.DataFrame({"x": [{"a": 1}, "text"], "x.a": [1, 1]})
    found = engine.match_batch(frame, on_error="collect")
    assert pairs(found.matches) == [(1, 0)]
    assert found.rejects.column("reason").to_pylist() == ["attribute 'x.a' occurs twice"]


@pytest.mark.parametrize("dtype", [pd.SparseDtype("int64", 0), "category", "Int64", "float16"])
def test_columns_of_types_that_only_pandas_has_are_read(dtype):
    engine = engine_of("auto", "x = 1", "x IS NULL")
    frame = pd.DataFrame({"x": pd.Series([1, 0, 1]).astype(dtype)})
    assert pairs(engine.match_batch(frame)) == [(0, 0), (2, 0)]


def test_columns_without_a_name_are_read_without_a_warning():
    engine = Engine()
    engine.subscribe("a", '"0" = 1')
    assert pairs(engine.match_batch(pd.DataFrame([[1, 2]], columns=[0, "x"]))) == [(0, "a")]
    assert pairs(engine.match_batch(pd.DataFrame([[1, 2]]))) == [(0, "a")]


def test_rows_of_subscriptions_with_odd_cells_are_rejected_and_the_others_loaded():
    engine = Engine()
    frame = pd.DataFrame(
        {
            "id": ["a", "b", 7, 2**70, "e", "f"],
            "expression": ["x = 1", 5, "x = 1", "x = 1", "x = 1", "x = 1"],
            "owner": [None, None, None, None, "me", 3],
        }
    )
    report = engine.subscribe_many(frame, on_error="collect")
    assert (report.loaded, [each.row for each in report.rejects]) == (2, [1, 2, 3, 5])
    assert (engine.match({"x": 1}), engine.subscription("e").owner) == (["a", "e"], "me")


@pytest.mark.parametrize("covers", ["publication", "subscription"])
def test_symmetric_matching_takes_a_frame_as_its_rows(covers):
    market = SymmetricEngine(covers=covers)
    market.subscribe_many(pd.DataFrame({"id": ["a", "b"], "expression": ["x = 1", "x = 'a'"]}))
    rows = [{"x": 1}, {"x": "a"}, {"x": 2.5}]
    found = market.match_batch(pd.DataFrame({"x": [1, "a", 2.5]}))
    assert pairs(found) == pairs(market.match_batch(rows)) == [(0, "a"), (1, "b")]
    foreign = pd.DataFrame({"x": [1, 2], "y": objects([2**70, 1])})
    if covers == "subscription":
        assert pairs(market.match_batch(foreign)) == [(0, "a")]
    else:
        with pytest.raises(EventError, match="an integer past 64 bits is no value to publish"):
            market.match_batch(foreign)


# ---------------------------------------------------------------- Polars, which is not installed here


def polars_frame(**columns):
    """What Polars hands over: it cannot give Arrow some of its columns, and gives objects by their addresses."""

    class Series(list):
        def __init__(self, name, values, kind):
            super().__init__(values)
            self.name, self.dtype = name, kind

        def __arrow_c_stream__(self, requested_schema=None):
            if self.dtype == "Int128":
                raise ValueError("Invalid or unsupported format string: '_pli128'")
            return pa.chunked_array([pa.array(list(self))]).__arrow_c_stream__(requested_schema)

    class DataFrame:
        def __init__(self):
            self._columns = [Series(name, *each) for name, each in columns.items()]
            self.dtypes = [each.dtype for each in self._columns]

        def __len__(self):
            return len(self._columns[0])

        def get_columns(self):
            return self._columns

        def __arrow_c_stream__(self, requested_schema=None):
            if "Int128" in self.dtypes:
                raise ValueError("Invalid or unsupported format string: '_pli128'")
            addresses = {each.name: [id(value) for value in each] for each in self._columns}
            return pa.table(addresses).__arrow_c_stream__(requested_schema)

    DataFrame.__module__ = "polars.dataframe.frame"
    return DataFrame()


@pytest.mark.parametrize("kind", ["Int128", "Object"])
def test_a_column_of_polars_that_arrow_has_no_type_for_is_read(kind):
    engine = engine_of("auto", "x = 1", "x > 1", "EXISTS x", "y = 'b' AND x > 0")
    frame = polars_frame(x=([2**70, 1, 5], kind), y=(["a", "b", "b"], "String"))
    assert pairs(engine.match_batch(frame)) == [(0, 2), (1, 0), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_a_plan_of_rows_says_what_to_pass_instead():
    class LazyFrame:
        def collect(self):
            return pa.table({"x": [1]})

    with pytest.raises(EventError, match=r"a LazyFrame is a plan .*; pass what its \.collect\(\) gives"):
        engine_of("auto", "x = 1").match_batch(LazyFrame())
    with pytest.raises(SubscriptionError, match=r"\.collect\(\)"):
        Engine().subscribe_many(LazyFrame())
