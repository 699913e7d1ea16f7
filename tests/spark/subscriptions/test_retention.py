"""What is old is cleared away, except what somebody needs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from harken.errors import (
    ArgumentError,
    IndexFormatError,
    UnknownVersionError,
)
from harken.spark import Subscriptions
from harken.spark.subscriptions import subscriptions as module
from harken.spark.subscriptions.readers import Reader, Readers
from tests.spark.subscriptions.stored import NONE, files, held, rows, segment_files, version_file

# ---------------------------------------------------------------- vacuum


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"keep": "x"}, "keep is a whole number from 1 on, found 'x'"),
        ({"keep": 0}, "keep is at least 1, found 0"),
        ({"grace": 5}, "grace is a timedelta, like .*, found 5"),
        ({"orphans": None}, "orphans is a timedelta"),
    ],
)
def test_vacuum_says_what_cannot_be_kept_and_removes_nothing(store: Subscriptions, wrong, said) -> None:
    before = {path for path in store.path.rglob("*") if path.is_file()}
    with pytest.raises(ArgumentError, match=said):
        store.vacuum(**wrong)
    assert {path for path in store.path.rglob("*") if path.is_file()} == before


def test_vacuum_forgets_old_versions_and_removes_what_only_they_need(store: Subscriptions) -> None:
    store.append(rows(1, 2))
    store.delete([1])
    store.append([(3, "x = 3"), (4, "no expression at all")], on_error="collect")
    store.compact()
    store.append(rows(5))
    stray = store.path / "segments" / "of-a-writer-that-died.arrows"
    stray.touch()
    assert store.vacuum(keep=2) == 0, "somebody may be reading, and somebody writing"
    assert store.vacuum(keep=2, grace=NONE, orphans=NONE) == 5
    assert held(store, 4) == {2: 2, 3: 3}
    assert held(store) == {2: 2, 3: 3, 5: 5}
    for forgotten in range(4):
        with pytest.raises(UnknownVersionError):
            store.snapshot(forgotten)
    assert files(store) == sorted(segment_files(store))
    assert store.vacuum(keep=2, grace=NONE, orphans=NONE) == 0
    assert store.append(rows(6)).version == 6


@pytest.mark.parametrize("keep", [0, -1])
def test_vacuum_keeps_at_least_the_latest_version(store: Subscriptions, keep: int) -> None:
    store.append(rows(1))
    with pytest.raises(ValueError, match="keep"):
        store.vacuum(keep)
    assert held(store, 0) == {}


def test_vacuum_of_damaged_versions_removes_nothing(store: Subscriptions) -> None:
    store.append(rows(1))
    store.append(rows(2))
    version_file(store, 2).write_text("{")
    before = files(store)
    with pytest.raises(IndexFormatError):
        store.vacuum(keep=1)
    assert files(store) == before
    assert held(store, 1) == {1: 1}


# ---------------------------------------------------------------- tidying


def test_a_change_is_made_though_nothing_can_be_cleared_away(
    store: Subscriptions, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "merge", full)
    for id in range(20):
        store.append(rows(id))
    assert held(store) == {id: id for id in range(20)}
    assert "was changed, but what is old there could not be cleared away" in caplog.text


def reader(query: str, version: int, before: int) -> Reader:
    return Reader.now(query, "checkpoint", version, before, follows=False)


def test_a_version_is_kept_for_a_stream_though_that_before_it_is_gone(store: Subscriptions) -> None:
    readers = Readers(store.folder.child("readers"))
    for _ in range(80):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    readers.note(reader("stream", store.version, 3))
    pinned = store.version
    for _ in range(80):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    assert held(store, pinned) == {1: 1}


def test_a_stream_that_is_at_a_version_in_a_gap_holds_nobody_up(store: Subscriptions) -> None:
    readers = Readers(store.folder.child("readers"))
    for _ in range(4):
        store.upsert(rows(1))
    readers.note(reader("old", store.version, store.version))
    for _ in range(120):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    readers.note(reader("gap", store.version, 60))
    for _ in range(80):
        store.upsert(rows(1))
    store.vacuum(keep=10, grace=timedelta())
    assert held(store) == {1: 1}
