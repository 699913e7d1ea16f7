"""Compiling in bulk gives what compiling one by one gives: the same clauses, the same rejects, nothing lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harken.compiler import Texts, bulk, compile_texts
from harken.compiler.columns import ClauseColumns
from harken.compiler.direct import compiling
from harken.errors import BoundError, ExpressionError, HarkenError, ParseError, SchemaError, SubscriptionError
from harken.language import parse, to_text
from harken.model.builder import attr
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.schema import Schema
from harken.model.values import Box
from harken.normal.compiled import CompiledBuilder, PredicateRows, compiled_schema
from harken.normal.form import normalise
from harken.normal.validation import compiled_faults
from tests.compiler.texts import TEMPLATES, filled, shape_mates
from tests.strategies import expressions, wide_expressions

pytestmark = pytest.mark.kernel


def declining_all(data, offsets, schema, limits):
    """Instead of `compile_directly`: leave all texts to plans."""
    rows = PredicateRows()
    nothing = np.zeros(0, np.int32)
    return np.zeros(len(offsets) - 1, np.bool_), ClauseColumns(nothing, nothing, rows.columns())


@pytest.fixture(scope="module", autouse=True, params=["directly", "by plans"])
def _no_bulk_is_too_small(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send small examples through the kernels too: all of them, and those of plans alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "SMALLEST_BULK", 1)
        if request.param == "by plans":
            patch.setattr(compiling, "compile_directly", declining_all)
        yield


def clauses_by_id(table):
    """For each id its clauses, each a sorted list of predicates: order says nothing."""
    found = {}
    for id, clauses in zip(table.column("id").to_pylist(), table.column("clauses").to_pylist(), strict=True):
        assert id not in found
        found[id] = sorted(sorted(repr(tuple(row.values())) for row in clause) for clause in clauses)
    return found


def one_by_one(texts, schema=None, limits=DEFAULT_LIMITS):
    """The ordinary way: parse, normalise, build. Clauses by row, and the error of each row that has one."""
    builder, errors = CompiledBuilder(), {}
    for row, text in enumerate(texts):
        try:
            builder.add(row, normalise(parse(text, schema=schema, limits=limits), limits))
        except HarkenError as error:
            errors[row] = error
    return clauses_by_id(builder.finish()), errors


def check(texts, schema=None, limits=DEFAULT_LIMITS):
    """Compare a bulk with the ordinary way, in everything that can be seen."""
    compilation = compile_texts(Texts(range(len(texts)), texts), schema=schema, limits=limits)
    clauses, errors = one_by_one(texts, schema, limits)
    assert clauses_by_id(compilation.table) == clauses
    assert (
        compilation.table.schema == compiled_schema(pa.int64() if len(compilation.table) else pa.string())
        or errors
    )
    assert compilation.rows.tolist() == sorted(clauses)
    assert compilation.table.column("id").to_pylist() == compilation.rows.tolist()
    assert [reject.row for reject in compilation.rejects] == sorted(errors)
    for reject in compilation.rejects:
        error = errors[reject.row]
        assert reject.id == reject.row
        assert type(reject.error) is type(error)
        assert str(reject.error) == str(error)
        assert reject.position == error.position
        assert reject.reason == str(error).split("\n")[0]
    assert len(compilation.table) + len(compilation.rejects) == len(texts)
    assert compiled_faults(compilation.table, limits) == {}
    return compilation


@given(shape_mates())
@settings(max_examples=150)
def test_texts_of_shared_shapes_compile_as_they_do_one_by_one(texts):
    check(texts)


@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_mixed_texts_compile_as_they_do_one_by_one(seed):
    rng = random.Random(seed)
    texts = [filled(rng.choice(TEMPLATES), rng) for _ in range(2_500)]
    compilation = check(texts)
    assert len(compilation.rejects) > 100
    assert len(compilation.table) > 1_500


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_shape_compiles_as_its_texts_do_one_by_one(template):
    rng = random.Random(template)
    check([filled(template, rng, bad=0.1) for _ in range(40)])


@given(st.lists(expressions(max_leaves=4), min_size=1, max_size=4), st.integers(4, 6))
@settings(max_examples=50)
def test_printed_trees_compile_as_they_do_one_by_one(trees, times):
    check([to_text(tree) for tree in trees] * times)


@given(wide_expressions)
@settings(max_examples=50)
def test_any_names_and_constants_compile_as_they_do_one_by_one(tree):
    check([to_text(tree)] * 5)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=3))
@example(["\u00b4\r"])
@settings(max_examples=50)
def test_any_texts_at_all_compile_as_they_do_one_by_one(texts):
    check(texts * 4)


@pytest.mark.parametrize(
    ("template", "literals", "wanted"),
    [
        ("x BETWEEN {} AND {}", [("1", "5"), ("5", "1"), ("3", "3"), ("-5", "-1")], [2, None, 1, 2]),
        ("x > {} AND x < {}", [("1", "2"), ("2", "2"), ("2", "1"), ("1", "9")], [2, None, None, 2]),
        ("x >= {} AND x <= {}", [("1", "2"), ("2", "2"), ("2", "1"), ("1", "9")], [2, 1, None, 2]),
        ("x IN ({}, {})", [("1", "2"), ("2", "2"), ("2", "1"), ("7", "9")], [2, 1, 2, 2]),
        (
            "x NOT IN ({}, {})",
            [("'a'", "'b'"), ("'a'", "'a'"), ("'''", "''"), ("'1'", "'2'")],
            [2, 1, ParseError, 2],
        ),
        ("x = {}{}", [("1", "0"), ("1", "e5"), ("9" * 19, ""), ("9" * 18, "")], [1, 1, ParseError, 1]),
        ("x > {} AND x < {}", [("'a'", "'b'"), ("'b'", "'a'"), ("'Z'", "'a'"), ("'a'", "'ä'")], [2, None, 2, 2]),
    ],
)
def test_the_normal_form_of_a_shape_follows_its_literals(template, literals, wanted):
    texts = [template.format(*pair) for pair in literals] * 3
    compilation = check(texts)
    clauses = clauses_by_id(compilation.table)
    for row, expected in enumerate(wanted * 3):
        if expected is ParseError:
            assert row not in clauses
        elif expected is None:
            assert clauses[row] == []
        else:
            assert len(clauses[row][0]) == expected


def test_a_literal_keeps_its_type():
    compilation = check(["x = 1", "x = 1.0", "x = '1'", "x = TRUE", "x = DATE '2026-01-01'"] * 5)
    first = [clauses[0][0] for clauses in compilation.table.slice(0, 5).column("clauses").to_pylist()]
    assert [row["type"] for row in first] == ["int", "float", "string", "bool", "date"]


def test_a_character_that_looks_like_a_place_for_a_literal_is_none():
    texts = ["x = 'a'", "x = 'b'", "x = 'c'", "x = 'd'", "x = \x00s", "x = \x002", "x = \x00i"]
    compilation = check(texts)
    assert [reject.row for reject in compilation.rejects] == [4, 5, 6]


def test_a_lone_surrogate_is_rejected_and_changes_no_other_text():
    compilation = check(
        ["x = 'a'", "x = 'b'", "x = 'c\ud800'", "x = 'd'", "x = '\udfff'", "x = 'ä'", "\ud800 = 'a'"]
    )
    assert [(reject.row, type(reject.error)) for reject in compilation.rejects] == [
        (2, ParseError),
        (4, ParseError),
        (6, ParseError),
    ]
    assert "surrogate" in compilation.rejects[0].reason


# ---------------------------------------------------------------- bad rows and their neighbours


def test_bad_rows_leave_the_others_as_they_are():
    rng = random.Random("neighbours")
    good = [filled(template, rng, bad=0) for template in TEMPLATES[:40] for _ in range(6)]
    bad = ["x = ", None, 5, "x = 99999999999999999999", "(" * 500, "x LIKE 'a!' ESCAPE '!'", "'", "\ud800"]
    mixed = [row for text in good for row in (text, rng.choice(bad))]
    alone = clauses_by_id(compile_texts(Texts(range(0, 2 * len(good), 2), good)).table)
    among = compile_texts(Texts(range(len(mixed)), mixed))
    assert clauses_by_id(among.table) == alone
    assert [reject.row for reject in among.rejects] == list(range(1, len(mixed), 2))


@pytest.mark.parametrize(
    ("text", "kind", "line", "column", "said"),
    [
        ("price < 300 AND\nmaker == 'Sony'", ParseError, 2, 7, "unexpected '=='"),
        ("x = 9223372036854775808", ParseError, 1, 5, "64-bit"),
        ("d = DATE '2026-02-30'", ParseError, 1, 10, "no such moment"),
        ("x < 1e999", ParseError, 1, 5, "finite"),
        ("", ParseError, 1, 1, "empty"),
    ],
)
def test_a_reject_says_which_row_why_and_where(text, kind, line, column, said):
    texts = ["price < 300 AND\nmaker = 'Sony'", "x = 1", "d = DATE '2026-02-28'", "x < 1e9"] * 4
    compilation = compile_texts(Texts([f"s{at}" for at in range(17)], [*texts[:7], text, *texts[7:]]))
    (reject,) = compilation.rejects
    assert (reject.row, reject.id) == (7, "s7")
    assert isinstance(reject.error, kind)
    assert said in reject.reason
    assert "\n" not in reject.reason
    assert (reject.position.line, reject.position.column) == (line, column)
    assert compilation.rows.tolist() == [row for row in range(17) if row != 7]


@pytest.mark.parametrize("given_text", [None, 5, b"x = 1", ["x = 1"], 1.5])
def test_what_is_neither_text_nor_tree_is_rejected(given_text):
    compilation = compile_texts(Texts(range(6), ["x = 1", "x = 2", given_text, "x = 3", "x = 4", "x = 5"]))
    assert [reject.row for reject in compilation.rejects] == [2]
    assert isinstance(compilation.rejects[0].error, ExpressionError)
    assert compilation.rejects[0].position is None


@pytest.mark.parametrize("bad", [None, True, 1.0, "", "\ud800", b"a", 2**63])
def test_an_id_that_is_none_is_rejected(bad):
    ids = ["a", "b", bad, "c", "d", "e"] if not isinstance(bad, int) else [1, 2, bad, 3, 4, 5]
    compilation = compile_texts(Texts(ids, [f"x = {at}" for at in range(6)]))
    assert [reject.row for reject in compilation.rejects] == [2]
    assert isinstance(compilation.rejects[0].error, SubscriptionError)
    assert compilation.rows.tolist() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("ids", [["a", "b", 3, "d", "e"], [1, 2, "c", 4, 5]])
def test_an_id_unlike_those_before_it_is_rejected(ids):
    compilation = compile_texts(Texts(ids, ["x = 1"] * 5))
    assert [(reject.row, reject.id) for reject in compilation.rejects] == [(2, ids[2])]
    assert "not like the ids before it" in compilation.rejects[0].reason


NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_owner_and_validity_go_with_their_row():
    later = NOON.replace(hour=13)
    texts = Texts(
        ["a", "b", "c", "d", "e"],
        ["x = 1", "x = ", "x = 3", "y LIKE 'a_'", "x = 4"],
        owners=["Ann", "Bob", None, "Dan", "Eve"],
        valid_from=[None, NOON, NOON, later, NOON.replace(tzinfo=None)],
        valid_until=[NOON, None, later, NOON, None],
    )
    compilation = compile_texts(texts)
    rows = compilation.table.drop(["clauses"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("a", "Ann", None, NOON),
        ("c", None, NOON, later),
        ("e", "Eve", NOON, None),
    ]
    assert [reject.row for reject in compilation.rejects] == [1, 3]
    assert "is not before" in compilation.rejects[1].reason


@pytest.mark.parametrize(
    ("field", "bad"), [("owners", 5), ("owners", b"a"), ("valid_from", "noon"), ("valid_until", 5)]
)
def test_an_owner_or_bound_of_another_type_rejects_its_row_only(field, bad):
    compilation = compile_texts(Texts(range(5), ["x = 1"] * 5, **{field: [None, None, bad, None, None]}))
    assert [reject.row for reject in compilation.rejects] == [2]
    assert isinstance(compilation.rejects[0].error, SubscriptionError)
    assert len(compilation.table) == 4


# ---------------------------------------------------------------- schema, limits, trees, chunks


def test_a_schema_is_kept_in_bulk():
    schema = Schema({"price": "float", "maker": "string", "n": "int"})
    texts = [
        "price < 5",
        "price < 5.5",
        "price < 'a'",
        "maker = 'a'",
        "maker = 5",
        "n = 5",
        "n = 5.5",
        "prise < 5",
    ] * 5
    compilation = check(texts, schema=schema)
    assert {type(reject.error) for reject in compilation.rejects} == {SchemaError}
    assert sorted({reject.row % 8 for reject in compilation.rejects}) == [2, 4, 6, 7]


def test_limits_are_kept_in_bulk():
    limits = Limits(max_length=30, max_depth=3, max_clauses=2, max_pattern=3)
    texts = [
        *("x = 'short'", f"x = '{'long' * 10}'", "((x = 1))", "((((x = 1))))", "x = 1 OR y = 1"),
        *("x = 1 OR y = 1 OR z = 1", "x LIKE 'a_'", "x LIKE 'ab_c'", "NOT NOT NOT x = 1", "NOT NOT NOT NOT x = 1"),
    ]
    compilation = check(texts * 5, limits=limits)
    assert [reject.row for reject in compilation.rejects if reject.row < 10] == [1, 3, 5, 7, 9]
    assert {type(reject.error) for reject in compilation.rejects} == {BoundError}


def test_more_literals_than_a_plan_takes_compile_all_the_same():
    rng = random.Random("many literals")
    check(
        [f"x IN ({', '.join(str(rng.randrange(1_000)) for _ in range(width))})" for width in (63, 64, 65, 200)] * 5
    )


def test_trees_and_texts_may_stand_side_by_side():
    trees = [attr("x") == 1, attr("x").like("a_") & (attr("y") > 2), attr("p").within(Box(0, 0, 1, 1))]
    mixed = [*trees, "x = 2", "x = 3", "x = 4", "x = 5"]
    compilation = compile_texts(Texts(range(7), mixed))
    wanted, _ = one_by_one([each if isinstance(each, str) else to_text(each) for each in mixed])
    assert clauses_by_id(compilation.table) == wanted
    only_trees = compile_texts(Texts(range(30), trees * 10))
    assert len(only_trees.table) == 30
    assert not only_trees.rejects


def test_trees_are_checked_against_schema_and_limits():
    trees = [attr("x") == 1, attr("x") == "a", attr("x").like("a" * 20)]
    compilation = compile_texts(Texts(range(3), trees), schema=Schema({"x": "int"}), limits=Limits(max_pattern=10))
    assert [type(reject.error) for reject in compilation.rejects] == [SchemaError, BoundError]


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_chunks_do_not_show(chunk, monkeypatch):
    rng = random.Random("chunks")
    texts = [filled(rng.choice(TEMPLATES), rng) for _ in range(150)]
    whole = compile_texts(Texts(range(150), texts))
    monkeypatch.setattr(bulk, "CHUNK", chunk)
    done = []
    cut = compile_texts(Texts(range(150), texts), progress=done.append)
    assert clauses_by_id(cut.table) == clauses_by_id(whole.table)
    assert cut.table.column("id").to_pylist() == whole.table.column("id").to_pylist()
    assert cut.rows.tolist() == whole.rows.tolist()
    assert [(each.row, each.reason) for each in cut.rejects] == [(each.row, each.reason) for each in whole.rejects]
    assert done == [*range(chunk, 150, chunk), 150]


@pytest.mark.parametrize("ids", [list(range(8)), [None, None, None, None, 4, 5, 6, 7]])
def test_a_chunk_of_nothing_but_rejects_does_not_disturb_the_next(ids, monkeypatch):
    monkeypatch.setattr(bulk, "CHUNK", 4)
    compilation = compile_texts(Texts(ids, ["x = "] * 4 + ["x = 1"] * 4))
    assert compilation.table.column("id").to_pylist() == [4, 5, 6, 7]
    assert [reject.row for reject in compilation.rejects] == [0, 1, 2, 3]


def test_nothing_compiles_to_an_empty_table():
    compilation = compile_texts(Texts([], []))
    assert compilation.table.schema == compiled_schema(pa.string())
    assert (len(compilation.table), len(compilation.rows), compilation.rejects) == (0, 0, [])


def test_nothing_but_rejects_compiles_to_an_empty_table():
    compilation = compile_texts(Texts(range(5), ["x = "] * 5))
    assert (len(compilation.table), len(compilation.rejects)) == (0, 5)


def test_ids_may_be_strings_or_integers_of_numpy_or_arrow():
    texts = [f"x = {at}" for at in range(6)]
    assert compile_texts(Texts(list("abcdef"), texts)).table.schema.field("id").type == pa.string()
    assert compile_texts(Texts(range(6), texts)).table.schema.field("id").type == pa.int64()
    arrow = pa.array(range(6)).to_pylist()
    assert compile_texts(Texts(arrow, texts)).rows.dtype == np.int64


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "1" * 100_000 + "x",
        "/* " * 40_000,
        "x = '" + "''" * 50_000,
        '"' * 100_001,
        "x IN (" + "1, " * 8_000 + "1)",
        "x = 1 OR " * 5_000 + "x = 1",
        "(" * 20_000,
        "- " * 10_000,
    ],
    ids=["digits", "comments", "quotes", "double quotes", "in", "or", "open", "dashes"],
)
def test_no_long_text_hangs_the_compiler_or_its_neighbours(text):
    compilation = compile_texts(Texts(range(9), ["x = 1", "x = 2", "x = 3", "x = 4"] + [text] * 5))
    assert compilation.rows.tolist()[:4] == [0, 1, 2, 3]
    assert len(compilation.table) + len(compilation.rejects) == 9


def test_a_refused_text_is_told_in_bulk_as_it_is_told_alone():
    lines = Path(__file__, "../../language/errors.jsonl").resolve().read_text(encoding="utf-8").strip().split("\n")
    refused = [json.loads(line)["text"] for line in lines]
    # Several of each, so that plans are tried; and sound ones between them.
    texts = [each for text in refused for each in (text, "price < 5", text, text, text)]
    compilation = compile_texts(Texts(range(len(texts)), texts))
    said = {reject.row: reject.error for reject in compilation.rejects}
    assert sorted(said) == [row for row, text in enumerate(texts) if text != "price < 5"]
    for row, error in said.items():
        with pytest.raises(ParseError) as alone:
            parse(texts[row])
        assert (str(error), error.found, error.expected) == (
            str(alone.value),
            alone.value.found,
            alone.value.expected,
        )
