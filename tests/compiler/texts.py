"""Texts that share shapes, sound and unsound, for compiling in bulk."""

from __future__ import annotations

import random

from hypothesis import strategies as st

# {i} int, {f} float, {n} either, {s} string, {d} date, {t} timestamp: each is filled anew for every text.
TEMPLATES = (
    # one predicate per attribute
    "price < {i} AND maker = {s}",
    "x = {n}",
    "x != {i} AND y != {s} AND z <> {f}",
    "{i} < x AND {s} = y",
    "x IS NULL AND y = {i}",
    "EXISTS x AND y < {i}",
    "sold AND x = {i}",
    "NOT sold AND x = {i}",
    "x = TRUE AND y = {i} AND z = FALSE",
    "x != TRUE AND y = {i}",
    "x IN (TRUE) AND y = {i}",
    "x IN (TRUE, FALSE) AND y = {i}",
    # where the normal form depends on the literals
    "x BETWEEN {i} AND {i}",
    "x NOT BETWEEN {n} AND {n}",
    "x IN RANGE [{n}, {n})",
    "x IN RANGE ({s}, {s}]",
    "x > {n} AND x < {n}",
    "x < {i} AND y = {s} AND x >= {i}",
    "x >= {i} AND x <= {i} AND y = {s}",
    "x > {s} AND x < {s}",
    "x > {i} AND x < {s}",
    "x = {i} AND x = {i}",
    "x > {i} AND x > {i}",
    "x != {i} AND x < {i}",
    "x IN ({i}, {i}, {i})",
    "x IN ({i}, {f}, {i})",
    "x IN ({i}, {s})",
    "x IN ({i})",
    "x NOT IN ({s}, {s})",
    "x NOT IN ({i}, {s})",
    "x IN ({s}, {s}) AND y NOT IN ({n}, {n}) AND z BETWEEN {f} AND {f}",
    # alternatives
    "x = {i} OR y = {i}",
    "(x = {i} AND y = {s}) OR (z > {f} AND w = TRUE)",
    "x = {i} OR x = {i}",
    "x = {i} OR (x = {i} AND y = {i})",
    "x > {i} OR y = {s} OR x > {i}",
    "(x = {i} OR y = {i}) AND z = {i}",
    "NOT (x < {i} OR y = {s})",
    "NOT (x < {i} AND y BETWEEN {i} AND {i})",
    "x IS NULL OR x = {i}",
    "x = {i} OR TRUE",
    "FALSE AND x = {i}",
    "NOT NOT x = {i}",
    "((x = {i}))",
    # moments, patterns, shapes
    "d = DATE {d}",
    "d BETWEEN DATE {d} AND DATE {d}",
    "d IN (DATE {d}, DATE {d})",
    "t < TIMESTAMP {t} AND x = {s}",
    "t > TIMESTAMP {t} AND t <= TIMESTAMP {t}",
    "d < DATE {d} AND t < TIMESTAMP {t}",
    "date = date{d} AND contains CONTAINS {s}",
    "s LIKE {s} AND x = {i}",
    "s STARTS WITH {s}",
    "s NOT CONTAINS {s} OR x < {i}",
    "s MATCHES {s}",
    "p WITHIN BOX({i}, {i}, {i}, {i})",
    "p = POINT({f}, {i}) AND x = {i}",
    # names and comments with digits, quotes and dashes in them
    "x1 = {i} AND x2 = {i} AND a1.b2 = {s}",
    '"name 5" = {i} AND "it\'s 7" = {s}',
    '"say ""9""" = {i} AND "--" = {s} AND "/*" < {i}',
    "größe = {i} AND 名前 = {s}",
    "x = {i} -- it's \"5\" and 'that'\nAND y = {s}",
    "/* 'a' 5 \"b\" */ x = {i} /* -- */ AND y = {i}",
    "x = {i} --",
    "x={i}AND y={i}",
    "x<{i}or y>{f}",
    "  X\t= {i}\r\naNd\u00a0Y = {i}  ",
    # no expressions at all
    "x = {i} y",
    "x == {i}",
    "x = {i} AND",
    "x = {i}{i}",
    "x {i}",
    "{i}",
    "x = {i} /* never closed",
    "x = {i} AND y = 'never closed",
    "x = {i} \x00",
    "",
)

INTS = (
    *("0", "1", "1", "2", "2", "3", "-1", "+2", "-0", "007", "12345678901"),
    *("9007199254740993", "9223372036854775807", "-9223372036854775808"),
)
BAD_INTS = ("9223372036854775808", "-9223372036854775809", "99999999999999999999", "1" * 60)
FLOATS = (
    *("0.5", "1.0", "1.", ".5", "-.5", "2.0", "2.5", "1e0", "1E+3", "-2.5e-3", "0.0", "-0.0", "1e308"),
    *("9007199254740992.0", "9223372036854775807.0", "12345678901234567890.5", "90071992547409.93", "1.2345e-322"),
    *("0.10000000000000001", "0.1", "0.000000000000000000", "1.000000000000000000000", "1e23", "0e-999"),
)
BAD_FLOATS = ("1e999", "-1e999", "1" * 400 + ".0", "1e-999", "0." + "1" * 90, "1e-99999999999999999999")
STRINGS = (
    *("''", "'a'", "'a'", "'b'", "'ab'", "'it''s'", "''''", "'5'", "'x = 5'", "'-- no'", "'/*'", "'*/'", "'\"'"),
    *("'ä'", "'日本'", "'\U0001f600'", "'\U0010ffff'", "'a%'", "'a_'", "'two\nlines'", "'\\'", "'\x00'", "' a '"),
)
BAD_STRINGS = ("'\ud800'", "'a\udfff'")
DATES = ("'2026-02-27'", "'2026-02-28'", "'2024-02-29'", "'0001-01-01'", "'9999-12-31'")
BAD_DATES = ("'2026-02-30'", "'2026-2-3'", "'today'", "''", "'0000-01-01'")
MOMENTS = ("'2026-02-28'", "'2026-02-28 10:30'", "'2026-02-28T10:30:00.000001Z'", "'2026-02-28 12:30+02'")
BAD_MOMENTS = ("'2026-02-28 25:00'", "'noon'", "'0001-01-01 00:00+01:00'", "'2026-02-28+02'")

GOOD = {"i": INTS, "f": FLOATS, "n": INTS + FLOATS, "s": STRINGS, "d": DATES, "t": MOMENTS}
BAD = {
    "i": BAD_INTS,
    "f": BAD_FLOATS,
    "n": BAD_INTS + BAD_FLOATS,
    "s": BAD_STRINGS,
    "d": BAD_DATES,
    "t": BAD_MOMENTS,
}


def pieces(template: str) -> list[str]:
    """A template cut up: text and slot names in turn."""
    cut = template.replace("}", "{").split("{")
    assert len(cut) % 2
    return cut


def filled(template: str, rng: random.Random, bad: float = 0.03) -> str:
    """The template with a literal in each slot, now and then one that means nothing."""
    cut = pieces(template)
    for at in range(1, len(cut), 2):
        literals = BAD if rng.random() < bad else GOOD
        cut[at] = rng.choice(literals[cut[at]])
    return "".join(cut)


@st.composite
def shape_mates(draw: st.DrawFn) -> list[str]:
    """Some texts of each of a few shapes, in any order."""
    texts = []
    for template in draw(st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=4, unique=True)):
        cut = pieces(template)
        slots = [st.sampled_from(GOOD[slot] * 3 + BAD[slot]) for slot in cut[1::2]]
        for literals in draw(st.lists(st.tuples(*slots), min_size=4, max_size=8)):
            whole = cut[:]
            whole[1::2] = literals
            texts.append("".join(whole))
    return draw(st.permutations(texts))
