"""Of several that build at once each gets an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harken.errors import ConcurrentChangeError
from harken.spark import Index, Subscriptions, build_index
from harken.spark.index.building import Blueprint
from harken.spark.index.index import index_beside
from harken.spark.subscriptions.versions import VersionLog
from tests.spark.index.indexes import NO_SPARK, expected, pairs, texts


def test_of_two_that_build_at_once_the_first_is_taken(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(*range(10)))
    overtake(monkeypatch, lambda: build_index(NO_SPARK, store, shards=2))
    index, state = index_beside(NO_SPARK, store)
    assert (state.version, state.division.shards) == (1, 2)
    assert pairs(state, index) == expected(store)
    assert index.vacuum() == 0, "what was built in vain is gone"


def test_of_two_that_refresh_at_once_both_answer(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, salt=1))
    overtake(monkeypatch, lambda: Index(index.path).refresh(NO_SPARK))
    state = index.refresh(NO_SPARK)
    assert (state.version, state.covers) == (2, 2)
    assert pairs(state, index) == expected(store)
    assert index.vacuum() == 0


def overtake(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Have somebody else write a version of the index just before the next one."""
    append = VersionLog.append

    def late(log: VersionLog, version: int, document: dict[str, object]) -> None:
        monkeypatch.setattr(VersionLog, "append", append)
        action()
        append(log, version, document)

    monkeypatch.setattr(VersionLog, "append", late)


def test_building_over_what_another_builds_says_so(
    here: list[Blueprint], store: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(texts(1))
    overtake(monkeypatch, lambda: build_index(NO_SPARK, store))
    with pytest.raises(ConcurrentChangeError):
        build_index(NO_SPARK, store)


def test_a_builder_that_died_before_its_first_version_is_no_hindrance(
    here: list[Blueprint], store: Subscriptions
) -> None:
    store.append(texts(1, 2))
    (store.path / "index" / "versions").mkdir(parents=True)
    (store.path / "index" / "parts" / "half").mkdir(parents=True)
    index, state = index_beside(NO_SPARK, store)
    assert pairs(state, index) == expected(store)
