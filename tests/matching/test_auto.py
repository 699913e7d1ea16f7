"""The default algorithm: what it picks, when, and that nobody notices but by the speed."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

from harken import Engine, Parallel
from harken.errors import ArgumentError, ArgumentTypeError, CapacityError
from harken.matching import auto, choice
from harken.matching.clusters.matcher import OBSERVED
from harken.matching.events.batch import EventBatch
from harken.matching.events.sample import ENOUGH, MOST, EventSample
from harken.matching.reference import ReferenceMatcher

pytestmark = pytest.mark.kernel

PROPERTIES = 30


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Trials of a few subscriptions, and of any gain."""
    monkeypatch.setattr(choice, "SAMPLE", 200)
    monkeypatch.setattr(choice, "BRIEFLY", 0.0)


def light(count, first=0):
    """Subscriptions that ask for a few properties to be there, and for others not to be."""
    chance = random.Random(first)
    for id in range(first, first + count):
        asked = chance.sample(range(PROPERTIES), 4)
        yield id, " AND ".join(f"p{at} = {'TRUE' if at % 3 else 'FALSE'}" for at in asked)


def light_events(count):
    chance = random.Random(7)
    return [{f"p{at}": chance.random() < 0.1 for at in range(PROPERTIES)} for _ in range(count)]


def pairs(engine, events):
    found = engine.match_batch(events)
    return sorted(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


def wait_until_arranged():
    deadline = time.monotonic() + 60
    while any(each.name == "harken-arranging" for each in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def costing(monkeypatch, **costs):
    """Let algorithms cost so much, whoever else uses the machine."""
    monkeypatch.setattr(
        choice, "_costs", lambda tried, _: [costs[type(each).__name__.removesuffix("Matcher")] for each in tried]
    )


def grown(count=400, **options):
    engine = Engine("auto", **{"small": 10, "many": 200, **options})
    engine.subscribe_many(light(count))
    return engine


def reference(count=400, first=0):
    engine = Engine("reference")
    engine.subscribe_many(light(count, first))
    return engine


@pytest.mark.parametrize("shape", ["rows", "columns", "one by one"])
def test_what_suits_better_is_moved_to_beside_those_who_match(shape, monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    assert engine.algorithm == "dynamic"
    expected = pairs(reference(), events)
    if shape == "one by one":
        found = sorted((row, id) for row, event in enumerate(events) for id in engine.match(event))
    else:
        found = pairs(engine, pa.Table.from_pylist(events) if shape == "columns" else events)
    assert found == expected
    wait_until_arranged()
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == expected
    assert engine.stats()["compared"] == {
        "picked": "rapid",
        "subscriptions": 400,
        "microseconds_per_event_before": 100.0,
        "microseconds_per_event": {"dynamic": 100.0, "rapid": 10.0},
        "microseconds_per_event_when_made": 10.0,
    }
    # Those of trials do not count, those beside the move do; single ones are noted some together.
    unnoted = OBSERVED - 1 if shape == "one by one" else 0
    assert 2 * len(events) - unnoted <= engine.stats()["events"] <= 2 * len(events)


def test_learning_compares_at_once(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    engine.learn(events)
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == pairs(reference(), events)


def test_changes_go_on_after_a_move(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events, both = grown(), light_events(60), reference()
    engine.learn(events)
    for held in (engine, both):
        held.subscribe_many(light(20, first=1_000))
        held.unsubscribe_many(range(0, 400, 3))
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == pairs(both, events)


def test_no_change_pays_for_a_comparison(monkeypatch):
    monkeypatch.setattr(Engine, "_arrange_beside", lambda self: None)
    monkeypatch.setattr(choice, "compare", lambda *_: pytest.fail("in somebody's change"))
    engine = grown()
    engine.match_batch(light_events(60))
    engine.subscribe_many(light(20, first=1_000))
    engine.unsubscribe(0)
    assert engine.algorithm == "dynamic"


def test_a_thread_is_asked_for_once_however_many_match_before_its_turn(monkeypatch):
    started = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread.name))
    engine, events = grown(), light_events(60)
    for event in events * 5:
        engine.match(event)
    assert started == ["harken-arranging"]


def test_matches_are_answered_though_no_thread_can_be_started(monkeypatch):
    def full(_):
        raise RuntimeError("can't start new thread")

    engine, events = grown(), light_events(60)
    expected = pairs(reference(), events)
    monkeypatch.setattr(threading.Thread, "start", full)
    assert pairs(engine, events) == expected
    assert sorted((row, id) for row, event in enumerate(events) for id in engine.match(event)) == expected


def test_events_are_copies_of_their_own_and_of_the_latest(monkeypatch):
    seen = []
    real = choice.compare
    monkeypatch.setattr(choice, "compare", lambda *given: seen.append(given[3]) or real(*given))
    engine, event = grown(), light_events(1)[0]
    for _ in range(40):
        engine.match(event)
    event["p1"] = {"nested": [1]}
    wait_until_arranged()
    (rows,) = seen[0]
    assert len(rows) <= 40
    assert all(isinstance(each["p1"], bool) for each in rows.flat_rows)
    engine.subscribe_many(light(400, first=1_000))
    engine.match_batch(pa.Table.from_pylist(light_events(100)))
    wait_until_arranged()
    assert [batch.flat_rows for batch in seen[1]] == [None], "of the first events, nothing is left"


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_a_sample_holds_on_to_nothing_large(kind):
    sample, before = EventSample(), pa.total_allocated_bytes()
    column = pa.array([f"{at:01000}" for at in range(5_000)]).cast(kind)
    sample.add(EventBatch(None, {"x": pa.chunked_array([column])}, 5_000))
    del column
    assert len(sample) == MOST
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_single_events_are_one_batch_and_small_tables_too():
    sample = EventSample()
    for at in range(20):
        sample.add(EventBatch([{"x": at}], {}, 1))
        sample.add(EventBatch(None, {"x": pa.chunked_array([[at, at]])}, 2))
    sample.add(EventBatch(None, {"x": pa.chunked_array([range(100)])}, 100))
    assert [len(batch) for batch in sample.batches()] == [100, 60]


def test_the_first_subscription_needs_no_kernels():
    program = (
        "import sys, harken; e = harken.Engine(); e.subscribe(1, 'x = 1'); e.match({'x': 1}); e.unsubscribe(1)"
    )
    program += "; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_few_are_indexed_at_once_for_a_batch_that_would_take_long(threads, monkeypatch):
    monkeypatch.setattr(auto, "EVALUATIONS", 5_000)
    engine, events = grown(count=100, small=1_000), light_events(60)
    expected = pairs(reference(100), events)
    monkeypatch.setattr(ReferenceMatcher, "match_batch", None)
    assert pairs(engine, events) == expected  # 6,000 evaluations at once
    wait_until_arranged()
    assert engine.algorithm == "dynamic"
    found = engine.match_batch(events, parallel=Parallel("se-cp", threads=threads))
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected
    assert engine.stats()["events"] == 2 * len(events)


def test_a_few_that_are_asked_for_often_are_indexed_beside_those_who_match(monkeypatch):
    monkeypatch.setattr(auto, "EVALUATIONS", 5_000)
    engine, events = grown(count=100, small=1_000), light_events(60)
    expected = [sorted(reference(100).match(event)) for event in events]
    assert [sorted(engine.match(event)) for event in events] == expected
    wait_until_arranged()
    assert engine.algorithm == "dynamic"
    assert [sorted(engine.match(event)) for event in events] == expected


def test_a_few_that_change_after_they_were_indexed_are_indexed_anew(monkeypatch):
    monkeypatch.setattr(auto, "EVALUATIONS", 5_000)
    engine, events = grown(count=100, small=1_000), light_events(60)
    with monkeypatch.context() as patch:
        patch.setattr("harken.engine.start_beside", lambda _: False)
        assert pairs(engine, events) == pairs(reference(100), events)
        assert engine.algorithm == "reference"
        for id, text in light(20, first=100):
            engine.subscribe(id, text)
        engine.unsubscribe_many(range(10))
        expected = reference(100)
        expected.subscribe_many(light(20, first=100))
        expected.unsubscribe_many(range(10))
        assert pairs(engine, events) == pairs(expected, events)
    assert pairs(engine, events) == pairs(expected, events)
    wait_until_arranged()
    assert engine.algorithm == "dynamic"
    assert pairs(engine, events) == pairs(expected, events)


def test_a_few_that_come_to_be_too_many_while_they_are_being_indexed_are_all_found(monkeypatch):
    monkeypatch.setattr(auto, "EVALUATIONS", 5_000)
    monkeypatch.setattr("harken.engine.start_beside", lambda _: False)
    engine, events = grown(count=100, small=150), light_events(60)
    matcher, index_of = engine._matcher, engine._matcher._index_of

    def index_while_a_batch_comes(few):
        monkeypatch.setattr(matcher, "_index_of", index_of)
        batch = threading.Thread(target=engine.match_batch, args=(events,))
        batch.start()
        batch.join()
        return index_of(few)

    monkeypatch.setattr(matcher, "_index_of", index_while_a_batch_comes)
    engine.subscribe_many(light(300, first=100))
    engine.learn(events[:1])
    assert len(engine) == 400
    expected = reference(100)
    expected.subscribe_many(light(300, first=100))
    assert pairs(engine, events) == pairs(expected, events)


def test_a_few_that_cannot_be_indexed_are_evaluated(monkeypatch, caplog):
    monkeypatch.setattr(auto, "EVALUATIONS", 5_000)
    engine, events = grown(count=100, small=1_000), light_events(60)

    def fail(_):
        raise MemoryError("no room")

    monkeypatch.setattr(engine._matcher, "_index_of", fail)
    with caplog.at_level(logging.WARNING, "harken"):
        assert pairs(engine, events) == pairs(reference(100), events)
    assert "could not be indexed: MemoryError: no room" in caplog.text
    wait_until_arranged()
    assert engine.algorithm == "reference"


def test_what_would_not_be_much_quicker_stays(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=90.0)
    engine = grown()
    engine.learn(light_events(60))
    assert engine.algorithm == "dynamic"
    assert engine.stats()["compared"]["microseconds_per_event"] == {"dynamic": 100.0, "rapid": 90.0}


def test_the_same_is_made_anew_for_events_that_are_other_than_was_thought(monkeypatch):
    engine = Engine("auto", small=10, many=200)
    engine.subscribe_many((id, f"a = {id % 50} AND b > {id}") for id in range(400))
    before = engine._matcher._matcher
    # As it is, and of two samples; then as it is, and as it was made.
    monkeypatch.setattr(choice, "_costs", lambda tried, _: [100.0, 10.0, 10.0][: len(tried)])
    engine.learn([{"a": at, "b": 200} for at in range(50)])
    assert engine.algorithm == "dynamic"
    assert engine._matcher._matcher is not before
    assert list(engine.stats()["compared"]["microseconds_per_event"]) == ["dynamic"], "nobody asks for truths"
    assert sorted(engine.match({"a": 7, "b": 200})) == list(range(7, 200, 50))


def test_they_are_compared_again_when_there_are_twice_as_many(monkeypatch):
    compared = []
    real = choice.compare
    monkeypatch.setattr(choice, "compare", lambda *given: compared.append(len(given[2])) or real(*given))
    engine, events = grown(200), light_events(40)
    engine.learn(events)
    for first in range(200, 900, 100):
        engine.subscribe_many(light(100, first))
        engine.match_batch(events)
        wait_until_arranged()
    assert compared == [200, 400, 800]


def test_where_no_thread_can_be_started_it_is_tried_again(monkeypatch):
    starting = threading.Thread.start

    def refuse_once(thread):
        monkeypatch.setattr(threading.Thread, "start", starting)
        raise RuntimeError("can't start new thread")

    engine = grown(200)
    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    engine.match_batch([{"p1": True}] * ENOUGH)
    assert "compared" not in engine.stats()
    engine.match({"p1": True})
    wait_until_arranged()
    assert "compared" in engine.stats()


def test_whoever_has_it_learn_has_families_compared_for_these_events(monkeypatch):
    compared = []
    real = choice.compare
    monkeypatch.setattr(choice, "compare", lambda *given: compared.append(len(given[2])) or real(*given))
    engine = grown(200)
    for flag in (True, False):
        engine.learn([{"p1": flag}] * ENOUGH)
    assert compared == [200, 200]


def test_comparing_comes_to_an_end_however_soon_it_is_asked_for_again():
    engine = Engine("auto", again=0)
    assert engine._matcher._again > 0


def test_they_are_compared_again_after_many_events_and_then_after_twice_as_many(monkeypatch):
    compared = []
    real = choice.compare

    def compare(*given):
        compared.append([sorted(row["p1"] for row in batch.flat_rows) for batch in given[3]])
        return real(*given)

    monkeypatch.setattr(choice, "compare", compare)
    engine = grown(200, again=100)
    kinds = [[{"p1": flag}] * ENOUGH for flag in (False, True)]
    engine.match_batch(kinds[0])
    wait_until_arranged()
    assert len(compared) == 1

    def match_until_compared(kind: list[dict[str, bool]]) -> int:
        """How many events that took."""
        before, count = len(compared), 0
        while len(compared) == before:
            for event in kind:
                engine.match(event)
            count += len(kind)
            wait_until_arranged()
            assert count < 1_000
        return count

    assert 100 <= match_until_compared(kinds[1]) <= 100 + 2 * ENOUGH
    assert compared[-1] == [[True] * ENOUGH], "the events of now"
    assert 200 <= match_until_compared(kinds[0]) <= 200 + 2 * ENOUGH
    assert compared[-1] == [[False] * ENOUGH]


def test_without_enough_events_or_subscriptions_nothing_is_compared():
    engine = grown(150)
    engine.learn(light_events(60))
    assert "compared" not in engine.stats()
    engine = grown(400)
    engine.learn(light_events(ENOUGH - 1))
    assert "compared" not in engine.stats()
    few = grown(5)
    few.learn(light_events(60))
    assert few.algorithm == "reference"


@pytest.mark.parametrize("when", ["before", "after"])
def test_threads_that_share_an_event_have_their_clusters_or_take_one_each(when, monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    together = Parallel("hybrid", 2, group=2)
    if when == "before":
        engine.match_batch(events[:1], parallel=together)
    engine.learn(events)
    assert engine.algorithm == ("dynamic" if when == "before" else "rapid")
    found = engine.match_batch(events, parallel=together)
    expected = pairs(reference(), events)
    assert sorted(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)) == expected


def test_it_is_saved_as_what_it_has_become(tmp_path, monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    engine.learn(events)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert loaded.algorithm == "rapid"
    assert pairs(loaded, events) == pairs(reference(), events)
    loaded.subscribe_many(light(20, first=1_000))
    loaded.unsubscribe_many(range(100))
    assert len(loaded) == 320


@pytest.mark.parametrize("step", ["compare", "made_like"])
def test_a_comparison_that_fails_is_told_and_leaves_all_as_it_was(step, monkeypatch, caplog):
    def fail(*_):
        raise CapacityError("clauses", 400, 300)

    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    if step == "made_like":
        monkeypatch.setattr(choice, "compare", lambda *_: choice.Choice("rapid", 400, 100.0, {"rapid": 1.0}))
    monkeypatch.setattr(choice, step, fail)
    engine, events = grown(), light_events(60)
    with caplog.at_level(logging.WARNING, "harken"):
        expected = pairs(engine, events)
        wait_until_arranged()
    assert "could not be compared" in caplog.text
    assert engine.algorithm == "dynamic"
    assert pairs(engine, events) == expected == pairs(reference(), events)
    engine.subscribe_many(light(10, first=1_000))
    assert len(engine) == 410


def test_what_was_made_before_another_change_is_not_moved_to(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    monkeypatch.setattr(Engine, "_arrange_beside", lambda self: None)
    engine, events = grown(), light_events(60)
    engine.match_batch(events)
    engine._matcher.arrange()  # and then it fails, before anybody moves
    assert engine._matcher._next is not None
    engine.unsubscribe_many(range(100))
    engine.learn([])
    assert engine.algorithm == "dynamic"
    assert engine._matcher._next is None
    assert {id for _, id in pairs(engine, events)} <= set(range(100, 400))


def test_an_interrupted_move_is_settled(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    engine, events = grown(), light_events(60)
    real = auto.AutoMatcher._move

    def move_and_fail(matcher):
        real(matcher)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(auto.AutoMatcher, "_move", move_and_fail)
        with pytest.raises(KeyboardInterrupt):
            engine.learn(events)
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == pairs(reference(), events)


def test_small_sets_are_predicted_as_they_are(monkeypatch):
    """With fewer subscriptions than a sample has, nothing is foreseen from how the cost grows."""
    monkeypatch.setattr(choice, "SAMPLE", 10_000)
    monkeypatch.setattr(choice, "_costs", lambda tried, _: [3.0, 1.0, 3.0][: len(tried)])
    engine = Engine("auto", small=10, many=0)
    engine.subscribe_many((id, f"a = {id % 50}") for id in range(400))
    engine.learn([{"a": at} for at in range(50)])
    assert engine.stats()["compared"]["microseconds_per_event"] == {"dynamic": 3.0}


def test_what_was_foreseen_and_does_not_prove_true_is_not_moved_to(monkeypatch):
    costs = iter([[100.0, 90.0, 90.0, 10.0, 10.0], [100.0, 95.0]])
    monkeypatch.setattr(choice, "_costs", lambda *_: next(costs))
    engine = grown()
    engine.learn(light_events(60))
    assert engine.algorithm == "dynamic"
    compared = engine.stats()["compared"]
    assert (compared["picked"], compared["microseconds_per_event_when_made"]) == ("rapid", 95.0)


@pytest.mark.parametrize("gain", [1.3, 1.0])
def test_an_index_that_guessed_what_events_look_like_is_made_anew_once_and_moved_to_if_it_is_quicker(
    gain, monkeypatch
):
    """What a sample of it need not show."""
    asked = []

    def costs(tried, _):
        asked.append(len(tried))
        return [100.0, 90.0, 95.0] if len(tried) == 3 else [100.0, 100.0 / gain]

    monkeypatch.setattr(choice, "_costs", costs)
    engine = Engine("auto", small=10, many=200)
    engine.subscribe_many((id, f"a = {id % 50} AND b > {id}") for id in range(400))
    before, events = engine._matcher._matcher, [{"a": at, "b": 200} for at in range(50)]
    engine.match_batch(events)
    wait_until_arranged()
    assert (engine._matcher._matcher is before) == (gain == 1.0)
    engine.subscribe_many((id, "a = -1") for id in range(400, 1_000))
    engine.match_batch(events)
    wait_until_arranged()
    assert asked == [3, 2, 3]
    assert sorted(engine.match({"a": 7, "b": 200})) == list(range(7, 200, 50))


def test_threads_that_share_an_event_have_clusters_in_an_engine_that_is_loaded(tmp_path, monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    grown().save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine", parallel=Parallel("hybrid", 2, group=2))
    loaded.learn(light_events(60))
    assert loaded.algorithm == "dynamic"


def test_matches_go_on_while_all_move(monkeypatch):
    costing(monkeypatch, Dynamic=100.0, Rapid=10.0)
    inside, done = threading.Event(), threading.Event()
    real = choice.made_like

    def slowly(*given):
        inside.set()
        assert done.wait(60)
        return real(*given)

    monkeypatch.setattr(choice, "made_like", slowly)
    monkeypatch.setattr(choice, "compare", lambda *_: choice.Choice("rapid", 400, 100.0, {"rapid": 1.0}))
    engine, events = grown(), light_events(60)
    expected = pairs(reference(), events)
    assert pairs(engine, events) == expected
    assert inside.wait(60)
    assert engine.algorithm == "dynamic"
    assert pairs(engine, events) == expected, "while the other one is made"
    done.set()
    wait_until_arranged()
    assert engine.algorithm == "rapid"
    assert pairs(engine, events) == expected


@pytest.mark.parametrize("name", ["small", "many"])
def test_options_are_numbers(name):
    with pytest.raises(ArgumentTypeError, match=name):
        Engine("auto", **{name: "x"})
    with pytest.raises(ArgumentError, match=name):
        Engine("auto", **{name: -1})
