"""Events of a stream that are still valid: kept so that subscriptions which come later meet them.

Fabret et al. 2000, section 1: an event holds for a time, and a new subscription is evaluated against the events
that hold. Events lie in a folder per batch, which goes as soon as the last of them has expired; so what is kept is
bounded by how much arrives within the longest validity.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from harken.errors import EventError, closest

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

UNTIL = "_harken_valid_until"
"""The column of kept events that says when they expire."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EventValidity:
    """How long events hold: for a time, or until the moment that a column says; and by which clock.

    With `event_time`, the clock is the latest time of any event so far less `delay`, a watermark; without it, the
    time at which a batch begins. An event without `event_time` holds from when its batch began.
    """

    lasts: timedelta | None = None
    until: str | None = None
    event_time: str | None = None
    delay: timedelta = timedelta()

    def __post_init__(self) -> None:
        if (self.lasts is None) == (self.until is None):
            raise ValueError("events hold either for a time (lasts) or until what a column says (until)")
        if self.lasts is not None and self.lasts <= timedelta():
            raise ValueError(f"events hold for a positive time, found {self.lasts}")

    def check(self, events: DataFrame) -> None:
        """EventError if a column that is named is not there, or is no timestamp."""
        kinds = {field.name: field.dataType.simpleString() for field in events.schema}
        for name in filter(None, (self.until, self.event_time)):
            if name not in kinds:
                near = closest(name, kinds)
                hint = f"did you mean {near!r}?" if near else None
                raise EventError(f"events have no column {name!r}", attribute=name, suggestion=hint)
            if not kinds[name].startswith("timestamp"):
                raise EventError(f"column {name!r} is to be a timestamp, found {kinds[name]}", attribute=name)

    def expiry(self, at: datetime) -> Column:
        """When an event expires; null if it never does."""
        from pyspark.sql import functions

        if self.until is not None:
            return functions.col(f"`{self.until}`").cast("timestamp")
        assert self.lasts is not None, "one of the two is given"
        begun = functions.lit(at).cast("timestamp")
        if self.event_time is not None:
            begun = functions.coalesce(functions.col(f"`{self.event_time}`").cast("timestamp"), begun)
        return begun + functions.expr(f"INTERVAL '{self.lasts.total_seconds():f}' SECOND")


class LastingEvents:
    """The kept events of a stream, and the latest event time it has seen."""

    def __init__(self, folder: Path, validity: EventValidity) -> None:
        self._folder = folder
        self._validity = validity

    def clock(self, batch: int) -> datetime | None:
        """By the events that are kept of earlier batches, the time by which events expire; None if it is now's."""
        if self._validity.event_time is None:
            return None
        seen = [facts["latest"] for _, facts in self._kept(batch)]
        latest = max((datetime.fromisoformat(each) for each in seen if each is not None), default=None)
        return EPOCH if latest is None else latest - self._validity.delay

    def keep(self, batch: int, events: DataFrame, at: datetime, clock: datetime) -> None:
        """Keep the events of a batch that are valid beyond the clock; nothing, if they are kept already."""
        final = self._folder / f"batch={batch}"
        if final.exists():
            return
        lasting = _lasting(events.withColumn(UNTIL, self._validity.expiry(at)), clock)
        staging = self._folder / f".{batch}-{uuid.uuid4().hex}"
        lasting.write.parquet(f"file://{staging / 'events'}")
        facts = {"latest": self._latest(events), "until": self._last(lasting)}
        (staging / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
        staging.rename(final)

    def before(self, spark: SparkSession, batch: int, clock: datetime) -> DataFrame | None:
        """The events of earlier batches that the clock has not expired; None if there are none."""
        folders = [str(folder / "events") for folder, facts in self._kept(batch) if _holds(facts, clock)]
        if not folders:
            return None
        events = spark.read.parquet(*[f"file://{folder}" for folder in folders])
        return _lasting(events, clock).drop(UNTIL)

    def expire(self, batch: int, clock: datetime) -> None:
        """Let go of batches before this one whose events have all expired, and of what crashes left behind."""
        for folder, facts in self._kept(batch):
            if not _holds(facts, clock):
                shutil.rmtree(folder, ignore_errors=True)
        for stale in self._folder.glob(".*"):
            shutil.rmtree(stale, ignore_errors=True)

    def _kept(self, batch: int) -> Iterator[tuple[Path, dict[str, str | None]]]:
        for folder in sorted(self._folder.glob("batch=*")):
            if int(folder.name.removeprefix("batch=")) < batch:
                yield folder, json.loads((folder / "facts.json").read_text(encoding="utf-8"))

    def _latest(self, events: DataFrame) -> str | None:
        name = self._validity.event_time
        return None if name is None else _greatest(events, name)

    @staticmethod
    def _last(lasting: DataFrame) -> str | None:
        """When the last event expires: "never" if one does not, None if there are no events."""
        from pyspark.sql import functions

        column = functions.col(UNTIL)
        row = lasting.agg(functions.count("*"), functions.count(column)).collect()[0]
        if row[0] > row[1]:
            return "never"
        return _greatest(lasting, UNTIL)


def _lasting(events: DataFrame, clock: datetime) -> DataFrame:
    """The events that the clock has not expired."""
    from pyspark.sql import functions

    until = functions.col(UNTIL)
    return events.where(until.isNull() | (until > functions.lit(clock)))


def _greatest(events: DataFrame, name: str) -> str | None:
    """The latest of a column of timestamps. As microseconds: Python's timestamps would lose the zone."""
    from pyspark.sql import functions

    moments = functions.unix_micros(functions.col(f"`{name}`").cast("timestamp"))
    micros = events.agg(functions.max(moments)).collect()[0][0]
    return None if micros is None else (EPOCH + timedelta(microseconds=micros)).isoformat()


def _holds(facts: dict[str, str | None], clock: datetime) -> bool:
    until = facts["until"]
    return until is not None and (until == "never" or datetime.fromisoformat(until) > clock)
