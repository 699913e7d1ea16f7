"""Stores on SQLite and PostgreSQL obey all laws, commit all or nothing, and lose nothing that was acknowledged."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from harken.compiler import Texts, compile_texts
from harken.errors import (
    ClosedError,
    ConstraintError,
    DatabaseError,
    DuplicateSubscriptionError,
    HarkenError,
    IndexFormatError,
    MissingExtraError,
    SchemaError,
)
from harken.language import to_text
from harken.model.schema import Schema
from harken.model.values import INT_MAX, INT_MIN, Box, Kind, Point, Value
from harken.symmetric.contract import Held, Side
from harken.symmetric.database import DatabaseStore
from harken.symmetric.database.loading import held_of
from harken.symmetric.database.paper.rules import OPERATORS, RULES
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import Boxes, boxes_of, event_of
from tests.strategies import FREE, SMALL, TYPED, Generator, Vocabulary
from tests.symmetric.checks import CHECKS, SIDES, agree
from tests.symmetric.conftest import Backend

Make = Callable[[], DatabaseStore]
PASSWORD = "correct-horse-battery"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

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


def held(id: int | str, text: str, valid_until: datetime | None = None, schema: Schema | None = None) -> Held:
    return Held(id, boxes_of(text, schema), text, valid_until)


def sayable(made: Generator, count: int, depth: int = 3) -> list[tuple[Boxes, str]]:
    """Random constraints that can be said in points."""
    found: list[tuple[Boxes, str]] = []
    while len(found) < count:
        expression = made.expression(depth)
        try:
            found.append((boxes_of(expression), to_text(expression)))
        except HarkenError:
            continue
    return found


def state(store: DatabaseStore) -> object:
    """All that can be read of a store."""
    kept = {side: {id: store.get(side, id) for id in store.ids(side)} for side in SIDES}
    return kept, store.notices(10_000)


def orphans(backend: Backend) -> int:
    """Rows of clauses whose constraint is not there."""
    if backend.name == "sqlite":
        tables = "select name from sqlite_master where type = 'table'"
    else:
        tables = f"select tablename from pg_tables where schemaname = '{backend.schema}'"
    names = {str(name) for (name,) in backend.run(tables)}
    stem = backend.table("").rpartition(".")[2]
    found = 0
    for side in SIDES:
        kept = f"select number from {backend.table(side)}"
        for rest in ("numbers", "strings", "shapes", "master", "number", "string", "shape", "anything"):
            if f"{stem}{side}_{rest}" in names:
                lost = f"clause / 65536 not in ({kept})"
                [(count,)] = backend.run(f"select count(*) from {backend.table(f'{side}_{rest}')} where {lost}")
                found += int(str(count))
    return found


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


# ---------------------------------------------------------------- loading

LOADED = [
    "x = 1",
    "x > 1 and x <= 5 and x != 3",
    "x in (1, 2, 2.5) and name = 'it''s'",
    "x in (1, 'a') or y is not null",
    "name > 'a' and name < 'b'",
    "name starts with 'a' or not (x < 2)",
    "flag and day = date '2026-11-15' and at < timestamp '2026-11-15T12:00:00.000001Z'",
    "not flag or x = 1.5",
    "spot within box(0, 0, 1, 1) and area overlaps point(1, 2) and area contains box(0, 0, 1, 1)",
    "area = box(0, 0, 1, 1) or spot in (point(0, 0), point(1, 1))",
    "x < 1 and x > 2",
    "true",
    "x <= 1 or x > 1",
    '"odd name" = 1 and a.b = 2',
]


def test_a_compiled_table_is_read_as_the_reference_reads_it() -> None:
    ends = [NOW if at % 3 == 0 else None for at in range(len(LOADED))]
    table = compile_texts(Texts(list(range(len(LOADED))), LOADED, valid_until=ends)).table
    judge = ReferenceStore()
    judge.load("subscriptions", table, None)
    assert list(held_of(table, None)) == [judge.get("subscriptions", id) for id in range(len(LOADED))]
    assert list(held_of(table.slice(3, 5), None)) == [judge.get("subscriptions", id) for id in range(3, 8)]


def test_random_compiled_tables_are_read_as_the_reference_reads_them() -> None:
    made = Generator("loading", TYPED)
    texts = [text for _, text in sayable(made, 300)]
    table = compile_texts(Texts(list(range(300)), texts)).table
    judge = ReferenceStore()
    judge.load("subscriptions", table, None)
    assert list(held_of(table, None)) == [judge.get("subscriptions", id) for id in range(300)]


def test_a_schema_makes_whole_numbers_of_what_is_loaded() -> None:
    schema = Schema({"n": "int"})
    table = compile_texts(Texts([1], ["n > 1 and n < 4"]), schema=schema).table
    [loaded] = held_of(table, schema)
    assert loaded.boxes == boxes_of("n >= 2 and n <= 3", schema)
    with pytest.raises(SchemaError):
        list(held_of(compile_texts(Texts([1], ["m = 1"])).table, schema))


def test_loading_many_makes_indexes_that_find_them(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are written together, so that indexes are made anew; then some more, with indexes in place."""
    monkeypatch.setattr("harken.symmetric.database.store._AT_ONCE", 300)
    store, judge = make(), ReferenceStore()
    first, more = 1_000, 200
    made = random.Random(5)
    texts = [f"x = {made.randint(0, 500)} and y < {made.randint(0, 50)}" for _ in range(first + more)]
    table = compile_texts(Texts(list(range(first + more)), texts)).table
    store.load("subscriptions", table.slice(0, first), None)
    store.load("subscriptions", table.slice(first), None)
    assert store.count("subscriptions") == first + more
    judge.put("subscriptions", [held(at, text) for at, text in enumerate(texts)], "publication")
    agree(store, judge, [boxes_of(f"x between {at} and {at + 3} and y = {at % 40}") for at in range(0, 500, 50)])


@pytest.mark.parametrize(
    ("ids", "texts", "error"),
    [
        ([1, 2, 0], ["x = 1", "x = 2", "x = 3"], DuplicateSubscriptionError),
        ([1, 2], ["x = 1", "y is null"], ConstraintError),
    ],
)
def test_a_load_that_fails_leaves_nothing(
    make: Make, backend: Backend, ids: list[int], texts: list[str], error: type[Exception]
) -> None:
    store = make()
    store.put("subscriptions", [held(0, "x = 0")], "publication")
    before = state(store)
    with pytest.raises(error):
        store.load("subscriptions", compile_texts(Texts(ids, texts)).table, None)
    assert state(store) == before
    assert orphans(backend) == 0


# ---------------------------------------------------------------- transactions


def test_a_store_that_is_opened_again_has_everything(
    make: Make, backend: Backend, request: pytest.FixtureRequest
) -> None:
    store = make()
    store.put("publications", [held("p", "x = 1 or y < 'b'", NOW + timedelta(days=1))], "publication")
    store.put("subscriptions", [held("s", "x > 0 and y = 'a'")], "publication", notify=True, at=NOW)
    before = state(store)
    store.close()
    with pytest.raises(ClosedError, match="it was closed"):
        store.count("publications")
    assert state(backend.again(encoding=request.node.callspec.params["make"])) == before


def test_a_failure_in_the_middle_leaves_nothing(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The match fails after the constraints are written; then the notices, after the match."""
    store = make()
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    before = state(store)

    def fail(*_: object) -> None:
        raise OSError("out of paper")

    for step in ("_matches", "_notify"):
        with monkeypatch.context() as patch:
            patch.setattr(store, step, fail)
            for replace in (False, True):
                coming = [held("p", "x = 1"), held("q", "x = 2 and y = 'a'")]
                with pytest.raises(OSError, match="out of paper"):
                    store.put("publications", coming, "publication", replace=replace, notify=True)
        assert state(store) == before
    assert orphans(backend) == 0


def test_a_replacement_that_fails_leaves_what_was_there(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make()
    store.put("subscriptions", [held("s", "x = 1"), held("t", "x = 2")], "publication")
    before = state(store)
    monkeypatch.setattr(store, "_add", lambda *_: (_ for _ in ()).throw(OSError("out of paper")))
    with pytest.raises(OSError, match="out of paper"):
        store.put("subscriptions", [held("s", "x = 3")], "publication", replace=True)
    assert state(store) == before


def test_what_is_removed_or_replaced_leaves_no_rows(make: Make, backend: Backend) -> None:
    store = make()
    for text in ("x = 1 and name > 'a' or place within box(0, 0, 1, 1)", "y is not null", "true"):
        store.put("subscriptions", [held("s", text), held("t", text)], "publication", replace=True)
        assert orphans(backend) == 0
    store.remove("subscriptions", ["s"])
    assert orphans(backend) == 0
    assert store.ids("subscriptions") == ["t"]


def test_notices_never_have_the_number_of_one_that_is_settled(make: Make) -> None:
    store = make()
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    numbers: list[int] = []
    for at in range(3):
        store.put("publications", [held(at, "x = 1")], "publication", notify=True)
        numbers += [each.number for each in store.notices(10)]
        store.settle(numbers)
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 3


def test_writers_at_the_same_time_miss_no_match_and_tell_none_twice(
    make: Make, backend: Backend, request: pytest.FixtureRequest
) -> None:
    make().count("subscriptions")
    rounds, width = 12, 4
    failures: list[BaseException] = []

    def write(side: Side, writer: int) -> None:
        try:
            store = backend.again(encoding=request.node.callspec.params["make"])
            for at in range(rounds):
                store.put(
                    side,
                    [held(f"{side}-{writer}-{at}", f"x = {at % 3} and k = 'all'")],
                    "publication",
                    notify=True,
                )
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=write, args=(side, writer)) for side in SIDES for writer in range(width // 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    told = Counter(
        (each.publication, each.subscription)
        for each in backend.again(encoding=request.node.callspec.params["make"]).notices(10_000)
    )
    wanted = {
        (f"publications-{p}-{at}", f"subscriptions-{s}-{other}")
        for p in range(width // 2)
        for s in range(width // 2)
        for at in range(rounds)
        for other in range(rounds)
        if at % 3 == other % 3
    }
    assert told == Counter(wanted)


def test_of_several_that_want_an_id_one_gets_it(
    make: Make, backend: Backend, request: pytest.FixtureRequest
) -> None:
    store = make()
    store.count("subscriptions")
    got: list[object] = []

    def want(replace: bool) -> None:
        try:
            for _ in range(5):
                store.put("subscriptions", [held("s", "x = 1 and y = 2")], "publication", replace=replace)
            got.append("put")
        except DuplicateSubscriptionError:
            got.append("taken")

    def run(replace: bool) -> None:
        threads = [threading.Thread(target=want, args=(replace,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(replace=True)
    assert got == ["put"] * 4
    assert store.ids("subscriptions") == ["s"]
    store.remove("subscriptions", ["s"])
    got.clear()
    run(replace=False)
    assert got == ["taken"] * 4  # each at its second attempt at the latest
    assert store.ids("subscriptions") == ["s"]
    assert orphans(backend) == 0


def test_readers_see_nothing_of_a_transaction_that_is_not_done(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    seen: list[object] = []
    really = store._notify

    def look(*arguments: object) -> None:
        seen.append((store.ids("publications"), store.match("publications", [boxes_of("x = 1")], "publication")))
        really(*arguments)  # type: ignore[arg-type]
        seen.append(store.notices(10))

    monkeypatch.setattr(store, "_notify", look)
    store.put("publications", [held("p", "x = 1")], "publication", notify=True)
    assert seen == [([], []), []]
    assert store.match("publications", [boxes_of("x = 1")], "publication") == [(0, "p")]


# ---------------------------------------------------------------- what goes wrong


def test_a_connection_that_is_lost_takes_one_call_with_it(postgres: str) -> None:
    backend = Backend("postgresql", postgres)
    store = backend.empty()
    try:
        store.put("subscriptions", [held("s", "x = 1")], "publication")
        with store._database.transaction("look", writes=False) as connection:
            process = connection.exec_driver_sql("select pg_backend_pid()").scalar()
        backend.run(f"select pg_terminate_backend({process})")
        with pytest.raises(DatabaseError, match=r"could not keep publications .*terminating connection"):
            store.put("publications", [held("p", "x = 1")], "publication")
        assert store.ids("publications") == []
        assert store.put("publications", [held("p", "x = 1")], "publication") == [(0, "s")]
    finally:
        backend.clean()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """SQLite can be told how large a file may get."""
    store = DatabaseStore(f"sqlite:///{tmp_path}/market.db")
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    before = state(store)
    with store._database.transaction("shrink", writes=False) as connection:
        [(pages,)] = connection.exec_driver_sql("PRAGMA page_count")
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 10}")
    large = [held(f"large-{at}", f"name = '{'x' * 9_000}{at}'") for at in range(50)]
    with pytest.raises(DatabaseError, match=r"could not keep subscriptions .*full"):
        store.put("subscriptions", large, "publication")
    assert state(store) == before
    store.close()


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    store = DatabaseStore(f"postgresql://someone:{PASSWORD}@127.0.0.1:1/market?sslpassword={PASSWORD}")
    assert PASSWORD not in repr(store)
    with pytest.raises(DatabaseError, match="refused") as caught:
        store.count("subscriptions")
    assert caught.value.where == "postgresql+psycopg://someone:***@127.0.0.1:1/market"
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="unable to open database file"):
        DatabaseStore(f"sqlite:///{tmp_path}/none/market.db").count("subscriptions")


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "market.db").write_text("dear diary " * 1_000)
    with pytest.raises(DatabaseError, match="not a database"):
        DatabaseStore(f"sqlite:///{tmp_path}/market.db").count("subscriptions")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"someone:{PASSWORD}@host/market", "not a database URL"),
        (f"postgresql://someone:a@{PASSWORD}:{PASSWORD}/market", "not a database URL"),
        (f"mysql://someone:{PASSWORD}@host/market", "found mysql://"),
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
    ],
)
def test_a_url_that_will_not_do_is_told_at_once(url: str, said: str) -> None:
    with pytest.raises(DatabaseError, match=said) as caught:
        DatabaseStore(url)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ["", "a b", "x; drop table y", "Upper", "ä", "x" * 41])
def test_a_schema_name_that_will_not_do_is_told_at_once(name: str) -> None:
    for url in ("sqlite:///market.db", "postgresql://host/market"):
        with pytest.raises(DatabaseError, match="a schema name has"):
            DatabaseStore(url, schema_name=name)


def test_another_encoding_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="encoding is one of"):
        DatabaseStore("sqlite:///market.db", encoding="mine")  # type: ignore[arg-type]


def test_tables_of_another_version_or_encoding_or_maker_are_left_alone(backend: Backend) -> None:
    backend.empty().put("subscriptions", [held("s", "x = 1")], "publication")
    with pytest.raises(IndexFormatError, match=r"in the encoding 'ranges'.*pass encoding='ranges'"):
        backend.again(encoding="paper").count("subscriptions")
    backend.run(f"update {backend.table('layout')} set version = 3")
    with pytest.raises(IndexFormatError, match="layout 3, and this Harken knows layout 2"):
        backend.again().count("subscriptions")
    backend.run(f"drop table {backend.table('layout')}")
    with pytest.raises(IndexFormatError, match="that Harken has not made"):
        backend.again().count("subscriptions")
    backend.run(f"create table {backend.table('layout')} (colour text)")
    with pytest.raises(IndexFormatError, match="is not as Harken makes it"):
        backend.again().count("subscriptions")
    assert backend.run(f"select id from {backend.table('subscriptions')}") == [('"s"',)]


def test_stores_of_several_names_share_a_database(backend: Backend) -> None:
    one, other = backend.empty(), backend.empty()
    one.put("subscriptions", [held("s", "x = 1")], "publication")
    assert (one.ids("subscriptions"), other.ids("subscriptions")) == (["s"], [])


def test_two_that_make_the_tables_at_once_both_succeed(backend: Backend) -> None:
    stores = [backend.empty(), *(backend.again() for _ in range(3))]
    failures: list[BaseException] = []

    def use(store: DatabaseStore) -> None:
        try:
            store.count("subscriptions")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_without_sqlalchemy_or_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(MissingExtraError, match=r"harken\[postgres\]"):
            DatabaseStore("postgresql://host/market")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"harken\[database\]"):
        DatabaseStore("sqlite:///market.db")


def test_importing_the_package_loads_no_driver() -> None:
    code = "import sys, harken.symmetric.database; print('sqlalchemy' in sys.modules or 'psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_sqlite_flushes_every_transaction_and_lets_readers_read(tmp_path: Path) -> None:
    store = DatabaseStore(f"sqlite:///{tmp_path}/market.db")
    with store._database.transaction("look", writes=False) as connection:
        settings = [
            connection.exec_driver_sql(f"PRAGMA {each}").scalar() for each in ("journal_mode", "synchronous")
        ]
    assert settings == ["wal", 2]
    store.close()
