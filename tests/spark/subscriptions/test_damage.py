"""What is damaged or missing is noticed, and named."""

from __future__ import annotations

import shutil

import pytest

from harken.errors import (
    DuplicateSubscriptionError,
    IndexFormatError,
    UnknownVersionError,
)
from harken.spark import Subscriptions
from tests.spark.subscriptions.stored import files, held, rows, segment_files, version_file


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_flipped_byte_in_a_segment_is_noticed(store: Subscriptions, place: str) -> None:
    store.append(rows(1, 2, 3))
    (path,) = segment_files(store)
    content = bytearray(path.read_bytes())
    at = {"first": 0, "middle": len(content) // 2, "last": len(content) - 1}[place]
    content[at] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(IndexFormatError, match=r"\.arrows is damaged: its size or checksum"):
        held(store)
    with pytest.raises(IndexFormatError):
        store.append(rows(9))
    assert (store.version, len(files(store))) == (1, 1)


def test_a_segment_cut_short_is_noticed(store: Subscriptions) -> None:
    store.append(rows(1, 2, 3))
    (path,) = segment_files(store)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(IndexFormatError, match="damaged"):
        held(store)


def test_a_missing_segment_is_named(store: Subscriptions) -> None:
    store.append(rows(1))
    store.delete([1])
    segment_files(store)[1].unlink()
    assert held(store, 1) == {1: 1}
    with pytest.raises(IndexFormatError, match=f"{segment_files(store)[1].name} is missing"):
        held(store)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b'{"format": "something else"}',
        b'{"format": "harken-subscriptions"}',
        b'{"format": "harken-subscriptions", "version": 1, "schema": null, "limits": {}, "integer_ids": true, '
        b'"segments": [{"file": "x"}], "profile": {}, "rejects": [], "rewritten": 0}',
        b'{"format": "harken-subscriptions", "version": 1, "schema": null, "limits": {}, "integer_ids": true, '
        b'"segments": [], "profile": [], "rejects": [], "rewritten": 0}',
    ],
)
def test_a_damaged_version_file_is_noticed(store: Subscriptions, content: bytes) -> None:
    store.append(rows(1))
    version_file(store, 1).write_bytes(content)
    with pytest.raises(IndexFormatError):
        store.snapshot()
    with pytest.raises(IndexFormatError):
        store.append(rows(2))
    assert len(files(store)) == 1


def test_a_missing_version_file_is_a_version_that_is_not_there(store: Subscriptions) -> None:
    store.append(rows(1))
    store.append(rows(2))
    store.compact()
    version_file(store, 1).unlink()
    for version in (1, 2):
        with pytest.raises(UnknownVersionError):
            Subscriptions(store.path).snapshot(version)  # this one may know what it was told before
    assert held(store) == {1: 1, 2: 2}
    for version in (0, 2, 3):
        version_file(store, version).unlink()
    with pytest.raises(IndexFormatError, match="holds no subscriptions"):
        Subscriptions(store.path)


def test_a_folder_that_is_begun_anew_is_told_from_its_own_versions(store: Subscriptions) -> None:
    store.append(rows(1))
    store.append(rows(2))
    assert held(store) == {1: 1, 2: 2}
    shutil.rmtree(store.path)
    anew = Subscriptions.create(store.path)
    anew.append(rows(3))
    anew.append(rows(4))
    assert held(store) == {3: 3, 4: 4}
    assert store.append(rows(1)).version == 3
    with pytest.raises(DuplicateSubscriptionError):
        store.append(rows(4))


def test_drafts_of_writers_that_died_are_not_taken_for_versions(store: Subscriptions) -> None:
    store.append(rows(1))
    draft = store.path / "versions" / ".0123abcd"
    draft.write_text("{")
    (store.path / "versions" / "notes.json").write_text("{}")
    assert store.version == 1
    assert store.append(rows(2)).version == 2
    draft.unlink()
