"""The large marketplace on Spark: Harken's pipeline, and beside it the join that one would write without it.

Both read Parquet and write Parquet on the same cores. The join looks at every pair of offer and wish, so it gets
only a sample of the offers; what it finds there must be what Harken found.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harken.demo.crowd import as_join_condition, as_subscriptions, described, offers, wishes
from harken.spark import Subscriptions, build_index, match, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 8
"""Files that offers come in."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a market is, and how many of its offers the join gets."""

    wishes: int = 100_000
    offers: int = 1_000_000
    sample: int = 1_000


@dataclass(frozen=True, slots=True)
class Heard:
    """Somebody who heard of an offer, and why."""

    offer: str
    owner: str
    because: str


@dataclass(slots=True)
class Market:
    """A market in a folder, and how long what was done with it took."""

    folder: Path
    sizes: Sizes
    seed: int
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Note how long something takes."""
        start = time.perf_counter()
        yield
        self.seconds[what] = time.perf_counter() - start

    # ---------------------------------------------------------------- what is done

    def generate(self) -> None:
        """Write wishes, twice, and offers."""
        with self.timed("generate"):
            wanted = wishes(self.sizes.wishes, self.seed)
            pq.write_table(wanted, self.folder / "wishes.parquet")
            pq.write_table(as_subscriptions(wanted), self.folder / "subscriptions.parquet")
            found = offers(self.sizes.offers, self.seed + 1)
            pq.write_table(found.slice(0, self.sizes.sample), self.folder / "sample.parquet")
            (self.folder / "offers").mkdir()
            each = -(-self.sizes.offers // FILES)
            for at in range(FILES):
                pq.write_table(found.slice(at * each, each), self.folder / "offers" / f"{at}.parquet")

    def match(self, spark: SparkSession) -> None:
        """Compile the wishes, build an index, and match all offers with it."""
        store = Subscriptions.create(self.folder / "store")
        with self.timed("compile"):
            texts = spark.read.parquet(self._address("subscriptions.parquet"))
            store.append(texts.repartition(spark.sparkContext.defaultParallelism))
        with self.timed("index"):
            index = build_index(spark, store)
        with self.timed("match"):
            found = match(spark.read.parquet(self._address("offers")), index, event_id="id")
            write_table(found, self.folder / "matches")

    def join(self, spark: SparkSession) -> None:
        """Join the sample with the table of wishes, condition by condition."""
        from pyspark.sql import functions

        with self.timed("join"):
            # A small file would be read by one core.
            sample = spark.read.parquet(self._address("sample.parquet"))
            sample = sample.repartition(2 * spark.sparkContext.defaultParallelism)
            wanted = spark.read.parquet(self._address("wishes.parquet"))
            pairs = sample.alias("o").join(wanted.alias("w"), functions.expr(as_join_condition()))
            write_table(pairs.select("o.id", "w.id").toDF("event", "subscription"), self.folder / "joined")

    # ---------------------------------------------------------------- what came of it

    @property
    def matches(self) -> int:
        """All pairs that Harken found."""
        return sum(pq.read_metadata(part).num_rows for part in (self.folder / "matches").glob("part-*"))

    def same_pairs(self) -> int | None:
        """How many pairs both found in the sample; None if they are not the same."""
        ours, theirs = (_ordered(table) for table in (self._sampled(), pq.read_table(self.folder / "joined")))
        return ours.num_rows if ours.equals(theirs) else None

    @property
    def speed(self) -> float:
        """Offers that Harken matched per second, with wishes that are compiled and indexed."""
        return self.sizes.offers / self.seconds["match"]

    @property
    def whole_speed(self) -> float:
        """The same, with compiling and indexing counted in."""
        return self.sizes.offers / sum(self.seconds[each] for each in ("compile", "index", "match"))

    @property
    def join_speed(self) -> float:
        """Offers that the join did per second."""
        return self.sizes.sample / self.seconds["join"]

    def heard(self, count: int) -> list[Heard]:
        """Some offers of the sample, of all kinds in turn, each with one of those who heard of it."""
        sample = pq.read_table(self.folder / "sample.parquet").to_pylist()
        texts = pq.read_table(self.folder / "subscriptions.parquet")
        by_kind: dict[str, list[Heard]] = {}
        for pair in _first_of_each(_ordered(self._sampled())).to_pylist():
            offer = sample[pair["event"]]
            owner, because = (texts.column(name)[pair["subscription"]].as_py() for name in ("owner", "expression"))
            by_kind.setdefault(offer["kind"], []).append(Heard(described(offer), owner, because))
        in_turn = zip(*by_kind.values(), strict=False)
        return [heard for turn in in_turn for heard in turn][:count]

    def _sampled(self) -> pa.Table:
        """Harken's pairs of the offers that the join got."""
        return pq.read_table(self.folder / "matches", filters=pc.field("event") < self.sizes.sample)

    def _address(self, name: str) -> str:
        return f"file://{self.folder / name}"


def _ordered(pairs: pa.Table) -> pa.Table:
    by: list[tuple[str, Any]] = [("event", "ascending"), ("subscription", "ascending")]
    return pairs.select(["event", "subscription"]).sort_by(by).combine_chunks()


def _first_of_each(pairs: pa.Table) -> pa.Table:
    """Of pairs in order, the first of each event."""
    events = pairs.column("event").to_numpy()
    new = [at for at in range(len(events)) if at == 0 or events[at] != events[at - 1]]
    return pairs.take(new)
