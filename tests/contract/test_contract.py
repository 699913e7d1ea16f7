"""Every registered algorithm is put to every check."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import pytest

from harken import Engine, Parallel, algorithms
from harken.matching.encoding import workspace
from harken.matching.structures import segments
from tests.bounds import IS_CHECKED
from tests.contract.checks import CHECKS, Case, Make, vocabulary_for
from tests.contract.crowds import CROWD_CHECKS

pytestmark = pytest.mark.kernel

# As plain Python, kernels take a thousand times as long: fewer cases then, and smaller crowds.
IS_PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"
SEEDS = range(1 if IS_PLAIN or IS_CHECKED else 6)
CROWD = 150 if IS_PLAIN else 2_000 if IS_CHECKED else 20_000
CROWD_SEEDS = range(1 if IS_PLAIN or IS_CHECKED else 2)


VARIANTS = {name: (name, {}) for name in algorithms()} | {
    # At the sizes of tests nothing pays: these reorganise at every change.
    "dynamic-restless": ("dynamic", {"patience": 1, "margin": 0.0}),
    "dynamic-without-prefetch": ("dynamic", {"patience": 1, "margin": 0.0, "prefetch": False}),
    "static-eager": ("static", {"checks_per_lookup": 0.0}),
    "be-tree-small-nodes": ("be-tree", {"node_size": 1}),
    "pubsub-small-buckets": ("pubsub", {"bucket_size": 2}),
    "pubsub-interval-trees": ("pubsub", {"bucket_size": 3, "structures": "interval-tree"}),
    "pubsub-priority-search-trees": ("pubsub", {"bucket_size": 3, "structures": "priority-search-tree"}),
    "auto-growing": ("auto", {"small": 20}),
    "propagation-without-prefetch": ("propagation", {"prefetch": False}),
    "tree-restless": ("tree", {"waiting": 0}),
    "rapid-restless": ("rapid", {"waiting": 0, "c": 5}),
    "rapid-in-order": ("rapid", {"waiting": 0, "c": 5, "reorder": False}),
}
for sync in ("static", "lock", "stm"):  # each with blocks so small that threads come in each other's way
    VARIANTS |= {
        f"parallel-me-ip-{sync}": (
            "dynamic",
            {"patience": 1, "margin": 0.0, "parallel": Parallel("me-ip", 2, sync=sync, block=3)},
        ),
        f"parallel-se-cp-{sync}": (
            "static",
            {"checks_per_lookup": 0.0, "parallel": Parallel("se-cp", 2, sync=sync, block=1)},
        ),
        f"parallel-hybrid-{sync}": ("propagation", {"parallel": Parallel("hybrid", 3, 2, sync)}),
    }
if IS_PLAIN or IS_CHECKED:  # those that together run every line of a kernel that all of them run
    OWN_LOOPS = (
        "be-tree-small-nodes",
        "counting",
        "dynamic-restless",
        "static-eager",
        "propagation-without-prefetch",
        "pubsub-interval-trees",
        "pubsub-priority-search-trees",
        "rapid-restless",
        "siena",
        "parallel-me-ip-lock",
        "parallel-se-cp-static",
        "parallel-hybrid-stm",
    )
    VARIANTS = {name: VARIANTS[name] for name in OWN_LOOPS}


# Families with several variants of few differences: what one seed does not show, that of another variant does.
FAMILIES = {"be": 1, "parallel": 1, "pubsub": 2, "rapid": 2, "siena": 2, "tree": 2}
CASES = [(name, seed) for name in VARIANTS for seed in SEEDS[: FAMILIES.get(name.partition("-")[0])]]
CROWD_CASES = [
    (name, seed) for name in VARIANTS for seed in CROWD_SEEDS[: 1 if name != VARIANTS[name][0] else None]
]


@functools.cache
def case_for(check: Callable[[Make, Case], None], seed: int) -> Case:
    """The same for all algorithms. Nobody changes it."""
    return Case.made(f"{check.__name__}-{seed}", vocabulary_for(check))


@pytest.mark.parametrize(("algorithm", "seed"), CASES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_the_algorithm_obeys(algorithm, check, seed, monkeypatch):
    name, options = VARIANTS[algorithm]
    if algorithm != name:  # and these look for patterns and shapes by structures, however few there are
        monkeypatch.setattr(segments, "WAITING", 0)
    check(lambda: Engine(name, **options), case_for(check, seed))


@pytest.mark.parametrize("check", CROWD_CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize(("algorithm", "seed"), CROWD_CASES)
def test_the_algorithm_obeys_with_a_crowd(algorithm, check, seed, monkeypatch):
    name, options = VARIANTS[algorithm]
    # What evaluates each has nothing that could run full.
    size = CROWD // 10 if name == "reference" else CROWD
    monkeypatch.setattr(workspace, "FIRST_RESULTS", min(workspace.FIRST_RESULTS, CROWD // 4))
    check(lambda: Engine(name, **options), size, seed)
