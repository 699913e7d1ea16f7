"""Past what an index can number there is a clear error, and nothing has changed. The limits are lowered here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine
from harken.compiler import Texts, columns, compile_texts
from harken.errors import CapacityError, HarkenError
from harken.matching.identities import Identities
from harken.matching.predicates import ordering
from harken.model import capacity

pytestmark = pytest.mark.kernel

INDEXES = ["counting", "propagation", "static", "dynamic", "tree", "rapid", "pubsub", "be-tree", "siena"]
KNOWN = [(id, f"a = {id} AND b < {id}") for id in range(20)]
EVENTS = [{"a": 3, "b": 1}, {"a": 3, "b": 3}, {"a": 19, "b": 0, "c": 1}, {"c": 1}]
MORE = {
    "SLOTS": [(100 + id, "c = 1") for id in range(5)],
    "CLAUSES": [(100, "(c = 1 AND d = 1) OR (c = 2 AND d = 2) OR (c = 3 AND d = 4)"), (101, "c = 1")],
    "PREDICATES": [(100, f"c IN ({', '.join(map(str, range(50)))})")],
    "DIMENSIONS": [(100 + id, f"new_{id} = 1") for id in range(5)],
    "LINES": [(100 + id, f"c = {id} AND d < {id} AND e > {id}") for id in range(200)],
    "WORDS": [(100, "c = 1 AND d = 1 AND e = 1 AND f = 1")],
    "TREE_WORDS": [(100, "c = 1 AND d = 1 AND e = 1 AND f = 1")],
}
"""What is too much, by the limit that is lowered to what there is already."""

OF_CLUSTERS = ("LINES", "DIMENSIONS", "PREDICATES", "CLAUSES", "SLOTS")
OF_LISTS = ("WORDS", "DIMENSIONS", "PREDICATES", "CLAUSES", "SLOTS")
OF_TREES = ("TREE_WORDS", "DIMENSIONS", "PREDICATES", "CLAUSES", "SLOTS")
LIMITS = dict.fromkeys(("be-tree", "counting", "pubsub", "siena"), OF_LISTS) | dict.fromkeys(
    ("tree", "rapid"), OF_TREES
)
CASES = [(algorithm, limit) for algorithm in INDEXES for limit in LIMITS.get(algorithm, OF_CLUSTERS)]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("algorithm", "limit"), CASES)
def test_one_too_many_is_refused_and_nothing_has_changed(algorithm, limit, replace, monkeypatch):
    engine = Engine(algorithm)
    engine.subscribe_many(KNOWN)
    before, sizes = engine.match_batch(EVENTS), _sizes(engine)
    rows = [*MORE[limit], *(KNOWN[:3] if replace else [])]
    monkeypatch.setattr(capacity, limit, 0)
    # With what was wanted there is room, or something else is lacking; with one less there is not.
    for lowered in _limits_to_try(engine, rows, replace):
        monkeypatch.setattr(capacity, limit, lowered)
        with pytest.raises(CapacityError, match="but an index can number") as caught:
            engine.subscribe_many(rows, replace=replace)
        assert caught.value.limit == lowered < caught.value.wanted
        assert sorted(engine) == [id for id, _ in KNOWN]
        assert engine.match_batch(EVENTS).equals(before)
        assert _sizes(engine) == sizes
    monkeypatch.undo()
    engine.subscribe_many(rows, replace=replace)
    assert len(engine) == len(KNOWN) + len(MORE[limit])


def _limits_to_try(engine: Engine, rows: list[tuple[int, str]], replace: bool) -> list[int]:
    with pytest.raises(CapacityError) as caught:
        engine.subscribe_many(rows, replace=replace)
    return [0, caught.value.wanted - 1]


def _sizes(engine: Engine) -> list[object]:
    return [engine.stats()[name] for name in ("clauses", "predicates", "bytes")]


@pytest.mark.parametrize("algorithm", INDEXES)
def test_a_replacement_needs_slots_for_both_until_it_is_made(algorithm, monkeypatch):
    engine = Engine(algorithm)
    engine.subscribe_many(KNOWN)
    monkeypatch.setattr(capacity, "SLOTS", len(KNOWN) + 1)
    with pytest.raises(CapacityError):
        engine.subscribe_many([(3, "c = 1"), (4, "c = 1")], replace=True)
    assert engine.match({"c": 1}) == []
    engine.subscribe_many([(3, "c = 1")], replace=True)
    engine.subscribe_many([(4, "c = 1")], replace=True)
    assert sorted(engine.match({"c": 1})) == [3, 4]


def test_the_default_asks_the_index_that_it_is_about_to_have(monkeypatch):
    engine = Engine(small=30)
    engine.subscribe_many(KNOWN)
    monkeypatch.setattr(capacity, "CLAUSES", 10)
    with pytest.raises(CapacityError, match="50 clauses"):
        engine.subscribe_many((100 + id, f"c = {id}") for id in range(50))
    assert (engine.algorithm, len(engine)) == ("reference", len(KNOWN))
    engine.subscribe(100, "c = 1")
    assert engine.match({"c": 1}) == [100]


def test_clusters_that_cannot_grow_say_so(monkeypatch):
    engine = Engine("propagation")
    engine.subscribe_many(KNOWN)
    store = engine._matcher._store
    monkeypatch.setattr(capacity, "LINES", len(store.words) // 16)
    words = store.words
    with pytest.raises(CapacityError, match="cache lines"):
        store.grow()
    assert store.words is words


def test_clusters_grow_up_to_the_limit_and_no_further(monkeypatch):
    engine = Engine("propagation")
    lines = len(engine._matcher._store.words) // 16
    monkeypatch.setattr(capacity, "LINES", lines + 3)
    engine._matcher._store.grow()
    assert len(engine._matcher._store.words) == 16 * (lines + 3)


def test_ids_past_the_limit_are_not_admitted(monkeypatch):
    identities = Identities()
    identities.admit(pa.array([1, 2, 3]))
    monkeypatch.setattr(capacity, "SLOTS", 4)
    with pytest.raises(CapacityError, match="5 subscriptions, but an index can number 4"):
        identities.admit(pa.array([4, 5]))
    assert sorted(identities) == [1, 2, 3]
    identities.admit(pa.array([4]))


def test_labels_are_given_anew_before_they_reach_the_bounds(monkeypatch):
    monkeypatch.setattr(ordering, "FARTHEST", 40 * ordering.SPACING)
    engine = Engine("propagation")
    for id in range(120):
        engine.subscribe(id, f"b < {id}")
    order = engine._matcher._predicates.by_attribute["b"][ordering.Kind.NUMBER].order
    assert order.epoch > 1
    assert sorted(engine.match({"b": 60})) == list(range(61, 120))


def test_a_chunk_with_more_than_arrow_can_count_is_refused(monkeypatch):
    monkeypatch.setattr(capacity, "OFFSETS", 5)
    with pytest.raises(CapacityError, match="in several parts"):
        compile_texts(Texts(list(range(10)), [f"a = {id} AND b = 1" for id in range(10)]))
    with pytest.raises(CapacityError, match="one table"):
        Engine("propagation").subscribe_many((id, "a = 1 AND b IN (1, 2, 3, 4, 5)") for id in range(200))
    monkeypatch.setattr(capacity, "OFFSETS", 2_000)
    with pytest.raises(CapacityError, match="bytes of strings"):
        compile_texts(Texts(list(range(1_500)), [f"s = 'longer than it may be {id}'" for id in range(1_500)]))


def test_offsets_do_not_wrap_around():
    with pytest.raises(CapacityError, match="4,294,967,294 predicates or clauses"):
        columns.offsets_of(np.array([2**31 - 1, 2**31 - 1], np.int32))


def test_the_error_is_of_harken_and_an_overflow():
    assert issubclass(CapacityError, HarkenError)
    assert issubclass(CapacityError, OverflowError)
