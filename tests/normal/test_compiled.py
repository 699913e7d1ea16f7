"""The compiled form: what it says is what the expression said, on any road it may travel."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, SymmetricEngine
from harken.errors import SubscriptionError
from harken.language import parse, to_text
from harken.model.evaluation import truth
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.subscriptions import Validity
from harken.normal.columns import NestedClauses
from harken.normal.compiled import CLAUSES, CompiledBuilder, compiled_schema, conform, id_array, is_compiled
from harken.normal.decompiled import expressions_of
from harken.normal.form import normalise
from harken.normal.operators import OPERATORS, constant_of, operand_of
from harken.normal.validation import compiled_faults
from tests.strategies import Generator, events, expressions, wide_values


def compiled(*expressions, ids=None):
    """The expressions as a compiled table."""
    builder = CompiledBuilder()
    for at, expression in enumerate(expressions):
        form = normalise(parse(expression) if isinstance(expression, str) else expression)
        builder.add(at if ids is None else ids[at], form)
    return builder.finish()


def through_parquet(table):
    """The table as another program would read it: without Arrow's own schema."""
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False)
    sink.seek(0)
    return pq.read_table(sink)


def agree(expression, again, event):
    return (truth(expression, event) is True) is (truth(again, event) is True)


@given(expressions(), events())
@settings(max_examples=300)
def test_compiled_and_read_back_an_expression_is_true_for_the_same_events(expression, event):
    (again,) = expressions_of(compiled(expression))
    assert agree(expression, again, event)


def test_many_seeded_expressions_are_true_for_the_same_events_after_compiling():
    generator = Generator("compiled form")
    written = [generator.expression(depth=4) for _ in range(500)]
    flat = [generator.event() for _ in range(12)]
    for expression, again in zip(written, expressions_of(compiled(*written)), strict=True):
        for event in flat:
            assert agree(expression, again, event), (to_text(expression), to_text(again), event)


@given(st.lists(expressions(), max_size=5))
@settings(max_examples=50)
def test_the_compiled_form_survives_parquet_slicing_and_concatenation(written):
    table = compiled(*written)
    read = conform(through_parquet(table))
    assert read.schema == table.schema
    assert read.to_pylist() == table.to_pylist()
    parts = [read.slice(at, 1) for at in range(len(written))]
    assert conform(pa.concat_tables(parts) if parts else read).to_pylist() == table.to_pylist()
    assert [expressions_of(part) for part in parts] == [[one] for one in expressions_of(table)]


@given(expressions(), events())
def test_compiling_again_what_was_read_back_adds_no_clause_and_changes_no_match(expression, event):
    table = compiled(expression)
    (once,) = expressions_of(table)
    again = compiled(once)
    assert agree(expression, expressions_of(again)[0], event)
    assert len(again.column("clauses")[0]) <= len(table.column("clauses")[0])


@given(expressions())
def test_what_is_made_here_is_sound(expression):
    assert compiled_faults(compiled(expression), DEFAULT_LIMITS) == {}


@given(wide_values)
def test_every_constant_survives_as_an_operand(value):
    assert repr(constant_of(operand_of(value))) == repr(value)


@pytest.mark.parametrize(
    ("text", "predicates"),
    [
        ("x = 1", [("x", "=", "int", 1)]),
        ("x = 1.5", [("x", "=", "float", 1.5)]),
        ("x < 90071992547409.93", [("x", "<", "decimal", "90071992547409.93")]),
        ("x = 'a'", [("x", "=", "string", "a")]),
        ("x", [("x", "=", "bool", 1)]),
        ("x = DATE '1970-01-02'", [("x", "=", "date", 1)]),
        ("x < TIMESTAMP '1969-12-31 23:59:59.999999Z'", [("x", "<", "timestamp", -1)]),
        ("x = POINT(1, 2)", [("x", "=", "point", [1.0, 2.0])]),
        ("x OVERLAPS BOX(0, 0, 1, 1)", [("x", "overlaps", "box", [0.0, 0.0, 1.0, 1.0])]),
        ("x IN (2, 1)", [("x", "in", "int", 1), ("x", "in", "int", 2)]),
        ("x NOT IN (2, 1)", [("x", "!=", "int", 1), ("x", "!=", "int", 2)]),
        ("x BETWEEN 1 AND 2", [("x", ">=", "int", 1), ("x", "<=", "int", 2)]),
        ("x STARTS WITH 'a'", [("x", ">=", "string", "a"), ("x", "<", "string", "b")]),
        ("x NOT STARTS WITH 'a'", [("x", "not starts with", "string", "a")]),
        ("x LIKE 'a_'", [("x", "like", "string", "a_")]),
        ("x LIKE 'a!__' ESCAPE '!'", [("x", "like", "string", r"a\__")]),
        ("x MATCHES 'a'", [("x", "matches", "string", "a")]),
        ("x NOT CONTAINS 'a'", [("x", "not contains", "string", "a")]),
        ("x IS NULL", [("x", "is null", None, None)]),
        ("x IS NOT NULL", [("x", "is not null", None, None)]),
    ],
)
def test_a_predicate_is_one_row_with_one_operand(text, predicates):
    (clause,) = compiled(text).column("clauses")[0].as_py()
    found = []
    for row in clause:
        operands = [row[name] for name in ("integer", "real", "text", "shape") if row[name] is not None]
        assert len(operands) <= 1
        found.append((row["attribute"], row["operator"], row["type"], operands[0] if operands else None))
    assert found == predicates


def test_nothing_matches_an_empty_list_of_clauses_and_everything_an_empty_clause():
    table = compiled("FALSE", "TRUE")
    assert table.column("clauses").to_pylist() == [[], [[]]]
    assert list(map(to_text, expressions_of(table))) == ["FALSE", "TRUE"]


def test_owner_and_validity_are_columns():
    builder = CompiledBuilder()
    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    builder.add("a", normalise(parse("x = 1")), "Ann", Validity(noon, None))
    builder.add("b", normalise(parse("x = 1")))
    assert len(builder) == 2
    rows = builder.finish().drop(["clauses"]).to_pylist()
    assert rows[0] == {"id": "a", "owner": "Ann", "valid_from": noon, "valid_until": None}
    assert rows[1] == {"id": "b", "owner": None, "valid_from": None, "valid_until": None}


def test_ids_are_all_strings_or_all_integers():
    assert id_array(["a", "b"]).type == pa.string()
    assert id_array([1, 2]).type == pa.int64()
    assert id_array([]).type == pa.string()
    for mixed in (["a", 1], [1, "a"]):
        with pytest.raises(SubscriptionError, match="not both"):
            id_array(mixed)


def test_a_table_is_of_the_compiled_form_when_it_has_clauses():
    assert is_compiled(compiled("x = 1"))
    assert not is_compiled(pa.table({"id": ["a"], "expression": ["x = 1"]}))


# ---------------------------------------------------------------- tables from elsewhere


def plain(rows, id_type=None):
    """A compiled table with plain strings, as JSON or another language would make it."""
    predicate = pa.struct(
        [
            *((name, pa.string()) for name in ("attribute", "operator", "type")),
            *(("integer", pa.int64()), ("real", pa.float64()), ("text", pa.string())),
            ("shape", pa.list_(pa.float64())),
        ]
    )
    ids = pa.array(range(len(rows)), id_type) if id_type else pa.array([f"s{at}" for at in range(len(rows))])
    return pa.table({"id": ids, "clauses": pa.array(rows, pa.list_(pa.list_(predicate)))})


def predicate(attribute="x", operator="=", **rest):
    """One predicate as another program writes it: an int, unless said otherwise."""
    return {"attribute": attribute, "operator": operator, "type": "int", **rest}


def test_plain_strings_become_dictionaries_and_missing_columns_null():
    table = conform(plain([[[predicate(integer=5)]], []]))
    assert table.schema == compiled_schema(pa.string())
    assert list(map(to_text, expressions_of(table))) == ["x = 5", "FALSE"]
    assert table.column("owner").null_count == 2


@pytest.mark.parametrize("id_type", [pa.int8(), pa.uint32(), pa.int64()])
def test_ids_of_any_integer_type_are_taken(id_type):
    assert conform(plain([[], []], id_type)).column("id").to_pylist() == [0, 1]


@pytest.mark.parametrize("id_type", [pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_ids_of_any_string_type_are_taken(id_type):
    table = plain([[]])
    table = table.set_column(0, "id", table.column("id").cast(id_type))
    assert conform(table).column("id").to_pylist() == ["s0"]


def test_large_lists_and_strings_are_taken():
    row = [[predicate(integer=5), predicate("y", type="string", text="a")]]
    table = plain([row, row, None]).slice(1)
    large = pa.struct(
        [
            (f.name, pa.large_string() if f.type == pa.string() else f.type)
            for f in table.schema.field(1).type.value_type.value_type
        ]
    )
    table = table.set_column(1, "clauses", table.column(1).cast(pa.large_list(pa.large_list(large))))
    conformed = conform(table)
    assert conformed.schema == compiled_schema(pa.string())
    assert to_text(expressions_of(conformed.slice(0, 1))[0]) == "x = 5 AND y = 'a'"
    assert conformed.column("clauses").null_count == 1


@pytest.mark.parametrize("ids", [pa.array([1.5]), pa.array([True]), pa.array([b"a"]), pa.array([[1]])])
def test_ids_of_another_type_are_refused_not_converted(ids):
    table = plain([[]])
    with pytest.raises(SubscriptionError, match="id"):
        conform(table.set_column(0, "id", ids))


def test_a_kind_test_is_read_though_it_is_never_written():
    (number, string) = expressions_of(
        conform(plain([[[predicate(operator="is", type="int")]], [[predicate(operator="is", type="string")]]]))
    )
    assert [truth(number, {"x": value}) is True for value in (5, -0.5, "a", True)] == [True, True, False, False]
    assert [truth(string, {"x": value}) is True for value in (5, "", "a", True)] == [False, True, True, False]
    assert truth(number, {}) is None


@pytest.mark.parametrize(
    "table",
    [
        plain([[]]).drop(["id"]),
        pa.table({"id": [1], "clauses": ["x = 1"]}),
        pa.table({"id": [1], "clauses": [5]}),
        pa.table({"id": [1], "clauses": [["x"]]}),
        pa.table({"id": [1], "clauses": [[["x"]]]}),
        pa.table({"id": [1], "clauses": [[[{"attribute": "x"}]]]}),
        pa.table({"id": [1], "clauses": [[{"attribute": "x"}]]}),
        pa.table({"id": [2**63]}, schema=pa.schema([("id", pa.uint64())])).append_column(
            "clauses", pa.array([[]], CLAUSES)
        ),
        plain([[]]).append_column("valid_from", pa.array(["noon"])),
        plain([[]]).append_column("owner", pa.array([["a", "b"]])),
    ],
    ids=["no id", "text", "int", "list", "lists of text", "field", "one level", "id too large", "moment", "owner"],
)
def test_a_table_of_another_shape_is_refused(table):
    with pytest.raises(SubscriptionError):
        conform(table)


MALFORMED = {
    "no attribute": predicate(attribute=None, integer=1),
    "empty attribute": predicate(attribute="", integer=1),
    "no operator": predicate(operator=None, integer=1),
    "unknown operator": predicate(operator="~", integer=1),
    "not of what has no opposite": predicate(operator="not =", integer=1),
    "no type": predicate(type=None, integer=1),
    "unknown type": predicate(type="money", integer=1),
    "no int": predicate(),
    "int elsewhere": predicate(real=1.0),
    "no float": predicate(type="float"),
    "no string": predicate(type="string"),
    "no bool": predicate(type="bool"),
    "no decimal": predicate(type="decimal", real=0.5),
    "a decimal that is none": predicate(type="decimal", text="one"),
    "a decimal past all bounds": predicate(type="decimal", text="1e999999"),
    "a decimal of too many digits": predicate(type="decimal", text="0." + "1" * 99),
    "like of a decimal": predicate(operator="like", type="decimal", text="1.5"),
    "no shape": predicate(type="point"),
    "no date": predicate(type="date"),
    "no operand of in": predicate(operator="in"),
    "nan": predicate(type="float", real=float("nan")),
    "infinity": predicate(type="float", real=float("inf")),
    "a date outside the calendar": predicate(type="date", integer=10**9),
    "a date far outside the calendar": predicate(type="date", integer=2**62),
    "a moment outside the calendar": predicate(type="timestamp", integer=2**62),
    "like of a number": predicate(operator="like", type="int", integer=1),
    "starts with of a shape": predicate(operator="starts with", type="point", shape=[1, 2]),
    "overlaps of a string": predicate(operator="overlaps", type="string", text="a"),
    "order of a shape": predicate(operator="<", type="point", shape=[1, 2]),
    "bad regular expression": predicate(operator="matches", type="string", text="("),
    "dangling escape": predicate(operator="not like", type="string", text="a\\"),
    "point of three": predicate(type="point", shape=[1, 2, 3]),
    "box of two": predicate(operator="within", type="box", shape=[1, 2]),
    "box the wrong way round": predicate(operator="within", type="box", shape=[1, 1, 0, 0]),
    "shape with a hole": predicate(type="point", shape=[1, None]),
    "shape of nan": predicate(type="point", shape=[1, float("nan")]),
    "kind test of a shape": predicate(operator="is", type="point"),
    "kind test of nothing": predicate(operator="is", type=None),
    "no predicate": None,
}


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_predicate_is_refused_when_read(bad):
    table = conform(plain([[[predicate(integer=1)]], [[predicate(integer=1), bad]]]))
    with pytest.raises(SubscriptionError, match="row 1 of a compiled table is malformed"):
        expressions_of(table)


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_predicate_is_found_in_its_row_and_no_other(bad):
    good = [[predicate(integer=1)]]
    table = conform(plain([good, [[predicate(integer=1)], [bad]], good, []]))
    assert list(compiled_faults(table, DEFAULT_LIMITS)) == [1]
    assert list(compiled_faults(table.slice(1, 2), DEFAULT_LIMITS)) == [0]
    assert list(compiled_faults(pa.concat_tables([table.slice(0, 1), table.slice(1)]), DEFAULT_LIMITS)) == [1]


def test_a_row_without_clauses_or_id_is_a_fault():
    table = plain([[[predicate(integer=1)]], None])
    assert list(compiled_faults(conform(table), DEFAULT_LIMITS)) == [1]
    nameless = table.slice(0, 1).set_column(0, "id", pa.array([None], pa.string()))
    assert list(compiled_faults(conform(nameless), DEFAULT_LIMITS)) == [0]


def test_the_limits_hold_for_compiled_rows_too():
    two = [[predicate(integer=1)], [predicate("y", integer=1)]]
    long = [[predicate(operator="ends with", type="string", text="a" * 11)]]
    table = conform(plain([two, long, two[:1]]))
    assert compiled_faults(table, DEFAULT_LIMITS) == {}
    assert list(compiled_faults(table, Limits(max_clauses=1, max_pattern=10))) == [0, 1]


def test_every_operator_can_be_read_back():
    for operator in OPERATORS:
        needs = {"overlaps": "box", "within": "box"}.get(operator.removeprefix("not "), "string")
        operand = {"shape": [0, 0, 1, 1]} if needs == "box" else {"text": "a"}
        bare = operator in ("is null", "is not null")
        row = predicate(
            operator=operator, type=None if bare else needs, **({} if bare or operator == "is" else operand)
        )
        table = conform(plain([[[row]]]))
        assert compiled_faults(table, DEFAULT_LIMITS) == {}, operator
        assert expressions_of(table)


def test_lists_of_nothing_may_lack_their_offsets_as_spark_hands_them_over():
    """Arrow itself would crash on them."""
    whole = compiled("x = 1").column("clauses").chunk(0)
    nothing = [None, pa.py_buffer(b"")]
    inner = pa.ListArray.from_buffers(whole.type.value_type, 0, nothing, children=[whole.values.values[:0]])
    outer = pa.ListArray.from_buffers(whole.type, 0, nothing, children=[inner])
    none_of_one = pa.ListArray.from_buffers(whole.type, 1, [None, pa.py_buffer(bytes(8))], children=[inner])
    for lists, counts in ((outer, []), (none_of_one, [0])):
        found = NestedClauses.of(lists)
        assert found.clause_counts.tolist() == counts
        assert len(found.predicate_counts) == len(found.predicates) == 0
        ids = pa.array([f"i{at}" for at in range(len(lists))], pa.string())
        table = pa.table({"id": ids, "clauses": lists})
        for engine in (Engine("dynamic"), SymmetricEngine()):
            assert engine.subscribe_many(table) is not None
            assert len(engine) == len(lists)
