"""The parts that experiments share: contenders, processes of their own, memory, and the scan to compare with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine, algorithms
from harken.bench import loading, memory
from harken.bench.apart import run_apart
from harken.bench.experiments.fabret_churn import PER_SECOND, _Step
from harken.bench.experiments.ranges import Scans
from harken.bench.experiments.soak import Trial
from harken.bench.experiments.updates import ROUNDS, _rates
from harken.bench.measuring import Bench, Figure
from harken.bench.throughput import curves, events_by_speed, per_100_events
from harken.workloads import workload
from tests.bench import callee


def test_only_registered_algorithms_take_part(monkeypatch):
    monkeypatch.setattr(loading, "algorithms", lambda: {"dynamic": "", "propagation": ""})
    assert [each.name for each in loading.contenders()] == [
        "dynamic",
        "dynamic, no prefetch",
        "propagation",
        "propagation, no prefetch",
    ]


def test_what_a_target_asks_is_asked_at_full_scale_only():
    assert Bench(scale="full").target(5.0) == 5.0
    assert Bench(scale="small").target(5.0) is None


def test_slow_algorithms_are_given_fewer_events():
    events = events_by_speed(Bench(scale="full"), 400_000)
    dynamic, propagation = loading.contenders(("dynamic", "propagation"))
    assert events(dynamic) == 400_000
    assert events(propagation) < 10_000


def test_a_curve_goes_through_the_points_of_one_contender():
    points = {10.0: {"a": Figure("", "", (1_000.0,))}, 20.0: {"a": Figure("", "", (500.0,))}}
    (curve,) = curves(points, per_100_events)
    assert (curve.label, curve.x, curve.y) == ("a", (10.0, 20.0), (100.0, 200.0))


def test_loading_numbers_subscriptions_from_zero():
    (contender,) = loading.contenders(("propagation",))
    engine = loading.load(Bench(), workload("w0"), contender, 300)
    assert sorted(engine) == list(range(300))
    assert engine.algorithm == "propagation"


def test_a_function_runs_in_a_process_of_its_own():
    done = run_apart(callee.describe, 3, environment={"HARKEN_TOLD": "yes"})
    assert done.result == {"process": done.result["process"], "given": 3, "told": "yes"}
    assert done.result["process"] != os.getpid()
    assert done.said == "said aside\n"
    assert done.seconds > 0


def test_a_failure_in_another_process_comes_with_its_words():
    with pytest.raises(RuntimeError, match="no such luck"):
        run_apart(callee.fail)


def test_an_engine_accounts_for_its_bytes_or_says_nothing():
    engine = Engine("dynamic")
    for table in workload("w0").subscriptions(2_000):
        engine.subscribe_many(table)
    assert memory.index_bytes(engine) > 2_000 * 5
    assert memory.index_bytes(Engine("reference")) is None


def test_resident_memory_grows_with_what_is_held_where_the_system_tells():
    before, held = memory.resident_bytes(), np.ones(8_000_000)
    if Path("/proc/self/statm").exists():
        assert memory.resident_bytes() > before + held.nbytes // 2
    else:
        assert before is None


def test_the_scan_finds_what_the_reference_finds():
    made, engine = workload("ranges"), Engine("reference")
    for table in made.subscriptions(400):
        engine.subscribe_many(table)
    engine.subscribe(400, "a00 < 0")
    events = pa.concat_tables([made.events(40), _extremes(made.events(2))])
    expected = sorted(zip(*engine.match_batch(events).to_pydict().values(), strict=True))
    assert expected
    scans = Scans(made, 400)
    for rows, ids in (scans.one_by_one(events), scans.by_columns(events)):
        assert sorted(zip(rows.tolist(), ids.tolist(), strict=True)) == expected


def _extremes(events):
    """One event far below every constant, and one with far more above."""
    names = events.column_names
    low, high = dict.fromkeys(names, 1), {name: 1 if at % 2 else 1_000 for at, name in enumerate(names)}
    return pa.Table.from_pylist([low, high], events.schema)


def test_throughput_of_a_step_leaves_out_the_time_of_updates():
    step = _Step(rates=[100.0, 100.0], updating=[1.0, 4.0])
    assert step.throughput(swapped=5 * PER_SECOND) == pytest.approx(50.0)
    assert step.throughput(swapped=2 * PER_SECOND) == 0.0


def test_rates_of_updates_count_whole_repeats():
    assert _rates(10, [1.0] * ROUNDS + [2.0] * ROUNDS) == (10.0, 5.0)


@pytest.mark.parametrize("algorithm", [name for name in algorithms() if name != "reference"])
def test_a_trial_does_all_its_operations_and_keeps_its_bounds(algorithm):
    trial = Trial(algorithm, 5, 40, 60, events=8)
    for _ in range(150):
        trial.act()
        assert 30 <= len(trial) <= 70
    trial.save_and_load()
    trial.act()
    assert len(trial.engine) == len(trial)
    assert {"subscribe", "unsubscribe_many", "replace_many", "match_columns", "match_rows"} <= set(trial.done)


def match_often(trial):
    for _ in range(200):
        trial.match()


def test_a_trial_notices_a_subscription_that_is_lost():
    trial = Trial("reference", 5, 40, 60, events=8)
    trial.engine.unsubscribe_many(list(trial.engine))
    with pytest.raises(AssertionError, match="Engine"):
        match_often(trial)


def test_a_trial_notices_a_subscription_that_nobody_made():
    trial = Trial("reference", 5, 40, 60, events=8)
    trial.engine.subscribe(10_000, "TRUE")
    with pytest.raises(AssertionError, match="never subscribed"):
        trial.match()


def test_trials_of_one_seed_do_the_same():
    first, second = (Trial("reference", 7, 40, 60, events=8) for _ in range(2))
    for _ in range(40):
        first.act(), second.act()
    assert first.done == second.done
    assert set(first.engine) == set(second.engine)
