"""An index that is saved and mapped back: what it holds, and whom its changes reach."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine, Schema, algorithms, persistence
from harken.errors import IndexFormatError, SchemaError, UnknownSubscriptionError
from harken.matching import saving
from harken.matching.kernels.layout import INTERVAL
from harken.matching.saving import State
from tests.matching.churning import VARIANTS, Churn, contents, found, index_of, made

pytestmark = pytest.mark.kernel
WITHOUT_STATISTICS = ("be-tree", "counting", "pubsub", "siena", "tree", "rapid")
every_variant = pytest.mark.parametrize("variant", VARIANTS)

AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT") == "1"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@every_variant
@pytest.mark.parametrize("seed", range(1 if AS_PYTHON else 4))
def test_what_is_loaded_matches_and_changes_like_what_was_saved_and_leaves_the_files_alone(
    variant, seed, tmp_path
):
    churn = Churn(made(variant), f"{variant}-{seed}")
    churn.add(30)
    churn.check()
    for step in range(3):
        churn.remove(10)
        folder = tmp_path / str(step)
        churn.engine.save(folder)
        before = contents(folder)
        assert json.loads(before["manifest.json"])["form"] == "index"
        churn.engine = Engine.load(folder, verify=bool(step % 2))
        churn.check()
        churn.add(20)
        churn.check()
        churn.remove(15)
        churn.check()
        assert contents(folder) == before
        assert sorted(Engine.load(folder)) != sorted(churn.engine)


@every_variant
def test_everything_that_is_known_of_an_index_survives(variant, tmp_path):
    churn = Churn(made(variant), variant)
    churn.add(60)
    churn.check(40)
    churn.remove(20)
    engine = churn.engine
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert {**loaded.stats(), "bytes": 0} == {**engine.stats(), "bytes": 0}
    assert repr(loaded) == repr(engine)
    assert {id: repr(loaded.subscription(id)) for id in loaded} == {
        id: repr(engine.subscription(id)) for id in engine
    }
    event = churn.generator.event()
    assert [repr(loaded.explain(event, id)) for id in loaded] == [repr(engine.explain(event, id)) for id in engine]


@pytest.mark.parametrize("variant", [variant for variant in VARIANTS if variant not in WITHOUT_STATISTICS])
def test_what_was_seen_of_events_survives(variant, tmp_path):
    churn = Churn(made(variant), f"{variant}-events")
    churn.engine.subscribe_many((-1 - at, f"x > {at * 7 % 40}.5") for at in range(40))
    churn.add(60)
    churn.engine.match_batch([churn.generator.event() for _ in range(60)])
    churn.engine.save(tmp_path / "engine")
    ours, theirs = index_of(churn.engine), index_of(Engine.load(tmp_path / "engine"))
    assert theirs._statistics.events == ours._statistics.events > 0
    chances = [each._statistics.chances(each._predicates) for each in (ours, theirs)]
    for mine, other in zip(*chances, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("algorithm", "options"), [("dynamic", {"patience": 1, "margin": 0.0}), ("static", {"checks_per_lookup": 0.0})]
)
def test_key_tables_survive_with_what_is_known_of_them(algorithm, options, tmp_path):
    engine = Engine(algorithm, **options)
    for batch in range(3):
        ids = range(50 * batch, 50 * batch + 50)
        engine.subscribe_many((id, f"a = {id % 7} and b = {id // 7 % 7} and c > {id}") for id in ids)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert any("benefit" in table for table in engine.stats()["tables"])
    assert {**loaded.stats(), "bytes": 0} == {**engine.stats(), "bytes": 0}
    if algorithm == "static":
        assert loaded._matcher._clauses_then == engine._matcher._clauses_then > 0
    else:
        assert loaded.stats()["tables_made"] > 0
    events = [{"a": at % 7, "b": at // 7, "c": 75} for at in range(49)]
    assert found(loaded, events) == found(engine, events)


@pytest.mark.parametrize("variant", ["propagation", "dynamic-without-prefetch"])
def test_bands_codes_and_numbers_survive(variant, tmp_path):
    engine = made(variant)
    engine.subscribe_many(
        (at, f"x > {at * 7 % 101} and x < {at * 7 % 101 + 5} and y != {at}") for at in range(120)
    )
    engine.unsubscribe_many(range(0, 120, 3))
    engine.subscribe_many((1_000 + at, f"z in ({at}, {at + 1}) and x >= {at}.5") for at in range(10))
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert_same_predicates(engine, loaded)
    for each in (engine, loaded):
        each.subscribe_many((2_000 + at, f"x between {at * 3} and {at * 5}.25") for at in range(20))
    assert_same_predicates(engine, loaded)
    events = [{"x": x, "y": 4, "z": 3} for x in range(110)]
    assert found(loaded, events) == found(engine, events)


def assert_same_predicates(engine, loaded):
    ours, theirs = (index_of(each)._predicates.arrays() for each in (engine, loaded))
    used = ours.operator >= 0
    assert not used.all(), "there are holes"
    assert len(ours.banded), "there are bands"
    for name in ("operator", "dimension", "low", "initial", "cell"):
        np.testing.assert_array_equal(getattr(theirs, name)[used], getattr(ours, name)[used], name)
    bounded = ours.operator == INTERVAL
    np.testing.assert_array_equal(theirs.high[bounded], ours.high[bounded])
    for name in ("banded", "band_first"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name), name)
    np.testing.assert_array_equal(theirs.operator >= 0, used)


@every_variant
def test_room_is_kept_and_used_again_as_before(variant, tmp_path):
    churn = Churn(made(variant), f"{variant}-room")
    churn.add(60)
    churn.remove(50)
    engine = churn.engine
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    ours, theirs = (index_of(each)._predicates for each in (engine, loaded))
    assert theirs.most_satisfied == ours.most_satisfied
    fresh = {1_000 + at: churn.generator.expression() for at in range(40)}
    for each in (engine, loaded):
        each.subscribe_many(fresh.items())
    assert len(theirs) == len(ours)
    assert theirs.most_satisfied == ours.most_satisfied
    for mine, other in zip(ours.dimensions, theirs.dimensions, strict=True):
        assert len(other.constants) <= len(mine.constants)
    assert len(theirs.arrays().member) == len(ours.arrays().member)


@every_variant
def test_clauses_that_many_ask_for_and_subscriptions_of_many_clauses_survive(variant, tmp_path):
    texts = {
        id: ("a = 1 and b > 2", "a = 1 and b > 2 or c = 3", "d = 1 or d = 2 or e < 4")[id % 3] for id in range(30)
    }
    engine = made(variant)
    engine.subscribe_many(texts.items())
    engine.unsubscribe_many(range(5))
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    events = [{"a": 1, "b": 3}, {"c": 3}, {"d": 2, "e": 1}, {"a": 1, "b": 3, "c": 3, "d": 1}]
    assert found(loaded, events) == found(engine, events)
    loaded.subscribe_many([(id, texts[id]) for id in range(5)])
    loaded.unsubscribe_many(range(1, 30))
    assert [loaded.match(event) for event in events] == [[0], [], [], [0]]
    loaded.unsubscribe(0)
    assert [loaded.match(event) for event in events] == [[], [], [], []]
    assert loaded.stats()["clauses"] == loaded.stats()["predicates"] == 0


@every_variant
def test_every_text_and_constant_comes_back_exactly(variant, tmp_path):
    texts = [
        *(f"x = {value!r}" for value in (0.1, -0.0, 1e300, 5e-324, 2**53 + 1, -(2**63), 2**63 - 1, 1e19)),
        *("s = 'it''s'", "s = ''", "s = '日本'", "s like '%_!%' escape '!'", "s not matches '^a+'", "s is null"),
        *("b = true", "d < date '1969-12-31'", "t >= timestamp '0001-01-02T00:00:00.000001Z'"),
        *(
            "p within box(-0.0, 0.1, 1, 2)",
            "p = point(0.1, -7)",
            "x between -1 and 1",
            "s in ('a', 'b')",
            "x != 2",
        ),
    ]
    engine = made(variant)
    engine.subscribe_many(enumerate(texts))
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert [repr(loaded.subscription(id)) for id in loaded] == [repr(engine.subscription(id)) for id in engine]


# ---------------------------------------------------------------- ids, owners, validity


@pytest.mark.parametrize("ids", ["strings", "a few integers", "many integers"])
def test_ids_survive_with_the_holes_between_them(ids, tmp_path):
    known = {
        "strings": [f"näme {at}" for at in range(50)],
        "a few integers": [at * 3 - 20 for at in range(50)],
        "many integers": [(at - 700) * 10**15 for at in range(1_500)],
    }[ids]
    engine = made("propagation")
    engine.subscribe_many((id, f"x = {at % 20}") for at, id in enumerate(known))
    engine.unsubscribe_many(known[::7])
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert list(loaded) == list(engine)
    assert loaded.match({"x": 3}) == engine.match({"x": 3})
    assert known[0] not in loaded
    with pytest.raises(UnknownSubscriptionError):
        loaded.unsubscribe(known[0])
    for each in (engine, loaded):
        each.subscribe_many((id, "y = 1") for id in known[::7])
    assert loaded.match({"y": 1}) == engine.match({"y": 1})
    assert list(loaded) == list(engine)
    assert len(index_of(loaded)._store.block_of) == len(known), "slots are used again"


@every_variant
def test_owners_and_validity_survive(variant, tmp_path):
    engine = made(variant)
    engine.subscribe_many((f"plain {at}", "x = 1") for at in range(6))
    engine.subscribe("owned", "x = 1", owner="Ann")
    engine.subscribe("from", "x = 1", valid_from=NOON)
    engine.subscribe("until", "x = 1", owner="Bob", valid_until=NOON + timedelta(microseconds=1))
    engine.unsubscribe("plain 0")
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert {id: loaded.subscription(id) for id in loaded} == {id: engine.subscription(id) for id in engine}
    for at in (NOON - timedelta(days=1), NOON, NOON + timedelta(days=1)):
        assert sorted(loaded.match({"x": 1}, at=at)) == sorted(engine.match({"x": 1}, at=at))
    loaded.unsubscribe_many(["owned", "from"])
    loaded.subscribe("new", "x = 1")
    assert loaded.subscription("new").owner is None


# ---------------------------------------------------------------- how it is set up


def test_an_index_that_auto_has_made_stays_one(tmp_path):
    engine = made("auto")
    engine.subscribe_many((at, f"x = {at}") for at in range(9))
    engine.unsubscribe_many(range(8))
    engine.save(tmp_path / "engine")
    manifest = json.loads((tmp_path / "engine" / "manifest.json").read_text())
    assert (manifest["algorithm"], manifest["picked"], manifest["form"]) == ("auto", "dynamic", "index")
    loaded = Engine.load(tmp_path / "engine")
    assert loaded.algorithm == "dynamic"
    loaded.subscribe_many((at, f"x = {at}") for at in range(3))
    assert loaded.match({"x": 2}) == [2]
    assert loaded.match({"x": 8}) == [8]


def test_options_are_those_of_the_saved_engine_unless_another_algorithm_is_named(tmp_path):
    engine = Engine("dynamic", patience=7, adapt=False)
    engine.subscribe(1, "x = 1")
    engine._matcher.adapt = True
    engine.save(tmp_path / "engine")
    again = Engine.load(tmp_path / "engine")
    assert again._matcher._patience == 7
    assert again._matcher.adapt
    again.save(tmp_path / "again")
    assert Engine.load(tmp_path / "again")._matcher._patience == 7
    other = Engine.load(tmp_path / "engine", algorithm="propagation")
    assert other._options == {}
    assert other.match({"x": 1}) == [1]


@pytest.mark.parametrize("other", ["reference", "propagation", "auto"])
def test_another_algorithm_takes_over_in_portions_what_an_index_holds(other, tmp_path, monkeypatch):
    monkeypatch.setattr("harken.persistence.PORTION", 7)
    churn = Churn(made("dynamic-restless"), "portions")
    churn.add(40)
    churn.remove(11)
    churn.engine.save(tmp_path / "engine")
    churn.engine = Engine.load(tmp_path / "engine", algorithm=other)
    churn.check()
    churn.add(10)
    churn.remove(20)
    churn.check()


def test_an_engine_may_be_saved_where_it_was_loaded_from(tmp_path):
    churn = Churn(made("dynamic"), "same place")
    churn.add(30)
    folder = tmp_path / "engine"
    for _ in range(3):
        churn.engine.save(folder)
        churn.engine, reader = Engine.load(folder), Engine.load(folder)
        events = [churn.generator.event() for _ in range(10)]
        known = found(reader, events)
        churn.add(10)
        churn.engine.save(folder)
        churn.check()
        assert found(reader, events) == known
    shutil.rmtree(folder)
    churn.check()


def test_clusters_are_mapped_and_their_pages_shared_until_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "SMALL", 0)
    churn = Churn(made("dynamic"), "mapped")
    churn.add(30)
    churn.engine.save(tmp_path / "engine")
    store = index_of(Engine.load(tmp_path / "engine"))._store
    for array in (store.words, store.directory, store.block_of.values):
        assert type(array) is np.ndarray
        assert isinstance(array.base, np.memmap)
        assert array.base.mode == "c"
        assert array.flags.writeable
    assert store.words.ctypes.data % 64 == 0, "blocks start on cache lines"


def test_an_empty_index_survives(tmp_path):
    made("dynamic").save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert len(loaded) == 0
    assert loaded.match({"x": 1}) == []
    loaded.subscribe("a", "x = 1 or y > 2")
    assert loaded.match({"x": 1}) == ["a"]


def test_a_failed_save_of_an_index_leaves_what_was_there(tmp_path, monkeypatch):
    engine = made("dynamic")
    engine.subscribe(1, "x = 1")
    engine.save(tmp_path / "engine")
    before = contents(tmp_path / "engine")

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        engine.save(tmp_path / "engine")
    assert contents(tmp_path / "engine") == before
    assert [path.name for path in tmp_path.iterdir()] == ["engine"]


@every_variant
def test_matches_while_an_index_is_written_change_nothing_of_what_is_written(variant, tmp_path, monkeypatch):
    engine = made(variant)
    engine.subscribe_many([(at, f"a = {at % 5} AND b < {at}") for at in range(30)])
    events = [{"a": at % 5, "b": at} for at in range(40)]
    expected, write = found(engine, events), np.lib.format.write_array

    def match_and_write(*arguments, **named):
        for _ in range(17):  # one block in so many is looked at for statistics
            engine.match_batch(events)
        write(*arguments, **named)

    monkeypatch.setattr(np.lib.format, "write_array", match_and_write)
    engine.save(tmp_path / "engine")
    monkeypatch.undo()
    assert found(Engine.load(tmp_path / "engine"), events) == expected


def test_statistics_that_are_cut_short_while_they_fade_can_be_saved(tmp_path):
    engine = Engine("dynamic")
    engine.subscribe(1, "a = 1")
    engine.match_batch([{"a": 1}] * 100)
    seen = index_of(engine)._statistics

    class Interrupted:
        @property
        def values(self):
            raise KeyboardInterrupt

    seen._constants.append(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        seen._fade(0.5)
    seen._constants.pop()
    engine.save(tmp_path / "engine")
    assert Engine.load(tmp_path / "engine").match({"a": 1}) == [1]


# ---------------------------------------------------------------- states themselves


def test_a_state_of_parts_is_read_as_it_was_written(tmp_path):
    parts = {
        "one": State({"n": 1}, {"empty": np.zeros((0, 5), np.int32)}),
        "two": State({"n": [0.1, None]}, {"a": np.arange(3.0)}, {"t": pa.table({"x": ["ä", None]})}),
    }
    written = State.of_parts({"all": State.of_parts(parts)})
    state = State.read(tmp_path, written.write(tmp_path), verify=True).part("all")
    assert state.part("one").fact("n") == 1
    assert state.part("one").array("empty", np.int32, 2).shape == (0, 5)
    assert state.part("two").fact("n") == [0.1, None]
    assert state.part("two").array("a", np.float64).tolist() == [0.0, 1.0, 2.0]
    columns = pa.schema([("x", pa.string())])
    assert state.part("two").table("t", columns).to_pydict() == {"x": ["ä", None]}
    with pytest.raises(ValueError, match="other columns"):
        state.part("two").table("t", pa.schema([("x", pa.int64())]))
    with pytest.raises(ValueError, match="there is no b"):
        state.part("two").array("b", np.float64)


# ---------------------------------------------------------------- the schema that a folder declares

DECLARED = {
    "whole": "int",
    "real": "float",
    "name": "string",
    "sure": "bool",
    "day": "date",
    "moment": "timestamp",
    "place": "point",
    "area": "box",
}
ASKED = (
    "whole < 5 OR whole IN (7, 8) OR NOT whole = 9",
    "real >= 1 OR real = 2.5 OR NOT (real = 3 OR real = 4.5)",
    "name = 'a' OR name STARTS WITH 'b' OR name MATCHES 'c+' OR NOT name IN ('d', 'e')",
    "sure = TRUE OR sure IS NULL OR day > DATE '2020-01-01' OR moment < TIMESTAMP '2020-01-01T00:00:00Z'",
    "place WITHIN BOX(0, 0, 1, 1) OR place = POINT(1, 2)",
    "area OVERLAPS BOX(0, 0, 1, 1) OR area CONTAINS POINT(1, 2)",
    "NOT whole IN (1, 2) OR NOT real IN (1, 2.5) OR NOT name STARTS WITH 'a' OR name LIKE '%'",
    " AND ".join(f"{name} IS NOT NULL" for name in DECLARED),
)
INDEXED = [name for name in algorithms() if name not in ("auto", "reference")]


def declaring(folder, **types):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    said = manifest["schema"] | types
    manifest["schema"] = {name: said[name] for name in said if said[name] is not None}
    path.write_text(json.dumps(manifest))


@pytest.fixture(scope="module", params=[*INDEXED, "auto"])
def declared(request, tmp_path_factory):
    options = {"small": 2} if request.param == "auto" else {}
    engine = Engine(request.param, schema=DECLARED, **options)
    engine.subscribe_many(enumerate(ASKED))
    folder = tmp_path_factory.mktemp("declared") / "engine"
    engine.save(folder)
    return folder


def test_all_that_a_schema_lets_in_is_loaded_again(declared):
    assert len(Engine.load(declared)) == len(ASKED)
    assert len(Engine.load(declared, algorithm="reference")) == len(ASKED)


OTHERWISE = [
    *((name, "string") for name in DECLARED if name != "name"),
    ("name", "int"),
    ("real", "int"),
    ("whole", None),
    ("day", "timestamp"),
    ("place", "box"),
]


@pytest.mark.parametrize(("name", "other"), OTHERWISE)
def test_an_index_is_held_to_the_schema_of_its_folder(name, other, declared, tmp_path):
    folder = shutil.copytree(declared, tmp_path / "it")
    declaring(folder, **{name: other})
    for algorithm in (None, "reference"):
        with pytest.raises(IndexFormatError, match=f"'{name}'") as caught:
            Engine.load(folder, algorithm=algorithm)
        assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("declared_type", "fits"), [("int", True), ("float", True), ("string", False), ("bool", False)]
)
def test_that_a_number_is_one_may_be_asked_of_every_type_of_number(declared_type, fits):
    asked = pa.table({"attribute": ["x"], "operator": ["is"], "type": ["float"]})
    with nullcontext() if fits else pytest.raises(SchemaError, match="'x' is declared"):
        persistence._hold_to(Schema({"x": declared_type}), asked)


def test_engines_that_are_open_hold_few_files_open(tmp_path):
    engine = Engine("dynamic")
    engine.subscribe_many([(id, f"a = {id} AND b < {id % 7}") for id in range(200)])
    engine.save(tmp_path / "engine")
    before = len(os.listdir("/proc/self/fd"))
    held = [Engine.load(tmp_path / "engine") for _ in range(20)]
    assert all(index_of(each)._store.words.ctypes.data % 64 == 0 for each in held), "blocks start on cache lines"
    assert all(each.match({"a": 3, "b": 0}) == [3] for each in held)
    assert len(os.listdir("/proc/self/fd")) - before < len(held)
