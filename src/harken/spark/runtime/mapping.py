"""Running a function over the batches of a DataFrame, in Spark's Python workers."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Task: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a worker does with the batches of its partition."""

THOROUGH = 100
"""Tasks of a worker from one search for garbage among everything to the next."""

_TASKS = itertools.count()
"""The tasks of this process."""


def map_batches(frame: DataFrame, task: Task, columns: StructType | str) -> DataFrame:
    """What tasks make of the batches of a DataFrame: a DataFrame of these columns."""
    return frame.mapInArrow(partial(_run, task), columns)


def compute(frame: DataFrame) -> None:
    """Compute all rows of a DataFrame and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def _run(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do a task.

    After every task, PySpark searches all objects of the worker for garbage. With numba and pyarrow loaded that
    takes a tenth of a second, so it is kept to what is new: nearly all of the rest are modules, which stay.
    """
    if next(_TASKS) % THOROUGH:
        gc.freeze()
    else:
        search_everything()
    yield from task(batches)


def search_everything() -> None:
    """Have the next search for garbage look at all objects; for who lets go of what earlier tasks have made."""
    gc.unfreeze()
