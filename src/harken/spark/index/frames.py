"""Subscriptions that are a DataFrame: indexed once per frame, and sent to wherever they are asked for.

Tasks compile them; this process builds the index and hands it to Spark, which brings it to each machine once. So
nothing has to be shared, and nothing stays when frame and answers are gone. A folder that all machines reach may
be named instead: then the index is built there, by tasks, and this process needs no room for it.
"""

from __future__ import annotations

import atexit
import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from harken.engine import Engine
from harken.errors import ArgumentError, BulkLoadError, StorageError
from harken.normal.compiled import compiled_schema
from harken.spark.index.building import saved
from harken.spark.index.index import ALGORITHM, index_beside
from harken.spark.index.layers import IndexState, Layer
from harken.spark.index.sharding import Division
from harken.spark.runtime.mapping import map_batches
from harken.spark.runtime.workers import check_workers
from harken.spark.storage import Folder, folder_at
from harken.spark.storage.carried import CarriedFolder, Luggage
from harken.spark.subscriptions.compiling import Rules, compile_source, portions, subscription_columns
from harken.spark.subscriptions.profile import Profile
from harken.spark.subscriptions.subscriptions import Subscriptions, refuse_repeated
from harken.spark.subscriptions.writing import FileReject

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

Address: TypeAlias = str | os.PathLike[str] | Folder

MOST_IN_PLAN = 48 << 20
"""Bytes of an index that a plan of Spark Connect may have in it: it takes 128 MB, and may name the index twice."""


class Located(NamedTuple):
    """A version of an index, and the folder it is in."""

    folder: Folder
    state: IndexState


@dataclass(slots=True)
class _Indexed:
    """What is known of a frame, by the folder that was named."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    found: dict[str | None, Located] = field(default_factory=dict)


_FRAMES: WeakKeyDictionary[DataFrame, _Indexed] = WeakKeyDictionary()
_FRAMES_LOCK = threading.Lock()


def index_of_frame(subscriptions: DataFrame, folder: Address | None = None) -> Located:
    """An index of the subscriptions in a DataFrame, which is read once, when it is first asked for.

    BulkLoadError if there are rows that are no subscriptions, DuplicateSubscriptionError if an id comes twice.
    """
    context = getattr(subscriptions.sparkSession, "_sc", None)
    if context is not None and context._jsc is None:
        raise ArgumentError("the subscriptions are of a session that has ended", argument="subscriptions")
    place = None if folder is None else folder_at(folder)
    with _FRAMES_LOCK:
        known = _FRAMES.setdefault(subscriptions, _Indexed())
    with known.lock:
        key = None if place is None else place.address
        if key not in known.found:
            known.found[key] = _carried(subscriptions) if place is None else _shared(subscriptions, place)
        return known.found[key]


def _shared(subscriptions: DataFrame, place: Folder) -> Located:
    """Index a frame in a folder, which is removed when this process ends."""
    name = f"harken-{uuid.uuid4().hex}"
    atexit.register(place.remove, [name])
    stored = Subscriptions.create(place.child(name))
    stored.append(subscriptions)
    index, state = index_beside(subscriptions.sparkSession, stored)
    return Located(index.folder, state)


def _carried(subscriptions: DataFrame) -> Located:
    """Index a frame in this process, and hand the index to Spark."""
    table = _compiled(subscriptions)
    whole, profile = pa.types.is_integer(table.schema.field("id").type), Profile.of(table)
    with TemporaryDirectory(prefix="harken-") as here:
        place = folder_at(here)
        # Nobody asks for what was written: the frame knows.
        engine = Engine(ALGORITHM, keep_text=False)
        engine.subscribe_many(table)
        layer = Layer(0, 0, {0: saved(engine, place.child("parts"))} if len(engine) else {})
        del table, engine
        folder = CarriedFolder(_handed_over(subscriptions.sparkSession, place))
    return Located(folder, IndexState(0, "", whole, None, profile, Division(1), (layer,), ALGORITHM, {}))


def _handed_over(spark: SparkSession, place: Folder) -> Luggage:
    """The files of a folder in the hands of Spark, which lets go of them when nobody has them any more."""
    files = {each.name: place.read(each.name) for each in place.files()}
    context = getattr(spark, "_sc", None)
    if context is not None:
        return _broadcast(context, files)
    size = sum(map(len, files.values()))
    if size > MOST_IN_PLAN:
        raise StorageError(
            f"the index has {size:,} bytes, and only {MOST_IN_PLAN:,} can travel with Spark Connect",
            suggestion="name a folder that all machines reach: match(..., folder=...)",
        )
    return InPlan(files)


_SENT: dict[str, Any] = {}
"""The files of broadcasts, which PySpark keeps as long as the session, and Java's weak references to these."""

_SENT_LOCK = threading.Lock()


def _broadcast(context: SparkContext, files: Mapping[str, bytes]) -> Luggage:
    """Files as a broadcast variable. Those that no frame and no answer has any more are removed at last."""
    made: Any = context.broadcast(files)
    jvm: Any = context._jvm
    with _SENT_LOCK:
        for path, reference in list(_SENT.items()):
            with suppress(Exception):  # of a session that has ended, and has taken its files along
                # To ask for what it refers to would bring that here, and so keep it for another while.
                if not reference.refersTo(None):
                    continue
            Path(path).unlink(missing_ok=True)
            del _SENT[path]
        _SENT[made._path] = jvm.java.lang.ref.WeakReference(made._jbroadcast)
    luggage: Luggage = made
    return luggage


@dataclass(frozen=True)
class InPlan:
    """Files that travel within the plan itself, where there is no other way."""

    value: Mapping[str, bytes]


def _compiled(subscriptions: DataFrame) -> pa.Table:
    """The subscriptions of a frame in the compiled form, compiled by tasks; BulkLoadError if there are others."""
    check_workers(subscriptions.sparkSession)
    chosen = subscription_columns(subscriptions)
    outcomes = map_batches(chosen, partial(_compile, Rules()), "compiled binary, rejects binary").toArrow()
    rejects = [row for each in outcomes.column("rejects") for row in _table(each).to_pylist()]
    if rejects:
        told = [FileReject(row, f"{each['id']!r}: {each['reason']}") for row, each in enumerate(rejects)]
        raise BulkLoadError(told, f"{len(told):,} rejected, the first is", "compile_subscriptions tells them all")
    whole = chosen.schema["id"].dataType.simpleString() != "string"
    empty = compiled_schema(pa.int64() if whole else pa.string()).empty_table()
    table = pa.concat_tables([empty, *map(_table, outcomes.column("compiled"))])
    refuse_repeated(table.column("id"))
    return table


def _compile(rules: Rules, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task. Tables travel as bytes: Spark would take them to pieces, and put them together again."""
    for table in portions(batches):
        outcome = compile_source(table, rules)
        columns = [[_bytes(outcome.compiled)], [_bytes(outcome.rejects_table())]]
        yield pa.RecordBatch.from_arrays(
            [pa.array(each, pa.binary()) for each in columns], ["compiled", "rejects"]
        )


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _table(written: pa.BinaryScalar) -> pa.Table:
    return pa.ipc.open_stream(written.as_buffer()).read_all()
