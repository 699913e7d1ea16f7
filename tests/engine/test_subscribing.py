"""Registering and removing: ids, duplicates, replacing, and all or nothing."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, Limits, Subscription, algorithms, attr, parse
from harken.compiler import Texts, compile_texts
from harken.errors import (
    BoundError,
    BulkLoadError,
    DuplicateSubscriptionError,
    ParseError,
    SchemaError,
    SubscriptionError,
    UnknownAlgorithmError,
    UnknownSubscriptionError,
)
from harken.model.subscriptions import Validity
from tests.normal.test_compiled import MALFORMED, plain, predicate

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def engine():
    engine = Engine("reference")
    engine.subscribe("a", "x = 1")
    engine.subscribe("b", "x > 1", owner="Bob", valid_until=NOON)
    return engine


def seen(engine):
    """Everything that can be seen of an engine's subscriptions."""
    return {id: engine.subscription(id) for id in engine}


# ---------------------------------------------------------------- one at a time


def test_a_subscription_is_registered_under_its_id(engine):
    assert len(engine) == 2
    assert list(engine) == ["a", "b"]
    assert "a" in engine
    assert "z" not in engine
    assert engine.match({"x": 1}) == ["a"]
    assert repr(engine) == "Engine(algorithm='reference', subscriptions=2)"


def test_a_subscription_can_be_asked_for(engine):
    assert engine.subscription("a") == Subscription("a", parse("x = 1"))
    assert engine.subscription("b") == Subscription("b", parse("x > 1"), "Bob", Validity(None, NOON))


def test_text_and_tree_say_the_same():
    engine = Engine()
    engine.subscribe("text", "x > 1 AND y LIKE 'a%'")
    engine.subscribe("tree", (attr("x") > 1) & attr("y").like("a%"))
    assert sorted(engine.match({"x": 2, "y": "ab"})) == ["text", "tree"]
    assert engine.match({"x": 1, "y": "ab"}) == []


@pytest.mark.parametrize("id", ["a", " ", "ä" * 100, "1"])
def test_an_id_may_be_any_string(id):
    engine = Engine()
    engine.subscribe(id, "TRUE")
    assert engine.match({}) == [id]
    assert engine.match_batch([{}]).column("subscription").to_pylist() == [id]


@pytest.mark.parametrize("id", [0, -5, 2**63 - 1, -(2**63)])
def test_an_id_may_be_any_64_bit_integer(id):
    engine = Engine()
    engine.subscribe(id, "TRUE")
    assert engine.match({}) == [id]
    assert engine.match_batch([{}]).column("subscription").to_pylist() == [id]


@pytest.mark.parametrize("id", [True, False, 1.0, None, "", b"a", ["a"], 2**63, "\ud800"])
def test_nothing_else_is_an_id(id):
    engine = Engine()
    with pytest.raises(SubscriptionError, match="id"):
        engine.subscribe(id, "TRUE")
    assert len(engine) == 0


@pytest.mark.parametrize(("first", "second"), [("a", 1), (1, "a")])
@pytest.mark.parametrize("replace", [False, True])
def test_strings_and_integers_do_not_mix_in_one_engine(first, second, replace):
    engine = Engine()
    engine.subscribe(first, "TRUE")
    with pytest.raises(SubscriptionError, match="not like the ids of this engine"):
        engine.subscribe(second, "TRUE", replace=replace)
    assert list(engine) == [first]
    assert engine.match_batch([{}]).num_rows == 1


def test_an_emptied_engine_takes_ids_of_the_other_type():
    engine = Engine()
    engine.subscribe("a", "TRUE")
    engine.unsubscribe("a")
    engine.subscribe(1, "TRUE")
    assert engine.match_batch([{}]).schema.field("subscription").type == pa.int64()


def test_values_that_python_holds_equal_to_an_id_are_not_that_id():
    engine = Engine()
    engine.subscribe(1, "TRUE")
    assert 1 in engine
    assert True not in engine
    assert 1.0 not in engine
    for other in (True, 1.0):
        with pytest.raises(UnknownSubscriptionError):
            engine.unsubscribe(other)
        with pytest.raises(UnknownSubscriptionError):
            engine.subscription(other)


def test_a_taken_id_is_an_error_that_says_how_to_replace(engine):
    before = seen(engine)
    with pytest.raises(DuplicateSubscriptionError, match="'a' is already registered") as caught:
        engine.subscribe("a", "x = 2")
    assert caught.value.subscription == "a"
    assert "replace=True" in caught.value.suggestion
    assert seen(engine) == before


def test_replacing_leaves_nothing_of_the_old_one(engine):
    engine.subscribe("b", "x = 5", replace=True)
    assert engine.subscription("b") == Subscription("b", parse("x = 5"))
    assert engine.match({"x": 5}, at=NOON + HOUR) == ["b"]
    assert engine.match({"x": 2}, at=NOON - HOUR) == []
    assert len(engine) == 2


def test_replacing_what_is_not_there_registers_it(engine):
    engine.subscribe("c", "x = 5", replace=True)
    assert "c" in engine


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("x = ", ParseError),
        ("x = 1 OR y = 1 OR z = 1 OR w = 1 OR v = 1", BoundError),
        (attr("x").like("a" * 50), BoundError),
        (None, ValueError),
        (5, ValueError),
    ],
)
def test_a_bad_expression_is_refused_and_what_it_would_replace_stays(expression, error):
    engine = Engine("reference", limits=Limits(max_clauses=4, max_pattern=40))
    engine.subscribe("a", "x = 1")
    with pytest.raises(error):
        engine.subscribe("a", expression, replace=True)
    assert engine.subscription("a").expression == parse("x = 1")
    assert engine.match({"x": 1}) == ["a"]


@pytest.mark.parametrize("owner", [5, b"Ann", ["Ann"], "\ud800"])
def test_an_owner_is_a_string(owner):
    engine = Engine()
    with pytest.raises(SubscriptionError, match="owner"):
        engine.subscribe("a", "TRUE", owner=owner)
    assert len(engine) == 0


def test_a_schema_is_given_as_names_and_types():
    engine = Engine(schema={"price": "float", "maker": "string"})
    engine.subscribe("a", "price < 5 AND maker = 'Sony'")
    with pytest.raises(SchemaError, match="did you mean 'price'"):
        engine.subscribe("b", "prise < 5")
    with pytest.raises(SchemaError, match="declared string, found int"):
        engine.subscribe("b", attr("maker") == 5)
    assert list(engine) == ["a"]


def test_an_unknown_algorithm_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownAlgorithmError) as caught:
        Engine("refrence")
    assert caught.value.suggestion == "did you mean 'reference'?"
    for name in algorithms():
        assert name in str(caught.value)


# ---------------------------------------------------------------- removing


def test_an_unsubscribed_id_matches_no_more_and_is_free_again(engine):
    engine.unsubscribe("a")
    assert "a" not in engine
    assert engine.match({"x": 1}) == []
    engine.subscribe("a", "x = 7")
    assert engine.match({"x": 7}, at=NOON) == ["a"]


def test_removing_one_takes_its_owner_and_validity_with_it(engine):
    engine.unsubscribe("b")
    engine.subscribe("c", "x > 1")
    assert engine.subscription("c") == Subscription("c", parse("x > 1"))
    assert engine.match({"x": 2}, at=NOON + HOUR) == ["c"]


def test_removing_what_is_not_there_is_an_error(engine):
    with pytest.raises(UnknownSubscriptionError, match="no subscription 'z'") as caught:
        engine.unsubscribe("z")
    assert caught.value.subscription == "z"
    assert isinstance(caught.value, KeyError)
    with pytest.raises(UnknownSubscriptionError):
        engine.subscription("z")


def test_removing_many_is_all_or_nothing(engine):
    with pytest.raises(UnknownSubscriptionError):
        engine.unsubscribe_many(["a", "z"])
    assert len(engine) == 2
    engine.unsubscribe_many(iter(["a", "b", "a"]))
    assert len(engine) == 0
    assert engine.match({"x": 1}) == []


@pytest.mark.parametrize(
    "ids",
    [
        np.array([7, 3, 7], np.uint8),
        pa.array([7, 3, 7], pa.int32()),
        pa.chunked_array([[7], [3]]),
        range(3, 8, 4),
        {3: "x", 7: "y"},
    ],
    ids=["numpy", "Arrow", "chunks", "range", "mapping"],
)
def test_ids_to_remove_may_come_in_columns(ids):
    engine = Engine()
    engine.subscribe_many((at, f"x = {at % 2}") for at in range(10))
    engine.unsubscribe_many(ids)
    assert list(engine) == [0, 1, 2, 4, 5, 6, 8, 9]
    assert sorted(engine.match({"x": 1})) == [1, 5, 9]
    with pytest.raises(UnknownSubscriptionError) as caught:
        engine.unsubscribe_many(ids)
    assert caught.value.subscription in (3, 7)
    assert len(engine) == 8


def test_subscriptions_can_be_removed_while_they_are_listed(engine):
    for id in engine:
        engine.unsubscribe(id)
    assert len(engine) == 0


# ---------------------------------------------------------------- many at once

ROWS = [
    {"id": "c", "expression": "x = 1", "owner": "Cem", "valid_from": NOON, "valid_until": NOON + HOUR},
    ("d", "x = 2"),
    ("e", attr("x") == 3),
    Subscription("f", parse("x = 4"), "Flo", Validity(NOON, None)),
    {"id": "g", "expression": "x = 5"},
]
WANTED = {
    "c": Subscription("c", parse("x = 1"), "Cem", Validity(NOON, NOON + HOUR)),
    "d": Subscription("d", parse("x = 2")),
    "e": Subscription("e", parse("x = 3")),
    "f": Subscription("f", parse("x = 4"), "Flo", Validity(NOON, None)),
    "g": Subscription("g", parse("x = 5")),
}


def test_rows_of_every_form_are_taken():
    engine = Engine("reference")
    report = engine.subscribe_many(ROWS)
    assert (report.loaded, report.rejects) == (5, ())
    assert seen(engine) == WANTED


def test_rows_may_come_from_an_iterator():
    engine = Engine("reference")
    engine.subscribe_many(iter(ROWS))
    assert seen(engine) == WANTED


def text_table():
    return pa.table(
        {
            "id": ["c", "d"],
            "expression": ["x = 1", "x = 2"],
            "owner": ["Cem", None],
            "valid_from": pa.array([NOON, None], pa.timestamp("s", tz="Europe/Berlin")),
            "valid_until": pa.array([None, NOON], pa.timestamp("us")),
            "ignored": [1, 2],
        }
    )


@pytest.mark.parametrize("source", [text_table(), text_table().to_batches()[0]], ids=["table", "record batch"])
def test_an_arrow_table_of_texts_is_taken(source):
    engine = Engine("reference")
    assert engine.subscribe_many(source).loaded == 2
    assert engine.subscription("c") == Subscription("c", parse("x = 1"), "Cem", Validity(NOON, None))
    assert engine.subscription("d") == Subscription("d", parse("x = 2"), None, Validity(None, NOON))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_a_table_of_texts_may_hold_strings_of_any_arrow_type(kind):
    table = pa.table(
        {"id": pa.array(["a", "b"]).cast(kind), "expression": pa.array(["x = 1", "x = 2"]).cast(kind)}
    )
    engine = Engine()
    assert engine.subscribe_many(table).loaded == 2
    assert engine.match({"x": 2}) == ["b"]


def test_a_compiled_table_is_taken():
    compiled = compile_texts(
        Texts(["c", "d"], ["x = 1 OR y LIKE 'a_'", "x BETWEEN 2 AND 3"], ["Cem", None], [NOON, None], [None, NOON])
    ).table
    engine = Engine()
    assert engine.subscribe_many(compiled).loaded == 2
    assert engine.match({"x": 1}, at=NOON) == ["c"]
    assert engine.match({"x": 3}, at=NOON - HOUR) == ["d"]
    assert engine.match({"y": "ab"}, at=NOON - HOUR) == []
    assert engine.subscription("c").owner == "Cem"
    assert engine.subscription("d").validity == Validity(None, NOON)


def test_a_compiled_record_batch_without_the_optional_columns_is_taken():
    engine = Engine()
    engine.subscribe_many(plain([[[predicate(integer=5)]]]).to_batches()[0])
    assert engine.match({"x": 5}) == ["s0"]
    assert engine.subscription("s0").validity.is_always


def test_integer_ids_of_a_table_stay_integers():
    engine = Engine()
    engine.subscribe_many(pa.table({"id": pa.array([7], pa.int16()), "expression": ["TRUE"]}))
    assert engine.match({}) == [7]


def test_nothing_is_a_fine_bulk():
    engine = Engine()
    assert engine.subscribe_many([]).loaded == 0
    assert engine.subscribe_many(pa.table({"id": [], "expression": []})).loaded == 0
    assert engine.subscribe_many(compile_texts(Texts([], [])).table).loaded == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("x = 1", "expected rows"),
        ({"a": "x = 1"}, "expected rows"),
        ([("a", "x = 1", "too many")], "a subscription is a mapping, a pair or a Subscription"),
        (["x = 1"], "a subscription is a mapping, a pair or a Subscription"),
        ([{"id": "a", "expression": "x = 1", "onwer": "Ann"}], "no field 'onwer'"),
        (pa.table({"id": ["a"]}), "needs the columns id and expression"),
        (pa.table({"expression": ["x = 1"]}), "needs the columns id and expression"),
    ],
)
def test_what_is_no_row_of_subscriptions_is_refused(rows, said, engine):
    before = seen(engine)
    with pytest.raises(SubscriptionError, match=said):
        engine.subscribe_many(rows)
    assert seen(engine) == before


SHAPELESS = [
    (("d",), None),
    (("f", "x = 1", "owner"), None),
    (None, None),
    ("x = 1", None),
    (7, None),
    ({"id": "q"}, "q"),
    ({"expression": "x = 1"}, None),
    ({"id": "q", "expression": "x = 1", "valid_untill": None}, "q"),
    ({1: 2}, None),
]


@pytest.mark.parametrize(("row", "id"), SHAPELESS)
def test_a_row_of_another_shape_is_a_reject_with_its_number(row, id):
    engine = Engine()
    rows = [("c", "x = 1"), row, ("e", "x = 1")]
    report = engine.subscribe_many(rows, on_error="collect")
    assert (report.loaded, [(each.row, each.id) for each in report.rejects]) == (2, [(1, id)])
    assert sorted(engine.match({"x": 1})) == ["c", "e"]
    with pytest.raises(BulkLoadError, match="the first is row 1: a subscription") as caught:
        Engine().subscribe_many(rows)
    assert [each.row for each in caught.value.rejects] == [1]


def test_other_fields_and_columns_are_passed_over_unless_they_seem_misspelt():
    wide = {"id": "a", "expression": "x = 1", "note": "VIP", "owner": "Ann", "owner_id": 7}
    misspelt = {"id": "b", "expression": "x = 1", "valid_untl": None}
    for row, loaded in ((wide, 1), (misspelt, 0)):
        table = pa.table({name: [value] for name, value in row.items()})
        for source in (table, [row]):
            engine = Engine()
            if loaded:
                assert engine.subscribe_many(source).loaded == 1
                assert engine.subscription("a").owner == "Ann"
                continue
            with pytest.raises(SubscriptionError, match=r"a subscription has no .* 'valid_untl'; did you mean"):
                engine.subscribe_many(source)


BAD_ROWS = [
    ("c", "x = 1"),
    ("d", "x == 1"),
    ("c", "x = 2"),
    ("a", "x = 3"),
    (5, "x = 4"),
    ("", "x = 5"),
    ("e", "x = 6"),
    ("f", None),
    {"id": "g", "expression": "x = 7", "valid_from": NOON, "valid_until": NOON},
    {"expression": "x = 8"},
    {"id": "h"},
]
BAD = [1, 2, 3, 4, 5, 7, 8, 9, 10]


def test_one_bad_row_keeps_all_out(engine):
    before = seen(engine)
    with pytest.raises(BulkLoadError) as caught:
        engine.subscribe_many(BAD_ROWS)
    error = caught.value
    assert [reject.row for reject in error.rejects] == BAD
    assert str(error).startswith("nothing was loaded: 9 rejected, the first is row 1: line 1, column 3")
    assert 'on_error="collect"' in error.suggestion
    assert seen(engine) == before


def test_with_collect_the_good_rows_are_loaded_and_the_others_told(engine):
    report = engine.subscribe_many(BAD_ROWS, on_error="collect")
    assert report.loaded == 2
    assert [reject.row for reject in report.rejects] == BAD
    assert [reject.id for reject in report.rejects] == ["d", "c", "a", 5, "", "f", "g", None, "h"]
    assert isinstance(report.rejects[0].error, ParseError)
    assert report.rejects[0].position.column == 3
    assert isinstance(report.rejects[1].error, DuplicateSubscriptionError)
    assert list(engine) == ["a", "b", "c", "e"]
    assert engine.match({"x": 1}) == ["a", "c"]
    assert engine.match({"x": 3}, at=NOON) == []


def test_with_replace_the_last_of_several_rows_wins(engine):
    report = engine.subscribe_many([("a", "x = 5"), ("c", "x = 6"), ("a", "x = 7")], replace=True)
    assert report.loaded == 2
    assert engine.subscription("a").expression == parse("x = 7")
    assert sorted(engine) == ["a", "b", "c"]
    assert engine.match({"x": 5}, at=NOON) == []
    assert engine.match({"x": 7}, at=NOON) == ["a"]


def test_a_failed_bulk_replaces_nothing(engine):
    before = seen(engine)
    with pytest.raises(BulkLoadError):
        engine.subscribe_many([("a", "x = 5"), ("b", "x =")], replace=True)
    assert seen(engine) == before


@pytest.mark.parametrize("algorithm", algorithms())
@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_compiled_row_is_rejected_and_touches_nothing(bad, algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many([("s0", "x = 7"), ("other", "x = 1")])
    table = plain([[[predicate(integer=5)]], [[predicate(integer=6)], [predicate(integer=7), bad]]])
    with pytest.raises(SubscriptionError):
        engine.subscribe_many(table, replace=True)
    assert sorted(engine) == ["other", "s0"]
    assert engine.match({"x": 7}) == ["s0"]
    report = engine.subscribe_many(table, replace=True, on_error="collect")
    assert report.loaded == 1
    assert [(reject.row, reject.id) for reject in report.rejects] == [(1, "s1")]
    assert engine.match({"x": 5}) == ["s0"]
    assert engine.match({"x": 6}) == []


def test_a_compiled_table_is_held_to_schema_limits_and_unique_ids():
    table = plain(
        [[[predicate(integer=1)]], [[predicate(type="string", text="a")]], [[predicate("y", integer=1)]]]
    )
    engine = Engine(schema={"x": "int"})
    report = engine.subscribe_many(table, on_error="collect")
    assert [reject.row for reject in report.rejects] == [1, 2]
    assert list(engine) == ["s0"]
    twice = pa.concat_tables([table.slice(0, 1)] * 2)
    with pytest.raises(BulkLoadError, match="already registered"):
        Engine().subscribe_many(twice)
    two = plain([[[predicate(integer=1)], [predicate("y", integer=1)]]])
    with pytest.raises(BulkLoadError, match="max_clauses"):
        Engine(limits=Limits(max_clauses=1)).subscribe_many(two)


def test_a_bulk_of_compiled_rows_with_a_validity_that_holds_nothing_is_rejected():
    table = plain([[[predicate(integer=1)]]])
    moment = pa.array([NOON], pa.timestamp("us", tz="UTC"))
    table = table.append_column("valid_from", moment).append_column("valid_until", moment)
    engine = Engine()
    with pytest.raises(SubscriptionError, match="is not before"):
        engine.subscribe_many(table)
    assert len(engine) == 0


def test_progress_is_told_the_rows_done():
    told = []
    Engine().subscribe_many([(at, f"x = {at}") for at in range(10)], progress=told.append)
    assert told[-1] == 10
    assert told == sorted(told)


@pytest.mark.kernel
def test_thousands_of_rows_are_loaded_as_one_by_one():
    rows = [(at, f"x = {at % 7} AND y < {at % 5}") for at in range(1_200)]
    bulk, single = Engine("reference"), Engine("reference")
    bulk.subscribe_many(rows)
    for row in rows:
        single.subscribe(*row)
    assert seen(bulk) == seen(single)


def test_an_unknown_word_for_on_error_is_refused():
    engine = Engine()
    with pytest.raises(ValueError, match="on_error is one of"):
        engine.subscribe_many([("a", "x = 1")], on_error="rais")
    assert len(engine) == 0


# ---------------------------------------------------------------- many integer ids

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
                expected.append((place, id, str(error)))
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


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA, np.datetime64("NaT"), math.nan], ids=repr)
def test_a_bound_that_pandas_says_is_missing_is_no_bound(missing: object) -> None:
    engine = Engine()
    engine.subscribe("one", "x = 1", valid_until=missing)
    engine.subscribe_many(
        [
            {"id": "many", "expression": "x = 1", "valid_from": missing, "valid_until": missing},
            {
                "id": "past",
                "expression": "x = 1",
                "valid_from": missing,
                "valid_until": pd.Timestamp("2020-01-01"),
            },
        ]
    )
    assert engine.match({"x": 1}) == ["one", "many"]
    assert engine.subscription("many").validity.is_always
    assert engine.subscription("past").validity.valid_from is None


def test_a_bound_that_can_not_be_compared_is_the_fault_of_its_row() -> None:
    odd = np.array([1, 2])
    with pytest.raises(SubscriptionError, match="valid_until is a timestamp, found ndarray"):
        Engine().subscribe("a", "x = 1", valid_until=odd)
    engine = Engine()
    rows = [("ok", "x = 1"), {"id": "b", "expression": "x = 1", "valid_until": odd}]
    report = engine.subscribe_many(rows, on_error="collect")
    assert (report.loaded, [reject.row for reject in report.rejects]) == (1, [1])
    assert engine.match({"x": 1}) == ["ok"]


def test_a_subscription_has_the_id_that_it_was_given_whatever_equals_it() -> None:
    engine = Engine()
    engine.subscribe(np.int64(5), "x = 1")
    assert type(engine.subscription(np.int64(5)).id) is int
