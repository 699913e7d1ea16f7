"""Readers and writers at once: one after the other, or told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from harken.errors import (
    ConcurrentChangeError,
    DuplicateSubscriptionError,
    StorageError,
    UnknownSubscriptionError,
)
from harken.spark import Change, Subscriptions
from harken.spark.subscriptions.versions import VersionLog
from tests.spark.subscriptions.stored import files, held, numbers_in, rows


def test_a_reader_of_an_old_version_is_not_disturbed(store: Subscriptions) -> None:
    store.append(rows(1, 2, 3))
    store.upsert([(1, "x = 10")])
    snapshot = store.snapshot()
    reading = store.tables(snapshot)
    first = next(reading)
    store.delete([1, 2, 3])
    store.append(rows(1))
    store.compact()
    assert numbers_in([first, *reading]) == {1: 10, 2: 2, 3: 3}
    assert numbers_in(store.tables(snapshot)) == {1: 10, 2: 2, 3: 3}


def together(actions: Sequence[Callable[[], object]]) -> list[object]:
    """Do several things at the same moment; what each came to, which may be an error."""
    start = threading.Barrier(len(actions))

    def act(action: Callable[[], object]) -> object:
        start.wait()
        try:
            return action()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(act, actions))


def test_appends_at_once_all_survive(store: Subscriptions) -> None:
    def append_three(writer: int) -> list[Change]:
        mine = Subscriptions(store.path)
        return [mine.append(rows(10 * writer + at)) for at in range(3)]

    done = together([lambda writer=writer: append_three(writer) for writer in range(6)])
    versions = sorted(change.version for changes in done for change in changes)
    assert len(set(versions)) == 18
    assert held(store) == {10 * writer + at: 10 * writer + at for writer in range(6) for at in range(3)}
    for count, version in enumerate(versions, 1):
        assert len(held(store, version)) == count


def test_of_appends_of_one_id_at_once_exactly_one_wins(store: Subscriptions) -> None:
    done = together([lambda n=n: Subscriptions(store.path).append([(7, f"x = {n}")]) for n in range(5)])
    assert [type(each) for each in done].count(DuplicateSubscriptionError) == 4
    winner = next(at for at, each in enumerate(done) if each == Change(1, 1, 0))
    assert (store.version, held(store)) == (1, {7: winner})
    assert len(files(store)) == 1


def test_deletes_and_appends_at_once_are_done_one_after_the_other(store: Subscriptions) -> None:
    store.append(rows(*range(6)))
    done = together([lambda n=n: store.delete([n]) for n in range(6)] + [lambda: store.append(rows(9))])
    assert sorted(change.version for change in done) == list(range(2, 9))
    assert held(store) == {9: 9}


@pytest.fixture
def overtaken(store: Subscriptions, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have somebody else make a change just before the next version is written."""
    append = VersionLog.append

    def arrange(action: Callable[[], object]) -> None:
        def late(log: VersionLog, version: int, document: dict[str, object]) -> None:
            monkeypatch.setattr(VersionLog, "append", append)
            action()
            append(log, version, document)

        monkeypatch.setattr(VersionLog, "append", late)

    return arrange


def test_an_append_that_was_overtaken_is_checked_again(store, overtaken) -> None:
    overtaken(lambda: store.append(rows(1)))
    with pytest.raises(DuplicateSubscriptionError):
        store.append(rows(1, 2))
    assert (store.version, held(store), len(files(store))) == (1, {1: 1}, 1)


def test_a_delete_that_was_overtaken_is_checked_again(store, overtaken) -> None:
    store.append(rows(1, 2))
    overtaken(lambda: store.delete([1]))
    with pytest.raises(UnknownSubscriptionError):
        store.delete([1])
    assert (store.version, held(store), len(files(store))) == (2, {2: 2}, 2)


def test_a_compaction_that_was_overtaken_changes_nothing_and_leaves_nothing(store, overtaken) -> None:
    store.append(rows(1))
    overtaken(lambda: store.append(rows(2)))
    with pytest.raises(ConcurrentChangeError, match=r"version 2 of .* was written by somebody else"):
        store.compact()
    assert (store.version, held(store), len(files(store))) == (2, {1: 1, 2: 2}, 2)


@pytest.mark.parametrize("kind", [OSError, StorageError])
def test_a_version_whose_writer_fails_after_it_is_visible_keeps_its_files(
    store: Subscriptions, monkeypatch: pytest.MonkeyPatch, kind: type[OSError]
) -> None:
    """The folder could not be synced, or a store's answer was lost: the version is there, and must be whole."""
    append = VersionLog.append

    def fail_late(log: VersionLog, version: int, document: dict[str, object]) -> None:
        append(log, version, document)
        raise kind("the disk was slow")

    monkeypatch.setattr(VersionLog, "append", fail_late)
    with pytest.raises(kind, match="slow"):
        store.append(rows(1))
    assert held(store) == {1: 1}
