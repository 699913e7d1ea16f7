"""What an index consists of: layers over the versions of its subscriptions, each with a part per shard.

The first layer holds what held when the index was built. Each later one holds what came or changed since, and
hides what it replaces or removes in the layers below it. Parts are saved engines, which are mapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harken.errors import IndexFormatError
from harken.spark.index.sharding import Division
from harken.spark.subscriptions.profile import Profile
from harken.spark.subscriptions.segments import Segment
from harken.spark.subscriptions.versions import Document

FORMAT = "harken-index"


@dataclass(frozen=True, slots=True)
class Part:
    """The subscriptions of one layer in one shard: a folder with a saved engine."""

    folder: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Layer:
    """What changed in the subscriptions after version `since`, up to version `until`."""

    since: int
    until: int
    parts: Mapping[int, Part]
    """By shard; shards that nothing came to have none."""
    hides: Segment | None = None
    """The ids that are void in the layers below."""

    @property
    def rows(self) -> int:
        """Subscriptions it holds."""
        return sum(part.rows for part in self.parts.values())

    @property
    def changes(self) -> int:
        """Subscriptions it holds, and ids it hides."""
        return self.rows + (0 if self.hides is None else self.hides.rows)

    def to_json(self) -> dict[str, Any]:  # as JSON has it
        """As it is written down."""
        parts = {str(shard): [part.folder, part.rows, part.bytes] for shard, part in self.parts.items()}
        hides = None if self.hides is None else self.hides.to_json()
        return {"since": self.since, "until": self.until, "parts": parts, "hides": hides}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Layer:
        """What `to_json` wrote."""
        parts = {int(shard): Part(*part) for shard, part in written["parts"].items()}
        hides = None if written["hides"] is None else Segment(**written["hides"])
        return cls(written["since"], written["until"], parts, hides)


@dataclass(frozen=True, slots=True)
class IndexState:
    """One version of an index."""

    version: int
    subscriptions: str
    """The folder of the subscriptions."""
    integer_ids: bool
    schema: Mapping[str, str] | None
    """Declared types by attribute."""
    profile: Profile
    division: Division
    layers: tuple[Layer, ...]
    algorithm: str
    options: Mapping[str, object]
    origin: str = ""
    """Of the subscriptions: what tells their folder from another that was begun at the same place."""

    @property
    def covers(self) -> int:
        """The version of the subscriptions that it answers for."""
        return self.layers[-1].until if self.layers else 0

    @property
    def bytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.bytes for layer in self.layers for part in layer.parts.values())

    def to_json(self) -> Document:
        """As it is written down."""
        return {
            "format": FORMAT,
            "version": self.version,
            "subscriptions": self.subscriptions,
            "integer_ids": self.integer_ids,
            "schema": None if self.schema is None else dict(self.schema),
            "profile": self.profile.to_json(),
            "division": self.division.to_json(),
            "layers": [layer.to_json() for layer in self.layers],
            "algorithm": self.algorithm,
            "options": dict(self.options),
            "origin": self.origin,
        }

    @classmethod
    def from_json(cls, document: Document, where: str) -> IndexState:
        """What `to_json` wrote."""
        if document.get("format") != FORMAT:
            raise IndexFormatError(f"{where} holds something else than an index")
        try:
            return cls(
                document["version"],
                document["subscriptions"],
                document["integer_ids"],
                document["schema"],
                Profile.from_json(document["profile"]),
                Division.from_json(document["division"]),
                tuple(Layer.from_json(each) for each in document["layers"]),
                document["algorithm"],
                document["options"],
                document.get("origin", ""),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise IndexFormatError(f"a version of {where} is damaged: {error!r}") from error
