"""Saved folders that are damaged at random are refused or work; nothing brings the process down."""

from __future__ import annotations

from harken.bench.experiments import damage

COUNT = 350


def test_hundreds_of_damaged_folders_are_refused_or_work(tmp_path):
    damage.prepare(tmp_path, seed=7)
    outcomes = [(number, outcome) for number, _, outcome in damage.outcomes_of(tmp_path, 7, 0, COUNT)]
    assert [each for each in outcomes if each[1] not in (damage.REFUSED, damage.WORKED)] == []
    assert {number for number, _ in outcomes} == set(range(COUNT))
    assert {outcome for _, outcome in outcomes} == {damage.REFUSED, damage.WORKED}
