"""Single events are read by a kernel once their names have been met; what it finds is what Python finds."""

from __future__ import annotations

import gc
import sys
import threading
from datetime import UTC, datetime
from decimal import Decimal

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, Parallel
from harken.errors import EventError
from harken.matching.auto import AutoMatcher
from harken.matching.encoding import native
from harken.matching.kernels.reading import CLASSES, FAILED, MOST, ODD, PLACES, READ, REMAINS
from harken.model.events import is_flat

pytestmark = pytest.mark.kernel

COMPILED = not numba.config.DISABLE_JIT

CONSTANTS = {
    "n": ["-3", "0", "1", "7", "2.5", "1e300", "9223372036854775807", "-9223372036854775808"],
    "e": ["0", "0.1", "0.10000000000000000001", "9223372036854775808.0", "100000000000000000000.0"],
    "t": ["''", "'a'", "'b'", "'ba'", "'Zürich'", "'\U0001f600'", "'\uffff'"],
    "m": ["1", "'a'", "TRUE", "2.5"],
}
"""By attribute: of one kind, with decimals that no float says, texts, and of several kinds."""

VALUES = [
    *(-4, -3, 0, 1, 2, 7, 8, 2**63 - 1, -(2**63), 2**62, 2**63, 10**30),
    *(-0.0, 0.1, 0.5, 2.5, 2.6, 1e300, 1e301, float(2**63), float("inf"), float("-inf"), float("nan")),
    *("", "a", "aa", "b", "bb", "ba", "Zürich", "Genève", "\U0001f600", "\uffff", "\ud800", "z" * 1_000),
    *(True, False, None, Decimal("0.1"), [1]),
]


def conditions():
    """Conditions of every shape that has codes, labels or presence of its own."""
    for name, constants in CONSTANTS.items():
        yield f"{name} IS NULL"
        for constant in constants:
            yield f"{name} = {constant}"
            if constant != "TRUE":
                yield f"{name} < {constant}"
                yield f"{name} >= {constant} AND n >= 0"
            yield f"{name} != {constant} AND n = 1"
        yield f"{name} IN ({', '.join(constants)})"
    yield "n IS NOT NULL"


def loaded(algorithm):
    engine = Engine(algorithm)
    engine.subscribe_many(enumerate(conditions()))
    return engine


@pytest.fixture(scope="module", params=["dynamic", "static", "propagation"])
def engine(request):
    return loaded(request.param)


@pytest.fixture(scope="module")
def judge():
    return loaded("reference")


def answer(engine, event):
    try:
        return sorted(engine.match(event))
    except EventError as error:
        return str(error)


def became(engine, event, *, is_checked=False):
    """What becomes of an event in the kernel that reads it."""
    matcher = engine._matcher
    workspace = matcher._workspace()
    single = workspace.single or matcher._new_single(workspace)
    try:
        return single._arguments.match_object(event, is_checked, True)[0]
    finally:
        single._native.remainder.clear()


events = st.dictionaries(st.sampled_from([*CONSTANTS, "unasked"]), st.sampled_from(VALUES), max_size=5)


@settings(max_examples=300, deadline=None)
@given(events)
def test_an_event_read_by_a_kernel_is_answered_as_one_read_by_python(engine, judge, event):
    wanted = answer(judge, event)
    for _ in range(2):  # the first time, some of it is new to the kernel
        assert answer(engine, event) == wanted


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(CONSTANTS)), st.integers() | st.floats() | st.text() | st.booleans())
def test_any_plain_value_is_answered_as_python_does(engine, judge, name, value):
    for event in ({name: value}, {name: value, "n": 1}):
        for _ in range(2):
            assert answer(engine, event) == answer(judge, event)


@pytest.mark.skipif(not COMPILED, reason="without compilation, Python reads all")
class TestCompiled:
    """What a kernel reads, and what it leaves."""

    def test_plain_values_under_names_that_were_met_are_all_read_by_the_kernel(self):
        engine = loaded("dynamic")
        event = {"n": 3, "t": "Zürich", "m": True, "unasked": "x" * 100, "other": 1.5}
        engine.match(event)
        assert became(engine, event) == READ
        assert became(engine, {**event, "n": 2.5, "unasked": "Genève"}) == REMAINS  # of other classes
        engine.match({**event, "n": 2.5})
        assert became(engine, {**event, "n": -7.25, "gone": None}) == READ

    def test_numbers_beside_decimals_that_take_code_to_compare_are_left_for_python(self, engine):
        for value in (1, 0.1, 7.5):
            engine.match({"e": value})
            assert became(engine, {"e": value}) == REMAINS

    @pytest.mark.parametrize("value", [2**63, float("nan"), "\ud800", "Genève", [1], {"y": 1}, Decimal(1), b"x"])
    def test_what_is_not_plain_is_left_for_python_unless_nobody_asks(self, engine, value):
        for name in ("n", "t", "unasked"):
            for each in (1, "a", 1.5, [1]):
                engine.match({name: each})
        for name in ("n", "t"):
            assert became(engine, {name: value}) == REMAINS
        assert became(engine, {"unasked": value}) == (REMAINS if type(value) is dict else READ)

    @pytest.mark.parametrize("name", [1, "", None, ("x",)])
    def test_names_that_are_none_are_odd_or_left_for_python(self, engine, name):
        for value in (1, None):
            assert became(engine, {"n": 1, name: value}) in (ODD, REMAINS)

    def test_events_of_thousands_of_attributes_are_left_for_python_as_others_wait_meanwhile(self, engine):
        wide = {f"w{at}": at for at in range(MOST + 1)}
        assert became(engine, wide) == FAILED
        wide.popitem()
        assert became(engine, wide) != FAILED

    def test_texts_take_no_more_room_once_they_have_been_matched(self, engine):
        texts = ["ü" * 1_000, "日本" * 500, "\U0001f600" * 300, "a" * 1_000]
        before = [sys.getsizeof(each) for each in texts]
        for _ in range(3):
            for each in texts:
                engine.match({"t": each, "unasked": each})
        assert [sys.getsizeof(each) for each in texts] == before

    def test_what_is_left_for_python_is_read_without_a_look_at_the_rest(self, engine, monkeypatch):
        event = {
            "n": 1,
            "t": "a",
            "unasked": [1, 2],
            "at": datetime(2026, 1, 1, tzinfo=UTC),
            "shop": {"name": "x"},
        }
        wanted = engine.match(event)
        monkeypatch.setattr("harken.engine.checked_event", None)
        assert engine.match(event) == wanted

    def test_whenever_memory_runs_out_that_is_what_is_said_and_the_next_event_is_matched(self):
        testing = pytest.importorskip("_testcapi")
        engine = Engine("dynamic")
        constants = [2**62 + at for at in range(40)]
        engine.subscribe_many((at, f"x < {constant} AND x != {constant}") for at, constant in enumerate(constants))
        event = {"x": 4.7e18}
        wanted = engine.match(event)
        for step in range(60):
            try:
                testing.set_nomemory(step, step + 1)
                engine.match(event)
            except MemoryError:
                pass
            finally:
                testing.remove_mem_hooks()
            assert engine.match(event) == wanted

    def test_as_many_names_as_come_are_learnt(self):
        engine = Engine("dynamic")
        engine.subscribe_many((at, f"a{at} = {at}") for at in range(300))
        for at in 3 * list(range(300)):  # when columns run out, all is begun anew
            assert engine.match({f"a{at}": at}) == [at]
        for at in range(300):
            assert became(engine, {f"a{at}": at}) == READ
            assert engine.match({f"a{at}": at, "more": at}) == [at]

    def test_nothing_is_kept_of_events(self, engine):
        class Watched(str):
            pass

        value = Watched("a")
        for event in ({"n": value}, {"fresh": value}, {"t": "a", "m": value}):
            engine.match(event)
            event.clear()
        gc.collect()
        assert sys.getrefcount(value) == 2

    def test_references_are_neither_won_nor_lost(self, engine):
        name, value = "".join(["t", ""]), "".join(["ba", "q"])
        event = {name: value, "n": 10**9}
        engine.match(event)
        before = [sys.getrefcount(each) for each in (name, value, event, event["n"])]
        for _ in range(1_000):
            engine.match(event)
        assert [sys.getrefcount(each) for each in (name, value, event, event["n"])] == before


@pytest.mark.parametrize("constants", [range(-50, 50, 7), range(0, 10**7, 10**6), [5], [2**63 - 1, 2**63 - 3]])
def test_labels_that_are_looked_up_by_place_after_many_events_are_the_same(monkeypatch, constants):
    monkeypatch.setattr(native, "MANY", 40)
    engine, judge = Engine("dynamic"), Engine("reference")
    asked = [f"x {operator} {constant}" for constant in constants for operator in ("<", ">=", ">")]
    for each in (engine, judge):
        each.subscribe_many(enumerate([*asked, f"x > {min(constants)}.5 AND y <= 3"]))
    values = {near for constant in constants for near in range(constant - 2, constant + 3) if near < 2**63}
    values |= {-(2**63), 2**63 - 1, 0, 10**9}
    for _ in range(8):
        for value in sorted(values):
            event = {"x": value, "y": 3}
            assert answer(engine, event) == answer(judge, event)
    if COMPILED:
        known = engine._matcher._workspace().single._native
        by_place = {name: bool(known.reading.steps[CLASSES * at, PLACES]) for name, at in known._names.items()}
        # Python reads numbers beside 9223372036854775807.5, which is no float.
        assert by_place == (
            {"y": True} if max(constants) == 2**63 - 1 else {"x": max(constants) < 10**6, "y": True}
        )


def test_constants_that_come_and_go_are_known_to_the_next_event(engine, judge):
    event = {"n": 41, "t": "new", "m": 41.5}
    for each in (engine, judge):
        each.match(event)
        each.subscribe(10_000, "n = 41 AND t >= 'new' AND m < 42")
    assert 10_000 in engine.match(event)
    assert answer(engine, event) == answer(judge, event)
    for each in (engine, judge):
        each.unsubscribe(10_000)
    assert answer(engine, event) == answer(judge, event)


def test_a_decimal_that_comes_later_is_compared_exactly():
    engine, judge = Engine("dynamic"), Engine("reference")
    for each in (engine, judge):
        each.subscribe_many([(1, "x < 0.1"), (2, "x = 5")])
    for value in (0.1, 5, 0.05):
        assert answer(engine, {"x": value}) == answer(judge, {"x": value})
    for each in (engine, judge):
        each.subscribe_many([(3, "x < 0.10000000000000000001"), (4, "x = 0.10000000000000000001")])
    for value in (0.1, 5, 0.05, Decimal("0.10000000000000000001")):
        for _ in range(2):
            assert answer(engine, {"x": value}) == answer(judge, {"x": value})


@pytest.mark.skipif(not COMPILED, reason="Python reads one value after the other, some of them replaced meanwhile")
def test_events_that_another_thread_changes_are_matched_as_they_were_at_one_moment(engine):
    """All of `n`, `t` and `m` change in one step, and so does how large the dictionary is."""
    engine.subscribe(20_000, "n = 1 AND t = 'a' AND m = 1")
    engine.subscribe(20_001, "n = 7 AND t = 'b' AND m = 2.5")
    engine.subscribe(20_002, "n = 1 AND t = 'b'")
    event = {"n": 1, "t": "a", "m": 1}
    stop = threading.Event()

    def change():
        states = [{"n": 1, "t": "a", "m": 1}, {"n": 7, "t": "b", "m": 2.5}]
        for at in range(10**9):
            event.update(states[at % 2])
            for key in range(at % 40):
                event[f"k{key}"] = 10**6 + key
            for key in range(at % 40):
                del event[f"k{key}"]
            if stop.is_set():
                return

    others = [threading.Thread(target=change)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in others:
            each.start()
        for _ in range(2_000):
            found = set(engine.match(event)) & {20_000, 20_001, 20_002}
            assert found in ({20_000}, {20_001})
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for each in others:
            each.join()
        for id in (20_000, 20_001, 20_002):
            engine.unsubscribe(id)


def test_events_with_nothing_under_a_name_do_not_keep_auto_from_comparing(caplog):
    engine = Engine("auto", small=0, many=10, again=50)
    engine.subscribe_many((at, f"x = {at}") for at in range(40))
    for _ in range(100_000):
        engine.match({"x": 1, "y": None, "z": {"a": [1]}})
        if "compared" in engine.stats():
            break
    assert "compared" in engine.stats()
    assert not caplog.records


@pytest.mark.parametrize("later", [{"n": None}, {"n": [1]}, {"n": float("nan")}, {1: 1}, {"n": {"y": 1}}])
def test_an_event_that_is_changed_after_it_was_seen_to_be_flat_is_matched_as_it_was(later):
    engine = Engine("dynamic", parallel=Parallel(threads=2))
    engine.subscribe_many([(0, "n < 5"), (1, "n >= 5"), (2, "n IS NULL")])
    event = {"n": 7, "t": "a"}

    def trace(frame, what, _):
        if what == "return":
            event.update(later)
        return trace

    sys.settrace(lambda frame, *_: trace if frame.f_code is is_flat.__code__ else None)
    try:
        found = engine.match(event)
    finally:
        sys.settrace(None)
    assert set(later) <= set(event)
    assert found == [1]


NESTED = [{"n": 1}, {"t": "a"}, {"x": {"n": 7}}, {"": 1}, {1: 1}, {"n": [1]}, {"n": None}, {}]


@settings(max_examples=200, deadline=None)
@given(events, st.sampled_from(["s", "unasked", "n", "t"]), st.sampled_from(NESTED), st.booleans())
def test_nested_events_are_answered_as_python_does(nested, event, name, inner, is_first):
    engine, judge = nested
    event = {name: inner, **event} if is_first else {**event, name: inner}
    for each in (event, {**event, "s.n": 3}):
        wanted = answer(judge, each)
        assert answer(engine, each) == wanted
        assert answer(engine, each) == wanted
    for attribute in ("s", "s.n", "n"):
        assert engine.stats()["foreign"].get(attribute, 0) == 2 * judge.stats()["foreign"].get(attribute, 0)


@pytest.fixture(scope="module")
def nested():
    asked = [
        *conditions(),
        "s.n = 1",
        "s.n = 3",
        "s.x.n > 5",
        "s IS NOT NULL",
        "s.n IS NULL",
        "s.t = 'a' AND n < 5",
    ]
    engine, judge = Engine("dynamic"), Engine("reference")
    for each in (engine, judge):
        each.subscribe_many(enumerate(asked))
    return engine, judge


def test_an_event_that_is_changed_after_it_was_matched_is_answered_all_the_same():
    engine = Engine("auto", small=0, many=1, again=1)
    engine.subscribe_many((at, f"x = {at}") for at in range(40))
    for _ in range(3):
        engine.match({"x": 1})
    event = {"x": 1}

    def change(frame, *_):
        if frame.f_code is AutoMatcher._meet.__code__:
            event[7] = 1

    sys.settrace(change)
    try:
        found = engine.match(event)
    finally:
        sys.settrace(None)
    assert found == [1]


class Watched:
    """What notes that it is looked at."""

    looks = 0

    def __repr__(self):
        Watched.looks += 1
        return "watched"


@pytest.mark.parametrize(
    "value", [{"type": "Point", "coordinates": [Watched(), 2]}, {"x": Watched()}, [Watched()]]
)
def test_what_is_read_by_itself_has_no_code_of_others_run(value):
    engine = Engine("dynamic")
    engine.subscribe_many([(1, "n = 1"), (2, "p IS NOT NULL")])
    before = Watched.looks
    for _ in range(3):
        assert engine._matcher.match_unchecked({"n": 1, "p": value}) is None
    assert Watched.looks == before
    assert engine.match({"n": 1, "p": value}) in ([1, 2], [1])
