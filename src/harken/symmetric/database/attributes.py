"""The numbers of attributes, and the clusters in which they are counted apart.

A cluster is for clauses that have single values for a set of attributes, its key, none of which tells much alone.
It is like an attribute whose name is the list of these and whose value is that of all of them, so one look into an
index finds clauses by their joint value. Within a cluster attributes have numbers of their own, so that what is
found by its joint value is not in the way of what is sought otherwise. Cluster 0 is for all other clauses.

Say that thousands of clauses ask for `country = 'DE'` and thousands for `colour = 'red'`, but few for both: in the
cluster with the key (colour, country) one look finds those few.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harken.symmetric.database.sides import OpenSide

_ITSELF = -1
"""Where the numbers of clusters themselves are counted."""

ClusterKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that is known: its number, and a bit for each slot that one side has ever used."""

    number: int
    used: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, with those of its attributes that were asked for."""

    number: int
    key: ClusterKey = ()
    used: int = 0
    attributes: dict[str, Attribute] = field(default_factory=dict)


class Attributes:
    """What is known of the attributes of one side; nothing of it is ever forgotten."""

    def __init__(self, side: OpenSide) -> None:
        self._side = side
        self._table = side.dialect.names("attributes")

    def known(self, names: Iterable[str]) -> dict[int, Cluster]:
        """All clusters by number, 0 first, with those of the attributes that are known in them."""
        dialect = self._side.dialect
        columns = f"SELECT cluster, name, number, {self._side.name} FROM {self._table} WHERE"
        query = f"{columns} cluster < 0 UNION ALL {columns} {dialect.among('name', 'names')}"
        found = self._side.run(query, {"names": dialect.several([_text(name) for name in names])})
        clusters = {0: Cluster(0)}
        for cluster, name, number, used in sorted(found):  # clusters before what is in them
            if cluster == _ITSELF:
                clusters[number] = Cluster(number, tuple(json.loads(name)), used)
            else:
                clusters[cluster].attributes[json.loads(name)] = Attribute(number, used)
        return clusters

    def clusters(self) -> dict[ClusterKey, Cluster]:
        """The clusters that have a key."""
        return {each.key: each for each in self.known(()).values() if each.key}

    def register(self, used: Mapping[str, int], cluster: int = 0) -> dict[str, int]:
        """The numbers of attributes, with new ones for those that have none; note the slots they use."""
        known = self.known(used)[cluster].attributes
        # In one order, so that no two wait for each other's attributes.
        if fresh := sorted(used.keys() - known.keys()):
            self._add(cluster, fresh)
            known = self.known(used)[cluster].attributes
        self._use({known[name]: bits for name, bits in sorted(used.items())})
        return {name: known[name].number for name in used}

    def register_cluster(self, key: ClusterKey, used: int) -> int:
        """The number of a cluster, a new one if there is none of this key."""
        if key not in (clusters := self.clusters()):
            self._add(_ITSELF, [key])
            clusters = self.clusters()
        found = clusters[key]
        self._use({Attribute(found.number, found.used): used})
        return found.number

    def _add(self, cluster: int, names: Iterable[str | ClusterKey]) -> None:
        add = (
            f"INSERT INTO {self._table} (name, cluster, subscriptions, publications)"
            " VALUES (:name, :cluster, 0, 0) ON CONFLICT (name, cluster) DO NOTHING"
        )
        self._side.run(add, [{"name": _text(name), "cluster": cluster} for name in names])

    def _use(self, used: Mapping[Attribute, int]) -> None:
        name = self._side.name
        note = f"UPDATE {self._table} SET {name} = {name} | :bits WHERE number = :number"
        if news := [{"number": each.number, "bits": bits} for each, bits in used.items() if bits & ~each.used]:
            self._side.run(note, news)


def _text(name: str | ClusterKey) -> str:
    """As JSON: PostgreSQL has no zero characters in texts."""
    return json.dumps(name, ensure_ascii=False)
