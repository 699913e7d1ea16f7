"""As many events are matched at once as their matches can be held, whatever came before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from harken.spark.index import pacing
from harken.spark.index.pacing import Found, Pace


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "FIRST", 10)
    monkeypatch.setattr(pacing, "HELD", 16_000)  # a thousand pairs of numbers


def matched(pace: Pace, each: list[int]) -> list[int]:
    """How many events were matched at once, where events have so many matches each."""
    sizes, told = [], []

    def match(events: pa.Table) -> Found:
        counts = events.column("n").to_numpy()
        sizes.append(len(counts))
        return np.repeat(np.arange(len(counts)), counts), pa.array(range(counts.sum()))

    for rows, _ in pace.over(pa.table({"n": each}), match):
        told += rows.tolist()
    assert told == np.repeat(np.arange(len(each)), each).tolist()
    return sizes


def test_the_first_events_tell_how_many_go_together():
    pace = Pace()
    assert matched(pace, [50] * 100) == [10, 20, 20, 20, 20, 10]
    assert matched(pace, [50] * 20) == [20]


def test_where_little_matches_all_go_together():
    pace = Pace()
    assert matched(pace, [0] * 600) == [10, 320, 270]
    assert matched(pace, [1] * 900) == [900]
    assert matched(pace, []) == []


def test_an_event_that_matches_more_than_can_be_held_goes_alone():
    pace = Pace()
    assert matched(pace, [5_000] * 13) == [10, 1, 1, 1]


def test_after_quiet_events_no_more_are_matched_than_the_engine_takes_at_once(monkeypatch):
    monkeypatch.setattr(pacing, "MOST", 100)
    pace = Pace()
    assert matched(pace, [0] * 300) == [10, 100, 100, 90]
    assert matched(pace, [0] * 100 + [50] * 150) == [100, 100, 20, 20, 10]


def test_long_ids_count_by_their_length():
    pace, ids = Pace(), pa.array(["x" * 792])  # with its row and its offsets, 808 bytes

    def match(events):
        return np.arange(events.num_rows), ids.take(pa.array(np.zeros(events.num_rows, np.int64)))

    assert [len(rows) for rows, _ in pace.over(pa.table({"n": range(70)}), match)] == [10, 19, 19, 19, 3]


def test_after_a_burst_events_are_trusted_again_slowly():
    pace = Pace()
    assert matched(pace, [500] * 10 + [0] * 30) == [10, 2, 4, 8, 16]


def test_events_without_any_column_are_as_many_as_they_are():
    events = pa.table({"n": range(25)}).select([])
    found = list(Pace().over(events, lambda some: (np.arange(some.num_rows), pa.array(range(some.num_rows)))))
    assert [rows.tolist() for rows, _ in found] == [[*range(10)], [*range(10, 25)]]
