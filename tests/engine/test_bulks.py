"""Many subscriptions at once: rows and tables of every form, and all or nothing."""

from __future__ import annotations

import gc

import pyarrow as pa
import pytest

from harken import Engine, Limits, Subscription, algorithms, attr, parse
from harken.compiler import Texts, compile_texts
from harken.errors import (
    BulkLoadError,
    DuplicateSubscriptionError,
    ParseError,
    SubscriptionError,
)
from harken.intake import texts_of
from harken.model.subscriptions import Validity
from tests.engine.registered import HOUR, NOON, seen, small_engine
from tests.normal.test_compiled import MALFORMED, plain, predicate


@pytest.fixture
def engine():
    return small_engine()


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
    with pytest.raises(BulkLoadError, match="row 1: subscription 's0' comes twice; pass replace=True"):
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


@pytest.mark.parametrize(("rows", "kept"), [(list, 0), (iter, 20_000)], ids=["list", "iterator"])
def test_pairs_become_columns_without_more_for_the_garbage_collector_than_is_kept(rows, kept):
    pairs = [(number, f"x = {number}") for number in range(20_000)]
    runs = []
    gc.collect()
    thresholds = gc.get_threshold()
    gc.callbacks.append(lambda phase, _: runs.append(phase))
    gc.set_threshold(kept + 2_000)
    try:
        texts = texts_of(rows(pairs))
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.pop()
    assert (texts.ids[-1], texts.expressions[-1]) == pairs[-1]
    assert not runs
