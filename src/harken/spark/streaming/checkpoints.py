"""The checkpoint of a stream: one address, under which Spark keeps its half and Harken its own.

checkpoint/
  spark/                    Spark's: which events make up which batch, and which batches are done
  harken/query.json         whose ledger this is
  harken/subscriptions.json which subscriptions are matched
  harken/output.json        where the matches go, and the rejects
  harken/validity.json      whether events are kept
  harken/columns.json       the columns of events and their types, where these were found out from files
  harken/ledger/….json      which version of the subscriptions matched which batch
  harken/skipped/….json     batches that were given up, and why
  harken/events/            events that still hold
  rejects/                  events that could not be matched, unless they go elsewhere
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from harken.errors import StreamError
from harken.spark.storage import Folder, folder_at
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.retained_events import forget_kept
from harken.spark.streaming.sinks.contract import Query, are_one
from harken.spark.streaming.spark_half import SparkHalf
from harken.spark.subscriptions.subscriptions import Subscriptions

_OWNER = "query.json"
_SUBSCRIPTIONS = "subscriptions.json"
_OUTPUT = "output.json"
_VALIDITY = "validity.json"
_COLUMNS = "columns.json"
_HERE = "<checkpoint>/"
_SKIPPED = "harken/skipped"
_RECORD = re.compile(r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A batch that was passed over."""

    batch: int
    reason: str
    at: str
    """When somebody decided so, or when it was done."""


class Checkpoint:
    """A folder that belongs to one query. Can be pickled."""

    def __init__(
        self, address: str | os.PathLike[str] | Folder, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder_at(address, storage_options)
        self._query: Query | None = None
        self._is_bound = False
        self._output: dict[str, str] | None = None

    def __reduce__(self) -> tuple[type[Checkpoint], tuple[Folder]]:
        return Checkpoint, (self.folder,)

    @property
    def spark(self) -> SparkHalf:
        """Spark's half."""
        return SparkHalf(self.folder.child("spark"))

    @property
    def events(self) -> Folder:
        """Where events are kept that still hold."""
        return self.folder.child("harken/events")

    @property
    def ledger(self) -> Ledger:
        """What batches depend on."""
        return Ledger(self.folder.child("harken/ledger"))

    @property
    def query(self) -> Query:
        """Whose checkpoint it is, as Spark has it; StreamError if the ledger is another's. Asks once."""
        if self._query is None:
            id = self.spark.id()
            if id is None:
                raise StreamError(
                    f"{self.folder} is no checkpoint of a stream: {self.spark.folder} has no metadata"
                )
            self._claim(id)
            self._query = Query(id, str(self.folder))
        return self._query

    @property
    def known(self) -> Query | None:
        """The query that it is of, if one has begun; StreamError if Spark's half is another's."""
        if self.spark.id() is None:
            if self.folder.child("harken").exists(_OWNER):
                self._claim("none")
            return None
        return self.query

    def bind(self, subscriptions: Subscriptions) -> None:
        """Have the stream go on with the subscriptions that it began with; StreamError if these are others.

        Batches depend on versions, and those of other subscriptions have the same numbers. Asks once.
        """
        if self._is_bound:
            return
        origin = subscriptions.snapshot().origin
        now = {"subscriptions": str(subscriptions.folder), "origin": origin}
        before = self._remembered(_SUBSCRIPTIONS, now)
        if before["origin"] and origin and before["origin"] != origin:
            raise StreamError(
                f"the checkpoint {self.folder} is that of a stream of the subscriptions in "
                f"{before['subscriptions']}, and these are others, made anew or elsewhere",
                suggestion="start with a new checkpoint folder, and a new output",
            )
        self._is_bound = True

    def check_halves(self) -> None:
        """StreamError if one half is older than the other, as if restored alone, or Spark lacks its last batch.

        Spark plans every batch before anything is decided for it; what it planned otherwise now would be taken for
        what is done. What a loss of power has torn, and nothing depends on, is removed first.
        """
        spark = self.spark
        spark.mend()
        lost, done = self.lost(), spark.done.whole
        if lost is not None:
            raise StreamError(
                f"Spark's half of {self.folder} has lost its file of batch {lost} ({spark.folder}/offsets/{lost}, "
                "or the list of its events' files, in sources), or is an older copy",
                suggestion="have it planned anew (harken stream replan), or begin with new checkpoint and output",
            )
        if unreadable := spark.unreadable:
            raise StreamError(
                f"Spark cannot read what it noted in {', '.join(unreadable)}",
                suggestion="start with a new checkpoint folder, and a new output; or, if that is a source of "
                "files of which no batch has been planned, remove what it noted: they are seen again",
            )
        # What is done was planned and decided before: should a stream be running meanwhile, no later one is seen.
        decided = self.ledger.latest()
        if decided is not None and decided > self.spark.new:
            said = f"the ledger in {self.folder} knows batch {decided}, and Spark's half does not"
            raise _is_older(said, spark.folder)
        if done and (decided is None or decided < done[-1]):
            ledger = self.folder.child("harken")
            raise _is_older(
                f"Spark has done batch {done[-1]}, and the ledger in {ledger} does not know it", ledger
            )

    def lost(self) -> int | None:
        """The batch that Spark has planned last, and can't read any more what it noted of it; None if it can."""
        decided, spark = self.ledger.latest(), self.spark
        if spark.misses_files:
            return spark.new - 1
        if decided is not None and decided > spark.new:
            return None  # there is no telling what else
        # Whatever has been decided since is of a stream that runs.
        entry = self.ledger.entry(spark.new) if decided == spark.new else None
        return spark.new if spark.new in spark.planned.torn or (entry is not None and not entry.anew) else None

    def replan(self, batch: int) -> None:
        """Have Spark plan a batch anew, of which nothing is kept or noted as done. Can be repeated to its end."""
        forget_kept(self.events, batch)
        self.forget_skipped(batch)
        self.spark.forget_done(batch)
        self.ledger.replan(batch)
        self.spark.forget_planned(batch)  # the last, since by it one sees that there is something to do

    def keeps_events(self) -> bool | None:
        """Whether the stream keeps events that still hold; None if that is not known."""
        try:
            return bool(self._said(_VALIDITY, ["events"])["events"] == "kept")
        except FileNotFoundError:
            return None

    def check_keeping(self, keeps: bool) -> None:
        """StreamError if the stream kept events and is not to any more, or the other way round.

        Changes of subscriptions are one of its sources then, and Spark goes on with as many as there were only.
        """
        before = self.keeps_events()
        if before is not None and before != keeps:
            said = "with validity" if before else "without validity"
            raise StreamError(
                f"the stream of the checkpoint {self.folder} was started {said}, and can only go on so",
                suggestion="start with a new checkpoint folder, and a new output",
            )

    def note_keeping(self, keeps: bool) -> None:
        """Remember whether it keeps events, in a batch: Spark has found as many sources as before."""
        self._remembered(_VALIDITY, {"events": "kept" if keeps else "pass"})

    def columns(self) -> dict[str, Any] | None:
        """The columns of the events so far, as Spark writes them as JSON; None if that is not known.

        For events whose columns nobody has declared: one file could make text of all numbers to come.
        """
        if self.known is None:
            return None
        try:
            return self._said(_COLUMNS, ["type", "fields"])
        except FileNotFoundError:
            return None
        except StreamError as error:
            said = f"remove it in {self.folder}/harken: the columns are those of the files there are, then"
            raise StreamError(str(error), suggestion=said) from error

    def note_columns(self, columns: Mapping[str, Any]) -> None:
        """Remember the columns of the events, for when the stream goes on."""
        self.folder.child("harken").replace(_COLUMNS, json.dumps(columns).encode())

    def check_output(self, place: str, rejects: str | None = None) -> None:
        """StreamError if the matches of this stream, or the events it rejects, went elsewhere so far."""
        before = self.outputs()
        for name, now in (("place", place), ("rejects", rejects)):
            known = before.get(name)
            if known is not None and now is not None and not are_one(known, now):
                what = "matches" if name == "place" else "rejects"
                raise StreamError(
                    f"the {what} of the checkpoint {self.folder} went to {known} so far, not to {now}",
                    suggestion=f"name that one; if it was moved, tell so in {self.folder}/harken/{_OUTPUT}",
                )

    def note_output(self, batch: int, place: str, rejects: str | None = None) -> None:
        """Remember where matches and rejects go from a batch on, before any do.

        Without rejects, where they went stays known: a batch may be pending of which some are there.
        """
        known = self._output or self.outputs()
        now = {"place": place, **({} if rejects is None else {"rejects": rejects})}
        if self._output is None or not now.items() <= known.items():
            stays = are_one(known.get("place", place), place)
            since = known.get("since", "0") if stays else str(batch)
            self._output = {**known, **now, "since": since}
            within = {name: self._within(said) for name, said in self._output.items()}
            self.folder.child("harken").replace(_OUTPUT, json.dumps(within).encode())

    def _within(self, place: str) -> str:
        """A place as it is noted: by its name from here, if it moves with the checkpoint."""
        return place.replace(f"{self.folder}/", _HERE, 1) if place.startswith(f"{self.folder}/") else place

    def skipped(self) -> list[Skipped]:
        """All batches that were passed over, for good."""
        folder = self.folder.child(_SKIPPED)
        found = []
        for name in sorted(each.name for each in folder.entries() if _RECORD.fullmatch(each.name)):
            try:
                found.append(Skipped(**json.loads(folder.read(name))))
            except (TypeError, ValueError) as error:
                raise StreamError(f"{folder}/{name} is damaged: {error}") from error
        return found

    def note_skipped(self, batch: int, reason: str) -> None:
        """Record that a batch is passed over, unless it is recorded."""
        said = Skipped(batch, reason, datetime.now(UTC).isoformat(timespec="seconds"))
        with suppress(FileExistsError):
            self.folder.child(_SKIPPED).create(_record(batch), json.dumps(asdict(said)).encode())

    def forget_skipped(self, batch: int) -> None:
        """Have no record of it: it is not passed over, or for another reason."""
        self.folder.child(_SKIPPED).remove([_record(batch)])

    def outputs(self) -> dict[str, str]:
        """Where matches go, `place`, `since` which batch, and `rejects`; nothing if that is not known."""
        try:
            said = self._said(_OUTPUT, ["place"])
        except FileNotFoundError:
            return {}
        return {
            name: f"{self.folder}/{place.removeprefix(_HERE)}" if place.startswith(_HERE) else place
            for name, place in said.items()
        }

    def _remembered(self, name: str, now: dict[str, str]) -> dict[str, str]:
        """What a file says; it is made if it was not there."""
        folder = self.folder.child("harken")
        with suppress(FileExistsError):
            folder.create(name, json.dumps(now).encode())
        return self._said(name, now)

    def _said(self, name: str, needed: Iterable[str] = ()) -> dict[str, Any]:
        """What a file says; StreamError if it is damaged."""
        folder = self.folder.child("harken")
        try:
            said: dict[str, Any] = json.loads(folder.read(name))
            if missing := [key for key in needed if key not in said]:
                raise ValueError(f"it lacks {', '.join(missing)}")
        except (TypeError, ValueError) as error:
            raise StreamError(f"{folder}/{name} is damaged: {error}") from error
        return said

    def _claim(self, id: str) -> None:
        """StreamError if the ledger was written by another query; it is this one's, if it was nobody's."""
        owner = self._remembered(_OWNER, {"id": id})["id"]
        if owner != id:
            raise StreamError(
                f"the ledger in {self.folder} is that of the query {owner}, and Spark's half that of {id}: "
                f"{self.spark.folder} was removed, or replaced",
                suggestion="start with a new checkpoint folder, and a new output",
            )


def _record(batch: int) -> str:
    return f"{batch:020d}.json"


def _is_older(said: str, half: Folder) -> StreamError:
    return StreamError(
        f"{said}: {half} is an older copy", suggestion="start with a new checkpoint folder, and a new output"
    )
