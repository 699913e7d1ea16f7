"""Values, names, expressions and events for tests, made by Hypothesis or by a seeded `random`.

Two kinds of domains. The **small** ones hold a few values each, so that the values of events often equal,
barely miss or lie between the constants of expressions. The **wide** ones hold all that a type can hold.

A vocabulary says of which kinds the values of each attribute are: `FREE` mixes them all, `TYPED` gives each
attribute one, as a database table does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache

from hypothesis import strategies as st

from harken.model.expressions import (
    FALSE,
    TRUE,
    And,
    Comparator,
    Comparison,
    Expression,
    Membership,
    Not,
    Or,
    Predicate,
    Presence,
    Range,
    Spatial,
    SpatialOperator,
    TextMatch,
)
from harken.model.numbers import decimal_constant
from harken.model.text import TextOperator
from harken.model.values import INT_MAX, INT_MIN, Box, Kind, Point, Value

Vocabulary = Mapping[str, Sequence[Kind]]

SMALL: dict[Kind, tuple[Value, ...]] = {
    Kind.NUMBER: (-2, -1, 0, 1, 2, 3, -1.5, -0.0, 0.5, 1.0, 2.0, 2.5, 2**53, 2**53 + 1, float(2**53), INT_MAX),
    Kind.STRING: ("", "a", "aa", "ab", "abc", "b", "B", "a%b", "a_b", "it's", "a\nb", "ä", "日本", "\U0010ffff"),
    Kind.BOOL: (False, True),
    Kind.DATE: (date(2026, 2, 27), date(2026, 2, 28), date(2026, 3, 1), date(1969, 12, 31)),
    Kind.TIMESTAMP: (
        datetime(2026, 2, 28, tzinfo=UTC),
        datetime(2026, 2, 28, 12, 30, tzinfo=UTC),
        datetime(2026, 2, 28, 12, 30, 0, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
    Kind.POINT: tuple(Point(x, y) for x in (0, 1, 2) for y in (0, 2)),
    Kind.BOX: (
        Box(0, 0, 1, 2),
        Box(1, 0, 2, 2),
        Box(0, 0, 2, 2),
        Box(1, 1, 1, 1),
        Box(2, 2, 3, 3),
        Box(0, 0, 0, 0),
    ),
}
ORDERED = tuple(kind for kind in Kind if kind.is_ordered)
SPATIAL = (Kind.POINT, Kind.BOX)

FREE: Vocabulary = {name: tuple(Kind) for name in ("x", "y", "a.b")}
TYPED: Vocabulary = {
    "n": (Kind.NUMBER,),
    "m": (Kind.NUMBER,),
    "s": (Kind.STRING,),
    "b": (Kind.BOOL,),
    "d": (Kind.DATE,),
    "t": (Kind.TIMESTAMP,),
    "place.name": (Kind.STRING,),
    "spot": (Kind.POINT,),
    "area": (Kind.BOX,),
}

LIKE_PIECES = ("a", "b", "ab", "%", "_", "!", "\\", "ä", "\n")
REGEXES = ("a", "^a", "b$", "^ab?$", "a.b", "[ab]+", "a|日", "^$", "(?i)B", "a{2}", "", r"\.", "ä", "(?:a|b)c")
AWKWARD_NAMES = (
    # keywords that are names wherever the grammar cannot use them
    *("date", "timestamp", "point", "box", "contains", "range", "escape", "starts", "with", "within", "matches"),
    # words that have to be quoted, in any case
    *("and", "OR", "Not", "in", "null", "TRUE", "exists", "is", "like", "between"),
    *("a.b", "a.b.c", "date.range", "and.or", "x.null", "größe", "名前", "_", "x1", "x_1"),
    *(
        "two words",
        'say "hi"',
        "a..b",
        ".a",
        "a.",
        "1st",
        "a-b",
        "it's",
        "a\nb",
        "--",
        "/*",
        " ",
        '"',
        "0",
        "é\u0301",
    ),
)


# ---------------------------------------------------------------- Hypothesis: values and names

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_moment = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30))
_coordinate = st.floats(allow_nan=False, allow_infinity=False)

WIDE: dict[Kind, st.SearchStrategy[Value]] = {
    Kind.NUMBER: st.one_of(
        st.integers(INT_MIN, INT_MAX),
        st.sampled_from([INT_MIN, INT_MAX, 0, -1, 2**53, 2**53 + 1]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([0.0, -0.0, 5e-324, 1.7976931348623157e308, 1e16, 0.1]),
        st.decimals(-(10**25), 10**25, places=6).map(decimal_constant),
    ),
    Kind.STRING: _text,
    Kind.BOOL: st.booleans(),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: _moment.map(lambda moment: moment.replace(tzinfo=UTC, fold=0)),
    Kind.POINT: st.builds(Point, _coordinate, _coordinate),
    Kind.BOX: st.tuples(_coordinate, _coordinate, _coordinate, _coordinate).map(
        lambda c: Box(min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
    ),
}

wide_values: st.SearchStrategy[Value] = st.one_of(*WIDE.values())
small_values: st.SearchStrategy[Value] = st.one_of(*(st.sampled_from(values) for values in SMALL.values()))
names: st.SearchStrategy[str] = st.one_of(
    st.sampled_from(AWKWARD_NAMES), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
)


def values_of(kind: Kind, *, wide: bool = False) -> st.SearchStrategy[Value]:
    """Values of one kind."""
    return WIDE[kind] if wide else st.sampled_from(SMALL[kind])


# ---------------------------------------------------------------- Hypothesis: predicates and expressions


@st.composite
def like_patterns(draw: st.DrawFn) -> tuple[str, str | None]:
    """A LIKE pattern and its escape character; never a dangling one."""
    escape = draw(st.sampled_from([None, None, "!", "\\", "%", "_", "a"]))
    pieces = draw(st.lists(st.sampled_from(LIKE_PIECES), max_size=5))
    pattern = "".join(piece if piece != escape else escape * 2 for piece in pieces)
    if escape is None:
        return pattern, None
    # Pieces that hold the escape inside ("ab" with escape "a") make it escape the next character: still valid,
    # unless it comes last.
    trailing = len(pattern) - len(pattern.rstrip(escape))
    return pattern + escape if trailing % 2 else pattern, escape


Names = st.SearchStrategy[str]


def text_matches(name: Names, *, wide: bool = False) -> st.SearchStrategy[TextMatch]:
    """Predicates that look into texts."""
    words = st.sampled_from([TextOperator.STARTS_WITH, TextOperator.ENDS_WITH, TextOperator.CONTAINS])
    return st.one_of(
        st.builds(lambda name, like: TextMatch(name, TextOperator.LIKE, *like), name, like_patterns()),
        st.builds(TextMatch, name, st.just(TextOperator.MATCHES), st.sampled_from(REGEXES)),
        st.builds(TextMatch, name, words, values_of(Kind.STRING, wide=wide)),
    )


def _ordered_predicates(name: Names, kind: Kind, *, wide: bool) -> st.SearchStrategy[Predicate]:
    value = values_of(kind, wide=wide)
    return st.one_of(
        st.builds(Comparison, name, st.sampled_from(Comparator), value),
        st.builds(Range, name, value, value, st.booleans(), st.booleans()),
    )


def spatial_predicates(name: Names, *, wide: bool = False) -> st.SearchStrategy[Predicate]:
    """Predicates about points and boxes."""
    shape = st.one_of(*(values_of(kind, wide=wide) for kind in SPATIAL))
    return st.builds(Spatial, name, st.sampled_from(SpatialOperator), shape)


def predicates_on(name: str | Names, kinds: Sequence[Kind], *, wide: bool = False) -> st.SearchStrategy[Predicate]:
    """Predicates of every operator that suits the kinds."""
    name = st.just(name) if isinstance(name, str) else name
    value = st.one_of(*(values_of(kind, wide=wide) for kind in kinds))
    choices: list[st.SearchStrategy[Predicate]] = [
        st.builds(Comparison, name, st.sampled_from([Comparator.EQ, Comparator.NE]), value),
        st.builds(Membership, name, st.lists(value, min_size=1, max_size=4).map(tuple)),
        st.builds(Presence, name, st.booleans()),
        *(_ordered_predicates(name, kind, wide=wide) for kind in kinds if kind.is_ordered),
    ]
    if Kind.STRING in kinds:
        choices.append(text_matches(name, wide=wide))
    if set(kinds) & set(SPATIAL):
        choices.append(spatial_predicates(name, wide=wide))
    return st.one_of(choices)


def trees(leaves: st.SearchStrategy[Expression], *, max_leaves: int = 8) -> st.SearchStrategy[Expression]:
    """Expressions of every node type over the given leaves."""

    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        terms = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(terms.map(And), terms.map(Or), inner.map(Not))

    return st.recursive(
        st.one_of(leaves, leaves, leaves, st.sampled_from([TRUE, FALSE])), grow, max_leaves=max_leaves
    )


def expressions(vocabulary: Vocabulary = FREE, *, max_leaves: int = 8) -> st.SearchStrategy[Expression]:
    """Expressions over the attributes of a vocabulary, with constants from the small domains."""
    return _expressions(tuple(vocabulary.items()), max_leaves)


@cache  # making a strategy takes far longer than drawing from it
def _expressions(
    vocabulary: tuple[tuple[str, Sequence[Kind]], ...], max_leaves: int
) -> st.SearchStrategy[Expression]:
    leaves = st.one_of(*(predicates_on(name, kinds) for name, kinds in vocabulary))
    return trees(leaves, max_leaves=max_leaves)


wide_expressions: st.SearchStrategy[Expression] = trees(predicates_on(names, tuple(Kind), wide=True), max_leaves=6)
"""Expressions of any shape, with any names and any constants: for printing and parsing."""


def events(vocabulary: Vocabulary = FREE) -> st.SearchStrategy[dict[str, Value]]:
    """Flat events: each attribute missing or of one of its kinds."""
    return _events(tuple(vocabulary.items()))


@cache
def _events(vocabulary: tuple[tuple[str, Sequence[Kind]], ...]) -> st.SearchStrategy[dict[str, Value]]:
    options = {name: st.one_of(*(values_of(kind) for kind in kinds)) for name, kinds in vocabulary}
    return st.fixed_dictionaries({}, optional=options)


# ---------------------------------------------------------------- foreign values

FOREIGN: tuple[object, ...] = (
    math.nan,
    Decimal("NaN"),
    2**63,
    -(2**64),
    b"bytes",
    "\ud800",
    1j,
    timedelta(1),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    [],
    [1, "a"],
    [{"b": 1}],
    [[{"b": None}]],
    (1, 2),
    {"type": "Point", "coordinates": ["x"]},
)
"""Values that the language has no type for, a few of each sort."""

foreign_values: st.SearchStrategy[object] = st.one_of(
    st.sampled_from(FOREIGN),
    st.binary(max_size=4),
    st.integers(min_value=INT_MAX + 1),
    st.complex_numbers(),
    st.recursive(
        st.lists(small_values, max_size=3),
        lambda inner: st.lists(st.one_of(inner, st.dictionaries(st.sampled_from("ab"), inner)), max_size=3),
        max_leaves=6,
    ),
)


def events_with_foreign(vocabulary: Vocabulary = FREE) -> st.SearchStrategy[dict[str, object]]:
    """Events as users write them: attributes missing, of one of their kinds, or foreign; and `a` above `a.b`."""
    known = {name: st.one_of(*(values_of(kind) for kind in kinds)) for name, kinds in vocabulary.items()}
    above = {name.rpartition(".")[0]: foreign_values for name in vocabulary if "." in name}
    options = {name: st.one_of(values, foreign_values) for name, values in known.items()}
    return st.fixed_dictionaries({}, optional={**options, **above})


# ---------------------------------------------------------------- seeded random, for bulk


class Generator:
    """Expressions and events of a vocabulary, from a seed: the same seed gives the same cases."""

    def __init__(
        self,
        seed: int | str,
        vocabulary: Vocabulary = FREE,
        domains: Mapping[Kind, Sequence[Value]] = SMALL,
        *,
        missing: float = 0.2,
        foreign: float = 0.0,
    ) -> None:
        self.random = random.Random(seed)
        self._vocabulary = vocabulary
        self._domains = domains
        self._missing = missing
        self._foreign = foreign

    def event(self) -> dict[str, Value]:
        """A flat event; each attribute is missing, or foreign, now and then."""
        return {
            name: self._of_event(self.random.choice(kinds))
            for name, kinds in self._vocabulary.items()
            if self.random.random() >= self._missing
        }

    def _of_event(self, kind: Kind) -> Value:
        if self._foreign and self.random.random() < self._foreign:
            return self.random.choice(FOREIGN)  # type: ignore[return-value]  # no value, and so it is meant
        return self._value(kind)

    def expression(self, depth: int = 3) -> Expression:
        """An expression of at most this many levels."""
        roll = self.random.random()
        if depth <= 1 or roll < 0.25:
            return self.predicate() if self.random.random() < 0.96 else self.random.choice([TRUE, FALSE])
        if roll < 0.4:
            return Not(self.expression(depth - 1))
        terms = tuple(self.expression(depth - 1) for _ in range(self.random.randint(2, 3)))
        return And(terms) if roll < 0.7 else Or(terms)

    def predicate(self) -> Predicate:
        """A predicate of any operator that suits its attribute."""
        name, kinds = self.random.choice(list(self._vocabulary.items()))
        kind = self.random.choice(kinds)
        makers = [self._equality, self._membership, self._presence]
        if kind.is_ordered:
            makers += [self._comparison, self._comparison, self._range]
        else:
            makers += [self._spatial, self._spatial]
        if kind is Kind.STRING:
            makers += [self._text_match, self._text_match]
        return self.random.choice(makers)(name, kind)

    def _value(self, kind: Kind) -> Value:
        return self.random.choice(self._domains[kind])

    def _equality(self, name: str, kind: Kind) -> Predicate:
        return Comparison(name, self.random.choice([Comparator.EQ, Comparator.NE]), self._value(kind))

    def _comparison(self, name: str, kind: Kind) -> Predicate:
        return Comparison(name, self.random.choice(list(Comparator)), self._value(kind))

    def _membership(self, name: str, kind: Kind) -> Predicate:
        return Membership(name, tuple(self._value(kind) for _ in range(self.random.randint(1, 4))))

    def _presence(self, name: str, kind: Kind) -> Predicate:
        return Presence(name, self.random.random() < 0.5)

    def _range(self, name: str, kind: Kind) -> Predicate:
        low, high = self._value(kind), self._value(kind)
        if self.random.random() < 0.8 and low > high:  # type: ignore[operator]
            low, high = high, low
        return Range(name, low, high, self.random.random() < 0.5, self.random.random() < 0.5)

    def _spatial(self, name: str, kind: Kind) -> Predicate:
        return Spatial(name, self.random.choice(list(SpatialOperator)), self._value(self.random.choice(SPATIAL)))  # type: ignore[arg-type]

    def _text_match(self, name: str, kind: Kind) -> Predicate:
        operator = self.random.choice(list(TextOperator))
        if operator is TextOperator.MATCHES:
            return TextMatch(name, operator, self.random.choice(REGEXES))
        if operator is not TextOperator.LIKE:
            return TextMatch(name, operator, str(self._value(Kind.STRING)))
        pieces = [self.random.choice(LIKE_PIECES) for _ in range(self.random.randint(0, 4))]
        if self.random.random() < 0.5:
            return TextMatch(name, operator, "".join(pieces))
        return TextMatch(name, operator, "".join(f"!{piece}" if piece == "!" else piece for piece in pieces), "!")
