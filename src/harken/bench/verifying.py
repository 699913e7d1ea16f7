"""Whether what was measured is right: engines against each other, and against the semantics on a sample."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken import Engine
from harken.model.evaluation import truth
from harken.model.expressions import Comparator, Comparison, Expression, predicates
from harken.normal.decompiled import expressions_of
from harken.workloads import Workload
from harken.workloads.specification import CHUNK

SAMPLED, EVENTS = 60, 100
"""Subscriptions and events compared with the semantics, each with each."""

IDS = 1 << 32
"""More than there are ids: a match is a number, the event times this and the id."""

Known = Mapping[int, Expression]
"""Subscriptions by id, as their maker meant them: not read back from an engine, which might have garbled them."""

_AWAY = {Comparator.LT: -1, Comparator.GT: 1, Comparator.NE: 1}
"""How far from its constant an integer satisfies a comparison; others hold at the constant itself."""


def verify_workload(made: Workload, engines: Mapping[str, Engine], size: int, *, seed: int) -> None:
    """Check engines that hold the first `size` subscriptions of a workload."""
    last = (size - 1) // CHUNK * CHUNK
    known: dict[int, Expression] = {}
    for first in {0, last}:
        for table in made.subscriptions(min(CHUNK, size - first), first_id=first):
            known |= sample(table, SAMPLED // 2, seed)
    verify(engines, aimed(made.events(EVENTS, part=1), known), known)


def sample(table: pa.Table, count: int, seed: int) -> dict[int, Expression]:
    """Some subscriptions of a compiled table."""
    rows = random.Random(seed).sample(range(table.num_rows), min(count, table.num_rows))
    picked = table.take(pa.array(sorted(rows), pa.int64()))
    return dict(zip(picked.column("id").to_pylist(), expressions_of(picked), strict=True))


def aimed(events: pa.Table, known: Known) -> pa.Table:
    """The events, each of the first ones changed so that it satisfies one of the subscriptions.

    A random event satisfies hardly any of a few subscriptions: without aim, only silence would be checked.
    """
    rows = events.to_pylist()
    for event, expression in zip(rows, known.values(), strict=False):
        for predicate in predicates(expression):
            assert isinstance(predicate, Comparison), "the papers' workloads have nothing else"
            assert isinstance(predicate.value, int)
            away = _AWAY.get(predicate.operator)
            event[predicate.attribute] = predicate.value if away is None else predicate.value + away
    return pa.Table.from_pylist(rows, events.schema)


def verify(engines: Mapping[str, Engine], events: pa.Table, known: Known, gone: Known | None = None) -> None:
    """Raise unless all engines find the same: what the semantics say of the known, and nothing of the gone."""
    found = {name: _found(engine, events) for name, engine in engines.items()}
    first = next(iter(found))
    for name, each in found.items():
        if not np.array_equal(each, found[first]):
            row, id = divmod(int(np.setxor1d(each, found[first])[0]), IDS)
            raise AssertionError(f"{name} and {first} disagree about event {row} and subscription {id}")
    compare(_of(found[first], known), events.to_pylist(), known)
    for row, id in _of(found[first], gone or {}):
        raise AssertionError(f"subscription {id} has left, but event {row} found it")


def _found(engine: Engine, events: pa.Table) -> npt.NDArray[np.int64]:
    """All matches of a batch, as numbers in order: there may be millions."""
    rows, ids = (column.to_numpy() for column in engine.match_batch(events).columns)
    return np.sort(rows * IDS + ids)


def _of(found: npt.NDArray[np.int64], known: Known) -> set[tuple[int, int]]:
    """The matches of these subscriptions, as pairs of event row and id."""
    ids = found % IDS
    return {divmod(each, IDS) for each in found[np.isin(ids, list(known))].tolist()}


def compare(found: set[tuple[int, int]], events: list[dict[str, object]], known: Known) -> None:
    """Raise unless the pairs found are, for the known subscriptions, those that the semantics say."""
    for id, expression in known.items():
        for row, event in enumerate(events):
            if ((row, id) in found) != (truth(expression, event) is True):  # type: ignore[arg-type]  # ints
                raise AssertionError(f"event {row} and subscription {id}: not what the semantics say")


def pairs(engine: Engine, events: pa.Table) -> set[tuple[int, int]]:
    """All matches of a batch, as pairs of event row and subscription id."""
    return set(zip(*engine.match_batch(events).to_pydict().values(), strict=True))
