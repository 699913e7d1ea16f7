"""Which version of the subscriptions matched which batch of a stream, decided once and kept.

A batch that is repeated after a crash must give what it gave before. So what it depends on (the version, the time
at which subscriptions must be valid, the clock for events that are still valid) is written down before it first
runs, and read ever after.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from harken.errors import ConcurrentChangeError, UnknownVersionError
from harken.spark.storage import Folder
from harken.spark.versions import VersionLog


@dataclass(frozen=True, slots=True)
class Entry:
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


class Ledger:
    """Entries by batch, in a folder beside the checkpoint."""

    def __init__(self, folder: Folder | str | os.PathLike[str]) -> None:
        self._log = VersionLog(folder)

    def entry(self, batch: int) -> Entry | None:
        """What was decided for a batch, if anything was."""
        try:
            written = self._log.read(batch)
        except UnknownVersionError:
            return None
        moments = {name: datetime.fromisoformat(written[name]) for name in ("at", "clock")}
        return Entry(**{**written, **moments})

    def entries(self) -> list[Entry]:
        """All there are, by batch."""
        found = [self.entry(batch) for batch in self._log.numbers()]
        return [entry for entry in found if entry is not None]

    def decide(self, batch: int, version: int, clock: datetime | None = None) -> Entry:
        """What a batch depends on: as decided before or, for a new one, as things are now."""
        known = self.entry(batch)
        if known is not None:
            return known
        previous = self.entry(batch - 1)
        now = datetime.now(UTC)
        # Clocks of machines differ, and may be set back; time in a stream does not go back.
        at = now if previous is None else max(now, previous.at)
        time = at if clock is None else clock if previous is None else max(clock, previous.clock)
        entry = Entry(batch, version, version if previous is None else previous.version, at, time)
        try:
            self._log.append(batch, {**asdict(entry), "at": at.isoformat(), "clock": entry.clock.isoformat()})
        except ConcurrentChangeError:
            return self.decide(batch, version, clock)
        return entry
