"""Lists of events are checked and read by kernels, as far as these can; each is answered as Python would."""

from __future__ import annotations

from collections import ChainMap, UserDict

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, Parallel
from harken.errors import EventError
from harken.matching.encoding import native
from harken.matching.encoding.native import MANY, flat_until
from harken.matching.encoding.reading import RowReader
from harken.matching.events import batch
from harken.matching.kernels.reading import MOST
from harken.model.events import is_flat
from tests.matching.test_native_reading import CONSTANTS, VALUES, loaded

pytestmark = pytest.mark.kernel

COMPILED = not numba.config.DISABLE_JIT


class OwnDict(dict):
    """One that may have methods of its own."""


ODD = [
    *({}, {"": 1}, {1: 1}, {"n": {"y": 1}}, {"a": {"b": 1}, "a.b": 2}, {"n": [1]}, {"t": "\ud800"}, {"n": 2**63}),
    *(OwnDict(n=1), UserDict(n=1), ChainMap({"n": 1}), None, 1, "n", {f"name {i}": i for i in range(MOST + 1)}),
    *({"n": 1, "t": OwnDict()}, {"n": None}, {None: None}, {"m": True, "e": 0.1}),
]
"""Events that are not flat, or only just, or none at all."""

plain = st.dictionaries(st.sampled_from([*CONSTANTS, "unasked"]), st.sampled_from(VALUES), max_size=5)


@pytest.fixture(scope="module", params=["dynamic", "static", "counting", "auto"])
def engine(request):
    engine = loaded(request.param)
    engine.match_batch([{"n": 1}] * 30_000)  # auto has an index by then
    return engine


@pytest.fixture(scope="module")
def judge():
    return loaded("reference")


def answer(engine, events):
    """Sorted matches by event, rejected rows with reasons, and what is counted as foreign meanwhile."""
    before = engine.stats()["foreign"]
    found = engine.match_batch(events, on_error="collect")
    counted = {name: count - before.get(name, 0) for name, count in engine.stats()["foreign"].items()}
    pairs = sorted(zip(*found.matches.to_pydict().values(), strict=True))
    return pairs, found.rejects.to_pylist(), {name: count for name, count in counted.items() if count}


@settings(max_examples=150, deadline=None)
@given(st.lists(plain | st.sampled_from(ODD), max_size=20))
def test_lists_of_any_events_are_answered_as_the_judge_does(engine, judge, events):
    wanted = answer(judge, events)
    for _ in range(2):  # the first time, some of it is new to the kernel
        assert answer(engine, events) == wanted


@pytest.mark.parametrize("name", CONSTANTS)
def test_long_lists_are_answered_as_the_judge_does_wherever_an_odd_event_stands(engine, judge, name):
    events = [{name: value, "n": at} for at, value in enumerate(VALUES * 40) if name != "n"] or [
        {"n": value} for value in VALUES * 40
    ]
    for at in (0, 1, 500, len(events) - 1):
        events[at] = {**events[at], "unasked": {"y": 1}}
    assert len(events) > MANY
    wanted = answer(judge, events)
    for _ in range(2):
        assert answer(engine, events) == wanted


def test_an_error_names_the_row_of_the_event_at_fault(engine):
    events = [{"n": 1}] * 5_000
    events[4_321] = {7: 1}
    with pytest.raises(EventError) as raised:
        engine.match_batch(events)
    assert raised.value.row == 4_321


@settings(max_examples=200, deadline=None)
@given(st.lists(plain | st.sampled_from(ODD), max_size=20), st.integers(0, 20))
def test_what_kernels_take_for_flat_is_flat(events, first):
    first = min(first, len(events))
    until = flat_until(events, first)
    assert first <= until <= len(events)
    assert all(is_flat(event) for event in events[first:until])


@pytest.mark.skipif(not COMPILED, reason="without compilation, Python reads all")
class TestCompiled:
    """What kernels do, and what they leave."""

    def test_flat_events_are_seen_to_be_flat_however_many(self):
        events = [{"a": 1, "b": "x", "c": 2.5, "d": True}] * 10_000
        assert flat_until(events, 0) == len(events)
        events[5_000] = {"a": None}
        assert flat_until(events, 10) == 5_000
        assert flat_until(events, 5_001) == len(events)

    @pytest.mark.parametrize("parallel", [None, Parallel(threads=2)])
    def test_lists_of_plain_events_are_seen_to_be_flat_without_python(self, monkeypatch, parallel):
        engine = Engine("dynamic", parallel=parallel)
        engine.subscribe("s", "n < 3")
        looked = list[object]()
        monkeypatch.setattr(batch, "checked_event", lambda *given: looked.append(given))
        assert engine.match_batch([{"n": at} for at in range(100)]).num_rows == 3
        assert looked == []

    def test_lists_of_plain_events_are_read_without_python(self, monkeypatch):
        engine, read = loaded("dynamic"), list[object]()
        events = [{"n": at, "t": "a", "unasked": 1.5} for at in range(3_000)]
        wanted = engine.match_batch(events)
        reads = RowReader.read
        monkeypatch.setattr(RowReader, "read", lambda *given, **named: read.append(0) or reads(*given, **named))
        assert engine.match_batch(events).equals(wanted)
        assert read == []
        engine.match_batch([*events, {"t": "Zürich", "n": "new"}])
        assert len(read) == 1

    @pytest.mark.parametrize("value", [2**63, -(2**70), float("nan"), "\ud800", None, [1], {"y": 1}])
    @pytest.mark.parametrize("warm", [0, 2 * MANY])
    def test_values_that_another_thread_puts_there_after_they_were_checked_do_no_harm(
        self, monkeypatch, value, warm
    ):
        events = [{"n": 1}, {"n": value, "t": "a"}, {"n": 7}]
        asked = [*(f"n < {n}" for n in range(-5, 5)), "n > 3", "n IS NULL", "n = 1", "t = 'a'"]
        answers = []
        for in_kernels in (False, True):
            monkeypatch.setattr(native, "IN_KERNELS", in_kernels)
            engine = Engine("dynamic")
            engine.subscribe_many(enumerate(asked))
            if warm:
                engine.match_batch([{"n": 1, "t": "b"}] * warm)
            engine._matcher.flat_until = lambda events, _: len(events)  # as they were a moment ago
            answers.append([engine.match_batch(events).sort_by("subscription") for _ in range(2)])
        assert answers[0] == answers[1]

    def test_nothing_is_learned_from_events_that_others_may_change(self, monkeypatch):
        learned = list[object]()
        monkeypatch.setattr(native.NativeSteps, "learn", lambda _, values: learned.append(values))
        engine, wide = Engine("dynamic"), {f"a{at}": at for at in range(MOST + 1)}
        engine.subscribe("s", "a1 = 1")
        events = [{"a1": 1}, wide, {"a1": 2}]
        assert engine.match_batch(events).num_rows == 2
        assert learned
        assert not any(each is event for each in learned for event in events)
