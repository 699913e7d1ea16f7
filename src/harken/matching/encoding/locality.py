"""The order of events within a block: those that look at the same memory come one after the other.

Keys are numbered so that the constants most clauses ask for count most: clusters whose keys differ only in the
others lie side by side. Where the index is far larger than the caches, events are matched in the same order.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harken.matching.contract import Pairs
from harken.matching.kernels.layout import Events, Tables

EventOrder: TypeAlias = npt.NDArray[np.int64]
"""For each event in its new place, which it was."""

LEADING = 2
"""Dimensions that events are ordered by."""

LARGE = 8 << 20
"""Bytes of clusters from which on ordering events pays: some times what the caches of one core hold."""

SORTED_BLOCK = 16_384
"""Events that are ordered together: the more, the more of them look at the same memory."""


def leading_dimensions(tables: Tables, nbytes: int) -> tuple[int, ...]:
    """The dimensions to order events by: those that the keys of most clauses have; none if it does not pay."""
    if nbytes < LARGE:
        return ()
    lengths = np.diff(tables.first)
    clauses = np.bincount(tables.dimension, np.repeat(tables.population, lengths))
    ranked = np.argsort(-clauses, kind="stable")[:LEADING].tolist()
    return tuple(dimension for dimension in ranked if clauses[dimension])


def order_of(events: Events, leading: tuple[int, ...]) -> EventOrder | None:
    """The events in the order of the clusters they look at; None if they had better stay as they are."""
    if not leading or len(events.code) < SORTED_BLOCK // 8 or len(events.also):
        return None
    key = np.zeros(len(events.code), np.int64)
    for dimension in leading:
        key = key << 31 | events.code[:, events.column[dimension]]
    return np.argsort(key)


def in_event_order(order: EventOrder | None, pairs: Pairs) -> Pairs:
    """Matches of events in that order, if any, as matches of the events as they came."""
    if order is None:
        return pairs
    rows = order[pairs[0]]
    ascending = np.argsort(rows, kind="stable")
    return rows[ascending], pairs[1][ascending]
