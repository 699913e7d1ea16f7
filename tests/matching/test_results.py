"""Room for matches: whatever they are, none is lost or told twice when it runs out."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise

import numpy as np
import pytest

from harken import Engine
from harken.matching.encoding import workspace
from harken.matching.encoding.workspace import Told
from harken.matching.kernels.layout import Results


def filled(told: Told, counts: list[int]) -> None:
    """What a kernel does with events of so many matches each: those that do not fit whole are left for later."""
    ends, done = list(accumulate(counts)), 0
    while done < len(counts):
        room, used = told.room(), 0
        while done < len(counts) and used + counts[done] <= len(room.slot):
            room.event[used : used + counts[done]] = done
            room.slot[used : used + counts[done]] = range(ends[done] - counts[done], ends[done])
            used, done = used + counts[done], done + 1
        told.count += used
        if done < len(counts):
            told.have_more(done / len(counts))


@pytest.mark.parametrize("seed", range(20))
def test_matches_are_told_once_each_however_often_room_runs_out(seed):
    chance = random.Random(seed)
    counts = [chance.choice([0, 1, 3, 500 * (chance.random() < 0.1)]) for _ in range(chance.choice([1, 30, 300]))]
    own = Results(np.zeros(4, np.int64), np.zeros(4, np.int64))
    told = Told(own)
    filled(told, counts)
    rows, slots = told.pairs()
    assert rows.tolist() == [row for row, count in enumerate(counts) for _ in range(count)]
    assert slots.tolist() == list(range(sum(counts)))
    assert not any(np.shares_memory(one, other) for one in (rows, slots) for other in own)


class Watched(Told):
    """Remembers how much room there was."""

    def __init__(self, room: Results) -> None:
        super().__init__(room)
        self.rooms = [len(room.slot)]

    def have_more(self, part: float) -> None:
        super().have_more(part)
        self.rooms.append(len(self._room.slot))


@pytest.mark.parametrize(("counts", "most"), [([10] * 1_000, 5), ([1_000_000], 9)])
def test_more_room_is_made_for_what_can_be_foreseen_and_no_more_than_so_many_times_at_once(counts, most):
    told = Watched(Results(np.zeros(64, np.int64), np.zeros(64, np.int64)))
    filled(told, counts)
    assert len(told.rooms) <= most
    assert all(after <= 16 * before for before, after in pairwise(told.rooms))


def test_a_workspace_has_room_for_as_much_as_it_saw_and_keeps_no_more_than_so_many(monkeypatch):
    monkeypatch.setattr(workspace, "FIRST_RESULTS", 64)
    monkeypatch.setattr(workspace, "MANY_RESULTS", 1_024)
    engine = Engine("dynamic")
    engine.subscribe_many((id, "x = 1") for id in range(3_000))
    for _ in range(8):
        assert engine.match_batch([{"x": 1}] * 5).num_rows == 15_000
    (own,) = engine._matcher._own.workspaces
    assert len(own.results.slot) == 1_024
