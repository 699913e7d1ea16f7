"""Multiple events, independent processing (Farroukh et al. 2009, section 4.1): each thread has events of its own.

The index is only read, and each thread has scratch and results of its own; all that threads have to agree on is
who takes which events next.
"""

from __future__ import annotations

from harken.jit import tight
from harken.matching.clusters.kernels.matching import match_events
from harken.matching.kernels.layout import Blocks, Events, PredicateArrays, Results, Scratch, Tables
from harken.matching.parallel.kernels.sharing import AT, CLAIMED, END, Control, Member, claim, is_stopped


@tight
def match_shares(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    control: Control,
    member: Member,
    way: int,
    size: int,
    scratch: Scratch,
    ahead: bool,
    results: Results,
) -> tuple[bool, int]:
    """Claim events, `size` at a time, and match them, until none are left or the results are full.

    Returns whether none are left, and how many results there are. What did not fit stays in the member's share.
    """
    share, items, found = member.share, len(events.code), 0
    while not is_stopped(control) and claim(control, CLAIMED, member, way, items, size):
        room = Results(results.event[found:], results.slot[found:])
        reached, count = match_events(
            predicates, tables, blocks, events, share[AT], share[END], scratch, ahead, room
        )
        share[AT] = reached
        found += count
        if reached < share[END]:
            return False, found
    return True, found
