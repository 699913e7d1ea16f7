"""Stores on SQLite and PostgreSQL obey all laws, and the rules of the paper hold."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from harken.model.schema import Schema
from harken.model.values import INT_MAX, INT_MIN, Box, Kind, Point, Value
from harken.symmetric.contract import Held
from harken.symmetric.database.paper.rules import OPERATORS, RULES
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import boxes_of, event_of
from tests.strategies import FREE, SMALL, TYPED, Generator, Vocabulary
from tests.symmetric.checks import CHECKS, SIDES, agree
from tests.symmetric.conftest import Backend
from tests.symmetric.databases import NOW, Make, held, orphans, sayable

LONG = "".join(chr(code) for code in random.Random(1).choices(range(33, 127), k=9_000))
"""Longer than an index takes, and nothing that could be compressed."""

SHAPES: Vocabulary = {"spot": (Kind.POINT,), "area": (Kind.BOX,), "where": (Kind.POINT, Kind.BOX)}
EXTREME: dict[Kind, tuple[Value, ...]] = {
    **SMALL,
    Kind.NUMBER: (
        *(INT_MIN, INT_MIN + 1, INT_MAX - 1, INT_MAX, 2**53, 2**53 + 1, float(2**53), 2.0**63, -(2.0**63)),
        *(0, 5e-324, -5e-324, 0.1, 1e-300, 1e300, -1e300, 1.7976931348623157e308, -1.7976931348623157e308),
    ),
    Kind.STRING: (
        *("", "\0", "a", "a\0", "a\0\0", "\x7f", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"),
        *(LONG, LONG + "a", LONG + "b"),
    ),
    Kind.DATE: (date.min, date(1, 1, 2), date(9999, 12, 30), date.max),
    Kind.TIMESTAMP: tuple(
        moment.replace(tzinfo=UTC)
        for moment in (datetime.min, datetime(1, 1, 1, 0, 0, 0, 1), datetime(1970, 1, 1), datetime.max)
    ),
    Kind.POINT: (Point(0, 0), Point(1e308, -1e308), Point(1e-300, 1), Point(1 + 2**-40, 1)),
    Kind.BOX: (Box(-1e308, -1e308, 1e308, 1e308), Box(0, 0, 1, 1), Box(1 + 2**-40, 1, 2, 2), Box(1, 1, 1, 1)),
}
"""What is close to where a database might round, cut or overflow."""


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_databases_obey(check: Callable[[Make, int], None], make: Make) -> None:
    check(make, 0)


@pytest.mark.parametrize(
    ("vocabulary", "domains", "depth"),
    [(FREE, SMALL, 3), (TYPED, SMALL, 3), (SHAPES, SMALL, 2), (TYPED, EXTREME, 2)],
    ids=["any kind", "one kind", "shapes", "extremes"],
)
def test_any_constraints_match_as_the_reference_says(
    make: Make, backend: Backend, vocabulary: Vocabulary, domains: dict[Kind, tuple[Value, ...]], depth: int
) -> None:
    made = Generator(f"database-{depth}", vocabulary, domains)
    store, judge = make(), ReferenceStore()
    for side in SIDES:
        coming = [Held(at, boxes, text) for at, (boxes, text) in enumerate(sayable(made, 60, depth))]
        for part in (coming[:30], coming[30:]):
            assert set(store.put(side, part, "publication")) == set(judge.put(side, part, "publication"))
        assert [store.get(side, each.id) for each in coming[::4]] == coming[::4]
    agree(store, judge, [boxes for boxes, _ in sayable(made, 60, depth)])
    for side in SIDES:
        for each in (store, judge):
            each.remove(side, range(0, 60, 2))
    agree(store, judge, [boxes for boxes, _ in sayable(made, 20, depth)])
    assert orphans(backend) == 0


def test_events_match_even_if_they_are_infinite(make: Make) -> None:
    store, judge = make(), ReferenceStore()
    texts = ["x > 5", "x < 5", "x != 1", "x >= 0 and y = 1", "x between 0 and 9", "x is not null", "true", "x = 7"]
    coming = [held(at, text) for at, text in enumerate(texts)]
    for each in (store, judge):
        each.put("subscriptions", coming, "publication")
    events = [{"x": math.inf}, {"x": -math.inf, "y": 1}, {"x": 7}, {"x": 5, "y": 1.0}, {}]
    agree(store, judge, [event_of(each) for each in events])


def test_whole_numbers_under_a_schema_end_where_they_end(make: Make) -> None:
    schema = Schema({"n": "int"})
    texts = [f"n > {INT_MAX}", f"n >= {INT_MAX}", f"n < {INT_MIN}", f"n <= {INT_MIN}", "n > 1 and n < 3", "n = 2"]
    store, judge = make(), ReferenceStore()
    coming = [held(at, text, schema=schema) for at, text in enumerate(texts)]
    for each in (store, judge):
        each.put("subscriptions", coming, "publication")
    agree(store, judge, [each.boxes for each in coming])


def test_ids_names_and_texts_are_kept_as_they_are(make: Make) -> None:
    store = make()
    ids: list[int | str] = [1, "1", INT_MIN, 'say "hi"', "it's", "a\\b", "zero\0", "日本", " ", "{}"]
    text = "x > 1 or \"na\\me\0 '\" = '\0\"\\'"
    store.put("publications", [held(id, text, NOW + timedelta(microseconds=1)) for id in ids], "publication")
    assert store.ids("publications") == ids
    assert [store.get("publications", id) for id in ids] == [
        held(id, text, NOW + timedelta(microseconds=1)) for id in ids
    ]
    pairs = store.put("subscriptions", [held("s\0", text)], "publication", notify=True, at=NOW)
    assert pairs == [(0, id) for id in ids]
    assert [(each.publication, each.subscription, each.made_at) for each in store.notices(100)] == [
        (id, "s\0", NOW) for id in ids
    ]
    store.remove("publications", [*ids, 1])
    assert store.count("publications") == 0


def test_a_contradiction_is_kept_and_never_matches(make: Make) -> None:
    store = make()
    store.put("subscriptions", [held("no", "x < 1 and x > 2"), held("all", "true")], "publication")
    assert store.ids("subscriptions") == ["no", "all"]
    assert store.get("subscriptions", "no") == held("no", "x < 1 and x > 2")
    for text, covers, found in [
        ("true", "publication", ["all"]),
        ("true", "subscription", ["all"]),
        ("x = 1", "publication", []),
        ("x = 1", "subscription", ["all"]),
        ("false", "subscription", []),
    ]:
        assert [id for _, id in store.match("subscriptions", [boxes_of(text)], covers)] == found  # type: ignore[arg-type]


def test_publications_in_a_batch_are_told_apart_however_many(make: Make) -> None:
    store, judge = make(), ReferenceStore()
    made = random.Random(3)
    texts = [f"x = {made.randint(0, 9)} and y in ({made.randint(0, 9)}, {made.randint(0, 9)})" for _ in range(100)]
    for each in (store, judge):
        each.put("subscriptions", [held(at, text) for at, text in enumerate(texts)], "publication")
    asked = [boxes_of(f"x = {at % 10} and y > {at % 7} or y = {at % 3}") for at in range(250)]
    agree(store, judge, asked)


def test_validity_ends_at_the_microsecond(make: Make) -> None:
    store = make()
    store.put("subscriptions", [held("s", "x = 1", NOW)], "publication")
    asked = [boxes_of("x = 1")]
    assert store.match("subscriptions", asked, "publication", at=NOW - timedelta(microseconds=1)) == [(0, "s")]
    assert store.match("subscriptions", asked, "publication", at=NOW) == []


def test_what_is_selective_is_found_among_much_that_is_not(make: Make) -> None:
    """Whatever attribute leads to a clause or drives a search, nothing is missed."""
    store, judge = make(), ReferenceStore()
    texts = [f"kind = 'k' and flag = {at % 2 == 0} and n >= {at % 5} and id = {at}" for at in range(150)]
    coming = [held(at, text) for at, text in enumerate(texts)]
    for each in (store, judge):
        each.put("subscriptions", coming[:100], "publication")
        each.put("subscriptions", coming[100:], "publication")
    texts = [
        "kind = 'k' and id = 7",
        "kind = 'k' and flag = true",
        "id in (3, 120) and n = 4",
        "kind >= 'a' and n < 1",
    ]
    texts += ["kind = 'k' and flag = false and n = 3 and id between 20 and 30 and other = 1", "id != 5 and n = 0"]
    agree(store, judge, [boxes_of(text) for text in texts])


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize(("asked", "kept"), RULES)
def test_a_rule_of_the_paper_holds_exactly_when_values_are_in_common(asked: str, kept: str) -> None:
    def operands(operator: str) -> list[tuple[int, int]]:
        ranged = len(operator) == 2 and operator not in ("<=", ">=")
        return [(low, low + 2) for low in (0, 2, 4)] if ranged else [(value, value) for value in range(0, 7, 2)]

    def values(operator: str, val: int, val2: int) -> set[int]:
        named = {"val": val, "val2": val2, None: 0}
        low, low_closed, high, high_closed = OPERATORS[operator]
        return {
            each
            for each in range(-3, 10)
            if (low is None or each > named[low] or (low_closed and each == named[low]))
            and (high is None or each < named[high] or (high_closed and each == named[high]))
        }

    condition = RULES[asked, kept].replace("AND", "and").replace(" = ", " == ")
    for p in operands(asked):
        for s in operands(kept):
            names = {"p": _Row(*p), "s": _Row(*s)}
            assert eval(condition, names) == bool(values(asked, *p) & values(kept, *s)), (p, s)


class _Row:
    def __init__(self, val: int, val2: int) -> None:
        self.val, self.val2 = val, val2


def test_the_example_of_the_paper_gives_its_intermediate_answer(backend: Backend) -> None:
    """Figures 1 to 3: one subscription meets in x only, the other in x and y."""
    store = backend.empty(encoding="paper")
    store.put("subscriptions", [held(1, "x < 6 and y = 3"), held(2, "x < 4 and y < 2")], "publication")
    columns = (
        f"from {backend.table('subscriptions_number')} s join {backend.table('attributes')} a on a.number = field"
    )
    rows = backend.run(f"select s.clause / 65536, s.clause & 65535, a.name, s.val, s.op {columns} order by 1, 3")
    assert [(*row[:3], int(str(row[3])), row[4]) for row in rows] == [
        (1, 0, '"x"', 6, "<"),
        (1, 0, '"y"', 3, "="),
        (2, 0, '"x"', 4, "<"),
        (2, 0, '"y"', 2, "<"),
    ]
    assert store.match("subscriptions", [boxes_of("x < 5 and y = 1")], "publication") == [(0, 2)]
