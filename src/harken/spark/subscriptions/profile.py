"""What subscriptions ask of each attribute: values of which types.

It is small, adds up over files, and decides before any event is read which columns have to travel, and which are
of a type that no subscription can use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from harken.normal.columns import NestedClauses, places

_GEOMETRIC = {"point", "box"}


@dataclass(frozen=True, slots=True)
class Profile:
    """By attribute that some subscription mentions, the types of the constants it is compared with."""

    attributes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table) -> Profile:
        """The profile of a compiled table. Linear in its predicates, without a loop over them."""
        profile = cls()
        for chunk in table.column("clauses").chunks:
            profile = profile.joined(cls(_types_asked(NestedClauses.of(chunk).predicates)))
        return profile

    @classmethod
    def from_json(cls, written: Mapping[str, list[str]]) -> Profile:
        """What `to_json` wrote."""
        return cls({name: frozenset(types) for name, types in written.items()})

    def to_json(self) -> dict[str, list[str]]:
        """As it is written down."""
        return {name: sorted(types) for name, types in self.attributes.items()}

    def joined(self, other: Profile) -> Profile:
        """What the subscriptions of both ask for."""
        nothing: frozenset[str] = frozenset()
        mine, theirs = self.attributes, other.attributes
        return Profile({name: mine.get(name, nothing) | theirs.get(name, nothing) for name in {**mine, **theirs}})

    def geometric(self, attribute: str) -> bool:
        """Whether values may be points or boxes: such are asked for, or only whether there is a value at all."""
        asked = self.attributes.get(attribute, frozenset())
        return not asked or bool(asked & _GEOMETRIC)


def _types_asked(predicates: pa.StructArray) -> dict[str, frozenset[str]]:
    attribute, kind = predicates.field("attribute"), predicates.field("type")
    names, types = attribute.dictionary.to_pylist(), [*kind.dictionary.to_pylist(), None]
    asked = np.zeros((len(names), len(types)), bool)
    asked[places(attribute), places(kind)] = True
    return {
        name: frozenset(types[at] for at in np.flatnonzero(row) if types[at] is not None)
        for name, row in zip(names, asked, strict=True)
        if row.any()
    }
