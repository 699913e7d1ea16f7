"""Kernels that find their arrays by addresses: those are of arrays that are there, whatever others replace."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from harken import Engine
from harken.matching.clusters import single
from harken.matching.clusters.clusters import ClusterStore
from harken.matching.clusters.kernels.addressing import Arguments
from harken.matching.encoding import workspace
from harken.matching.kernels.layout import Results

pytestmark = pytest.mark.kernel

CLUSTERED = ["propagation", "static", "dynamic"]


def crowded(algorithm: str, size: int) -> Engine:
    engine = Engine(algorithm)
    engine.subscribe_many((id, f"a = 1 AND b < {id}") for id in range(size))
    return engine


def arguments_of(engine: Engine) -> Arguments:
    return engine._matcher._own.workspaces[0].single._arguments


def test_single_events_after_a_batch_with_many_matches_do_not_crash_the_process():
    size, turns = (6_000, 2) if os.environ.get("NUMBA_DISABLE_JIT") == "1" else (200_000, 20)
    program = f"""
        from harken import Engine

        engine = Engine()
        engine.subscribe_many((id, f"a = 1 AND b < {{id}}") for id in range({size}))
        few = {{"a": 1, "b": {size} - 3}}
        for _ in range({turns}):
            assert sorted(engine.match(few)) == [{size} - 2, {size} - 1]
            assert engine.match_batch([{{"a": 1, "b": {size} - 5_001}}]).num_rows == 5_000
        print("alive")
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.parametrize("algorithm", CLUSTERED)
def test_single_events_see_their_own_results_after_a_batch_has_replaced_its_own(algorithm, monkeypatch):
    monkeypatch.setattr(workspace, "FIRST_RESULTS", 16)
    engine = crowded(algorithm, 200)
    assert sorted(engine.match({"a": 1, "b": 197})) == [198, 199]
    assert engine.match_batch([{"a": 1, "b": 99}]).num_rows == 100
    assert sorted(engine.match({"a": 1, "b": 197})) == [198, 199]
    assert sorted(engine.match({"a": 1, "b": 49})) == list(range(50, 200))
    assert sorted(engine.match({"a": 1, "b": 197})) == [198, 199]


def test_the_table_names_the_arrays_that_are_held_and_no_others(monkeypatch):
    monkeypatch.setattr(workspace, "FIRST_RESULTS", 16)
    monkeypatch.setattr(single, "FIRST_ALSO", 1)
    engine = crowded("propagation", 200)
    engine.subscribe_many((1_000 + id, f"name MATCHES 'x{{{id}}}'") for id in range(5))
    for event in ({"a": 1, "b": 190}, {"a": 1, "b": 0, "name": "xxxxx"}, {"name": "x"}):
        engine.match(event)
        engine.match_batch([event])
        arguments = arguments_of(engine)
        held = [*arguments._index, arguments.events, arguments._scratch, arguments.results, arguments.reading]
        arrays = [array for structure in held for array in structure]
        assert arguments.table[:, 0].tolist() == [array.ctypes.data for array in arrays]
        assert arguments.table[:, 1:].tolist() == [[*array.shape, 1][:2] for array in arrays]
        assert arguments.results.slot.size >= len(engine.match(event))


def test_an_array_that_a_kernel_would_take_for_another_is_refused():
    engine = crowded("propagation", 10)
    engine.match({"a": 1, "b": 3})
    arguments = arguments_of(engine)
    before = arguments.table.copy()
    narrow, strided = np.zeros(16, np.int32), np.zeros(32, np.int64)[::2]
    for wrong in (
        Results(narrow, narrow),
        Results(strided, strided),
        Results(np.zeros((2, 8), np.int64), strided),
    ):
        with pytest.raises(TypeError, match="none of int64"):
            arguments.results = wrong
    assert np.array_equal(arguments.table, before)
    assert sorted(engine.match({"a": 1, "b": 3})) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("algorithm", CLUSTERED)
def test_a_change_that_fails_leaves_no_views_of_arrays_that_were_replaced(algorithm, monkeypatch):
    engine = crowded(algorithm, 100)
    engine.match({"a": 1, "b": 3})
    store, place = engine._matcher._store, ClusterStore.place

    def fail(self: ClusterStore, *given: object) -> None:
        place(self, *given)
        self.grow()
        raise MemoryError

    monkeypatch.setattr(ClusterStore, "place", fail)
    with pytest.raises(MemoryError):
        engine.subscribe_many((id, f"a = 1 AND c < {id}") for id in range(1_000, 1_100))
    assert engine._matcher._index.blocks.words is store.words
    assert engine._matcher._index.blocks.directory is store.directory
