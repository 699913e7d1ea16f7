"""`harken generate` writes files that `harken match` reads."""

from __future__ import annotations

import json

from harken.workloads import workloads
from tests.cli.running import run


def test_what_is_generated_can_be_matched_by_any_algorithm(tmp_path):
    made = run("generate", "w1", "--subscriptions", "400", "--events", "50", "--out", str(tmp_path))
    assert made.status == 0, made.err
    files = ["-s", str(tmp_path / "subscriptions.parquet"), "-e", str(tmp_path / "events.parquet")]
    found = [run("match", *files, "--algorithm", name).out for name in ("dynamic", "reference")]
    assert sorted(found[0].splitlines()) == sorted(found[1].splitlines())
    assert all(set(json.loads(line)) == {"event", "subscription"} for line in found[0].splitlines())


def test_an_unknown_workload_is_refused(tmp_path):
    said = run("generate", "w9", "--out", str(tmp_path))
    assert said.status == 2
    assert "there are w0" in said.err


def test_the_list_names_every_workload():
    listed = run("generate", "--list")
    assert (listed.status, listed.err) == (0, "")
    assert all(name in listed.out for name in workloads())


def test_a_seed_below_zero_is_refused(tmp_path):
    said = run("generate", "light-query", "--seed", "-1", "--out", str(tmp_path))
    assert said.status == 2
    assert "Invalid value for '--seed'" in said.err
