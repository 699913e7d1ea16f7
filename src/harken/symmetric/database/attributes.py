"""The numbers of attributes, and the clusters in which they are counted apart.

A cluster is for clauses that have single values for a set of attributes, its key, none of which tells much alone.
It is like an attribute whose name is the list of these and whose value is that of all of them, so one look into an
index finds clauses by their joint value. Within a cluster attributes have numbers of their own, so that what is
found by its joint value is not in the way of what is sought otherwise. Cluster 0 is for all other clauses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harken.symmetric.contract import Side
from harken.symmetric.database.schema import Layout

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ITSELF = -1
"""Where the numbers of clusters themselves are counted."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that is known: its number, and a bit for each slot that one side has ever used."""

    number: int
    used: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, with those of its attributes that were asked for."""

    number: int
    key: tuple[str, ...] = ()
    used: int = 0
    attributes: dict[str, Attribute] = field(default_factory=dict)


class Attributes:
    """What is known of attributes. Nothing of it is ever forgotten, so that it may be known from earlier."""

    def __init__(self, layout: Layout) -> None:
        self._dialect = layout.dialect
        self._table = layout.names("attributes")

    def known(self, connection: Connection, side: Side, names: Iterable[str]) -> list[Cluster]:
        """All clusters, cluster 0 first, with those of the attributes that are known in them."""
        from sqlalchemy import text

        columns = f"SELECT cluster, name, number, {side} FROM {self._table} WHERE"
        query = text(f"{columns} cluster < 0 UNION ALL {columns} {self._dialect.among('name', 'names')}")
        texts = [_text(name) for name in names]
        found = connection.execute(query, {"names": self._dialect.several(texts)}).all()
        clusters = {0: Cluster(0)}
        for cluster, name, number, used in sorted(found):  # clusters before what is in them
            if cluster == _ITSELF:
                clusters[number] = Cluster(number, tuple(json.loads(name)), used)
            else:
                clusters[cluster].attributes[json.loads(name)] = Attribute(number, used)
        return list(clusters.values())

    def register(
        self, connection: Connection, side: Side, used: Mapping[str, int], cluster: int = 0
    ) -> dict[str, int]:
        """The numbers of attributes, with new ones for those that have none; note the slots they use."""
        known = {each.number: each for each in self.known(connection, side, used)}[cluster].attributes
        # In one order, so that no two wait for each other's attributes.
        fresh = sorted(used.keys() - known.keys())
        if fresh:
            self._add(connection, cluster, [_text(name) for name in fresh])
            known = {each.number: each for each in self.known(connection, side, used)}[cluster].attributes
        self._use(connection, side, {known[name]: bits for name, bits in sorted(used.items())})
        return {name: known[name].number for name in used}

    def register_cluster(self, connection: Connection, side: Side, key: tuple[str, ...], used: int) -> int:
        """The number of a cluster, a new one if there is none of this key."""

        def find() -> Cluster | None:
            return next((each for each in self.known(connection, side, ()) if each.key == key), None)

        found = find()
        if found is None:
            self._add(connection, _ITSELF, [_text(key)])
            found = find()
            assert found is not None
        self._use(connection, side, {Attribute(found.number, found.used): used})
        return found.number

    def _add(self, connection: Connection, cluster: int, texts: Iterable[str]) -> None:
        from sqlalchemy import text

        add = text(
            f"INSERT INTO {self._table} (name, cluster, subscriptions, publications)"
            " VALUES (:name, :cluster, 0, 0) ON CONFLICT (name, cluster) DO NOTHING"
        )
        connection.execute(add, [{"name": name, "cluster": cluster} for name in texts])

    def _use(self, connection: Connection, side: Side, used: Mapping[Attribute, int]) -> None:
        from sqlalchemy import text

        news = [{"number": each.number, "bits": bits} for each, bits in used.items() if bits & ~each.used]
        if news:
            note = text(f"UPDATE {self._table} SET {side} = {side} | :bits WHERE number = :number")
            connection.execute(note, news)


def _text(name: str | tuple[str, ...]) -> str:
    """As JSON: PostgreSQL has no zero characters in texts."""
    return json.dumps(name, ensure_ascii=False)
