"""Importing Harken is cheap: nothing heavy is loaded before it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import harken

HEAVY = ["numba", "pyspark", "fastapi", "sqlalchemy", "shapely", "matplotlib", "typer", "duckdb"]


def loaded_after(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after running some code."""
    report = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_importing_harken_loads_nothing_heavy():
    loaded = loaded_after("import harken")
    assert "harken" in loaded
    assert not loaded & set(HEAVY)


def test_a_small_engine_works_without_kernels():
    loaded = loaded_after(
        "from harken import Engine\n"
        "engine = Engine('reference')\n"
        "engine.subscribe('alice', \"item = 'camera' and price < 300\")\n"
        "assert engine.match({'item': 'camera', 'price': 199}) == ['alice']\n"
        "assert engine.match_batch([{'item': 'camera', 'price': 199}]).num_rows == 1"
    )
    assert not loaded & set(HEAVY)


def test_a_small_engine_that_matches_single_events_loads_no_data_frames():
    loaded = loaded_after(
        "from harken import Engine\n"
        "engine = Engine()\n"
        "engine.subscribe('alice', \"item = 'camera' and price < 300\")\n"
        "assert engine.match({'item': 'camera', 'price': 199}) == ['alice']"
    )
    assert not loaded & {"pandas", *HEAVY}


@pytest.mark.parametrize("name", harken.__all__)
def test_every_public_name_is_there(name):
    assert getattr(harken, name) is not None


def test_the_public_names_are_sorted_and_documented():
    assert list(harken.__all__) == sorted(harken.__all__)
    for name in harken.__all__:
        assert getattr(harken, name).__doc__, name
