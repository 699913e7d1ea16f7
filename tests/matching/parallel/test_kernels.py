"""What threads agree by: no claim is made twice, nobody passes a barrier alone, and transactions are whole."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from harken.jit import tight
from harken.matching.parallel.kernels.sharing import (
    AT,
    CLAIMED,
    COMMITS,
    END,
    LOCK,
    STATIC,
    STM,
    STOP,
    Control,
    Member,
    begin_share,
    claim,
    meet,
    new_controls,
    new_member,
)
from harken.matching.parallel.kernels.transactions import begin, commit, new_log, new_versions, read, write
from harken.matching.parallel.latency import GroupSize

pytestmark = pytest.mark.kernel
WAYS = {"static": STATIC, "lock": LOCK, "stm": STM}


@tight
def take_all(
    control: Control, member: Member, way: int, number: int, members: int, block: int, taken: npt.NDArray[np.int64]
) -> None:
    begin_share(member, way, number, members, len(taken))
    while claim(control, CLAIMED, member, way, len(taken), block):
        for item in range(member.share[AT], member.share[END]):
            taken[item] += 1
        member.share[AT] = member.share[END]


@tight
def take_rounds(
    control: Control, member: Member, members: int, rounds: int, seen: npt.NDArray[np.int64], number: int
) -> bool:
    for at in range(rounds):
        seen[number] = at
        if not meet(control, members, member):
            return False
        for other in range(members):
            if seen[other] < at:
                return False
        if not meet(control, members, member):
            return False
    return True


@tight
def transfer(
    words: npt.NDArray[np.int64],
    versions: npt.NDArray[np.int64],
    log: npt.NDArray[np.int64],
    turns: int,
    seed: int,
) -> int:
    """Move 1 from one word to another, over and over; how often it had to begin anew."""
    anew, chance = 0, seed
    for _ in range(turns):
        chance = (chance * 1_103_515_245 + 12_345) % 2_147_483_648
        giver = chance // 8 % len(words)
        taker = (giver + 1 + chance // 1_024 % (len(words) - 1)) % len(words)
        while True:
            begin(log)
            write(log, giver, read(words, versions, log, giver) - 1)
            write(log, taker, read(words, versions, log, taker) + 1)
            if commit(words, versions, log):
                break
            anew += 1
    return anew


@tight
def sum_up(
    words: npt.NDArray[np.int64], versions: npt.NDArray[np.int64], log: npt.NDArray[np.int64], turns: int
) -> int:
    """Sums of all words, each in one transaction, that were not 0."""
    wrong = 0
    for _ in range(turns):
        while True:
            begin(log)
            total = 0
            for at in range(len(words)):
                total += read(words, versions, log, at)
            if commit(words, versions, log):
                break
        wrong += total != 0
    return wrong


def at_once(*work: Callable[[], object]) -> list[object]:
    """All of it done at the same time."""
    found: list[object] = [None] * len(work)

    def do(number: int) -> None:
        found[number] = work[number]()

    threads = [threading.Thread(target=do, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("items", "block", "threads"), [(5_000, 1, 4), (10_000, 7, 3), (3, 100, 4), (0, 1, 2)])
def test_every_item_is_claimed_once(way, items, block, threads):
    ((control,), _), taken = new_controls(1), np.zeros(items, np.int64)
    members = [new_member() for _ in range(threads)]
    at_once(
        *(
            lambda number=number: take_all(control, members[number], WAYS[way], number, threads, block, taken)
            for number in range(threads)
        )
    )
    assert (taken == 1).all()
    if way == "stm" and items:
        assert sum(member.share[COMMITS] for member in members) >= items // block


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_nobody_passes_a_barrier_before_all_have_come(threads):
    ((control,), _), seen = new_controls(1), np.full(threads, -1, np.int64)
    assert all(
        at_once(
            *(
                lambda number=number: take_rounds(control, new_member(), threads, 50, seen, number)
                for number in range(threads)
            )
        )
    )


def test_who_waits_for_one_that_has_failed_stops():
    ((control,), _), seen = new_controls(1), np.full(2, -1, np.int64)
    control.words[STOP] = 1
    assert at_once(lambda: take_rounds(control, new_member(), 2, 10, seen, 0)) == [False]


@pytest.mark.parametrize("stripes", [1, 2, 64])
def test_transactions_are_whole(stripes):
    words, versions = np.zeros(20, np.int64), new_versions(stripes)
    movers = [lambda seed=seed: transfer(words, versions, new_log(), 1_000, seed) for seed in (1, 2, 3)]
    *_, wrong = at_once(*movers, lambda: sum_up(words, versions, new_log(), 100))
    assert wrong == 0
    assert words.sum() == 0
    assert words.any()
    assert (versions % 2 == 0).all()


def test_a_transaction_that_another_came_between_writes_nothing():
    words, versions, first, second = np.zeros(4, np.int64), new_versions(4), new_log(), new_log()
    assert run_between(words, versions, first, second)
    assert words.tolist() == [5, 0, 0, 0]


@tight
def run_between(
    words: npt.NDArray[np.int64],
    versions: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
) -> bool:
    begin(first)
    write(first, 1, read(words, versions, first, 0) + 1)
    begin(second)
    write(second, 0, 5)
    return commit(words, versions, second) and not commit(words, versions, first)


def test_what_a_transaction_has_written_it_reads():
    words, versions, log = np.zeros(4, np.int64), new_versions(4), new_log()
    assert write_and_read(words, versions, log) == 7
    assert words.tolist() == [0, 0, 7, 0]


@tight
def write_and_read(
    words: npt.NDArray[np.int64], versions: npt.NDArray[np.int64], log: npt.NDArray[np.int64]
) -> int:
    begin(log)
    write(log, 2, 3)
    write(log, 2, read(words, versions, log, 2) + 4)
    found = read(words, versions, log, 2)
    return found if commit(words, versions, log) else -1


def test_a_group_has_no_more_threads_than_there_are_and_no_fewer_than_one():
    size = GroupSize(target_ms=1.0, threads=3)
    for _ in range(5):
        size.saw(1.0)
    assert size.threads == 3
    for _ in range(5):
        size.saw(1e-6)
    assert size.threads == 1
    assert len(size.stats()["decisions"]) == 3
