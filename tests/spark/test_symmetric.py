"""Publications and subscriptions in DataFrames: the store contract, and what is Spark's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from harken import Schema, SymmetricEngine
from harken.compiler import Texts, compile_texts
from harken.errors import ArgumentError, ArgumentTypeError, SubscriptionError, TaskError
from harken.language import to_text
from harken.model.expressions import Expression
from harken.model.subscriptions import moment_of
from harken.spark import symmetric_match
from harken.spark.index.sharding import divide
from harken.spark.runtime.failures import retold
from harken.spark.subscriptions.compiling import Rules
from harken.spark.symmetric import _Job
from harken.symmetric.contract import Held, Pair, Side
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import Boxes, Covers, boxes_of
from tests.symmetric.checks import (
    check_agrees_with_the_reference,
    check_loading_is_like_putting,
    check_what_has_expired_does_not_match,
)
from tests.symmetric.constraints import SAID
from tests.symmetric.test_any_constraints import CONSTRAINTS

MARKET = [
    *(
        (number, f"product = 'p{number % 20}' AND price BETWEEN {number} AND {number + 10}")
        for number in range(200)
    ),
    (200, "price < 50"),
    (201, "product IN ('p1', 'p2') AND price > 20"),
    (202, "product = 'p3' AND price = 3 OR product = 'p4' AND price = 4"),
]
OFFERS = [
    (0, "product = 'p3' AND price BETWEEN 0 AND 30"),
    (1, "product IN ('p1', 'p4') AND price < 45"),
    (2, "price = 21"),
    (3, "product = 'unheard of' AND price = 3"),
    (4, "product >= 'p18' AND price > 100 OR price = 4"),
]


class SparkStore:
    """Keeps constraints as the reference does, and matches through Spark."""

    def __init__(self, spark: SparkSession, shards: int) -> None:
        self._kept = ReferenceStore()
        self._spark = spark
        self._shards = shards

    def __getattr__(self, name: str) -> object:
        return getattr(self._kept, name)

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        # What is held on the side of publications is a subscription to what is asked: only the direction turns.
        turned: dict[Covers, Covers] = {"publication": "subscription", "subscription": "publication"}
        kept = [held for id in self._kept.ids(side) if (held := self._kept.get(side, id)) is not None]
        rows = [(held.id, held.text, held.valid_from, held.valid_until) for held in kept]
        columns = "id long, expression string, valid_from timestamp, valid_until timestamp"
        found = symmetric_match(
            frame(self._spark, enumerate(SAID[id(boxes)][0] for boxes in asked)),
            self._spark.createDataFrame(rows, columns),
            covers=covers if side == "subscriptions" else turned[covers],
            shards=self._shards,
            at=at,
        )
        return sorted(pairs(found))


def frame(spark: SparkSession, rows: Iterable[tuple[object, object]], id: str = "long") -> DataFrame:
    return spark.createDataFrame(list(rows), f"id {id}, expression string")


def pairs(found: DataFrame) -> list[Pair]:
    assert found.columns == ["publication", "subscription"]
    return [(row.publication, row.subscription) for row in found.collect()]


def expected(offers: Sequence[tuple[object, str]], covers: Covers) -> set[tuple[object, object]]:
    engine = SymmetricEngine(covers=covers)
    engine.subscribe_many(MARKET)
    return {(id, found) for id, text in offers for found in engine.match(text)}


@pytest.mark.parametrize(
    ("check", "shards"),
    [
        (check_agrees_with_the_reference, 1),
        (check_agrees_with_the_reference, 3),
        (check_loading_is_like_putting, 3),
        (check_what_has_expired_does_not_match, 2),
    ],
)
def test_the_store_contract_holds_on_spark(
    spark: SparkSession, check: Callable[[Callable[[], object], int], None], shards: int
) -> None:
    check(lambda: SparkStore(spark, shards), 0)


@pytest.mark.parametrize("covers", ["publication", "subscription"])
def test_what_one_engine_finds_shards_find(spark: SparkSession, covers: Covers) -> None:
    found = pairs(symmetric_match(frame(spark, OFFERS), frame(spark, MARKET), covers=covers, shards=5))
    assert len(found) == len(set(found))
    assert set(found) == expected(OFFERS, covers)


def test_a_publication_goes_only_where_it_can_concern_somebody() -> None:
    sample = compile_texts(Texts(*map(list, zip(*MARKET, strict=True)))).table  # type: ignore[arg-type]
    division = divide(sample.to_batches(), 5, {})
    assert division.attribute == "product"
    job = _Job(Rules(), division, tuple(range(5)), "publication", moment_of(None))
    one, unheard, open_to_all = (job.concerned(boxes_of(OFFERS[at][1])) for at in (0, 3, 2))
    assert set(one) == {*division.shards_of["p3"], *division.free}
    assert set(unheard) == set(division.free)
    assert set(open_to_all) == set(range(5))


def test_texts_are_ids_too_and_nothing_gives_nothing(spark: SparkSession) -> None:
    buyers, offers = [("ann", "x = 1"), ("bob", "x > 1")], [("first", "x BETWEEN 0 AND 1"), ("second", "x = 9")]
    held, asked = frame(spark, buyers, "string"), frame(spark, offers, "string")
    assert sorted(pairs(symmetric_match(asked, held, shards=3))) == [("first", "ann"), ("second", "bob")]
    assert pairs(symmetric_match(asked.where("false"), held)) == []
    assert pairs(symmetric_match(asked, held.where("false"))) == []


def test_a_row_that_cannot_be_read_is_told(spark: SparkSession) -> None:
    good, bad = frame(spark, [(1, "x = 1")]), frame(spark, [(1, "x = 1"), (7, "x ==")])
    with pytest.raises(TaskError, match="publication 7: "), retold():
        symmetric_match(bad, good).collect()
    with pytest.raises(TaskError, match="subscription 7: "), retold():
        symmetric_match(good, bad, shards=1).collect()
    with pytest.raises(TaskError, match="an expression is a text"), retold():
        symmetric_match(frame(spark, [(3, None)]), good).collect()
    schema = Schema({"x": "int"})
    with pytest.raises(TaskError, match="'y'"), retold():
        symmetric_match(frame(spark, [(4, "y = 1")]), good, schema=schema).collect()


def test_frames_and_options_that_will_not_do_are_told_at_once(spark: SparkSession) -> None:
    good = frame(spark, [(1, "x = 1")])
    with pytest.raises(SubscriptionError, match="'expression'"):
        symmetric_match(good.drop("expression"), good)
    with pytest.raises(SubscriptionError, match="'id'"):
        symmetric_match(good, good.drop("id"))
    with pytest.raises(ArgumentError, match="shards is a positive whole number, found 0"):
        symmetric_match(good, good, shards=0)
    with pytest.raises(ArgumentError, match="covers is one of"):
        symmetric_match(good, good, covers="both")  # type: ignore[arg-type]
    wrong: list[tuple[str, object]] = [("shards", "2"), ("shards", True), ("at", "now"), ("schema", 5)]
    for name, value in wrong:
        with pytest.raises(ArgumentTypeError, match=f"{name} is a"):
            symmetric_match(good, good, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="subscriptions is a DataFrame, found list"):
        symmetric_match(good, [])  # type: ignore[arg-type]


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(CONSTRAINTS, CONSTRAINTS, st.sampled_from(["publication", "subscription"]))
def test_whatever_hypothesis_comes_up_with_is_found(
    spark: SparkSession, held: list[Expression], asked: list[Expression], covers: Covers
) -> None:
    judge = ReferenceStore()
    judge.put("subscriptions", [Held(at, boxes_of(each), "") for at, each in enumerate(held)], covers)
    found = symmetric_match(
        frame(spark, enumerate(map(to_text, asked))),
        frame(spark, enumerate(map(to_text, held))),
        covers=covers,
        shards=2,
    )
    assert set(pairs(found)) == set(judge.match("subscriptions", [boxes_of(each) for each in asked], covers))
