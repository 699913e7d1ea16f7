"""What the tests of stores on databases share: constraints to keep, and all that can be read of a store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from harken.errors import HarkenError
from harken.language import to_text
from harken.model.schema import Schema
from harken.symmetric.contract import Held
from harken.symmetric.database import DatabaseStore
from harken.symmetric.semantics import Boxes, boxes_of
from tests.strategies import Generator
from tests.symmetric.checks import SIDES
from tests.symmetric.conftest import Backend

Make = Callable[[], DatabaseStore]
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def held(id: int | str, text: str, valid_until: datetime | None = None, schema: Schema | None = None) -> Held:
    return Held(id, boxes_of(text, schema), text, valid_until)


def sayable(made: Generator, count: int, depth: int = 3) -> list[tuple[Boxes, str]]:
    """Random constraints that can be said in points."""
    found: list[tuple[Boxes, str]] = []
    while len(found) < count:
        expression = made.expression(depth)
        try:
            found.append((boxes_of(expression), to_text(expression)))
        except HarkenError:
            continue
    return found


def state(store: DatabaseStore) -> object:
    """All that can be read of a store."""
    kept = {side: {id: store.get(side, id) for id in store.ids(side)} for side in SIDES}
    return kept, store.notices(10_000)


def orphans(backend: Backend) -> int:
    """Rows of clauses whose constraint is not there."""
    if backend.name == "sqlite":
        tables = "select name from sqlite_master where type = 'table'"
    else:
        tables = f"select tablename from pg_tables where schemaname = '{backend.schema}'"
    names = {str(name) for (name,) in backend.run(tables)}
    stem = backend.table("").rpartition(".")[2]
    found = 0
    for side in SIDES:
        kept = f"select number from {backend.table(side)}"
        for rest in ("numbers", "strings", "shapes", "master", "number", "string", "shape", "anything"):
            if f"{stem}{side}_{rest}" in names:
                lost = f"clause / 65536 not in ({kept})"
                [(count,)] = backend.run(f"select count(*) from {backend.table(f'{side}_{rest}')} where {lost}")
                found += int(str(count))
    return found
