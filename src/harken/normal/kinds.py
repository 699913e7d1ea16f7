"""Constants of another kind than the data: such a predicate is unknown for every event, so it is never true."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.model.values import SPATIAL_KINDS, Kind, Type

_REMEDIES = {
    Kind.TIMESTAMP: "write TIMESTAMP '2026-01-01'",
    Kind.DATE: "write DATE '2026-01-01'",
    Kind.NUMBER: "write a number without quotes",
    Kind.STRING: "write a string in single quotes",
    Kind.BOOL: "write TRUE or FALSE",
}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An attribute, the kind that it is compared with, and the kinds that it has in the data."""

    attribute: str
    asked: Kind
    seen: frozenset[Kind]

    def __str__(self) -> str:
        kinds = sorted(kind.value for kind in self.seen)
        having = kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        said = (
            f"{self.attribute!r} is {having} in the events and is compared with a {self.asked.value}: never true"
        )
        remedy = _REMEDIES.get(next(iter(self.seen))) if len(self.seen) == 1 else None
        if self.seen == {Kind.STRING} and self.asked in (Kind.DATE, Kind.TIMESTAMP):
            remedy = f"write a string, or declare it {self.asked.value}"
        return f"{said}; {remedy}" if remedy else said


def mismatches(
    asked: Mapping[str, Collection[str]], seen: Mapping[str, Collection[Type]]
) -> dict[tuple[str, str], Mismatch]:
    """Where constants are of no kind that the data has, by attribute and by the constants' type.

    `asked` and `seen` say by attribute of which types constants and values are. What was not seen is not judged.
    """
    found = {}
    for attribute, types in asked.items():
        kinds = frozenset(each.kind for each in seen.get(attribute, ()))
        for name in types:
            kind = Type(name).kind
            # Spatial predicates ask points and boxes alike.
            alike = SPATIAL_KINDS if kind in SPATIAL_KINDS else {kind}
            if kinds and not kinds & alike:
                found[attribute, name] = Mismatch(attribute, kind, kinds)
    return found


def mismatched_rows(table: pa.Table, seen: Mapping[str, Collection[Type]]) -> dict[int, list[Mismatch]]:
    """The rows of a compiled table that compare with a kind that the data has not. Linear in its predicates."""
    rows: dict[int, list[Mismatch]] = {}
    first = 0
    for chunk in table.column("clauses").chunks:
        for row, found in _mismatched(chunk, seen):
            held = rows.setdefault(first + row, [])
            if found not in held:
                held.append(found)
        first += len(chunk)
    return rows


def _mismatched(clauses: pa.ListArray, seen: Mapping[str, Collection[Type]]) -> Iterator[tuple[int, Mismatch]]:
    inner = clauses.flatten()
    predicates = inner.flatten()
    attribute, kind = predicates.field("attribute"), predicates.field("type")
    names, types = attribute.dictionary.to_pylist(), [*kind.dictionary.to_pylist(), None]
    asked = {name: [each for each in types if each is not None] for name in names if name in seen}
    wrong = mismatches(asked, seen)
    if not wrong:
        return
    bad = np.array([[(name, each) in wrong for each in types] for name in names], np.bool_)
    name_code = attribute.indices.to_numpy(zero_copy_only=False)
    type_code = kind.indices.fill_null(len(types) - 1).to_numpy(zero_copy_only=False)
    at = np.flatnonzero(bad[name_code, type_code])
    clause_of = pc.list_parent_indices(inner).to_numpy(zero_copy_only=False)[at]
    row_of = pc.list_parent_indices(clauses).to_numpy(zero_copy_only=False)[clause_of]
    for row, name, its_type in zip(row_of.tolist(), name_code[at].tolist(), type_code[at].tolist(), strict=True):
        yield row, wrong[names[name], types[its_type]]
