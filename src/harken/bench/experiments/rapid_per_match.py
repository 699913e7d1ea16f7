"""Figures 5 and 6 of Kale et al. 2005: the time that each match takes, against how many there are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken import Engine
from harken.bench.loading import WITH_TREES, contenders, load
from harken.bench.measuring import Bench, Curve, Figure, Plot, Ratio, Result
from harken.bench.verifying import verify_workload
from harken.workloads import LightQueries, Workload, workload_of
from harken.workloads.light_query import exponential, zipf

PAPER = (
    "The more matches, the less time each takes, with RAPIDMatch and TreeMatch alike, for there are more of them "
    "in each subtree that is looked into. RAPIDMatch takes less than TreeMatch, the more so the fewer there are."
)

BINS = 5
"""Events are sorted by their matches, and cut into so many parts of equal size."""


def run_zipf(bench: Bench) -> Result:
    """Most events have one property or two."""
    return _run(bench, zipf(), "Zipf, alpha = 2")


def run_exponential(bench: Bench) -> Result:
    """Each event has each property with the same chance."""
    return _run(bench, exponential(), "exponential, p = 0.1")


def _run(bench: Bench, shape: LightQueries, distribution: str) -> Result:
    size, count = bench.pick(5_000, 100_000), bench.pick(200, 4_000)
    made, taking_part = workload_of(shape, bench.seed), contenders(WITH_TREES)
    engines = {each.name: load(bench, made, each, size) for each in taking_part}
    verify_workload(made, engines, size, seed=bench.seed)
    found: dict[float, dict[str, Figure]] = {}
    for matches, events in _bins(made, engines["rapid"], count):
        found[matches / len(events)] = _per_match(bench, engines, events, matches)
    few, many = (found[matches] for matches in (min(found), max(found)))
    return Result(
        f"Time per match against the number of matches ({distribution}), one core, encoding included",
        {"subscriptions": f"{size:,}", "events": f"{count:,}, in {len(found)} parts by their matches"},
        [figure for measured in found.values() for figure in measured.values()],
        [
            Ratio.of("tree / rapid, fewest matches", few["tree"], few["rapid"]),
            Ratio.of("tree / rapid, most matches", many["tree"], many["rapid"]),
            Ratio.of("rapid: fewest / most matches", few["rapid"], many["rapid"]),
        ],
        Plot("matches of an event", "µs per match", _curves(found), log_y=True),
        PAPER,
        ["Matches of a sample of events were compared among all and with the reference semantics."],
    )


def _bins(made: Workload, engine: Engine, count: int) -> list[tuple[int, pa.Table]]:
    """Events in parts, by how many matches they have, and how many matches all of a part have."""
    events = made.events(count)
    matches = np.bincount(engine.match_batch(events).column("event").to_numpy(), minlength=count)
    parts: list[npt.NDArray[np.int64]] = np.array_split(np.argsort(matches, kind="stable"), BINS)
    # Where there are no matches there is no time per match.
    return [(int(matches[part].sum()), events.take(pa.array(part))) for part in parts if matches[part].sum()]


def _per_match(bench: Bench, engines: dict[str, Engine], events: pa.Table, matches: int) -> dict[str, Figure]:
    """Microseconds for each match of some events, by name of the contender."""
    where = f"{matches / len(events):,.1f} matches"
    work: dict[str, Callable[[], object]] = {
        name: partial(engine.match_batch, events) for name, engine in engines.items()
    }
    return {
        name: Figure(
            f"{name}, {where}", "µs/match", tuple(1e6 * each / matches for each in samples), lower_is_better=True
        )
        for name, samples in bench.in_turns(work, f"matching: {where}").items()
    }


def _curves(found: dict[float, dict[str, Figure]]) -> tuple[Curve, ...]:
    names = next(iter(found.values()))
    return tuple(
        Curve(name, tuple(found), tuple(measured[name].median for measured in found.values())) for name in names
    )
