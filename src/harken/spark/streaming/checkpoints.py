"""The checkpoint of a stream: one address, under which Spark keeps its half and Harken its own.

checkpoint/
  spark/                    Spark's: which events make up which batch, and which batches are done
  harken/query.json         whose ledger this is
  harken/subscriptions.json which subscriptions are matched
  harken/output.json        where the matches go, and the rejects
  harken/validity.json      whether events are kept
  harken/ledger/….json      which version of the subscriptions matched which batch
  harken/skipped/….json     batches that were given up, and why
  harken/events/            events that still hold
  rejects/                  events that could not be matched, unless they go elsewhere
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from harken.errors import StreamError
from harken.spark.storage import FileEntry, Folder, folder_at
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.retained_events import forget_kept
from harken.spark.streaming.sinks.contract import Query, are_one
from harken.spark.subscriptions.subscriptions import Subscriptions

_OWNER = "query.json"
_SUBSCRIPTIONS = "subscriptions.json"
_OUTPUT = "output.json"
_VALIDITY = "validity.json"
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
    def spark(self) -> Folder:
        """Spark's half."""
        return self.folder.child("spark")

    @property
    def has_state(self) -> bool:
        """Whether the stream remembers something from batch to batch, such as what came already."""
        return any(each.name == "state" for each in self.spark.entries())

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
            id = self._id()
            if id is None:
                raise StreamError(f"{self.folder} is no checkpoint of a stream: {self.spark} has no metadata")
            self._claim(id)
            self._query = Query(id, str(self.folder))
        return self._query

    @property
    def known(self) -> Query | None:
        """The query that it is of, if one has begun; StreamError if Spark's half is another's."""
        if self._id() is None:
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
        """StreamError if Spark's half is older than Harken's, as if restored alone, or lacks its last batch.

        Spark plans every batch before anything is decided for it; what it planned otherwise now would be taken for
        what is done.
        """
        decided, lost = self.ledger.latest(), self.lost()  # Spark's later, should a stream be running meanwhile
        begun = self.begun()
        if lost is not None:
            raise StreamError(
                f"Spark's half of {self.folder} has lost its file of batch {lost} ({self.spark}/offsets/{lost}), "
                "or is an older copy",
                suggestion="have it planned anew (harken stream replan), or begin with new checkpoint and output",
            )
        if decided is not None and decided > (begun[-1] + 1 if begun else 0):
            raise StreamError(
                f"the ledger in {self.folder} knows batch {decided}, and Spark's half does not: {self.spark} is "
                "an older copy",
                suggestion="start with a new checkpoint folder, and a new output",
            )

    def lost(self) -> int | None:
        """The batch that Spark has planned last, and lost its file of or left it empty; None if it has not."""
        decided = self.ledger.latest()
        begun, torn = self.begun(), self._numbers("offsets", lambda entry: entry.bytes == 0)
        following = begun[-1] + 1 if begun else 0
        if decided is not None and decided > following:
            return None  # there is no telling what else
        entry = self.ledger.entry(following)
        return following if following in torn or (entry is not None and not entry.anew) else None

    def replan(self, batch: int) -> None:
        """Have Spark plan a batch anew, of which nothing is kept or noted as done. Can be repeated to its end."""
        forget_kept(self.events, batch)
        self.forget_skipped(batch)
        self.spark.child("commits").remove([str(batch), f".{batch}.crc"])
        self.ledger.replan(batch)
        self.spark.child("offsets").remove([str(batch), f".{batch}.crc"])

    def keeps_events(self) -> bool | None:
        """Whether the stream keeps events that still hold; None if that is not known."""
        try:
            return self._said(_VALIDITY, ["events"])["events"] == "kept"
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

    def note_output(self, place: str, rejects: str | None = None) -> None:
        """Remember where matches and rejects go, before any do.

        Without rejects, where they went stays known: a batch may be pending of which some are there.
        """
        known = self._output or self.outputs()
        now = {**known, "place": place} if rejects is None else {"place": place, "rejects": rejects}
        if now != self._output:
            self.folder.child("harken").replace(_OUTPUT, json.dumps(now).encode())
            self._output = now

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
        """Where matches go, `place`, and `rejects`; nothing if that is not known."""
        try:
            return self._said(_OUTPUT, ["place"])
        except FileNotFoundError:
            return {}

    def _remembered(self, name: str, now: dict[str, str]) -> dict[str, str]:
        """What a file says; it is made if it was not there."""
        folder = self.folder.child("harken")
        with suppress(FileExistsError):
            folder.create(name, json.dumps(now).encode())
        return self._said(name, now)

    def _said(self, name: str, needed: Iterable[str] = ()) -> dict[str, str]:
        """What a file says; StreamError if it is damaged."""
        folder = self.folder.child("harken")
        try:
            said: dict[str, str] = json.loads(folder.read(name))
            if missing := [key for key in needed if key not in said]:
                raise ValueError(f"it lacks {', '.join(missing)}")
        except (TypeError, ValueError) as error:
            raise StreamError(f"{folder}/{name} is damaged: {error}") from error
        return said

    def begun(self) -> list[int]:
        """The latest batches that Spark has planned, ascending; it forgets those of long ago."""
        return self._numbers("offsets", lambda entry: entry.bytes > 0)  # a loss of power may leave it empty

    def pending(self) -> int | None:
        """The batch that Spark has planned and not noted as done; it is repeated when the stream is started."""
        begun, done = self.begun(), self._numbers("commits")
        return begun[-1] if begun and begun[-1] not in done else None

    def following(self) -> int:
        """The batch that is done next."""
        begun, pending = self.begun(), self.pending()
        return pending if pending is not None else begun[-1] + 1 if begun else 0

    def _numbers(self, kind: str, counts: Callable[[FileEntry], bool] = lambda _: True) -> list[int]:
        """The batches that there are files of."""
        found = self.spark.child(kind).entries()
        return sorted(int(each.name) for each in found if each.name.isdigit() and counts(each))

    def _id(self) -> str | None:
        try:
            return str(json.loads(self.spark.read("metadata"))["id"])
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise StreamError(f"{self.spark}/metadata is damaged: {error!r}") from error

    def _claim(self, id: str) -> None:
        """StreamError if the ledger was written by another query; it is this one's, if it was nobody's."""
        owner = self._remembered(_OWNER, {"id": id})["id"]
        if owner != id:
            raise StreamError(
                f"the ledger in {self.folder} is that of the query {owner}, and Spark's half that of {id}: "
                f"{self.spark} was removed, or replaced",
                suggestion="start with a new checkpoint folder, and a new output",
            )


def _record(batch: int) -> str:
    return f"{batch:020d}.json"
