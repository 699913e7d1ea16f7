"""Every subscription has one shard, and every event that satisfies it goes there; without Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.compiler import Texts, compile_texts
from harken.language import parse, to_text
from harken.model.evaluation import truth
from harken.model.values import INT_MAX, INT_MIN, Value
from harken.spark.index.sharding import Division, Frequencies, divide, router_rows
from harken.spark.index.worker_cache import Router
from tests.contract.checks import arrow_events
from tests.strategies import TYPED, Generator, expressions
from tests.strategies import events as typed_events

Event = dict[str, Value]
Texted = Mapping[int, str]


def compiled(rows: Mapping[int, str] | Mapping[str, str]) -> pa.Table:
    done = compile_texts(Texts(list(rows), list(rows.values())))
    assert not done.rejects
    return done.table


def division_of(rows: Texted, shards: int, events: Mapping[str, Frequencies] = {}) -> Division:
    return divide(compiled(rows).to_batches(), shards, events)


def shards_of(division: Division, rows: Texted) -> dict[int, int]:
    return dict(zip(rows, division.assign(compiled(rows)).tolist(), strict=True))


def routed(division: Division, events: pa.Table) -> list[set[int]]:
    """By event, the shards it goes to."""
    goes: list[set[int]] = [set() for _ in range(events.num_rows)]
    for shard, rows in Router(division).route(events):
        for row in range(events.num_rows) if rows is None else rows.tolist():
            assert shard not in goes[row], "once"
            goes[row].add(shard)
    return goes


def assert_nothing_is_missed(division: Division, rows: Texted, events: Sequence[Event]) -> int:
    """Every match can be found where the subscription is; how many there are."""
    shard_of, asked = shards_of(division, rows), {id: parse(text) for id, text in rows.items()}
    assert set(shard_of.values()) <= set(range(division.shards))
    found = 0
    for event, goes in zip(events, routed(division, arrow_events(events, TYPED)), strict=True):
        for id, expression in asked.items():
            if truth(expression, event) is True:
                assert shard_of[id] in goes, (rows[id], event)
                found += 1
    return found


def keyed(attribute: str, values: Sequence[int | str], often: int = 3) -> dict[int, str]:
    """Subscriptions that ask for one value each."""
    return {at: f"{attribute} = {value!r}" for at, value in enumerate([*values] * often)}


NUMBERS = keyed("n", [-2, -1, 0, 1, 2, 3])
STRINGS = keyed("s", ["a", "aa", "ab", "b", "B"])

AWKWARD = (
    "n in (1, 2)",
    "n in (0, 2.5)",
    "n in (1, 2.0)",
    "n in (2, 2.5) and m = 1",
    "n in (1, 'a')",
    "n in (1, true)",
    "n in (1, 77)",
    "n = 77",
    "n = 1.0",
    "n = 2.5",
    "n = 2 and n = 2.0",
    "n != 1",
    "n != 1 and n in (1, 2, 3)",
    "not (n = 1)",
    "n = 1 or n = 2",
    "n = 1 or n = 1 and m = 2",
    "n = 1 or s = 'a'",
    "n = 1 or m = 2 and n = 1",
    "n = 1 or true",
    "n = 1 and false",
    "n between 1 and 1",
    "n >= 1 and n <= 1",
    "n > 0",
    "n is null",
    "n = 1 or n is null",
    "n = '1'",
    "n = true",
    f"n = {INT_MAX}",
    "n = 9007199254740993",
    "n = 9007199254740992.0",
    "s = 'a'",
    "s in ('a', 'b')",
    "s in ('a', 'nobody')",
    "s in ('a', 3)",
    "s = ''",
    "s like 'a'",
    "s = 'a' and n = 1",
    "s = 'a' or n = 1 and s = 'b'",
    "true",
    "false",
)


@pytest.mark.parametrize("shards", [2, 3, 5, 8])
@pytest.mark.parametrize("many", [NUMBERS, STRINGS], ids=["by number", "by string"])
def test_whatever_a_subscription_asks_its_events_come_to_its_shard(many: Texted, shards: int) -> None:
    division = division_of(many, shards)
    assert division.attribute is not None
    rows = many | {100 + at: text for at, text in enumerate(AWKWARD)}
    generator = Generator("awkward", TYPED)
    events = [generator.event() for _ in range(150)]
    assert assert_nothing_is_missed(division, rows, events) > 500


@pytest.mark.parametrize("seed", range(4))
def test_random_subscriptions_get_all_their_events(seed: int) -> None:
    generator = Generator(f"shards {seed}", TYPED)
    rows = {at: to_text(generator.expression()) for at in range(60)}
    events = [generator.event() for _ in range(40)]
    for division in (division_of(NUMBERS, 4), division_of(STRINGS, 3), division_of(rows, 3), Division(3)):
        assert_nothing_is_missed(division, rows, events)


@given(st.lists(expressions(TYPED, max_leaves=4), max_size=6), st.lists(typed_events(TYPED), max_size=4))
def test_no_expression_escapes_its_events(several, events) -> None:
    rows = {at: to_text(expression) for at, expression in enumerate(several)}
    assert_nothing_is_missed(division_of(NUMBERS, 4), rows, events)


def test_events_go_only_where_they_can_concern_somebody() -> None:
    division = division_of(NUMBERS, 4)
    assert (division.attribute, division.free) == ("n", (3,))
    goes = routed(division, pa.table({"n": [1, 2, 77, None]}))
    assert [len(shards) for shards in goes] == [2, 2, 1, 1]
    assert goes[2] == goes[3] == {3}
    assert goes[0] != goes[1]


def test_an_event_without_the_attribute_goes_to_shards_without_a_constraint() -> None:
    division = division_of(NUMBERS, 4)
    assert routed(division, pa.table({"other": [1, 2]})) == [{3}, {3}]


def test_shards_are_of_about_one_size() -> None:
    rows = keyed("n", range(1_000), often=2)
    division = division_of(rows, 5)
    held = [list(shards_of(division, rows).values()).count(shard) for shard in range(4)]
    assert held == [500] * 4


def test_the_share_of_free_shards_follows_what_cannot_be_divided() -> None:
    rows = keyed("n", range(60), often=1) | {100 + at: f"m > {at}" for at in range(40)}
    division = division_of(rows, 10)
    assert division.free == (6, 7, 8, 9)
    at = [shard for id, shard in shards_of(division, rows).items() if id >= 100]
    assert set(at) == {6, 7, 8, 9}


def test_a_value_that_many_ask_for_gets_several_shards() -> None:
    rows = dict.fromkeys(range(900), "n = 7") | {1_000 + at: f"n = {at + 10}" for at in range(100)}
    division = division_of(rows, 5)
    assert len(division.shards_of[7]) == 4
    held = [list(shards_of(division, rows).values()).count(shard) for shard in range(4)]
    assert max(held) <= 1.25 * 250
    assert routed(division, pa.table({"n": [7]})) == [{0, 1, 2, 3, 4}]


def test_a_value_that_many_events_have_gets_several_shards() -> None:
    """However small the frequencies are: only their ratios count."""
    rows = keyed("n", range(40), often=5)
    for unit in (1.0, 1e-3, 1e-9):
        seen = {"n": {value: unit * (0.9 if value == 7 else 0.001) for value in range(20)}}
        division = division_of(rows, 5, seen)
        assert len(division.shards_of[7]) == 4, unit
        assert all(len(division.shards_of[value]) == 1 for value in range(40) if value != 7)


@pytest.mark.parametrize("values", [2, 3, 4, 5])
@pytest.mark.parametrize("shards", range(2, 12))
def test_more_shards_than_values_do_no_harm(values: int, shards: int) -> None:
    rows = keyed("n", range(values))
    division = division_of(rows, shards)
    assert dict(router_rows(division)).keys() <= set(range(shards))
    events = [{"n": value} for value in range(-1, values + 1)]
    assert assert_nothing_is_missed(division, rows, events) == 3 * values


def test_what_cannot_be_divided_is_dealt_out_by_id() -> None:
    for rows in (
        {at: f"m > {at}" for at in range(40)},
        dict.fromkeys(range(40), "n = 1"),
        {at: f"n = {at}" if at % 5 == 0 else f"m < {at}" for at in range(40)},
    ):
        division = division_of(rows, 4)
        assert division == Division(4)
        assert shards_of(division, rows) == {id: id % 4 for id in rows}
        assert routed(division, pa.table({"n": [1]})) == [{0, 1, 2, 3}]


def test_one_shard_or_no_subscriptions_need_no_division() -> None:
    assert division_of(NUMBERS, 1) == Division(1)
    assert set(shards_of(Division(1), NUMBERS).values()) == {0}
    assert divide([], 4, {}) == Division(4)
    assert Division(4).assign(compiled({})).tolist() == []


def test_the_attribute_that_divides_most_is_chosen() -> None:
    rows = {at: f"n = {at % 4} and s = '{at % 9}'" for at in range(30)} | {100 + at: "s = 'x'" for at in range(3)}
    assert division_of(rows, 3).attribute == "s"


def test_a_subscription_stays_in_its_shard_whoever_comes_with_it() -> None:
    """Layers are divided apart, and hide what others hold: a shard must not depend on the company."""
    rows = NUMBERS | {100 + at: text for at, text in enumerate(AWKWARD)}
    division = division_of(NUMBERS, 4)
    together = shards_of(division, rows)
    shuffled = list(rows)
    random.Random(3).shuffle(shuffled)
    assert shards_of(division, {id: rows[id] for id in shuffled}) == together
    for id in shuffled[:20]:
        assert shards_of(division, {id: rows[id]}) == {id: together[id]}


def test_a_table_in_pieces_is_assigned_like_a_whole_one() -> None:
    division = division_of(NUMBERS, 4)
    table = compiled(NUMBERS | {100 + at: text for at, text in enumerate(AWKWARD)})
    whole = division.assign(table).tolist()
    pieces = pa.concat_tables([table.slice(0, 5), table.slice(5, 0), table.slice(5, 30), table.slice(35)])
    assert division.assign(pieces).tolist() == whole
    assert divide(pieces.to_batches(), 4, {}) == divide(table.to_batches(), 4, {})


def test_ids_of_every_kind_are_dealt_out() -> None:
    numbers = Division(3).assign(compiled({INT_MIN: "a = 1", INT_MAX: "a = 1", -1: "a = 1"}))
    assert set(numbers.tolist()) <= {0, 1, 2}
    strings = Division(3).assign(compiled({f"sub-{at}ä": "a = 1" for at in range(60)}))
    assert sorted(set(strings.tolist())) == [0, 1, 2]


@pytest.mark.parametrize("many", [NUMBERS, STRINGS, {0: "true"}], ids=["by number", "by string", "by id"])
def test_a_division_is_the_same_after_it_was_written_down(many: Texted) -> None:
    division = division_of(many, 4)
    assert Division.from_json(json.loads(json.dumps(division.to_json()))) == division


def test_constraints_are_what_a_person_can_read() -> None:
    division = division_of(keyed("n", [1, 2, 3, 4]), 3)
    said = {shard: to_text(constraint) for shard, constraint in router_rows(division)}
    assert sorted(said) == [0, 1]
    assert sorted(said.values()) == ["n IN (1, 3)", "n IN (2, 4)"]
    assert division.constraint(2) is None
