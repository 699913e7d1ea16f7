"""The order in which events are matched: those that look at the same memory come one after the other.

Keys are numbered so that the constants most clauses ask for count most: clusters whose keys differ only in the
others lie side by side. Where the index is far larger than the caches, events are matched in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.contract import Pairs, Slots
from harken.matching.kernels.encoding import order_by, put_in_order
from harken.matching.kernels.layout import Events, Tables

LEADING = 2
"""Dimensions that events are ordered by."""

LARGE = 8 << 20
"""Bytes of clusters from which on ordering events pays: some times what the caches of one core hold."""

FEWEST = 256
"""Events that it pays to order."""

SORTED = 131_072
"""Events that are ordered together, at most: the more, the more of them look at the same memory."""

ENCODED = 16_384
"""Of these, events that are encoded together."""

MOST_BYTES = 64 << 20
"""Bytes of encoded events that are put together, at most."""

MOST_KEYS = 1 << 20
"""Keys that events are put in order by without comparing them."""

NO_ORDER = np.zeros(0, np.int64)


def leading_dimensions(tables: Tables, nbytes: int) -> tuple[int, ...]:
    """The dimensions to order events by: those that the keys of most clauses have; none if it does not pay."""
    if nbytes < LARGE:
        return ()
    lengths = np.diff(tables.first)
    clauses = np.bincount(tables.dimension, np.repeat(tables.population, lengths))
    ranked = np.argsort(-clauses, kind="stable")[:LEADING].tolist()
    return tuple(dimension for dimension in ranked if clauses[dimension])


def gathered(blocks: Iterable[tuple[int, Events]]) -> Iterator[tuple[int, Events]]:
    """Blocks, one after the other, as fewer and larger ones. Only those whose columns are the same go together."""
    start, alike, count = 0, list[Events](), 0
    for begin, events in blocks:
        most = most_together(events.code.shape[1], events.label.shape[1])
        if alike and (events.column is not alike[0].column or count + len(events.code) > most):
            yield start, _together(alike)
            alike, count = [], 0
        start = start if alike else begin
        alike.append(events)
        count += len(events.code)
    if alike:
        yield start, _together(alike)


def most_together(columns: int, label_columns: int) -> int:
    """How many events of so many columns go together, for the number and for the room they take."""
    return min(SORTED, max(1, MOST_BYTES // (4 * columns + 8 * label_columns)))


def _together(blocks: Sequence[Events]) -> Events:
    if len(blocks) == 1:
        return blocks[0]
    code, label = (np.concatenate([each[at] for each in blocks]) for at in (0, 1))
    ends = np.cumsum([0, *(len(each.also) for each in blocks)])
    first = [each.also_first[:-1] + end for each, end in zip(blocks, ends, strict=False)]
    also = np.concatenate([each.also for each in blocks])
    return blocks[0]._replace(
        code=code, label=label, also_first=np.append(np.concatenate(first), ends[-1]), also=also
    )


def in_order(events: Events, leading: tuple[int, ...]) -> Events:
    """Events to be matched in the order of the clusters they look at, if they are enough for that to pay."""
    if len(events.code) < FEWEST:
        return events
    keys = np.zeros(len(events.code), np.int64)
    count = 1
    for dimension in leading:
        codes = events.code[:, events.column[dimension]]
        radix = int(codes.max()) + 2  # one more for those that are missing
        keys, count = keys * radix + codes + 1, count * radix
    if count > MOST_KEYS:
        return events._replace(order=np.argsort(keys))
    order = np.empty(len(keys), np.int64)
    order_by(keys, np.zeros(count, np.int64), order)
    return events._replace(order=order)


def in_event_order(events: Events, pairs: Pairs) -> Pairs:
    """Matches as they were found, in the order of the events."""
    return by_row(*pairs, len(events.code)) if len(events.order) else pairs


def by_row(rows: npt.NDArray[np.int64], slots: Slots, count: int) -> Pairs:
    """Matches of so many events, in the order of those; those of one event stay as they are."""
    ordered_rows, ordered_slots = np.empty_like(rows), np.empty_like(slots)
    put_in_order(rows, slots, np.zeros(count, np.int64), ordered_rows, ordered_slots)
    return ordered_rows, ordered_slots
