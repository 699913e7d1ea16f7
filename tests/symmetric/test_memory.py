"""The store in memory agrees with the slow reference, however it is changed and wherever constraints come from."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from harken.compiler import Texts, compile_texts
from harken.errors import (
    ConstraintError,
    DuplicateSubscriptionError,
    ExpressionError,
    HarkenError,
    SchemaError,
    SubscriptionError,
)
from harken.model.expressions import Expression
from harken.model.schema import Schema
from harken.normal.compiled import CLAUSES, OPERATOR_CODE, PredicateColumns, assemble
from harken.symmetric.contract import Held
from harken.symmetric.memory import MemoryStore, clauses, forms, loading
from harken.symmetric.memory import packing as planting
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import DIRECTIONS, Boxes, boxes_of
from tests.strategies import FREE, TYPED, Generator
from tests.symmetric.checks import CHECKS, NOW, SIDES, agree
from tests.symmetric.constraints import Constraints

pytestmark = pytest.mark.kernel

# As plain Python, kernels take a thousand times as long: fewer and smaller cases then.
SLOW = os.environ.get("NUMBA_DISABLE_JIT") == "1"
SEEDS = range(2 if SLOW else 12)

VARIANTS = {
    "as it is": {},
    "restless": {"waiting": 0, "growth": 1, "smallest_tree": 1},
    "in trees": {"waiting": 3, "growth": 2, "smallest_tree": 1},
    "scattered": {"waiting": 2, "growth": 4, "smallest_tree": 1_000_000},
    "mixed": {"waiting": 5, "growth": 3, "smallest_tree": 4},
}


@pytest.mark.parametrize("seed", range(1 if SLOW else 3))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_store_obeys(variant, check, seed):
    check(lambda: MemoryStore(**VARIANTS[variant]), seed)


# ---------------------------------------------------------------- random changes


class Pair:
    """A store and its judge, to which the same is done, and a source of constraints."""

    def __init__(self, seed: object, variant: str) -> None:
        self.random = random.Random(f"{seed}-{variant}")
        self.store, self.judge = MemoryStore(**VARIANTS[variant]), ReferenceStore()
        self._generator = Generator(f"{seed}", self.random.choice([FREE, TYPED]))
        self._constraints = Constraints(seed)
        self._ids = 0
        self._id_of = self.random.choice([int, lambda number: f"s{number}"])

    def expression(self) -> str | Expression:
        """One that can be said in points."""
        if self.random.random() < 0.5:
            return self._constraints.text()
        while True:
            expression = self._generator.expression()
            try:
                boxes_of(expression)
            except ExpressionError:
                continue
            return expression

    def boxes(self) -> Boxes:
        return boxes_of(self.expression())

    def end(self) -> datetime | None:
        return self.random.choice([None, None, NOW + timedelta(minutes=self.random.randint(-3, 3))])

    def begin(self, end: datetime | None) -> datetime | None:
        last = NOW + timedelta(minutes=3) if end is None else end
        return self.random.choice([None, None, last - timedelta(minutes=self.random.randint(1, 6))])

    def new_id(self) -> int | str:
        self._ids += 1
        return self._id_of(self._ids)

    def put(self, side, ids):
        coming = [Held(id, self.boxes(), "", end, self.begin(end)) for id in ids for end in [self.end()]]
        covers = self.random.choice(DIRECTIONS)
        found = self.store.put(side, coming, covers, replace=True, at=NOW)
        assert sorted(found, key=repr) == sorted(
            self.judge.put(side, coming, covers, replace=True, at=NOW), key=repr
        )

    def load(self, side, count):
        ids = [self._id_of(self._ids + at) for at in range(1, count + 1)]
        self._ids += count
        ends = [self.end() for _ in ids]
        table = compile_texts(Texts(ids, [self.expression() for _ in ids], valid_until=ends)).table
        for store in (self.store, self.judge):
            store.load(side, table, None)

    def remove(self, side):
        going = self.judge.ids(side)
        going = self.random.sample(going, self.random.randint(0, len(going)))
        for store in (self.store, self.judge):
            store.remove(side, going)

    def change(self):
        side, roll = self.random.choice(SIDES), self.random.random()
        if roll < 0.4:
            self.put(side, [self.new_id() for _ in range(self.random.randint(1, 15))])
        elif roll < 0.65:
            self.load(side, self.random.randint(1, 30))
        elif roll < 0.85:
            self.remove(side)
        else:
            known = self.judge.ids(side)
            self.put(side, self.random.sample(known, min(4, len(known))))

    def check(self):
        for side in SIDES:
            assert sorted(self.store.ids(side), key=repr) == sorted(self.judge.ids(side), key=repr)
            assert self.store.count(side) == self.judge.count(side)
            for id in self.judge.ids(side)[:2]:
                assert self.store.get(side, id) == self.judge.get(side, id)
        agree(self.store, self.judge, [self.boxes() for _ in range(6)])
        agree(self.store, self.judge, [self.boxes()])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_random_changes_never_confuse(variant, seed):
    both = Pair(seed, variant)
    for _ in range(8):
        both.change()
        both.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_on_what_is_spread_out_change_nothing(monkeypatch, seed):
    monkeypatch.setattr(forms, "MOST_ALTERNATIVES", 2)
    monkeypatch.setattr(clauses, "MOST_ROWS", 3)
    monkeypatch.setattr(planting, "MOST_TREES", 2)
    both = Pair(f"limits-{seed}", "in trees")
    for _ in range(5):
        both.change()
        both.check()


def test_shapes_that_are_listed_are_found_whatever_they_are_asked_to_do():
    shapes = [
        "POINT(0, 0)",
        "POINT(2, 2)",
        "BOX(0, 0, 1, 1)",
        "BOX(1, 1, 2, 2)",
        "BOX(0, 0, 2, 2)",
        "BOX(1, 1, 1, 1)",
    ]
    texts = [f"a {word} {shape}" for word in ("=", "OVERLAPS", "WITHIN", "CONTAINS") for shape in shapes]
    texts += ["a IN (POINT(0, 0), POINT(2, 2))", f"a IN ({', '.join(shapes[2:])})", "a IS NOT NULL", "a = 1"]
    texts += [f"{one} AND {other}" for one, other in zip(texts[6:24], texts[11:24], strict=False)]
    held = [Held(at, boxes_of(text), text) for at, text in enumerate(texts)]
    store, judge = MemoryStore(waiting=0, smallest_tree=3), ReferenceStore()
    for each in (store, judge):
        each.put("subscriptions", held, "publication")
        each.put("publications", held, "publication")
    agree(store, judge, [each.boxes for each in held])


def test_sets_of_many_values_are_split_or_not_and_found_all_the_same():
    chance = random.Random(5)
    texts = []
    for count in (1, 2, 5, 30) * 5:
        values = ", ".join(str(chance.randrange(60)) for _ in range(count))
        texts.append(f"x IN ({values}) AND y IN (1, {count}) AND z != {count}")
    held = [Held(at, boxes_of(text), text) for at, text in enumerate(texts)]
    store, judge = MemoryStore(waiting=0, smallest_tree=2), ReferenceStore()
    for each in (store, judge):
        each.put("subscriptions", held, "publication")
    agree(store, judge, [boxes_of(f"x = {value} AND y > 1 AND z = 5") for value in range(0, 60, 3)])
    agree(store, judge, [each.boxes for each in held[::4]])


# ---------------------------------------------------------------- size


def many(count: int) -> tuple[pa.Table, random.Random]:
    """Constraints on two numbers, by column."""
    made = np.random.default_rng(3)
    low = made.integers(0, 200, count)
    values = np.stack([made.integers(0, 100, count), low, low + made.integers(0, 20, count)], axis=1)
    operators = np.tile(np.array([OPERATOR_CODE[name] for name in ("=", ">=", "<=")], np.int8), count)
    attributes = np.tile(np.array([0, 1, 1], np.int32), count)
    columns = PredicateColumns.numeric(["x", "y"], attributes, operators, values.ravel())
    ends = np.arange(count + 1, dtype=np.int32)
    return assemble(pa.array(np.arange(count)), ends, 3 * ends, columns), random.Random(3)


@pytest.mark.parametrize("smallest_tree", [1, 1_000_000])
def test_trees_of_several_levels_find_what_the_reference_finds(smallest_tree):
    table, chance = many(300 if SLOW else 2_000)
    store, judge = MemoryStore(smallest_tree=smallest_tree), ReferenceStore()
    for each in (store, judge):
        each.load("subscriptions", table, None)
    texts = []
    for _ in range(3 if SLOW else 10):
        x, y = chance.randrange(100), chance.randrange(200)
        texts += [
            f"x = {x} AND y BETWEEN {y} AND {y + 5}",
            f"x > {x}",
            f"y IN ({y}, {x})",
            "x IS NOT NULL",
            "TRUE",
        ]
    agree(store, judge, [boxes_of(text) for text in texts])


def test_more_finds_than_there_was_room_for_all_come_back():
    table, _ = many(700)
    store = MemoryStore()
    store.load("subscriptions", table, None)
    for _ in range(2):
        found = store.match("subscriptions", [boxes_of("x >= 0")] * 2, "publication")
        assert sorted(found) == [(place, id) for place in range(2) for id in range(700)]


def test_threads_that_match_at_the_same_time_find_the_same():
    table, chance = many(200 if SLOW else 3_000)
    store = MemoryStore()
    store.load("subscriptions", table, None)
    asked = [boxes_of(f"x = {chance.randrange(100)}") for _ in range(50)]
    wanted = [store.match("subscriptions", [each], "publication") for each in asked]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: store.match("subscriptions", [each], "publication"), asked)) == wanted


def test_slots_are_used_again():
    store = MemoryStore(waiting=2)
    boxes = boxes_of("x = 1 OR y > 2")
    for step in range(20):
        store.put("subscriptions", [Held(f"{step}-{at}", boxes, "") for at in range(10)], "publication")
        if step:
            store.remove("subscriptions", [f"{step - 1}-{at}" for at in range(10)])
    assert len(store._sides["subscriptions"].records.ids) < 60


def test_what_is_left_of_a_table_can_be_had_after_most_has_gone():
    table, _ = many(40)
    store, judge = MemoryStore(), ReferenceStore()
    for each in (store, judge):
        each.load("subscriptions", table, None)
        each.remove("subscriptions", range(3, 40))
    for id in range(3):
        assert store.get("subscriptions", id) == judge.get("subscriptions", id)


# ---------------------------------------------------------------- exactness


def test_numbers_are_told_apart_exactly():
    numbers = [2**53, 2**53 + 1, float(2**53), 2**53 + 2, 2**63 - 1, -(2**63), float(2**63), 0, -0.0, 0.1, 1e308]
    texts = [f"x {word} {number!r}" for number in numbers for word in ("=", "<", "<=", ">", ">=", "!=")]
    table = compile_texts(Texts(list(range(len(texts))), texts)).table
    store, judge = MemoryStore(), ReferenceStore()
    for each in (store, judge):
        each.load("subscriptions", table, None)
        each.put("publications", [Held(at, boxes_of(text), text) for at, text in enumerate(texts)], "publication")
    agree(store, judge, [boxes_of(text) for text in texts])


def test_texts_are_ordered_by_code_point():
    words = ["", "a", "a\0", "ab", "é", "z", "日本", "\U0010ffff", "\ue000", "a" * 9, "a" * 10]
    texts = [f"x {word} '{text}'" for text in words for word in ("=", "<", "<=", ">", ">=", "!=", "STARTS WITH")]
    table = compile_texts(Texts(list(range(len(texts))), texts)).table
    store, judge = MemoryStore(), ReferenceStore()
    for each in (store, judge):
        each.load("subscriptions", table, None)
        each.put("publications", [Held(at, boxes_of(text), text) for at, text in enumerate(texts)], "publication")
    agree(store, judge, [boxes_of(text) for text in texts])


# ---------------------------------------------------------------- loading

PLAIN = [
    "n = 3",
    "n IN (1, 2, 5) AND s = 'a'",
    "n > 2 AND n < 3",
    "n > 2 AND n <= 6 AND n != 4",
    "n NOT IN (1, 5)",
    "s > 'a' AND s != 'b'",
    "s LIKE 'ab%'",
    "d > DATE '2026-01-01' AND d < DATE '2026-01-05' AND d != DATE '2026-01-03'",
    "t >= TIMESTAMP '2026-01-01 00:00:00Z' AND t < TIMESTAMP '2026-01-01 00:00:01Z'",
    "b = TRUE OR n = 7",
    "r < 2.5 OR r > 4 OR r = -0.0",
    "area OVERLAPS BOX(0, 0, 2, 2) AND n IS NOT NULL",
    "area = BOX(0, 0, 1, 1)",
    "area WITHIN BOX(0, 0, 3, 3)",
    "area CONTAINS POINT(1, 1)",
    "TRUE",
    "FALSE",
]
SCHEMA = Schema(
    {"n": "int", "s": "string", "d": "date", "t": "timestamp", "b": "bool", "r": "float", "area": "box"}
)


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["free", "declared"])
def test_plain_constraints_are_read_by_column(monkeypatch, schema):
    judge = ReferenceStore()
    # Under the schema n > 2 AND n < 3 allows no int: that is seen when its rows are made, and read once more.
    texts = [text for text in PLAIN if schema is None or text != "n > 2 AND n < 3"]
    table = compile_texts(
        Texts(
            list(range(len(texts))),
            texts,
        ),
        schema=schema,
    ).table
    judge.load("subscriptions", table, schema)
    monkeypatch.delattr(loading, "expressions_of")
    store = MemoryStore()
    store.load("subscriptions", table, schema)
    agree(store, judge, [boxes_of(text, schema) for text in texts])


def test_whole_numbers_have_neighbours_under_a_schema():
    chance = random.Random(9)
    words = ["=", "<", "<=", ">", ">=", "!="]
    texts = [f"n {chance.choice(words)} {chance.randrange(6)} AND n {chance.choice(words)} {chance.randrange(6)}"
             for _ in range(60)]  # fmt: skip
    texts += [f"n < {2**63 - 1}", f"n > {-(2**63)}", f"n >= {2**63 - 1}", f"n > {2**63 - 1}"]
    table = compile_texts(Texts(list(range(len(texts))), texts), schema=SCHEMA).table
    store, judge = MemoryStore(), ReferenceStore()
    for each in (store, judge):
        each.load("subscriptions", table, SCHEMA)
    agree(store, judge, [boxes_of(text, SCHEMA) for text in texts])


def compiled(rows: list[list[list[dict[str, object]]]]) -> pa.Table:
    """A table that nobody has put into normal form."""
    return pa.table({"id": pa.array(range(len(rows))), "clauses": pa.array(rows, CLAUSES)})


def predicate(attribute: str, operator: str, value: int | None) -> dict[str, object]:
    return {"attribute": attribute, "operator": operator, "type": "int", "integer": value}


def test_tables_that_are_not_in_normal_form_mean_the_same():
    rows = [
        [[predicate("x", "!=", 5), predicate("x", "!=", 3)]],
        [[predicate("x", "!=", 5), predicate("x", "!=", 5)]],
        [[predicate("x", ">", 5), predicate("y", "=", 1), predicate("x", "<", 9)]],
        [[predicate("x", ">", 5), predicate("x", ">", 7)]],
        [[predicate("x", ">", 9), predicate("x", "<", 7)], [predicate("y", "=", 2)]],
        [[predicate("x", "in", 4), predicate("x", "<", 7), predicate("x", "in", 9)]],
        [[predicate("x", "=", 4), predicate("x", "=", 4)]],
        [[predicate("x", "in", 9), predicate("x", "in", 4), predicate("x", "in", 9)]],
        [[predicate("z", "=", 4), predicate("y", "=", 1), predicate("x", "=", 4)]],
        [[]],
        [],
    ]
    table = compiled(rows)
    store, judge = MemoryStore(smallest_tree=1), ReferenceStore()
    store.load("subscriptions", table, None)
    judge.load("subscriptions", table.append_column("valid_until", pa.nulls(len(rows), pa.timestamp("us"))), None)
    texts = [f"x = {value}" for value in range(10)] + ["y = 1 AND x = 6", "y = 2", "z = 4 AND x = 4", "TRUE"]
    agree(store, judge, [boxes_of(text) for text in texts])


def test_a_name_that_a_dictionary_has_twice_is_one_attribute():
    columns = PredicateColumns.numeric(
        ["x", "x"],
        np.array([0, 1], np.int32),
        np.array([OPERATOR_CODE[">"], OPERATOR_CODE["<"]], np.int8),
        np.array([3, 6]),
    )
    table = assemble(pa.array([1]), np.array([0, 1], np.int32), np.array([0, 2], np.int32), columns)
    store = MemoryStore()
    store.load("subscriptions", table, None)
    assert store.match("subscriptions", [boxes_of("x = 7")], "publication") == []
    assert store.match("subscriptions", [boxes_of("x = 5")], "publication") == [(0, 1)]


@pytest.mark.parametrize(
    ("rows", "schema", "error"),
    [
        ([[[predicate("x", "=", None)]]], None, SubscriptionError),
        ([[[predicate("x", "?", 1)]]], None, SubscriptionError),
        ([[[predicate("", "=", 1)]]], None, HarkenError),
        ([[[predicate("x", "is null", None) | {"type": None}]]], None, ConstraintError),
        ([[[predicate("x", "=", 1)]]], Schema({"y": "int"}), SchemaError),
        ([[[predicate("x", "=", 1)]]], Schema({"x": "string"}), SchemaError),
    ],
)
def test_a_bad_row_is_refused_and_nothing_changes(rows, schema, error):
    store = MemoryStore()
    with pytest.raises(error):
        store.load("subscriptions", compiled([[[predicate("y", "=", 1)]], *rows]), schema)
    assert store.count("subscriptions") == 0
    assert store.match("subscriptions", [boxes_of("y = 1")], "publication") == []


def test_an_id_that_is_taken_is_refused_by_loading():
    store = MemoryStore()
    store.load("subscriptions", compiled([[[predicate("y", "=", 1)]]] * 2), None)
    with pytest.raises(DuplicateSubscriptionError):
        store.load("subscriptions", compiled([[[predicate("y", "=", 1)]]]), None)
    twice = pa.concat_tables([compiled([[[predicate("y", "=", 1)]]]).set_column(0, "id", pa.array([9]))] * 2)
    with pytest.raises(DuplicateSubscriptionError):
        store.load("publications", twice, None)
    assert (store.count("subscriptions"), store.count("publications")) == (2, 0)


def test_an_end_is_the_first_moment_at_which_nothing_holds_any_more():
    store = MemoryStore(waiting=0)
    end = datetime(2026, 1, 1, tzinfo=UTC)
    store.put("subscriptions", [Held(1, boxes_of("x = 1"), "", end)], "publication")
    asked = [boxes_of("x = 1")]
    before = end - timedelta(microseconds=1)
    assert store.match("subscriptions", asked, "publication", at=before) == [(0, 1)]
    assert store.match("subscriptions", asked, "publication", at=end) == []
    store.put("subscriptions", [Held(1, boxes_of("x = 1"), "")], "publication", replace=True)
    assert store.match("subscriptions", asked, "publication", at=end) == [(0, 1)]
