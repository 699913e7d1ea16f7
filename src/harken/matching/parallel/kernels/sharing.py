"""How threads share work: what is whose beforehand, or claimed block by block; and where they wait for each other.

Threads that work together have one array of **control** words, each on a cache line of its own: otherwise those
who read one would wait for those who write another. Every thread has a **share**: the part of the work at hand
that it has claimed and not done yet. Three ways to claim (section 5 of the paper):

- static: the k-th of n threads has the k-th n-th of everything, and nobody asks anybody;
- lock: a counter says what is next; who takes a block of it holds a lock meanwhile;
- stm: the same by a transaction (transactions.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.parallel.kernels.atomics import add, doze, give_way, load, now, store, swap
from harken.matching.parallel.kernels.transactions import begin, commit, new_log, new_versions, read, write

STATIC, LOCK, STM = range(3)
"""Ways to claim."""

WORDS = 8
"""Words of a cache line."""

STOP, LOCKED, CAME, ROUNDS, UNIT, CLAIMED, FURTHER, CONTROLS = range(0, 8 * WORDS, WORDS)
"""Places of control words: whether to stop; the lock; those who wait at the barrier, and how often all have met;
the unit at hand (an event); and how much of the work is claimed, in each of two phases."""

AT, END, FIRST_TIME, SECOND_TIME, WAITED, COMMITS, ABORTS, SHARE = range(8)
"""Words of a share: from where to where it goes. And what its thread has seen: cycles of phase one, of phase two,
and of waiting at barriers; transactions that were made, and those that had to begin anew."""

PATIENCE, YIELDS = 256, 128
"""Looks until a thread that waits lets others have its core, and how often it does so before it sleeps."""

DOZE = 20
"""Microseconds that it sleeps then: where there are fewer cores than threads, who is waited for may have none."""


class Control(NamedTuple):
    """What threads agree by."""

    words: npt.NDArray[np.int64]
    """The control words, a cache line each."""
    versions: npt.NDArray[np.int64]
    """Of the control words, for transactions."""


class Member(NamedTuple):
    """What one thread has to itself."""

    share: npt.NDArray[np.int64]
    log: npt.NDArray[np.int64]
    """Of its transactions."""


def new_controls(count: int) -> tuple[list[Control], Callable[[], None]]:
    """Control words for so many groups of threads that have not begun, and what stops all of them.

    That is written in C from end to end, so that no signal is handled before it is done.
    """
    words = np.zeros((count, CONTROLS), np.int64)
    controls = [Control(each, new_versions(CONTROLS // WORDS)) for each in words]
    return controls, partial(operator.setitem, words, (slice(None), STOP), 1)


def new_member() -> Member:
    """A thread that has not begun."""
    return Member(np.zeros(SHARE, np.int64), new_log())


@part
def let_others(looks: int) -> None:
    """Let others have the core, for the longer the more often one has looked."""
    if looks < YIELDS * PATIENCE:
        give_way()
    else:
        doze(np.uint32(DOZE))


@part
def is_stopped(control: Control) -> bool:
    """Whether somebody has failed, so that nobody should wait for him."""
    return load(control.words, STOP) != 0


@part
def take_lock(control: Control) -> bool:
    """Wait for the lock; False if all is to stop."""
    looks = 0
    while not swap(control.words, LOCKED, 0, 1):
        looks += 1
        if looks % PATIENCE == 0:
            if is_stopped(control):
                return False
            let_others(looks)
    return True


@part
def give_lock(control: Control) -> None:
    """Let somebody else have the lock."""
    store(control.words, LOCKED, 0)


@part
def meet(control: Control, members: int, member: Member) -> bool:
    """Wait until all members of a group have come here; False if all is to stop."""
    if members == 1:
        return not is_stopped(control)
    began = now()
    rounds = load(control.words, ROUNDS)
    if add(control.words, CAME, 1) == members - 1:
        store(control.words, CAME, 0)
        add(control.words, ROUNDS, 1)
    looks = 0
    while load(control.words, ROUNDS) == rounds:
        looks += 1
        if looks % PATIENCE == 0:
            if is_stopped(control):
                return False
            let_others(looks)
    member.share[WAITED] += now() - began
    return True


@part
def begin_share(member: Member, way: int, number: int, members: int, items: int) -> None:
    """Have a share of so many items: what is one's own beforehand, or nothing yet."""
    member.share[AT], member.share[END] = 0, 0
    if way == STATIC:
        member.share[AT], member.share[END] = items * number // members, items * (number + 1) // members


@part
def claim(control: Control, counter: int, member: Member, way: int, items: int, block: int) -> bool:
    """Have something in one's share, if there is anything left that nobody has claimed."""
    share = member.share
    if share[AT] < share[END]:
        return True
    if way == STATIC:
        return False
    if way == LOCK:
        if not take_lock(control):
            return False
        at = control.words[counter]
        control.words[counter] = min(at + block, items)
        give_lock(control)
    else:
        at = _claim_by_transaction(control, counter, member, items, block)
    share[AT], share[END] = at, min(at + block, items)
    return bool(at < items)


@part
def _claim_by_transaction(control: Control, counter: int, member: Member, items: int, block: int) -> int:
    looks = 0
    while True:
        begin(member.log)
        at = read(control.words, control.versions, member.log, counter)
        write(member.log, counter, min(at + block, items))
        if commit(control.words, control.versions, member.log):
            member.share[COMMITS] += 1
            return at
        member.share[ABORTS] += 1
        looks += 1
        if looks % PATIENCE == 0:
            if is_stopped(control):
                return items
            let_others(looks)


@tight
def cycles() -> int:
    """The clock that times are taken by."""
    return now()
