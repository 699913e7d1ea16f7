"""What the parser says about texts that are no expressions. The cases are data: errors.jsonl."""

from __future__ import annotations

import contextlib
import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import ExpressionError, HarkenError, ParseError, SchemaError
from harken.language import parse, to_text
from harken.model.schema import Schema
from tests.strategies import wide_expressions

LINES = Path(__file__).with_name("errors.jsonl").read_text(encoding="utf-8").strip().split("\n")
CASES = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("case", CASES, ids=[repr(case["text"]) for case in CASES])
def test_an_error_says_where_what_and_what_was_meant(case):
    with pytest.raises(ParseError) as caught:
        parse(case["text"])
    error = caught.value
    assert (error.position.line, error.position.column) == (case["line"], case["column"])
    assert case["message"] in error.message
    assert error.suggestion == case["suggestion"]
    assert error.found == case["found"]
    assert error.expected == tuple(case["expected"])
    shown, carets = error.context.split("\n")
    assert len(carets.rstrip()) == 2 + case["column"] - 1 + case["carets"]
    assert carets.strip() == "^" * case["carets"]
    line = case["text"].split("\n")[case["line"] - 1]
    assert [char for char in shown[2:] if char != " "] == [c for c in line if c.isprintable() and c != " "]


def test_the_position_counts_from_1_and_the_offset_from_0():
    with pytest.raises(ParseError) as caught:
        parse("a = 1 AND\n  b = ?")
    assert caught.value.position.offset == len("a = 1 AND\n  b = ")
    assert str(caught.value.position) == "line 2, column 7"


def test_the_whole_message_is_one_line_and_a_picture():
    with pytest.raises(ParseError) as caught:
        parse("price < 300 AND\nmaker == 'Sony'")
    assert str(caught.value).split("\n") == [
        "line 2, column 7: unexpected '==', expected a comparison, IN, BETWEEN, LIKE or IS; write = for equality",
        "  maker == 'Sony'",
        "        ^^",
    ]


def test_found_and_expected_are_fields_for_programs():
    with pytest.raises(ParseError) as caught:
        parse("x IN [1]")
    assert caught.value.found == "["
    assert caught.value.expected == ("'('", "RANGE")


def _check_fields(text, error):
    """Every error says where, what was found there, and what could have stood there."""
    assert 0 <= error.position.offset <= len(text)
    assert error.found == "end of text" or text.startswith(error.found, error.position.offset)
    assert (error.found == "end of text") >= (error.position.offset == len(text))
    assert error.expected
    assert all(error.expected)
    assert error.context.count("\n") == 1
    assert error.message


@pytest.mark.parametrize("case", CASES, ids=[repr(case["text"]) for case in CASES])
def test_every_error_has_all_its_fields(case):
    with pytest.raises(ParseError) as caught:
        parse(case["text"])
    _check_fields(case["text"], caught.value)


# One text for each thing that can be expected.
_SAMPLES = {
    "an attribute": "zz",
    "a number": "5",
    "a string": "'s'",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "DATE '...'": "DATE '2026-11-15'",
    "TIMESTAMP '...'": "TIMESTAMP '2026-11-15'",
    "POINT(...)": "POINT(1, 2)",
    "BOX(...)": "BOX(0, 0, 1, 1)",
    "a comparison": "<=",
    **{word: word for word in ("NOT", "IN", "BETWEEN", "LIKE", "STARTS WITH", "ENDS WITH", "CONTAINS", "MATCHES")},
    **{
        word: word
        for word in ("OVERLAPS", "WITHIN", "IS", "NULL", "EXISTS", "WITH", "ESCAPE", "RANGE", "AND", "OR")
    },
    **{f"'{sign}'": sign for sign in "()[],"},
    "the end": "",
}


def _could_stand(before, sample):
    """Whether a text can go on so: it is right, or what is wrong with it comes later."""
    text = f"{before}\n{sample}"  # a new line, since a comment may be open
    if sample and (
        "BETWEEN" in before or "RANGE" in before
    ):  # what is wrong with a range shows when it is complete
        endings = ["", " 5", f" AND {sample}", f", {sample})", ")", " 1, 2)", " 2)"]
        return any(_is_right(text + ending) for ending in endings)
    try:
        parse(text)
    except ParseError as error:
        return bool(sample) and error.found == "end of text" and "never closed" not in error.message
    return True


def _is_right(text):
    try:
        parse(text)
    except ParseError:
        return False
    return True


GRAMMAR_CASES = [case for case in CASES if case["message"].startswith(("unexpected", "the expression"))]


@pytest.mark.parametrize("case", GRAMMAR_CASES, ids=[repr(case["text"]) for case in GRAMMAR_CASES])
def test_what_is_expected_is_all_that_could_stand_there(case):
    with pytest.raises(ParseError) as caught:
        parse(case["text"])
    before = case["text"][: caught.value.position.offset]
    could = {words for words, sample in _SAMPLES.items() if _could_stand(before, sample)}
    if "an attribute" in could:  # where these words are names like others
        could -= {
            "STARTS WITH",
            "ENDS WITH",
            "CONTAINS",
            "MATCHES",
            "OVERLAPS",
            "WITHIN",
            "WITH",
            "ESCAPE",
            "RANGE",
        }
    assert set(caught.value.expected) == could


def test_what_is_expected_comes_in_one_order_everywhere():
    before = {(one, other) for case in GRAMMAR_CASES for one, other in combinations(case["expected"], 2)}
    assert not {(other, one) for one, other in before} & before


@pytest.mark.parametrize(("before", "after"), [(200, 0), (0, 200), (200, 200), (0, 0)])
def test_a_long_line_is_cut_around_the_caret(before, after):
    text = "x = 1 AND " * before + "y == 2" + " AND x = 1" * after
    with pytest.raises(ParseError) as caught:
        parse(text)
    shown, carets = caught.value.context.split("\n")
    assert len(shown) <= 2 + 120 + 2
    assert shown[carets.index("^") :].startswith("==")
    assert shown.startswith("  …") is bool(before)
    assert shown.endswith("…") is bool(after)


def test_tabs_and_other_unprintable_characters_do_not_move_the_caret():
    with pytest.raises(ParseError) as caught:
        parse("x\t=\t'\x07'\tAND y == 2")
    shown, carets = caught.value.context.split("\n")
    assert shown == "  x = ' ' AND y == 2"
    assert shown[carets.index("^") :] == "== 2"


@pytest.mark.parametrize("text", [None, 5, b"x = 1", ["x = 1"]])
def test_what_is_no_string_is_refused(text):
    with pytest.raises(ExpressionError, match="an expression is a string"):
        parse(text)


def test_a_lone_surrogate_is_refused_where_it_stands():
    with pytest.raises(ParseError, match="surrogate") as caught:
        parse("x = 1 AND s = 'a\ud800'")
    assert caught.value.position.column == 15
    with pytest.raises(ParseError, match="surrogate") as caught:
        parse('"a\udfff" = 1')
    assert caught.value.position.column == 1


SCHEMA = Schema({"price": "float", "maker": "string", "in_stock": "bool", "place": "point"})


@pytest.mark.parametrize(
    ("text", "attribute", "message", "suggestion"),
    [
        ("prise < 5", "prise", "the schema has no attribute 'prise'", "did you mean 'price'?"),
        ("Price < 5", "Price", "the schema has no attribute 'Price'", "did you mean 'price'?"),
        ("instock", "instock", "no attribute 'instock'", "did you mean 'in_stock'?"),
        ("zzz IS NULL", "zzz", "no attribute 'zzz'", None),
        ("price = 'cheap'", "price", "'price' is declared float, found string", None),
        ("maker = 5", "maker", "'maker' is declared string, found int", None),
        ("NOT (price < 5 OR maker)", "maker", "'maker' is declared string, found bool", None),
        ("maker WITHIN BOX(0, 0, 1, 1)", "maker", "'maker' is declared string, found a spatial predicate", None),
    ],
)
def test_an_attribute_or_constant_outside_the_schema_is_named(text, attribute, message, suggestion):
    with pytest.raises(SchemaError) as caught:
        parse(text, schema=SCHEMA)
    assert caught.value.attribute == attribute
    assert message in caught.value.message
    assert caught.value.suggestion == suggestion


def test_what_fits_the_schema_parses_as_it_does_without():
    text = "price < 5 AND maker IN ('a', 'b') AND in_stock AND place WITHIN BOX(0, 0, 1, 1)"
    assert parse(text, schema=SCHEMA) == parse(text)


@given(st.text(max_size=60))
def test_any_text_gives_an_expression_or_an_error_of_harken(text):
    try:
        parse(text)
    except ParseError as error:
        _check_fields(text, error)
    except HarkenError:
        pass


_tokens = st.sampled_from(
    [
        *("AND", "OR", "NOT", "IN", "RANGE", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL", "EXISTS", "TRUE", "FALSE"),
        *(
            "STARTS",
            "ENDS",
            "WITH",
            "CONTAINS",
            "MATCHES",
            "OVERLAPS",
            "WITHIN",
            "DATE",
            "TIMESTAMP",
            "POINT",
            "BOX",
        ),
        *("x", "a.b", '"q"', "1", "-2.5", "'s'", "'2026-01-01'", "=", "!=", "<", ">=", "(", ")", "[", "]", ","),
        *("--", "/*", "*/", "'", '"', "!", "&&", "\n", "\0"),
    ]
)


@given(st.lists(_tokens, max_size=14).map(" ".join))
def test_any_row_of_tokens_gives_an_expression_or_an_error_that_points_into_the_text(text):
    try:
        expression, error = parse(text), None
    except ParseError as caught:
        expression, error = None, caught
    if error is None:
        assert repr(parse(to_text(expression))) == repr(expression)
    else:
        _check_fields(text, error)


@given(wide_expressions.map(to_text), st.data())
def test_a_text_with_a_piece_cut_out_never_fails_in_another_way(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    with contextlib.suppress(HarkenError):
        parse(text[:start] + text[end:])
