"""What lets the contract suite speak to Spark: engines that keep their subscriptions in a folder.

`StoredEngine` has all but the matching. How events meet the subscriptions, in one job or through a stream, is up
to the classes below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from harken.model.expressions import Expression
from harken.spark import Index, Subscriptions, build_index, match
from harken.spark.events.partitioning import by_number
from harken.spark.matching.batch import Strategy
from tests.contract.checks import Event, Matches, arrow_events
from tests.strategies import TYPED, Vocabulary

ROW = "_row"
"""The column that tells of an event which it was."""


class StoredEngine:
    """Subscribes and unsubscribes as an `Engine` does; every change is a version of a folder.

    Events are dictionaries of a vocabulary whose attributes have one type each, or Arrow tables. Subclasses say
    with `found` what matches.
    """

    def __init__(self, folder: Path, vocabulary: Vocabulary = TYPED) -> None:
        self.store = Subscriptions.create(folder)
        self._vocabulary = vocabulary

    def found(self, events: pa.Table) -> Matches:
        """The matches of all events, each of which has its number in the column `ROW`."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.store.ids(self.store.snapshot()))

    def subscribe_many(self, rows: object, *, replace: bool = False) -> None:
        (self.store.upsert if replace else self.store.append)(rows)  # type: ignore[arg-type]  # as the store says

    def subscribe(self, id: int, expression: str | Expression, *, replace: bool = False) -> None:
        self.subscribe_many([(id, expression)], replace=replace)

    def unsubscribe_many(self, ids: Iterable[int]) -> None:
        self.store.delete(ids)

    def unsubscribe(self, id: int) -> None:
        self.unsubscribe_many([id])

    def match(self, event: Event) -> list[int]:
        return [id for _, id in self.found(self.table([event]))]

    def match_batch(self, events: pa.Table | Sequence[Event]) -> pa.Table:
        found = sorted(self.found(self.table(events)))
        return pa.table({"event": [row for row, _ in found], "subscription": [id for _, id in found]})

    def table(self, events: pa.Table | Sequence[Event]) -> pa.Table:
        """Events as columns, with their numbers."""
        columns = events if isinstance(events, pa.Table) else arrow_events(events, self._vocabulary)
        return columns.append_column(ROW, pa.array(range(columns.num_rows), pa.int32()))


class SparkEngine(StoredEngine):
    """Matches through `harken.spark.match`.

    Events that are announced are matched together when the first of them is asked for: in one job, but each in a
    partition, and so in a batch, of its own.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        *,
        shards: int = 1,
        strategy: Strategy = "local",
        announced: Sequence[Event] = (),
        vocabulary: Vocabulary = TYPED,
    ) -> None:
        super().__init__(folder, vocabulary)
        self._spark = spark
        self._shards, self._strategy = shards, strategy
        self._announced = list(announced)
        self._apart: tuple[int, Matches] = (-1, [])

    def found(self, events: pa.Table) -> Matches:
        return self._found(self._spark.createDataFrame(events))

    def match(self, event: Event) -> list[int]:
        if event not in self._announced:
            return super().match(event)
        if self._apart[0] != self.store.version:
            frame = self._spark.createDataFrame(self.table(self._announced))
            self._apart = self.store.version, self._found(by_number(frame, ROW, len(self._announced)))
        row = self._announced.index(event)
        return [id for at, id in self._apart[1] if at == row]

    def _found(self, events: DataFrame) -> Matches:
        matches = match(events, self._index(), event_id=ROW, strategy=self._strategy)
        return [(row["event"], row["subscription"]) for row in matches.collect()]

    def _index(self) -> Index:
        """The index, which is divided by the subscriptions that are there when it is first needed."""
        folder = self.store.path / "index"
        if not folder.exists():
            return build_index(self._spark, self.store, shards=self._shards)
        index = Index(folder)
        index.refresh(self._spark)
        return index
