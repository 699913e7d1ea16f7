"""Which version of the subscriptions matched which batch of a stream, decided once and kept.

A batch that is repeated after a crash must give what it gave before. So what it depends on (the version, the time
at which subscriptions must be valid, the clock for events that are still valid) is written down before it first
runs, and read ever after: for as many batches as Spark remembers.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from harken.errors import ConcurrentChangeError, StreamError
from harken.spark.storage import Folder
from harken.spark.subscriptions.versions import Document, VersionLog

EARLIEST = datetime.min.replace(tzinfo=UTC)

KEPT = 100
"""Batches whose entries are kept, as Spark keeps its own: it repeats none that is older."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What one batch depends on."""

    batch: int
    version: int
    """Of the subscriptions."""
    before: int
    """The version that matched the batch before it."""
    at: datetime
    """When the batch was first begun: the time at which subscriptions must be valid."""
    clock: datetime
    """The time by which events expire: that of the watermark or, without one, the same as `at`."""
    skipped: str | None = None
    """Why the batch is passed over, if somebody has decided so."""
    anew: bool = False
    """Whether Spark is to plan it anew, as somebody has decided, and has not done so yet."""

    def to_json(self) -> Document:
        """As it is written down."""
        return {**asdict(self), "at": self.at.isoformat(), "clock": self.clock.isoformat()}


class Ledger:
    """Entries by batch, in a folder beside the checkpoint."""

    def __init__(self, folder: Folder | str | os.PathLike[str]) -> None:
        self._log = VersionLog(folder)

    def entry(self, batch: int) -> LedgerEntry | None:
        """What was decided for a batch, if anything was."""
        written = None if batch < 0 else self._log.find(batch)
        if written is None:
            return None
        try:
            moments = {name: datetime.fromisoformat(written[name]) for name in ("at", "clock")}
            return LedgerEntry(**{**written, **moments})
        except (KeyError, TypeError, ValueError) as error:
            raise StreamError(f"{self._log.folder} says nothing of use about batch {batch}: {error!r}") from error

    def latest(self) -> int | None:
        """The latest batch that something was decided for."""
        return self._log.latest()

    def entries(self) -> list[LedgerEntry]:
        """All that are kept, by batch."""
        found = [self.entry(batch) for batch in self._log.numbers()]
        return [entry for entry in found if entry is not None]

    def decide(self, batch: int, version: int, clock: datetime | None = None) -> LedgerEntry:
        """What a batch depends on: as decided before or, for a new one, as things are now.

        Costs a few small files, however many batches there were.
        """
        return self.enter(self.foreseen(batch, version, clock))

    def foreseen(self, batch: int, version: int, clock: datetime | None = None) -> LedgerEntry:
        """The same, and nothing is decided yet."""
        known = self.entry(batch)
        if known is not None and not known.anew:
            return known
        previous = self.entry(batch - 1)
        # Clocks of machines differ, and may be set back; time in a stream does not go back.
        earlier = [each for each in (previous, known) if each is not None]
        at = max([datetime.now(UTC), *(each.at for each in earlier)])
        time = at if clock is None else max([clock, *(each.clock for each in earlier)])
        return LedgerEntry(batch, version, version if previous is None else previous.version, at, time)

    def enter(self, foreseen: LedgerEntry) -> LedgerEntry:
        """Decide for a batch what was foreseen, unless something has been decided before, or is just now."""
        known = self.entry(foreseen.batch)
        if known is not None:
            return self._amended(foreseen) if known.anew else known
        # Before the new one: whoever is killed in between does it again.
        self._log.forget([foreseen.batch - KEPT] if foreseen.batch >= KEPT else [])
        try:
            self._log.append(foreseen.batch, foreseen.to_json())
        except ConcurrentChangeError:
            return self.enter(foreseen)
        return foreseen

    def replan(self, batch: int) -> None:
        """Have Spark plan a batch anew, and all be decided anew; but time does not go back behind what was."""
        known = self.entry(batch)
        if known is not None:
            self._amended(replace(known, skipped=None, anew=True))

    def skip(self, batch: int, reason: str) -> LedgerEntry:
        """Have a batch passed over."""
        known = self.entry(batch) or self._decided_early(batch)
        return self._amended(replace(known, skipped=reason, anew=False))

    def hand_on(self, entry: LedgerEntry) -> None:
        """Have the batch after one that is passed over meet what has changed since the one before it."""
        if entry.version != entry.before:
            self._amended(replace(entry, version=entry.before))

    def repin(self, batch: int, version: int) -> LedgerEntry:
        """Have a batch matched with another version than was decided."""
        known = self.entry(batch) or self._decided_early(batch)
        return self._amended(replace(known, version=version, skipped=None, anew=False))

    def _decided_early(self, batch: int) -> LedgerEntry:
        """What a batch depends on that has not begun: no later event has been seen than by the one before it."""
        previous = self.entry(batch - 1)
        if previous is None:
            return self.decide(batch, 0, EARLIEST)
        return self.decide(batch, previous.version, previous.clock)

    def _amended(self, entry: LedgerEntry) -> LedgerEntry:
        self._log.amend(entry.batch, entry.to_json())
        return entry
