"""Software transactional memory, optimistic: read and write as if alone, and find out at the end who came between.

A transaction works on one array of words. What it reads it notes with the **version** of the words there; what it
writes stays in its log. To commit, it locks the versions of what it writes, looks whether all that it read still
has the version noted, and only then writes and raises the versions. If another was quicker, nothing has been
written: the transaction is rolled back by forgetting its log, and whoever runs it begins anew.

    versions   stripes of a cache line each; even numbers; odd while somebody commits
    log        READS, WRITES, DOOMED | stripe, version, ... of up to ROOM reads | place, value, ... of ROOM writes

    begin(log)
    value = read(words, versions, log, at)
    write(log, at, value + 1)
    done = commit(words, versions, log)
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harken.jit import part
from harken.matching.parallel.kernels.atomics import load, store, swap

Words: TypeAlias = npt.NDArray[np.int64]

ROOM = 32
"""Reads and writes that a transaction may have, each."""

READS, WRITES, DOOMED, _HEAD = range(4)

LOG = _HEAD + 4 * ROOM
"""Words of a log."""

STRIPE = 8
"""Words of a stripe: a cache line."""


def new_log() -> npt.NDArray[np.int64]:
    """The log of a thread."""
    return np.zeros(LOG, np.int64)


def new_versions(stripes: int) -> npt.NDArray[np.int64]:
    """Versions for an array of words."""
    return np.zeros(stripes * STRIPE, np.int64)


@part
def _stripe(versions: Words, at: int) -> int:
    """Where the version of a word is."""
    return at // STRIPE % (len(versions) // STRIPE) * STRIPE


@part
def begin(log: Words) -> None:
    """Have read and written nothing."""
    log[READS], log[WRITES], log[DOOMED] = 0, 0, 0


@part
def read(words: Words, versions: Words, log: Words, at: int) -> int:
    """A word, as this transaction has written it or as it was committed."""
    for entry in range(log[WRITES]):
        if log[_HEAD + 2 * ROOM + 2 * entry] == at:
            return int(log[_HEAD + 2 * ROOM + 2 * entry + 1])
    stripe = _stripe(versions, at)
    version = load(versions, stripe)
    value = load(words, at)
    if version % 2 == 1 or load(versions, stripe) != version:
        log[DOOMED] = 1
    entry = log[READS]
    log[_HEAD + 2 * entry], log[_HEAD + 2 * entry + 1] = stripe, version
    log[READS] = entry + 1
    return value


@part
def write(log: Words, at: int, value: int) -> None:
    """Note what a word is to be."""
    entry = 0
    while entry < log[WRITES] and log[_HEAD + 2 * ROOM + 2 * entry] != at:
        entry += 1
    log[_HEAD + 2 * ROOM + 2 * entry], log[_HEAD + 2 * ROOM + 2 * entry + 1] = at, value
    log[WRITES] = max(log[WRITES], entry + 1)


@part
def _version_read(log: Words, stripe: int) -> int:
    """The version that a stripe had when it was first read; -1 if it was not."""
    for entry in range(log[READS]):
        if log[_HEAD + 2 * entry] == stripe:
            return int(log[_HEAD + 2 * entry + 1])
    return -1


@part
def _is_first_of_stripe(versions: Words, log: Words, entry: int) -> bool:
    """Whether no write before this one is to the same stripe."""
    stripe, first = _stripe(versions, log[_HEAD + 2 * ROOM + 2 * entry]), True
    for other in range(entry):
        first &= _stripe(versions, log[_HEAD + 2 * ROOM + 2 * other]) != stripe
    return first


@part
def _lock(versions: Words, log: Words) -> int:
    """Lock the stripes of all writes; how many writes that was done for, all of them if nobody was in between."""
    for entry in range(log[WRITES]):
        if _is_first_of_stripe(versions, log, entry):
            stripe = _stripe(versions, log[_HEAD + 2 * ROOM + 2 * entry])
            version = _version_read(log, stripe)
            if version < 0:
                version = load(versions, stripe)
            if version % 2 == 1 or not swap(versions, stripe, version, version + 1):
                return int(entry)
    return int(log[WRITES])


@part
def _unlock(versions: Words, log: Words, writes: int, change: int) -> None:
    """Unlock the stripes of the first writes: with their old versions, or with new ones."""
    for entry in range(writes):
        if _is_first_of_stripe(versions, log, entry):
            stripe = _stripe(versions, log[_HEAD + 2 * ROOM + 2 * entry])
            store(versions, stripe, load(versions, stripe) + change)


@part
def _is_valid(versions: Words, log: Words) -> bool:
    """Whether all that was read is as it was; what this transaction writes itself it has locked."""
    for entry in range(log[READS]):
        stripe, version = log[_HEAD + 2 * entry], log[_HEAD + 2 * entry + 1]
        current, own = load(versions, stripe), False
        for other in range(log[WRITES]):
            own |= _stripe(versions, log[_HEAD + 2 * ROOM + 2 * other]) == stripe
        if current != (version + 1 if own else version):
            return False
    return True


@part
def commit(words: Words, versions: Words, log: Words) -> bool:
    """Make all that was written true at once, if nobody changed what was read; otherwise nothing has happened."""
    if log[DOOMED] != 0:
        return False
    locked = _lock(versions, log)
    if locked < log[WRITES] or not _is_valid(versions, log):
        _unlock(versions, log, locked, -1)
        return False
    for entry in range(log[WRITES]):
        store(words, log[_HEAD + 2 * ROOM + 2 * entry], log[_HEAD + 2 * ROOM + 2 * entry + 1])
    _unlock(versions, log, log[WRITES], 1)
    return True
