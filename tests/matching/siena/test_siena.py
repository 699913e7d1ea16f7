"""Siena's forwarding: names lead to constraints, ends of ranges are counted one by one, tables made in batches."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from harken import Engine
from harken.jit import tight
from harken.matching.predicates.dimensions import Dimension
from harken.matching.siena import matcher as siena
from harken.matching.siena.kernels.names import UNKNOWN_NAME, Names, find_name
from harken.matching.siena.table import _names
from harken.model.values import Kind

pytestmark = pytest.mark.kernel


@tight
def _find(names: Names, begin: int, end: int) -> int:
    return find_name(names, begin, end)


def found(names: Names, text: bytes) -> int:
    """Which of the names a text is."""
    asked = names._replace(text=np.concatenate([names.text, np.frombuffer(text, np.uint8)]))
    return int(_find(asked, len(names.text), len(asked.text)))


@pytest.mark.parametrize("seed", range(5))
def test_names_are_found_with_their_type_and_others_are_not(seed: int) -> None:
    chance = random.Random(seed)
    letters = "abé\0漢"
    known = {"".join(chance.choices(letters, k=chance.randrange(6))) for _ in range(60)}
    kinds = [Kind.NUMBER, Kind.STRING, None]
    keys = [(name, kind) for name in sorted(known) for kind in kinds if chance.random() < 0.6]
    chance.shuffle(keys)
    names = _names([Dimension(2 * at, name, kind) for at, (name, kind) in enumerate(keys)], 2 * len(keys))
    for name in known | {"".join(chance.choices(letters, k=4)) for _ in range(60)}:
        for kind in kinds:
            expected = 2 * keys.index((name, kind)) if (name, kind) in keys else UNKNOWN_NAME
            assert found(names, f"{name}\0{kind.value if kind else ''}".encode()) == expected


def test_no_name_is_found_where_there_is_none() -> None:
    assert found(_names([], 0), b"a") == UNKNOWN_NAME


def test_a_range_holds_only_with_both_of_its_ends() -> None:
    engine = Engine("siena")
    engine.subscribe("range", "5 <= n and n <= 7")
    engine.subscribe("with another", "5 <= n and n <= 7 and m > 1")
    engine.subscribe("lower", "n >= 5")
    engine.subscribe("upper", "n <= 7")
    engine.subscribe("different", "n != 6")
    told = {n: sorted(engine.match({"n": n, "m": 2})) for n in (4, 5, 6, 7, 8)}
    both = ["lower", "range", "upper", "with another"]
    assert told == {
        4: ["different", "upper"],
        5: ["different", *both],
        6: both,
        7: ["different", *both],
        8: ["different", "lower"],
    }
    assert sorted(engine.match({"n": 6})) == ["lower", "range", "upper"]


def test_counters_hold_more_ends_than_fit_into_a_byte() -> None:
    engine = Engine("siena")
    wide = " and ".join(f"0 <= a{at} and a{at} <= 9" for at in range(150))
    engine.subscribe("wide", wide)
    event = {f"a{at}": 5 for at in range(150)}
    assert engine.match(event) == ["wide"]
    assert engine.match(event | {"a149": 10}) == []
    assert engine.match(event) == ["wide"]


def test_a_table_is_made_once_for_all_changes_before_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()
    real = siena.forwarding_table

    def counted(*arguments: object) -> object:
        made.append(1)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(siena, "forwarding_table", counted)
    engine = Engine("siena")
    for at in range(100):
        engine.subscribe(at, f"n = {at} or m < {at}")
    for at in range(0, 100, 2):
        engine.unsubscribe(at)
    assert made == []
    assert engine.stats()["bytes"]["table"] == 0
    for n in range(100):
        assert engine.match({"n": n}) == ([n] if n % 2 else [])
    assert len(made) == 1
    assert engine.stats()["bytes"]["table"] > 0
    engine.subscribe(200, "n = 7")
    assert sorted(engine.match({"n": 7})) == [7, 200]
    assert len(made) == 2


def test_attributes_that_nobody_asks_of_any_more_take_no_part_in_tables() -> None:
    engine = Engine("siena")
    engine.subscribe(0, "x > 1")
    assert engine.match({"x": 2}) == [0]
    small = engine._matcher._index.table.names
    engine.subscribe_many((at, f"attribute_{at} > 1") for at in range(1, 500))
    assert engine.match({"x": 2, "attribute_7": 3}) == [0, 7]
    engine.unsubscribe_many(range(1, 500))
    assert engine.match({"x": 2, "attribute_7": 3}) == [0]
    assert len(engine._matcher._index.table.names.text) == len(small.text)


def test_threads_that_wait_hold_no_table_of_before() -> None:
    engine = Engine("siena")
    engine.subscribe_many((at, f"n = {at}") for at in range(100))
    held = list[object]()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(engine.match, {"n": 1}).result()
        held.append(engine._matcher._index)
        engine.subscribe(100, "n = 1")
        assert held[0].nbytes == 0  # type: ignore[attr-defined]
        assert pool.submit(engine.match, {"n": 1}).result() == [1, 100]
