"""An index as a Python worker holds it: parts mapped once and kept from batch to batch and from task to task.

Workers of one machine share the pages of what they map. A worker may be replaced at any time, so opening must be
cheap: it costs reading the parts once, for their checksums, and what kernels take to load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.engine import Engine
from harken.errors import IndexFormatError
from harken.matching.parallel.options import Parallel
from harken.spark.index.layers import Layer, Part
from harken.spark.index.pacing import Found, Pace, Rows
from harken.spark.index.sharding import Division, router_rows
from harken.spark.runtime.mapping import search_everything
from harken.spark.storage import Folder, machine_cache
from harken.spark.subscriptions.segments import read_segment

ONE_THREAD = Parallel(threads=1)
"""Spark has as many workers as it wants cores to be used."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is to be opened: the layers of an index, and how its shards are divided."""

    folder: Folder
    layers: tuple[Layer, ...]
    division: Division
    integer_ids: bool

    @property
    def id_type(self) -> pa.DataType:
        """The type of subscriptions' ids."""
        return pa.int64() if self.integer_ids else pa.string()


LONG_IDS = pa.large_string()
"""How ids that are texts are held: those of many matches together may be longer than two gigabytes."""


class OpenShard:
    """The parts of one shard, each with the ids that are void in it."""

    def __init__(self, parts: Parts, shard: int) -> None:
        self._parts: list[tuple[Engine, pa.Array]] = []
        hidden = pa.array([], parts.id_type)
        for layer in reversed(parts.layers):
            if shard in layer.parts:
                self._parts.append((_engine(parts.folder, layer.parts[shard]), hidden))
            if layer.hides is not None:
                ids = read_segment(parts.folder.child("hidden"), layer.hides).column("id").cast(parts.id_type)
                hidden = pa.concat_arrays([hidden, *ids.chunks])
        self._id_type = parts.id_type
        self._pace = Pace()

    def matches(self, events: pa.Table, at: datetime) -> Iterator[Found]:
        """The matches of events, as many at a time as can be held, ordered by event."""
        return self._pace.over(events, lambda some: joined(self.match(some, at), self._id_type))

    def match(self, events: pa.Table, at: datetime) -> list[Found]:
        """The matches of events, part by part."""
        found = []
        for engine, hidden in self._parts:
            matches = engine.match_batch(events, at=at)
            if len(hidden) and matches.num_rows:
                matches = matches.filter(pc.invert(pc.is_in(matches.column("subscription"), value_set=hidden)))
            if matches.num_rows:
                rows = matches.column("event").to_numpy()
                ids = matches.column("subscription")
                found.append((rows, (ids.cast(LONG_IDS) if ids.type == pa.string() else ids).combine_chunks()))
        return found


class Router:
    """Says which shards an event can concern, which is itself a match: with the constraints of the shards."""

    def __init__(self, division: Division) -> None:
        constraints = list(router_rows(division))
        self._free = [
            shard for shard in range(division.shards) if shard not in {shard for shard, _ in constraints}
        ]
        # Not "auto", which would evaluate these few expressions in Python.
        self._engine = Engine("propagation", parallel=ONE_THREAD) if constraints else None
        if self._engine is not None:
            self._engine.subscribe_many(constraints)

    def route(self, events: pa.Table) -> Iterable[tuple[int, Rows | None]]:
        """The shards that some of these events can concern, and which; None for all."""
        for shard in self._free:
            yield shard, None
        if self._engine is None:
            return
        matches = self._engine.match_batch(events)
        rows, shards = matches.column("event").to_numpy(), matches.column("subscription").to_numpy()
        order = np.argsort(shards, kind="stable")
        for shard in np.unique(shards).tolist():
            first, end = np.searchsorted(shards, [shard, shard + 1], sorter=order)
            yield shard, rows[order[first:end]]


class OpenIndex:
    """All shards of an index, matched one after the other with the events that can concern them."""

    def __init__(self, parts: Parts) -> None:
        self._id_type = parts.id_type
        self._router = Router(parts.division)
        self._shards = [OpenShard(parts, shard) for shard in range(parts.division.shards)]
        self._pace = Pace()

    def matches(self, events: pa.Table, at: datetime) -> Iterator[Found]:
        """The matches of events, as many at a time as can be held, ordered by event."""
        return self._pace.over(events, lambda some: self.match(some, at))

    def match(self, events: pa.Table, at: datetime) -> Found:
        """The matches of events, ordered by event."""
        if len(self._shards) == 1:
            return joined(self._shards[0].match(events, at), self._id_type)
        found = []
        for shard, rows in self._router.route(events):
            concerned = events if rows is None else events.take(pa.array(rows))
            for at_rows, ids in self._shards[shard].match(concerned, at):
                found.append((at_rows if rows is None else rows[at_rows], ids))
        return joined(found, self._id_type)


def joined(found: Sequence[Found], id_type: pa.DataType) -> Found:
    """Matches of several parts as one, ordered by event."""
    if not found:
        return np.zeros(0, np.int64), pa.array([], LONG_IDS if id_type == pa.string() else id_type)
    if len(found) == 1:
        return found[0]
    rows, ids = np.concatenate([rows for rows, _ in found]), pa.concat_arrays([ids for _, ids in found])
    order = np.argsort(rows, kind="stable")
    return rows[order], ids.take(pa.array(order))


# What this process has open. Spark runs one task at a time in a worker, so nothing else looks here meanwhile.
_ENGINES: dict[tuple[Folder, str], Engine] = {}
_OPEN: dict[Folder, tuple[Parts, OpenIndex]] = {}
_OPEN_SHARDS: dict[tuple[Folder, int], tuple[Parts, OpenShard]] = {}
_ROUTERS: dict[str, Router] = {}
"""By division, the most recently used last."""
_RECENT: dict[Folder, None] = {}
"""The indexes that are open, the most recently used last."""

MOST_OPEN = 8
"""Indexes that a process keeps open: a worker lives long, and may see many."""


def open_index(parts: Parts) -> OpenIndex:
    """An index with all its shards; what this process has open of it is kept."""
    _use(parts.folder)
    known = _OPEN.get(parts.folder)
    if known is None or known[0] != parts:
        _close_others(parts)
        known = _OPEN[parts.folder] = parts, OpenIndex(parts)
    return known[1]


def open_shard(parts: Parts, shard: int) -> OpenShard:
    """One shard of an index; what this process has open of it is kept."""
    _use(parts.folder)
    known = _OPEN_SHARDS.get((parts.folder, shard))
    if known is None or known[0] != parts:
        _close_others(parts)
        known = _OPEN_SHARDS[parts.folder, shard] = parts, OpenShard(parts, shard)
    return known[1]


def open_router(division: Division) -> Router:
    """The router of a division; kept as well, if it is among those that were used last."""
    known = repr(division)
    router = _ROUTERS.pop(known, None) or Router(division)
    _ROUTERS[known] = router
    while len(_ROUTERS) > MOST_OPEN:
        search_everything()
        del _ROUTERS[next(iter(_ROUTERS))]
    return router


def _engine(folder: Folder, part: Part) -> Engine:
    key = folder, part.folder
    if key not in _ENGINES:
        engine = _ENGINES[key] = _loaded(folder.child("parts"), part)
        engine.schema = None  # tasks hold events to it once, not with every part
    return _ENGINES[key]


def _loaded(folder: Folder, part: Part) -> Engine:
    """A part, from the disk of this machine; IndexFormatError, with its name, if it is missing or damaged."""
    where = f"{folder}/{part.folder}"
    try:
        return machine_cache().tree(folder, part.folder, part.bytes, partial(Engine.load, parallel=ONE_THREAD))
    except FileNotFoundError:
        raise IndexFormatError(f"{where} is missing") from None
    except IndexFormatError as error:
        raise error if str(folder) in str(error) else IndexFormatError(f"{where} is damaged: {error}") from error


def _use(folder: Folder) -> None:
    """Note that an index is used, and close those that have not been for longest, if many are open."""
    _RECENT.pop(folder, None)
    _RECENT[folder] = None
    while len(_RECENT) > MOST_OPEN:
        search_everything()
        oldest = next(iter(_RECENT))
        del _RECENT[oldest]
        _OPEN.pop(oldest, None)
        for key in [key for key in _OPEN_SHARDS if key[0] == oldest]:
            del _OPEN_SHARDS[key]
        for engine in [engine for engine in _ENGINES if engine[0] == oldest]:
            del _ENGINES[engine]


def _close_others(parts: Parts) -> None:
    """Let go of other versions of an index, and of their parts that the version to be opened has not."""
    search_everything()
    if parts.folder in _OPEN and _OPEN[parts.folder][0] != parts:
        del _OPEN[parts.folder]
    for key in [key for key, (known, _) in _OPEN_SHARDS.items() if key[0] == parts.folder and known != parts]:
        del _OPEN_SHARDS[key]
    needed = {part.folder for layer in parts.layers for part in layer.parts.values()}
    for name in [name for folder, name in _ENGINES if folder == parts.folder and name not in needed]:
        del _ENGINES[parts.folder, name]
