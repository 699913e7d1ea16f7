"""What a batch of a stream depends on is decided once, for whoever asks and however often."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harken.errors import ConcurrentChangeError
from harken.spark.storage.local import LocalFolder
from harken.spark.streaming import ledger as room
from harken.spark.streaming.ledger import Ledger, LedgerEntry
from harken.spark.subscriptions.versions import VersionLog

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Watch:
    """Stands in for `datetime` where the ledger asks for the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = NOON
        monkeypatch.setattr(room, "datetime", self)

    def now(self, zone: object) -> datetime:
        assert zone is UTC
        return self.time

    def fromisoformat(self, text: str) -> datetime:
        return datetime.fromisoformat(text)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


def test_a_new_batch_depends_on_how_things_are(ledger: Ledger, watch: Watch) -> None:
    assert ledger.decide(0, 7) == LedgerEntry(0, version=7, before=7, at=NOON, clock=NOON)
    watch.time = NOON + timedelta(seconds=1)
    assert ledger.decide(1, 9) == LedgerEntry(1, version=9, before=7, at=watch.time, clock=watch.time)


def test_what_is_decided_stays(ledger: Ledger, watch: Watch) -> None:
    first = ledger.decide(0, 7, NOON - timedelta(hours=1))
    watch.time = NOON + timedelta(days=1)
    assert ledger.decide(0, 8, NOON + timedelta(hours=1)) == first
    assert ledger.decide(0, 8) == first
    assert first.version == 7


def test_decisions_outlive_the_process(ledger: Ledger, tmp_path: Path) -> None:
    made = [ledger.decide(0, 3), ledger.decide(1, 5, NOON.replace(microsecond=1))]
    again = Ledger(tmp_path / "ledger")
    assert [again.decide(0, 99), again.decide(1, 99)] == made
    assert again.entries() == made


def test_an_undecided_batch_has_no_entry(ledger: Ledger) -> None:
    assert ledger.entry(0) is None
    assert ledger.entries() == []
    ledger.decide(0, 1)
    assert ledger.entry(1) is None
    assert ledger.entry(-1) is None


def test_moments_are_kept_to_the_microsecond(ledger: Ledger) -> None:
    entry = ledger.decide(0, 1, NOON.replace(microsecond=123_457))
    assert ledger.entry(0) == entry
    assert entry.clock.microsecond == 123_457
    assert entry.at.tzinfo is UTC


def test_time_does_not_go_back_though_the_clock_of_the_machine_does(ledger: Ledger, watch: Watch) -> None:
    ledger.decide(0, 1)
    watch.time = NOON - timedelta(hours=1)
    assert ledger.decide(1, 1).at == NOON
    watch.time = NOON + timedelta(hours=1)
    assert ledger.decide(2, 1).at == watch.time


def test_the_clock_of_events_does_not_go_back(ledger: Ledger, watch: Watch) -> None:
    """It is that of the events, and need not be near the time."""
    assert ledger.decide(0, 1, NOON - timedelta(days=900)).clock == NOON - timedelta(days=900)
    assert ledger.decide(1, 1, NOON + timedelta(days=900)).clock == NOON + timedelta(days=900)
    assert ledger.decide(2, 1, NOON).clock == NOON + timedelta(days=900)
    assert ledger.decide(3, 1, NOON + timedelta(days=901)).clock == NOON + timedelta(days=901)
    assert {entry.at for entry in ledger.entries()} == {NOON}


def test_of_two_who_decide_at_once_one_is_told_what_the_other_decided(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = VersionLog.append

    def overtaken(log: VersionLog, version: int, document: dict[str, object]) -> None:
        monkeypatch.setattr(VersionLog, "append", append)
        Ledger(tmp_path / "ledger").decide(0, 5)
        with pytest.raises(ConcurrentChangeError):
            append(log, version, document)
        append(log, version, document)

    monkeypatch.setattr(VersionLog, "append", overtaken)
    assert ledger.decide(0, 4).version == 5
    assert [entry.version for entry in ledger.entries()] == [5]


def test_many_who_decide_at_once_agree(tmp_path: Path) -> None:
    deciders, batches = 8, 25
    start = threading.Barrier(deciders)
    found: dict[int, list[LedgerEntry]] = {}

    def decide(version: int) -> None:
        mine = Ledger(tmp_path / "ledger")
        decided = []
        for batch in range(batches):
            start.wait(60)
            decided.append(mine.decide(batch, version + batch))
        found[version] = decided

    threads = [threading.Thread(target=decide, args=(version,)) for version in range(deciders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    agreed = Ledger(tmp_path / "ledger").entries()
    assert [entry.batch for entry in agreed] == list(range(batches))
    assert list(found.values()) == [agreed] * deciders
    assert [entry.before for entry in agreed[1:]] == [entry.version for entry in agreed[:-1]]
    assert not list((tmp_path / "ledger").glob(".*"))


def test_entries_that_nobody_can_ask_for_go_one_by_one(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is listed for it: a batch costs the same however many came before."""
    monkeypatch.setattr(LocalFolder, "entries", None)
    for batch in range(room.KEPT + 50):
        ledger.decide(batch, batch)
    monkeypatch.undo()
    assert [entry.batch for entry in ledger.entries()] == list(range(50, room.KEPT + 50))


@pytest.mark.parametrize("amend", ["skip", "repin"])
def test_a_batch_that_is_decided_on_by_hand_leaves_the_clock_of_events_where_it_was(
    ledger: Ledger, amend: str
) -> None:
    early, later = datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 1, tzinfo=UTC)
    ledger.decide(0, 1, early)
    entry = ledger.skip(1, "broken") if amend == "skip" else ledger.repin(1, 1)
    assert entry.clock == early
    assert ledger.decide(2, 1, later).clock == later


def test_the_first_batch_may_be_passed_over_before_any_event_was_seen(ledger: Ledger) -> None:
    early = datetime(1999, 1, 1, tzinfo=UTC)
    ledger.skip(0, "broken")
    assert ledger.decide(1, 1, early).clock == early
