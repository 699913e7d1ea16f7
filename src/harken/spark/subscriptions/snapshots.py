"""One version of subscriptions on storage: which files make it up, and how that is written down.

A version says what it added to the one before it, and now and then all there is. So what is written with a change
does not grow with how many came before, and what a version holds is told by a few documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from harken.errors import IndexFormatError, SubscriptionError
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.spark.subscriptions.compiling import Rules
from harken.spark.subscriptions.profile import Profile
from harken.spark.subscriptions.segments import Segment
from harken.spark.subscriptions.versions import Document

FORMAT = "harken-subscriptions"

WHOLE_EVERY = 32
"""A version whose number is a multiple says all there is, as do those that write files anew."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Files in the order of the changes they made, and what their subscriptions ask for."""

    version: int
    rules: Rules
    integer_ids: bool | None
    """Whether ids are whole numbers; None while there are none."""
    segments: tuple[Segment, ...]
    profile: Profile
    rejects: tuple[str, ...] = ()
    """Files of the rows that the latest change did not take."""
    origin: str = ""
    """What tells the folder from another that was begun at the same place."""

    def with_ids(self, integer_ids: bool | None) -> Snapshot:
        """The same, knowing of which type ids are; SubscriptionError if they are of another."""
        if integer_ids is None or integer_ids == self.integer_ids:
            return self
        if self.integer_ids is not None:
            kinds = {True: "integers", False: "strings"}
            said = f"the ids of these subscriptions are {kinds[self.integer_ids]}, found {kinds[integer_ids]}"
            raise SubscriptionError(said)
        return replace(self, integer_ids=integer_ids)

    def after(self, change: Delta) -> Snapshot:
        """The version that a change makes of this one."""
        kept = tuple(each for each in self.segments if each.file not in change.replaced)
        return replace(
            self,
            version=change.version,
            integer_ids=change.integer_ids,
            segments=_in_order(kept, change),
            profile=self.profile.joined(change.profile) if kept else change.profile,
            rejects=change.rejects,
        )

    def to_json(self) -> Document:
        """All there is, as it is written down."""
        schema = self.rules.schema
        return {
            "schema": None if schema is None else {name: declared.value for name, declared in schema.items()},
            "limits": asdict(self.rules.limits),
            "segments": [segment.to_json() for segment in self.segments],
            "profile": self.profile.to_json(),
            "origin": self.origin,
        }

    @classmethod
    def from_json(cls, document: Document, where: str) -> Snapshot:
        """What a document says that says all there is."""
        with _read(where):
            whole = document["whole"]
            schema = None if whole["schema"] is None else Schema(whole["schema"])
            return cls(
                document["version"],
                Rules(schema, Limits(**whole["limits"])),
                document["integer_ids"],
                tuple(Segment(**each) for each in whole["segments"]),
                Profile.from_json(whole["profile"]),
                tuple(document["rejects"]),
                whole.get("origin", ""),
            )


@dataclass(frozen=True, slots=True)
class Delta:
    """What a version is, compared with the one before it."""

    version: int
    operation: str
    integer_ids: bool | None
    added: tuple[Segment, ...]
    profile: Profile
    """What the added subscriptions ask for."""
    rejects: tuple[str, ...] = ()
    replaced: frozenset[str] = frozenset()
    """Files whose contents the added ones have too: who had the version before it has missed nothing."""

    def to_json(self, whole: Snapshot | None) -> Document:
        """As it is written down, with all there is if that is given."""
        return {
            "format": FORMAT,
            "version": self.version,
            "made": datetime.now(UTC).isoformat(),
            "operation": self.operation,
            "integer_ids": self.integer_ids,
            "added": [segment.to_json() for segment in self.added],
            "profile": self.profile.to_json(),
            "rejects": list(self.rejects),
            "replaced": sorted(self.replaced),
            "whole": None if whole is None else whole.to_json(),
        }

    @classmethod
    def from_json(cls, document: Document, where: str) -> Delta:
        """What `to_json` wrote."""
        if document.get("format") != FORMAT:
            raise IndexFormatError(f"{where} holds something else than subscriptions")
        with _read(where):
            return cls(
                document["version"],
                document["operation"],
                document["integer_ids"],
                tuple(Segment(**each) for each in document["added"]),
                Profile.from_json(document["profile"]),
                tuple(document["rejects"]),
                frozenset(document["replaced"]),
            )


def modern(document: Document, where: str) -> Document:
    """A document as it is written now: earlier ones said all there is with every version."""
    if "added" in document or "segments" not in document:
        return document
    with _read(where):
        version = document["version"]
        added = [each for each in document["segments"] if each["version"] == version]
        # Which files were replaced when all was written anew was not said; that some were is what matters.
        replaced = ["-"] if version and document["rewritten"] == version else []
        return {**document, "added": added, "replaced": replaced, "whole": document}


@contextmanager
def _read(where: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise IndexFormatError(f"a version of {where} is damaged: {error!r}") from error


def _in_order(kept: Sequence[Segment], change: Delta) -> tuple[Segment, ...]:
    """Files in the order of their changes: those that replace others are as old as the latest of them."""
    if not change.replaced:
        return (*kept, *change.added)
    newest = max(each.version for each in change.added) if change.added else 0
    return (
        *(each for each in kept if each.version <= newest),
        *change.added,
        *(each for each in kept if each.version > newest),
    )
