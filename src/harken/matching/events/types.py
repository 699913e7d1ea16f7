"""Which types the attributes of events have, as far as events show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from harken.matching.events.batch import leaf_columns
from harken.matching.events.columns import arrow_type
from harken.model.events import flatten
from harken.model.foreign import Foreign
from harken.model.values import Type, type_of


def types_seen(events: pa.Table | Iterable[Mapping[str, object]]) -> dict[str, set[Type]]:
    """By attribute, the types of its values; without what is missing throughout, or of no type of the language."""
    seen: dict[str, set[Type]] = {}
    for name, found in _columns(events) if isinstance(events, pa.Table) else _values(events):
        seen.setdefault(name, set()).add(found)
    return seen


def _columns(table: pa.Table) -> Iterator[tuple[str, Type]]:
    for name, column in leaf_columns(table).items():
        found = None if pa.types.is_null(column.type) else arrow_type(column.type)
        if found is not None and column.null_count < len(column):
            yield name, found


def _values(events: Iterable[Mapping[str, object]]) -> Iterator[tuple[str, Type]]:
    for event in events:
        for name, value in flatten(event)[0].items():
            if not isinstance(value, Foreign):
                yield name, type_of(value)
