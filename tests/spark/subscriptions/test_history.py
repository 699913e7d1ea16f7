"""After any history of changes, every version holds what it should."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from harken.errors import (
    DuplicateSubscriptionError,
    UnknownSubscriptionError,
)
from harken.spark import Change, Subscriptions
from harken.spark.subscriptions.snapshots import Snapshot
from tests.spark.subscriptions.stored import NONE, Model, held, numbers_in, rows


def after_changes(old: Model, store: Subscriptions, changed: Snapshot) -> Model:
    gone = set(store.superseded(changed).to_pylist())
    return {id: n for id, n in old.items() if id not in gone} | numbers_in(store.tables(changed))


IDS = st.integers(0, 7)
SOME = st.lists(IDS, unique=True, max_size=4)


class History(RuleBasedStateMachine):
    """Changes in any order; a plain dictionary says what each version holds."""

    make: Callable[[], Subscriptions]

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).make()
        self.versions: dict[int, Model] = {0: {}}
        self.count = 0

    @property
    def now(self) -> Model:
        return self.versions[self.store.version]

    def asking(self, ids: Sequence[int]) -> Model:
        self.count += 1
        return {id: 10 * self.count + id for id in ids}

    def changed(self, change: Change, after: Model) -> None:
        assert change.version == max(self.versions) + 1
        self.versions[change.version] = after

    @rule(ids=SOME)
    def append(self, ids: list[int]) -> None:
        before, new = self.now, self.asking(ids)
        texts = [(id, f"x = {number}") for id, number in new.items()]
        if before.keys() & new.keys():
            with pytest.raises(DuplicateSubscriptionError):
                self.store.append(texts)
        else:
            self.changed(self.store.append(texts), before | new)

    @rule(ids=SOME)
    def upsert(self, ids: list[int]) -> None:
        before, new = self.now, self.asking(ids)
        self.changed(self.store.upsert([(id, f"x = {number}") for id, number in new.items()]), before | new)

    @rule(ids=SOME, missing_ok=st.booleans())
    def delete(self, ids: list[int], missing_ok: bool) -> None:
        before = self.now
        if not missing_ok and set(ids) - before.keys():
            with pytest.raises(UnknownSubscriptionError):
                self.store.delete(ids)
            return
        after = {id: number for id, number in before.items() if id not in ids}
        self.changed(self.store.delete(ids, missing_ok=missing_ok), after)

    @rule()
    def compact(self) -> None:
        before = self.now
        self.changed(self.store.compact(), before)

    @rule(keep=st.integers(1, 4))
    def vacuum(self, keep: int) -> None:
        self.store.vacuum(keep, grace=NONE, orphans=NONE)
        self.versions = dict(list(self.versions.items())[-keep:])

    @invariant()
    def the_latest_version_is_as_it_should_be(self) -> None:
        assert self.store.version == max(self.versions)
        assert held(self.store) == self.now
        assert sorted(self.store.ids(self.store.snapshot()).to_pylist()) == sorted(self.now)

    def teardown(self) -> None:
        """Every version is still as it was, and what is told of changes leads from one to another."""
        for version, model in self.versions.items():
            assert held(self.store, version) == model
        latest = self.store.snapshot()
        for version, model in self.versions.items():
            changed = self.store.since(latest, version)
            if changed is not None:
                assert after_changes(model, self.store, changed) == self.now


def test_any_history_of_changes_can_be_read_at_every_version(tmp_path: Path) -> None:
    numbers = iter(range(10**6))
    machine = type("Machine", (History,), {"make": lambda: Subscriptions.create(tmp_path / str(next(numbers)))})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=12, deadline=None))


def test_what_changed_is_told_across_a_compaction(store: Subscriptions) -> None:
    store.append(rows(1, 2))
    store.upsert(rows(3))
    store.compact()
    store.append(rows(4))
    latest = store.snapshot()
    for version, expected in {1: {3: 3, 4: 4}, 2: {4: 4}, 3: {4: 4}, 4: {}}.items():
        told = store.since(latest, version)
        assert told is not None
        assert numbers_in(store.tables(told)) == expected
