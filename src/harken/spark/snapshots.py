"""One version of subscriptions on storage: which files make it up, and how that is written down."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from harken.errors import IndexFormatError, SubscriptionError
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.spark.compiling import Rules
from harken.spark.profile import Profile
from harken.spark.segments import Segment
from harken.spark.versions import Document

FORMAT = "harken-subscriptions"


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
    rewritten: int = 0
    """The version in which everything was last written anew. It holds what the one before it holds."""

    def since(self, version: int) -> Snapshot | None:
        """Only what changed after another version; None if that can no longer be told."""
        if version < self.rewritten - 1:
            return None
        after = max(version, self.rewritten)
        return replace(self, segments=tuple(each for each in self.segments if each.version > after))

    def with_ids(self, integer_ids: bool | None) -> Snapshot:
        """The same, knowing of which type ids are; SubscriptionError if they are of another."""
        if integer_ids is None or integer_ids == self.integer_ids:
            return self
        if self.integer_ids is not None:
            kinds = {True: "integers", False: "strings"}
            said = f"the ids of these subscriptions are {kinds[self.integer_ids]}, found {kinds[integer_ids]}"
            raise SubscriptionError(said)
        return replace(self, integer_ids=integer_ids)

    def to_json(self, operation: str) -> Document:
        """As it is written down, with the change that made it."""
        schema = self.rules.schema
        return {
            "format": FORMAT,
            "version": self.version,
            "made": datetime.now(UTC).isoformat(),
            "operation": operation,
            "schema": None if schema is None else {name: declared.value for name, declared in schema.items()},
            "limits": asdict(self.rules.limits),
            "integer_ids": self.integer_ids,
            "segments": [segment.to_json() for segment in self.segments],
            "profile": self.profile.to_json(),
            "rejects": list(self.rejects),
            "rewritten": self.rewritten,
        }

    @classmethod
    def from_json(cls, document: Document, where: str) -> Snapshot:
        """What `to_json` wrote."""
        if document.get("format") != FORMAT:
            raise IndexFormatError(f"{where} holds something else than subscriptions")
        try:
            schema = None if document["schema"] is None else Schema(document["schema"])
            return cls(
                document["version"],
                Rules(schema, Limits(**document["limits"])),
                document["integer_ids"],
                tuple(Segment(**each) for each in document["segments"]),
                Profile.from_json(document["profile"]),
                tuple(document["rejects"]),
                document["rewritten"],
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise IndexFormatError(f"a version of {where} is damaged: {error!r}") from error
