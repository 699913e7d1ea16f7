"""An independent judge: DuckDB evaluates the same conditions over the same events, and must agree on each pair.

`HARKEN_JUDGE_SEED` chooses other cases; a failure names its seed. Where the two differ on purpose, a test
below shows both answers.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from harken import Engine, algorithms
from harken.compiler import Texts, compile_texts
from harken.errors import ParseError
from harken.language import parse, to_text
from harken.matching.structures import segments
from harken.model.evaluation import truth
from harken.model.events import flatten
from harken.model.values import Kind, Value
from harken.normal.decompiled import expressions_of
from tests.judge.duckdb_dialect import EDGES, to_duckdb
from tests.strategies import SMALL, Generator

SEED = os.environ.get("HARKEN_JUDGE_SEED", "2026-11-15")
EXPRESSIONS, EVENTS = 500, 64

INTS = (-2, -1, 0, 1, 2, 3)
FLOATS = (-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5)
ENDLESS = (-math.inf, math.inf)
"""What events may hold, though no condition can name it."""

STRUCTURES = ("interval-tree", "priority-search-tree")
DOMAINS = {**SMALL, Kind.NUMBER: INTS + FLOATS}
VOCABULARY = {
    "i": (Kind.NUMBER,),
    "f": (Kind.NUMBER,),
    "s": (Kind.STRING,),
    "b": (Kind.BOOL,),
    "d": (Kind.DATE,),
    "t": (Kind.TIMESTAMP,),
    "place.name": (Kind.STRING,),
    "place.level": (Kind.NUMBER,),
    "spot": (Kind.POINT,),
    "area": (Kind.BOX,),
}
REGION = pa.struct([(edge, pa.float64()) for edge in EDGES])
COLUMNS = {
    "i": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "place": pa.struct([("name", pa.string()), ("level", pa.int64())]),
    "spot": REGION,
    "area": REGION,
}


class JudgedGenerator(Generator):
    """Events whose numbers fit their column: i and place.level hold whole ones, f any."""

    def event(self) -> dict[str, Value]:
        event = super().event()
        for name, numbers in (("i", INTS), ("place.level", INTS), ("f", FLOATS + ENDLESS)):
            if name in event:
                event[name] = self.random.choice(numbers)
        return event


def row_of(id: int, event: dict[str, Value]) -> dict[str, object]:
    """A flat event as a row of the judge's table."""
    row: dict[str, object] = {"id": id, "place": {}}
    for name, value in event.items():
        if name in ("spot", "area"):
            row[name] = dict(zip(EDGES, value.bounds, strict=True))
        elif name.startswith("place."):
            row["place"][name.removeprefix("place.")] = value
        else:
            row[name] = value
    row["place"] = row["place"] or None
    return row


@pytest.fixture(scope="module")
def judge() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


class Cases:
    """Random conditions and events, the latter in a table of the judge."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        generator = JudgedGenerator(f"judge {SEED}", VOCABULARY, DOMAINS)
        self.expressions = [generator.expression(depth=4) for _ in range(EXPRESSIONS)]
        self.events = [generator.event() for _ in range(EVENTS)]
        rows = [row_of(id, event) for id, event in enumerate(self.events)]
        schema = pa.schema([("id", pa.int64()), *COLUMNS.items()])
        connection.register("arriving", pa.Table.from_pylist(rows, schema=schema))
        connection.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM arriving")
        self._connection = connection
        self._answers: dict[str, set[int]] = {}

    def where(self, condition: str) -> set[int]:
        """The ids of the events for which DuckDB finds the condition true; each condition is judged once."""
        if condition not in self._answers:
            query = f"SELECT id FROM events WHERE {condition}"
            self._answers[condition] = {id for (id,) in self._connection.execute(query).fetchall()}
        return self._answers[condition]


@pytest.fixture(scope="module")
def cases(judge) -> Cases:
    return Cases(judge)


def test_the_judge_agrees_on_true_false_and_unknown_for_every_pair(cases):
    verdicts: Counter[bool | None] = Counter()
    for expression in cases.expressions:
        condition = to_duckdb(expression)
        true, false = cases.where(condition), cases.where(f"NOT ({condition})")
        for id, event in enumerate(cases.events):
            judged = True if id in true else False if id in false else None
            assert truth(expression, event) is judged, (SEED, to_text(expression), condition, event)
            verdicts[judged] += 1
    assert verdicts.total() == EXPRESSIONS * EVENTS >= 20_000
    assert min(verdicts.values()) > 2_000
    assert len(verdicts) == 3


def test_the_judge_finds_what_was_compiled_and_read_back_true_for_the_same_events(cases):
    compilation = compile_texts(Texts(range(EXPRESSIONS), list(map(to_text, cases.expressions))))
    assert not compilation.rejects
    for written, read in zip(cases.expressions, expressions_of(compilation.table), strict=True):
        wanted = {id for id, event in enumerate(cases.events) if truth(written, event) is True}
        assert cases.where(to_duckdb(read)) == wanted, (SEED, to_text(written), to_text(read))


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [(name, {}) for name in algorithms()]
    + [("pubsub", {"structures": each, "bucket_size": 3}) for each in STRUCTURES],
    ids=[*algorithms(), *STRUCTURES],
)
def test_the_judge_agrees_with_every_algorithm(cases, algorithm, options, monkeypatch):
    """With all conditions, and what is left when half of them have gone; patterns and shapes in structures."""
    monkeypatch.setattr(segments, "WAITING", 0)
    engine = Engine(algorithm, **options)
    engine.subscribe_many(enumerate(cases.expressions))
    wanted = {(at, id) for at, one in enumerate(cases.expressions) for id in cases.where(to_duckdb(one))}
    for kept in (1, 2):
        engine.unsubscribe_many([at for at in engine if at % kept])
        matches = engine.match_batch(cases.events)
        told = (matches.column(name).to_pylist() for name in ("subscription", "event"))
        assert set(zip(*told, strict=True)) == {pair for pair in wanted if pair[0] % kept == 0}, SEED


def test_most_conditions_are_judged_in_harkens_own_words(cases):
    own = sum(to_duckdb(expression) == to_text(expression) for expression in cases.expressions)
    assert own > EXPRESSIONS / 4


# ---------------------------------------------------------------- where the two differ on purpose


def harken(text: str, event: dict[str, object]) -> bool | None:
    return truth(parse(text), flatten(event)[0])


@pytest.fixture
def asked(judge):
    """DuckDB's answer to a condition over one row, given as name=(type, value)."""

    def ask(condition: str, **columns: tuple[str, object]) -> bool | None:
        made = ", ".join(f"CAST(? AS {kind}) AS {name}" for name, (kind, _) in columns.items())
        values = [value for _, value in columns.values()]
        return judge.execute(f"SELECT {condition} FROM (SELECT {made})", values).fetchone()[0]

    return ask


def test_numbers_are_exact_here_and_rounded_to_double_there(asked):
    text = "x = 9007199254740993"
    assert harken(text, {"x": 2.0**53}) is False
    assert asked(text, x=("DOUBLE", 2.0**53)) is True
    text = "x = 9.007199254740992e15"
    assert harken(text, {"x": 2**53 + 1}) is False
    assert asked(text, x=("BIGINT", 2**53 + 1)) is True


def test_a_literal_with_a_point_keeps_its_digits_here_as_there(asked):
    text = "x = 9007199254740993.0"
    assert harken(text, {"x": 2**53 + 1}) is asked(text, x=("BIGINT", 2**53 + 1)) is True
    text, value = "x = 90071992547409.93", Decimal("90071992547409.93")
    assert harken(text, {"x": value}) is asked(text, x=("DECIMAL(16, 2)", value)) is True


def test_a_literal_of_more_digits_than_a_double_has_meets_no_double_here_and_is_rounded_there(asked):
    text = "x = 0.10000000000000001"
    assert harken(text, {"x": 0.1}) is False
    assert asked(text, x=("DOUBLE", 0.1)) is True


def test_decimals_are_exact_here_and_rounded_to_double_there(asked):
    text, value = "x = 1.1e0", Decimal("1.1000000000000000001")
    assert harken(text, {"x": value}) is False
    assert asked(text, x=("DECIMAL(20, 19)", value)) is True
    assert (
        harken("x = 1.10", {"x": Decimal("1.1")}) is asked("x = 1.10", x=("DECIMAL(3, 1)", Decimal("1.1"))) is True
    )


def test_a_string_is_never_a_number_here_and_is_converted_there(asked):
    assert harken("x = 5", {"x": "5"}) is None
    assert asked("x = 5", x=("VARCHAR", "5")) is True
    assert harken("x = '5'", {"x": 5}) is None
    assert asked("x = '5'", x=("BIGINT", 5)) is True


def test_a_string_that_is_no_number_is_unknown_here_and_an_error_there(asked):
    assert harken("x = 5", {"x": "five"}) is None
    with pytest.raises(duckdb.ConversionException):
        asked("x = 5", x=("VARCHAR", "five"))
    assert harken("x IN (1, 'one')", {"x": 1}) is True
    with pytest.raises(duckdb.ConversionException):
        asked("x IN (1, 'one')", x=("BIGINT", 1))


def test_a_bool_is_never_a_number_here_and_is_converted_there(asked):
    assert harken("x = 1", {"x": True}) is None
    assert asked("x = 1", x=("BOOLEAN", True)) is True
    assert harken("x = TRUE", {"x": 1}) is None
    assert asked("x = TRUE", x=("BIGINT", 1)) is True


def test_a_date_is_never_a_timestamp_here_and_its_midnight_there(asked):
    assert harken("x = TIMESTAMP '2026-11-15'", {"x": date(2026, 11, 15)}) is None
    assert asked("x = TIMESTAMP '2026-11-15'", x=("DATE", date(2026, 11, 15))) is True
    assert harken("x > DATE '2026-11-14'", {"x": datetime(2026, 11, 15, tzinfo=UTC)}) is None
    assert asked("x > DATE '2026-11-14'", x=("TIMESTAMP", datetime(2026, 11, 15))) is True


def test_a_timestamp_without_an_offset_is_utc_here_and_of_the_session_there(judge, asked):
    text, moment = "x = TIMESTAMP '2026-11-15 12:00:00'", datetime(2026, 11, 15, 12, tzinfo=UTC)
    assert harken(text, {"x": moment}) is True
    assert asked(text, x=("TIMESTAMPTZ", moment)) is True
    judge.execute("SET TimeZone = 'Asia/Tokyo'")
    try:
        assert asked(text, x=("TIMESTAMPTZ", moment)) is False
    finally:
        judge.execute("SET TimeZone = 'UTC'")


def test_an_offset_of_a_timestamp_counts_here_and_is_ignored_there(asked):
    text, moment = "x = TIMESTAMP '2026-11-15 12:00:00+02'", datetime(2026, 11, 15, 10, tzinfo=UTC)
    assert harken(text, {"x": moment}) is True
    assert asked(text, x=("TIMESTAMP", datetime(2026, 11, 15, 10))) is False
    assert asked(text, x=("TIMESTAMP", datetime(2026, 11, 15, 12))) is True


def test_names_are_told_apart_by_case_here_and_not_there(asked):
    assert harken("X = 1", {"x": 1}) is None
    assert asked("X = 1", x=("BIGINT", 1)) is True


def test_a_quoted_dot_is_a_dot_like_any_other_here_and_part_of_one_name_there(judge):
    assert harken('"place.name" = 1', {"place": {"name": 1}}) is True
    with pytest.raises(duckdb.BinderException):
        judge.execute("""SELECT "place.name" = 1 FROM (SELECT {'name': 1} AS place)""")


def test_a_nested_record_is_no_value_here_and_one_there(judge):
    assert harken("place IS NULL", {"place": {"name": 1}}) is True
    assert judge.execute("SELECT place IS NULL FROM (SELECT {'name': 1} AS place)").fetchone() == (False,)


def test_an_attribute_nobody_has_is_missing_here_and_an_error_there(asked):
    assert harken("y IS NULL", {"x": 1}) is True
    with pytest.raises(duckdb.BinderException):
        asked("y IS NULL", x=("BIGINT", 1))


def test_not_a_number_is_foreign_here_and_the_greatest_number_there(asked):
    assert harken("x > 1", {"x": float("nan")}) is None
    assert harken("x IS NOT NULL", {"x": float("nan")}) is True
    assert asked("x IS NOT NULL", x=("DOUBLE", float("nan"))) is True
    assert asked("x > 1 AND x = x", x=("DOUBLE", float("nan"))) is True


@pytest.mark.parametrize(
    "text",
    ["x < 1e999", "x < 9223372036854775808", "d > DATE '2026-2-3'", "x < 1_000"],
    ids=["infinite", "past 64 bits", "short date", "underscore"],
)
def test_some_literals_are_refused_here_and_taken_there(asked, text):
    with pytest.raises(ParseError):
        parse(text)
    assert asked(text, x=("BIGINT", 1), d=("DATE", date(2026, 11, 15))) is True


def test_a_dangling_escape_is_refused_when_written_here_and_when_reached_there(asked):
    text = "x LIKE 'b!' ESCAPE '!'"
    with pytest.raises(ParseError, match="ends with its escape character"):
        parse(text)
    assert asked(text, x=("VARCHAR", "a")) is False


def test_two_attributes_or_two_constants_cannot_be_compared_here_and_can_there(asked):
    for text in ("x = y", "1 = 1"):
        with pytest.raises(ParseError):
            parse(text)
        assert asked(text, x=("BIGINT", 1), y=("BIGINT", 1)) is True


def test_null_is_no_constant_here_and_makes_the_answer_unknown_there(asked):
    for text in ("x = NULL", "x NOT IN (2, NULL)"):
        with pytest.raises(ParseError, match="IS NULL"):
            parse(text)
        assert asked(text, x=("BIGINT", 1)) is None
