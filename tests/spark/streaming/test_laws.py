"""Whatever changes and fails at random, matches are those of the semantics."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from harken.model.evaluation import truth
from harken.model.expressions import Expression
from harken.model.values import Type
from harken.spark import (
    EventValidity,
    Subscriptions,
)
from tests.contract.checks import arrow_events
from tests.spark.streaming.scenes import MINUTE, NOON, After, Pair, Scene
from tests.strategies import TYPED, Generator


@dataclass
class Story:
    """Random subscriptions, changes after every batch, and events; and what must come of them."""

    seed: str
    batches: int = 6
    subscriptions: dict[int, Expression] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    versions: list[dict[int, Expression]] = field(default_factory=list)
    changes: list[set[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = Generator(self.seed, TYPED)
        self.random = random.Random(self.seed)
        self.events = [
            [self.generator.event() for _ in range(self.random.randint(0, 12) or 1)] for _ in range(self.batches)
        ]

    def begin(self, place: Subscriptions) -> None:
        self.subscriptions = {id: self.generator.expression() for id in range(0, 120, 3)}
        place.append(list(self.subscriptions.items()))

    def note(self) -> None:
        """What held, and what was new, in the batch that was just done."""
        self.versions.append(dict(self.subscriptions))
        self.changes.append(self.changed & set(self.subscriptions))
        self.changed = set()

    def change(self, place: Subscriptions) -> None:
        self.note()
        for _ in range(self.random.randint(0, 3)):
            ids = sorted(self.random.sample(range(120), self.random.randint(1, 9)))
            if self.random.random() < 0.3:
                place.delete(ids, missing_ok=True)
                self.subscriptions = {id: each for id, each in self.subscriptions.items() if id not in ids}
            else:
                rows = {id: self.generator.expression() for id in ids}
                place.upsert(list(rows.items()))
                self.subscriptions.update(rows)
                self.changed |= set(ids)

    def id_of(self, batch: int, row: int) -> int:
        return 100 * batch + row

    def time_of(self, batch: int, row: int) -> datetime:
        """When an event was, which hardly follows the order of batches."""
        return NOON + (3 * batch + (7 * row + batch) % 10) * MINUTE

    def columns(self, batch: int) -> pa.Table:
        """A batch as it arrives."""
        rows = self._rows(batch)
        table = arrow_events(self.events[batch], TYPED)
        table = table.append_column("id", pa.array([self.id_of(batch, row) for row in rows], pa.int64()))
        times = pa.array([self.time_of(batch, row) for row in rows], pa.timestamp("us", tz="UTC"))
        return table.append_column("when", times)

    def expected(self, lasts: timedelta | None) -> dict[int, list[Pair]]:
        """The matches by batch, by the semantics themselves."""
        found: dict[int, list[Pair]] = {}
        clock = datetime.min.replace(tzinfo=UTC)
        for batch, held in enumerate(self.versions):
            pairs = self._pairs(batch, self._rows(batch), held, held)
            for earlier in range(batch):
                rows = [row for row in self._rows(earlier) if lasts and self.time_of(earlier, row) + lasts > clock]
                pairs += self._pairs(earlier, rows, held, self.changes[batch])
            found[batch] = sorted(pairs, key=repr)
            clock = max(clock, *(self.time_of(batch, row) for row in self._rows(batch)))
        return found

    def _rows(self, batch: int) -> range:
        return range(len(self.events[batch]))

    def _pairs(
        self, batch: int, rows: Iterable[int], held: Mapping[int, Expression], ids: Iterable[int]
    ) -> list[Pair]:
        wanted = list(ids)
        return [
            (self.id_of(batch, row), id)
            for row in rows
            for id in wanted
            if truth(held[id], self.events[batch][row]) is True
        ]


SCHEMA: dict[str, Type | str] = {
    "n": Type.FLOAT,
    "m": Type.FLOAT,
    "s": Type.STRING,
    "b": Type.BOOL,
    "d": Type.DATE,
    "t": Type.TIMESTAMP,
    "place.name": Type.STRING,
    "spot": Type.POINT,
    "area": Type.BOX,
}


@pytest.mark.parametrize("lasts", [None, 8 * MINUTE], ids=["events pass", "events last"])
def test_random_subscriptions_changes_and_events_agree_with_the_semantics(
    spark: SparkSession, tmp_path: Path, lasts: timedelta | None
) -> None:
    scene, story = Scene(spark, tmp_path), Story("streams")
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema=SCHEMA)
    story.begin(scene.subscriptions)
    for batch in range(story.batches):
        scene.arrive_as_columns(story.columns(batch))
    folder = f"file://{scene.arrivals}"
    columns = spark.read.parquet(folder).schema
    events = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(folder)
    deeds = dict.fromkeys(range(story.batches - 1), lambda: story.change(scene.subscriptions))
    validity = None if lasts is None else EventValidity(lasts=lasts, event_time="when")
    scene.run(events, After(scene.table, deeds), validity=validity)
    story.change(scene.subscriptions)
    assert scene.matches() == story.expected(lasts)
    assert [entry.before for entry in scene.ledger.entries()][1:] == scene.versions()[:-1]
    assert len(set(scene.versions())) > story.batches // 2
