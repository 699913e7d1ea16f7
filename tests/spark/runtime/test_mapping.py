"""What all tasks have in common: garbage is searched among what is new, and sooner or later everywhere."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from harken.spark.runtime import mapping
from harken.spark.runtime.mapping import map_batches, search_everything


def objects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects a search for garbage looks at, and how many it leaves out."""
    assert list(batches)  # a worker whose batches are not taken is not used again
    counts = [pa.array([len(gc.get_objects())]), pa.array([gc.get_freeze_count()])]
    yield pa.RecordBatch.from_arrays(counts, ["searched", "spared"])


def test_after_a_task_only_what_is_new_is_searched(spark: SparkSession) -> None:
    asked = map_batches(spark.range(1).coalesce(1), objects, "searched bigint, spared bigint")
    found = [tuple(asked.collect()[0]) for _ in range(3)]
    assert any(spared > 10 * searched for searched, spared in found), found


class Cycle:
    """Goes only if garbage is searched."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def spared() -> Iterator[weakref.ref[Cycle]]:
    """A cycle that was there when a task began, and that nobody has any more."""
    cycle = Cycle()
    known = weakref.ref(cycle)
    gc.freeze()
    del cycle
    yield known
    gc.unfreeze()


def test_what_outlived_a_task_goes_with_a_later_one(spared: weakref.ref[Cycle]) -> None:
    gc.collect()
    assert spared() is not None, "nothing was spared"
    for _ in range(mapping.THOROUGH):
        list(mapping._run(iter, iter([])))
        gc.collect()
    assert spared() is None


def test_who_lets_go_of_something_has_it_searched_for(spared: weakref.ref[Cycle]) -> None:
    search_everything()
    gc.collect()
    assert spared() is None
