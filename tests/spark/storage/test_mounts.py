"""A mount without hard links is refused in words, and nothing is left on it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harken.errors import StorageError
from harken.spark import Subscriptions
from harken.spark.storage import folder_at


@pytest.fixture(params=[errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def _no_links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("_no_links")
def test_a_file_system_without_hard_links_is_refused_in_words(tmp_path: Path) -> None:
    said = r"has no hard links, so of two who change it at once neither would be told; use another disk"
    with pytest.raises(StorageError, match=said):
        folder_at(tmp_path / "x").create("a", b"")
    with pytest.raises(StorageError, match=said):
        Subscriptions.create(tmp_path / "subscriptions")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_another_error_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space left") as caught:
        folder_at(tmp_path).create("a", b"")
    assert not isinstance(caught.value, StorageError)
    assert list(tmp_path.iterdir()) == []
