"""Events of a stream that are still valid: kept so that subscriptions which come later meet them.

Fabret et al. 2000, section 1: an event holds for a time, and a new subscription is evaluated against the events
that hold. Events lie in a folder per batch, which goes as soon as the last of them has expired; so what is kept is
bounded by how much arrives within the longest validity.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from harken.durable import sync
from harken.errors import ArgumentTypeError, EventError, StreamError, closest
from harken.spark.events.columns import check_storable, is_read_as, quoted
from harken.spark.storage import Folder, folder_at
from harken.spark.storage.hadoop import literally

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

UNTIL = "_harken_valid_until"
"""The column of kept events that says when they expire, in microseconds since 1970 UTC.

Not a timestamp: adding to those, and casting them, depends on the time zone of the session.
"""

FOREVER = 2**63 - 1
"""When an event expires that never does."""

_EXACT = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings with which nothing of a moment is cut, and no calendar of before 1582 is applied."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


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
        spans = {"delay": self.delay} if self.lasts is None else {"lasts": self.lasts, "delay": self.delay}
        for name, span in spans.items():
            if not isinstance(span, timedelta):
                raise ArgumentTypeError.of(name, "a timedelta", repr(span))
        if self.lasts is not None and self.lasts <= timedelta():
            raise ValueError(f"events hold for a positive time, found {self.lasts}")

    def check(self, events: DataFrame) -> None:
        """EventError if a column that is named is not there, or is no timestamp."""
        kinds = {field.name: field.dataType.simpleString() for field in events.schema}
        for field in events.schema:
            check_storable(field.name, field.dataType)
        for name in filter(None, (self.until, self.event_time)):
            if name not in kinds:
                near = closest(name, kinds)
                hint = f"did you mean {near!r}?" if near else None
                raise EventError(f"events have no column {name!r}", attribute=name, suggestion=hint)
            if not kinds[name].startswith("timestamp"):
                raise EventError(f"column {name!r} is to be a timestamp, found {kinds[name]}", attribute=name)

    def expiry(self, events: DataFrame, at: datetime) -> Column:
        """When an event expires, as `UNTIL` says it."""
        from pyspark.sql import functions

        if self.until is not None:
            return functions.coalesce(_moments(events, self.until), functions.lit(FOREVER))
        assert self.lasts is not None, "one of the two is given"
        begun = functions.lit(_micros(at))
        if self.event_time is not None:
            begun = functions.coalesce(_moments(events, self.event_time), begun)
        lasts = min(self.lasts // MICROSECOND, FOREVER)
        return functions.least(begun, functions.lit(FOREVER - lasts)) + functions.lit(lasts)  # never past the end

    def latest(self, events: DataFrame) -> Column:
        """The latest event time, in microseconds; null if there is none."""
        from pyspark.sql import functions

        if self.event_time is None:
            return functions.lit(None).cast("bigint")
        return functions.max(_moments(events, self.event_time))


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the events of a batch without reading them, in microseconds; None if there are none."""

    latest: int | None
    """The latest event time."""
    until: int | None
    """When the last of them expires."""

    def hold(self, clock: datetime) -> bool:
        """Whether the clock has not expired them all."""
        return self.until is not None and self.until > _micros(clock)


@dataclass(frozen=True, slots=True)
class Kept:
    """The events of a batch that are kept: what is known of them, and the folder they are in."""

    batch: int
    facts: Facts
    folder: str

    @property
    def mark(self) -> str:
        """The name of an empty file that says all of this: a listing tells what is kept, and nothing is read."""
        return f"batch={self.batch},latest={self.facts.latest},until={self.facts.until},folder={self.folder}"

    @property
    def schema(self) -> str:
        """The name of a file that tells their columns; batches with the same ones share it."""
        return f"{_SCHEMA}{self.folder.rpartition('-')[2]}"

    @classmethod
    def of(cls, name: str) -> Kept | None:
        """What the name of a file says; None if it is no such name."""
        found = _MARK.fullmatch(name)
        if found is None:
            return None
        latest, until = (None if said == "None" else int(said) for said in (found["latest"], found["until"]))
        return cls(int(found["batch"]), Facts(latest, until), found["folder"])


_SCHEMA = "schema-"

_MARK = re.compile(
    r"batch=(?P<batch>\d+),latest=(?P<latest>-?\d+|None),until=(?P<until>-?\d+|None),folder=(?P<folder>[\w-]+)"
)


class RetainedEvents:
    """The kept events of a stream, and the latest event time it has seen.

    Events are written into a folder of their own; a mark, created when they are complete, says that they count.
    """

    def __init__(self, folder: Folder | str | os.PathLike[str], validity: EventValidity) -> None:
        self._folder = folder_at(folder)
        self._validity = validity

    def clock(self, batch: int) -> datetime | None:
        """By the events that are kept of earlier batches, the time by which events expire; None if it is now's."""
        if self._validity.event_time is None:
            return None
        seen = [each.facts.latest for each in self._before(batch) if each.facts.latest is not None]
        return _moment(max(seen) - self._validity.delay // MICROSECOND) if seen else EARLIEST

    def keep(self, batch: int, events: DataFrame, at: datetime, clock: datetime) -> None:
        """Keep the events of a batch that are valid beyond the clock; nothing, if they are kept already."""
        from pyspark.sql import functions

        before = self.kept()
        if any(each.batch == batch for each in before):
            return
        dated = events.withColumn(UNTIL, self._validity.expiry(events, at))
        facts = Facts(*dated.agg(self._validity.latest(events), functions.max(UNTIL)).collect()[0])
        columns = events.schema.json().encode()
        kept = Kept(
            batch, facts, f"{batch}-{uuid.uuid4().hex}-{hashlib.blake2b(columns, digest_size=8).hexdigest()}"
        )
        if facts.hold(clock):
            place = self._folder.child(kept.folder)
            with _exactly(events.sparkSession):
                _lasting(dated, clock).write.parquet(place.address)
            if place.path is not None:
                for path in (*place.path.iterdir(), place.path):
                    sync(path)
        if all(each.schema != kept.schema for each in before):
            self._folder.replace(kept.schema, columns)
        self._folder.create(kept.mark, b"")

    def check_like(self, arriving: DataFrame, batch: int, clock: datetime) -> None:
        """StreamError if a column is of another type than in events that hold: Spark would misread them.

        Those of the batch itself too, which may be repeated.
        """
        session = arriving.sparkSession
        minds_case = str(session.conf.get("spark.sql.caseSensitive")).lower() == "true"
        fold: Callable[[str], str] = str if minds_case else str.lower
        for kept in self._schemas(batch, clock):
            before = {fold(each.name): each.dataType for each in kept}
            for each in arriving.schema:
                known = before.get(fold(each.name), each.dataType)
                if not is_read_as(known, each.dataType, fold):
                    raise StreamError(
                        f"events that are kept have {known.simpleString()} in the column {each.name!r}, "
                        f"and it would be {each.dataType.simpleString()} now",
                        suggestion="cast it, or start with a new checkpoint and a new output",
                    )

    def _schemas(self, batch: int, clock: datetime) -> Iterator[StructType]:
        """The columns of events, up to those of a batch, that the clock has not expired."""
        from pyspark.sql.types import StructType

        for name in {each.schema for each in self._before(batch + 1) if each.facts.hold(clock)}:
            with suppress(FileNotFoundError):  # such as of events that earlier releases kept
                yield StructType.fromJson(json.loads(self._folder.read(name)))

    def before(self, arrived: DataFrame, batch: int, clock: datetime) -> DataFrame | None:
        """The events of earlier batches that the clock has not expired, in the columns of those that arrived.

        None if there are none. A column that came to the stream later is null in them.
        """
        from pyspark.sql.types import LongType, StructField, StructType

        held = [each.folder for each in self._before(batch) if each.facts.hold(clock)]
        if not held:
            return None
        columns = StructType([*arrived.schema, StructField(UNTIL, LongType())])
        folders = [literally(self._folder.child(name).address) for name in held]
        return _lasting(arrived.sparkSession.read.schema(columns).parquet(*folders), clock).drop(UNTIL)

    def expire(self, batch: int, clock: datetime) -> None:
        """Let go of batches before this one whose events have all expired, and of what crashes left behind."""
        gone = [each for each in self._before(batch) if not each.facts.hold(clock)]
        # The marks go first: a crash while files are removed would leave half a batch.
        self._folder.remove(each.mark for each in gone)
        found = [each.name for each in self._folder.entries()]
        named = {name for each in filter(None, map(Kept.of, found)) for name in (each.folder, each.schema)}
        left = [name for name in found if _is_left(name, batch) or name.startswith(_SCHEMA)]
        self._folder.remove(name for name in left if name not in named)

    def kept(self) -> list[Kept]:
        """The batches that are kept, each once, though two attempts at it may have come to their end."""
        found: dict[int, Kept] = {}
        for kept in _marks(self._folder):
            found.setdefault(kept.batch, kept)
        return [found[batch] for batch in sorted(found)]

    def _before(self, batch: int) -> list[Kept]:
        return [each for each in self.kept() if each.batch < batch]


def forget_kept(folder: Folder, batch: int) -> None:
    """Have nothing kept of a batch."""
    folder.remove(each.mark for each in _marks(folder) if each.batch == batch)


def _marks(folder: Folder) -> list[Kept]:
    return list(filter(None, (Kept.of(each.name) for each in folder.entries())))


@contextmanager
def _exactly(session: SparkSession) -> Iterator[None]:
    """Have moments written as they are, whatever the files of others in this session are to have.

    A stream has a session of its own, in which one batch is done after another.
    """
    before = {name: str(session.conf.get(name)) for name in _EXACT}
    try:
        for name, value in _EXACT.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def _is_left(name: str, batch: int) -> bool:
    """Whether it is a folder of an earlier batch."""
    number, _, rest = name.partition("-")
    return bool(rest) and number.isdigit() and int(number) < batch


def _lasting(events: DataFrame, clock: datetime) -> DataFrame:
    """The events that the clock has not expired."""
    from pyspark.sql import functions

    return events.where(functions.col(UNTIL) > _micros(clock))


def _moments(events: DataFrame, name: str) -> Column:
    """A column of timestamps in microseconds since 1970; those without a zone are UTC, as they are in matching."""
    from pyspark.sql import functions

    if events.schema[name].dataType.simpleString() == "timestamp":
        return functions.unix_micros(functions.col(quoted(name)))
    return functions.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {quoted(name)})")


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def _moment(micros: int) -> datetime:
    """The moment, or the nearest to it that Python has: Spark's timestamps go further."""
    return EPOCH + min(max(micros, _micros(EARLIEST)), _micros(LATEST)) * MICROSECOND
