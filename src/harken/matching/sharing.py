"""Whether several threads match, and which way: as was said, or as pays without anybody having said anything."""

from __future__ import annotations

import numpy as np

from harken.errors import ArgumentError
from harken.locking import Door
from harken.matching.contract import InParallel, Matcher, Pairs, Slots, in_order
from harken.matching.events.batch import EventBatch
from harken.matching.parallel.options import Parallel
from harken.model.events import FlatEvent

LARGE = 4_096
"""Events of a batch from which on all cores match it, if nobody says otherwise: to ask them takes a while."""

_USUAL = Parallel()


def check_parallel(matcher: Matcher, parallel: Parallel) -> None:
    """ArgumentError if several threads cannot match so with this algorithm."""
    if isinstance(matcher, InParallel):
        matcher.check_parallel(parallel)
    elif parallel.mode != "me-ip":
        said = f"threads that work on one event together, {parallel.mode!r}, need an index"
        raise ArgumentError(said, argument="mode", suggestion='mode="me-ip"')


def match_batch_in_parallel(matcher: Matcher, events: EventBatch, parallel: Parallel | None, door: Door) -> Pairs:
    """All matches of a batch, by as many threads as are asked for; or by all cores, if it is large.

    With one thread there is nothing to share. What evaluates expression by expression does it alone.
    """
    if parallel is None:
        if len(events) < LARGE:
            return matcher.match_batch(events)
        parallel = _USUAL
    else:
        check_parallel(matcher, parallel)
    if parallel.count == 1 or not isinstance(matcher, InParallel):
        return in_order(matcher.match_batch(events), parallel)
    return matcher.match_batch_in_parallel(events, parallel, door)


def match_in_parallel(matcher: Matcher, event: FlatEvent, parallel: Parallel, door: Door) -> Slots:
    """The matches of one event, by several threads if they are to work on one together."""
    if parallel.mode == "me-ip" or not isinstance(matcher, InParallel):
        return matcher.match(event)
    if parallel.count == 1:
        return np.sort(matcher.match(event))
    return matcher.match_batch_in_parallel(EventBatch([event], {}, 1), parallel, door)[1]
