"""The store in memory where there is not room for everything in one segment, or not at all: limits are lowered."""

from __future__ import annotations

import pytest

from harken import SymmetricEngine
from harken.compiler import Texts, compile_texts
from harken.errors import CapacityError
from harken.model import capacity
from harken.symmetric.memory import constants

pytestmark = pytest.mark.kernel

TEXTS = {
    id: f"a = {id % 7} AND b BETWEEN {id} AND {id + 5}" + f" AND c_{id} = 1" * (id % 3 == 0) for id in range(300)
}
ASKED = ["a = 3 AND b = 100", "b < 20", "a = 1", "a = 0 AND c_0 = 1 AND b = 2"]


def table(ids):
    return compile_texts(Texts(list(ids), [TEXTS[id] for id in ids])).table


def matches(engine):
    return [sorted(engine.match(text)) for text in ASKED]


def segments(engine):
    return engine._store._sides["subscriptions"]._segments


def loaded(ids=TEXTS):
    engine = SymmetricEngine()
    engine.subscribe_many(table(ids))
    return engine


def test_what_one_segment_cannot_hold_stands_in_several(monkeypatch):
    expected = matches(loaded())
    monkeypatch.setattr(capacity, "SEGMENT_WORDS", 15_000)
    engine = loaded()
    assert len(segments(engine)) > 1
    assert all(len(each._arrays[0]) <= 15_000 for each in segments(engine).values())
    assert matches(engine) == expected


def test_segments_are_not_joined_past_what_one_can_hold(monkeypatch):
    expected = matches(loaded())
    monkeypatch.setattr(capacity, "SEGMENT_WORDS", 15_000)
    engine = SymmetricEngine()
    for id, text in TEXTS.items():
        engine.subscribe(id, text)
    assert len(segments(engine)) > 1
    assert all(len(each._arrays[0]) <= 15_000 for each in segments(engine).values())
    assert matches(engine) == expected
    for id in range(0, 300, 2):
        engine.unsubscribe(id)
    assert matches(engine) == [[id for id in found if id % 2] for found in expected]


def test_segments_use_their_numbers_again():
    engine = SymmetricEngine()
    for turn in range(5):
        for id, text in TEXTS.items():
            engine.subscribe(id, text, replace=turn > 0)
    assert max(segments(engine)) < 20
    assert matches(engine) == matches(loaded())


@pytest.mark.parametrize("limit", ["CONSTRAINTS", "LOADS", "CONSTANTS"])
def test_a_table_that_is_too_much_is_refused_and_nothing_has_changed(limit, monkeypatch):
    engine = loaded(range(100))
    expected = matches(engine)
    monkeypatch.setattr(capacity, limit, {"CONSTRAINTS": 299, "LOADS": 1, "CONSTANTS": 50}[limit])
    with pytest.raises(CapacityError, match="but an index can number"):
        engine.subscribe_many(table(range(100, 300)))
    assert len(engine) == 100
    assert matches(engine) == expected
    monkeypatch.undo()
    engine.subscribe_many(table(range(100, 300)))
    assert matches(engine) == matches(loaded())


def test_one_constraint_too_many_is_refused_and_nothing_has_changed(monkeypatch):
    engine = loaded(range(100))
    expected = matches(engine)
    monkeypatch.setattr(capacity, "CONSTRAINTS", 100)
    with pytest.raises(CapacityError, match="101 constraints of one side"):
        engine.subscribe(100, TEXTS[100])
    assert 100 not in engine
    assert matches(engine) == expected


def test_codes_that_would_wrap_around_are_refused():
    with pytest.raises(CapacityError, match="constants of one segment"):
        constants.check_constants(2**30)
