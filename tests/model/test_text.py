"""String predicates: LIKE's tokens, and each operator against a naive twin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import ExpressionError
from harken.model.text import TextOperator, Wildcard, like_tokens, text_test
from tests.strategies import like_patterns

ONE, RUN = Wildcard.ANY_ONE, Wildcard.ANY_RUN
subjects = st.text(st.sampled_from("ab!%_\\ä\n"), max_size=8)


def naive_like(pattern: str, escape: str | None, subject: str) -> bool:
    """LIKE by trying everything."""
    if not pattern:
        return not subject
    head, rest = pattern[0], pattern[1:]
    if head == escape:
        return subject[:1] == rest[0] and naive_like(rest[1:], escape, subject[1:])
    if head == "%":
        return any(naive_like(rest, escape, subject[at:]) for at in range(len(subject) + 1))
    return bool(subject) and head in ("_", subject[0]) and naive_like(rest, escape, subject[1:])


@given(like_patterns(), subjects)
def test_like_agrees_with_trying_everything(like, subject):
    pattern, escape = like
    assert text_test(TextOperator.LIKE, pattern, escape)(subject) is naive_like(pattern, escape, subject)


@given(st.text(max_size=4), st.text(max_size=8))
def test_prefix_suffix_and_part_compare_characters_only(part, subject):
    assert text_test(TextOperator.STARTS_WITH, part)(subject) is (subject[: len(part)] == part)
    assert text_test(TextOperator.ENDS_WITH, part)(subject) is (
        subject[max(0, len(subject) - len(part)) :] == part
    )
    found = any(subject[at : at + len(part)] == part for at in range(len(subject) + 1))
    assert text_test(TextOperator.CONTAINS, part)(subject) is found


@pytest.mark.parametrize(
    ("pattern", "escape", "tokens"),
    [
        ("", None, []),
        ("abc", None, ["abc"]),
        ("a%b_", None, ["a", RUN, "b", ONE]),
        ("%%", None, [RUN, RUN]),
        ("a!%b", "!", ["a%b"]),
        ("a!!", "!", ["a!"]),
        ("!a", "!", ["a"]),
        (r"a\%", None, ["a\\", RUN]),
        ("%%", "%", ["%"]),
    ],
)
def test_a_like_pattern_is_cut_into_pieces_and_wildcards(pattern, escape, tokens):
    assert like_tokens(pattern, escape) == tokens


@pytest.mark.parametrize(("pattern", "escape"), [("a!", "!"), ("!!!", "!"), ("%", "%")])
def test_a_dangling_escape_is_refused(pattern, escape):
    with pytest.raises(ExpressionError, match="ends with its escape character"):
        like_tokens(pattern, escape)


def test_wildcards_match_line_ends_and_whole_characters():
    assert text_test(TextOperator.LIKE, "a%b")("a\n\r\n\u2028b")
    assert text_test(TextOperator.LIKE, "_")("\U0001f600")
    assert text_test(TextOperator.LIKE, "_")("\n")
    assert not text_test(TextOperator.LIKE, "_")("e\u0301")


def test_nothing_in_a_like_pattern_is_a_regular_expression():
    assert text_test(TextOperator.LIKE, "a.c[x](y)*\\d")("a.c[x](y)*\\d")
    assert not text_test(TextOperator.LIKE, "a.c")("abc")


def test_a_regular_expression_is_found_anywhere_and_takes_linear_time():
    assert text_test(TextOperator.MATCHES, "b+")("abc")
    assert not text_test(TextOperator.MATCHES, "^b")("abc")
    # Backtracking would need 2^40 steps here.
    assert not text_test(TextOperator.MATCHES, "(a|a)*$x")("a" * 40)


@pytest.mark.parametrize("regex", ["(", "[", "a**", r"\1", "(?<=a)", "(?P<a>", "a{1001}", "x" * 70 + "("])
def test_a_bad_regular_expression_is_refused_in_a_readable_line(regex):
    with pytest.raises(ExpressionError, match="bad regular expression") as caught:
        text_test(TextOperator.MATCHES, regex)
    assert len(str(caught.value)) < 200
