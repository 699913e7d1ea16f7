"""Subscriptions and indexes do on S3 and on HDFS what they do on a disk, and Spark matches with them there."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from pyarrow import csv

from harken.errors import IndexFormatError, StorageError
from harken.language import parse
from harken.model.evaluation import truth
from harken.spark import Index, Subscriptions, build_index
from harken.spark.index import index as indexing
from harken.spark.index import worker_cache as opened
from harken.spark.index.building import Blueprint
from harken.spark.index.index import index_beside
from harken.spark.storage import Folder, cache, folder_at, machine_cache
from tests.spark.index.conftest import here, small
from tests.spark.index.indexes import NO_SPARK, NONE, expected, pairs, texts
from tests.spark.servers.hdfs import HdfsCluster
from tests.spark.servers.jars import UnreachableError
from tests.spark.servers.s3 import S3Server
from tests.spark.subscriptions.stored import held, rows
from tests.spark.subscriptions.test_history import History

__all__ = ["here", "small"]

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copies of this test alone, and nothing held open of tests before it."""
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))
    machine_cache.cache_clear()
    yield tmp_path / "cache"
    machine_cache.cache_clear()
    opened._ENGINES.clear()


# ---------------------------------------------------------------- subscriptions


def test_any_history_can_be_read_at_every_version(remote: Folder) -> None:
    machine = type("Machine", (History,), {"make": lambda: Subscriptions.create(remote.child(uuid.uuid4().hex))})
    run_state_machine_as_test(machine, settings=settings(max_examples=4, stateful_step_count=8, deadline=None))


def test_versions_are_read_by_address_and_by_processes_that_have_the_folder(remote: Folder) -> None:
    store = Subscriptions.create(remote.address, storage_options=remote.options)
    store.append(rows(1, 2, 3))
    store.upsert([(2, "x = 20")])
    store.delete([1])
    assert store.path is None
    assert repr(store) == f"Subscriptions({remote.address!r}, version=3)"
    again = Subscriptions(remote.address, storage_options=remote.options)
    assert [held(again, version) for version in range(4)] == [
        {},
        {1: 1, 2: 2, 3: 3},
        {1: 1, 2: 20, 3: 3},
        {2: 20, 3: 3},
    ]
    assert {each.name.partition("/")[0] for each in remote.files()} == {"versions", "segments"}


def test_a_missing_segment_is_named(remote: Folder, own_cache: Path) -> None:
    store = Subscriptions.create(remote)
    store.append(rows(1))
    (segment,) = store.snapshot().segments
    remote.child("segments").remove([segment.file])
    shutil.rmtree(own_cache)
    with pytest.raises(IndexFormatError, match="is missing") as caught:
        held(Subscriptions(remote), 1)
    assert f"{remote.address}/segments/{segment.file}" in str(caught.value)


# ---------------------------------------------------------------- indexes


def test_layers_answer_and_are_merged(here: list[Blueprint], remote: Folder) -> None:
    store = Subscriptions.create(remote)
    store.append(texts(*range(30)))
    index = build_index(NO_SPARK, store, shards=2)
    assert pairs(index.state(), index) == expected(store)
    for salt in range(3):
        store.upsert(texts(1, 40 + salt, salt=salt))
        store.delete([2 + salt])
        state = index.refresh(NO_SPARK)
        assert pairs(state, index) == expected(store)
    index.compact(NO_SPARK)
    assert index.vacuum(keep=1, grace=NONE, orphans=NONE) > 0
    names = {name for layer in [index.state().layers] for name in indexing._names(layer)}
    left = {each.name.split("/")[1] for each in index.folder.files() if each.name.startswith(("parts", "hidden"))}
    assert left == names
    again, state = index_beside(NO_SPARK, Subscriptions(remote))
    assert pairs(state, again) == expected(store)


def test_a_worker_fetches_a_part_once_and_maps_it(here: list[Blueprint], remote: Folder, own_cache: Path) -> None:
    store = Subscriptions.create(remote)
    store.append(texts(*range(30)))
    index = build_index(NO_SPARK, store)
    part = index.state().layers[0].parts[0]
    assert pairs(index.state(), index) == expected(store)
    (copy,) = own_cache.glob(f"*/{part.folder}")
    before = copy.stat().st_ino
    opened._ENGINES.clear()
    index.folder.child("parts").remove([part.folder])  # so that it cannot be fetched again
    assert pairs(index.state(), index) == expected(store)
    assert copy.stat().st_ino == before


def test_a_damaged_copy_is_fetched_again_and_a_damaged_part_is_named(
    here: list[Blueprint], remote: Folder, own_cache: Path
) -> None:
    store = Subscriptions.create(remote)
    store.append(texts(*range(30)))
    index = build_index(NO_SPARK, store)
    part = index.state().layers[0].parts[0]
    folder = index.folder.child("parts").child(part.folder)
    assert pairs(index.state(), index) == expected(store)
    (copy,) = own_cache.glob(f"*/{part.folder}")
    array = max(copy.rglob("*.npy"), key=lambda path: path.stat().st_size)
    name = array.relative_to(copy).as_posix()
    content = array.read_bytes()
    damaged = bytes([*content[:-1], content[-1] ^ 1])
    array.write_bytes(damaged)
    opened._ENGINES.clear()
    assert pairs(index.state(), index) == expected(store)
    folder.replace(name, damaged)
    forget_copies(own_cache)
    with pytest.raises(IndexFormatError) as caught:
        pairs(index.state(), index)
    assert folder.address in str(caught.value)
    folder.replace(name, b"short")
    forget_copies(own_cache)
    with pytest.raises(StorageError) as told:
        pairs(index.state(), index)
    assert folder.address in str(told.value)


def forget_copies(own_cache: Path) -> None:
    shutil.rmtree(own_cache)
    opened._ENGINES.clear()


def test_an_index_elsewhere_finds_its_subscriptions(here: list[Blueprint], remote: Folder, tmp_path: Path) -> None:
    store = Subscriptions.create(remote)
    store.append(texts(*range(10)))
    index = build_index(NO_SPARK, store, tmp_path / "index")
    store.upsert(texts(3, salt=1))
    assert pairs(index.refresh(NO_SPARK), index) == expected(store)
    again = Index(tmp_path / "index", storage_options=remote.options)
    assert again.subscriptions.folder == remote
    assert again.refresh(NO_SPARK).covers == 2


def test_refresh_notices_damage_in_the_store_whatever_a_cache_has(here: list[Blueprint], remote: Folder) -> None:
    store = Subscriptions.create(remote)
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store)
    part = index.state().layers[0].parts[0]
    assert pairs(index.state(), index) == expected(store)
    folder = index.folder.child("parts").child(part.folder)
    largest = max(folder.files(), key=lambda each: each.bytes)
    content = folder.read(largest.name)
    folder.replace(largest.name, bytes([*content[:-1], content[-1] ^ 1]))
    assert index.refresh(NO_SPARK).version == 1
    assert index.refresh(NO_SPARK, verify=True).version == 2
    index.folder.child("parts").remove([index.state().layers[0].parts[0].folder])
    again = Index(index.folder).refresh(NO_SPARK)
    assert again.version == 3
    assert pairs(again, index) == expected(store)


@pytest.mark.usefixtures("small")
def test_after_any_history_every_version_answers(here: list[Blueprint], remote: Folder) -> None:
    chance = random.Random(3)
    store = Subscriptions.create(remote)
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store, shards=2)
    for _ in range(8):
        some = chance.sample(range(40), 3)
        if chance.random() < 0.5:
            store.upsert(texts(*some, salt=chance.randrange(9)))
        else:
            store.delete(some, missing_ok=True)
        if chance.random() < 0.2:
            store.compact()
        state = index.refresh(NO_SPARK)
        assert pairs(state, index) == expected(store, state.covers)
    index.vacuum(keep=2, grace=NONE, orphans=NONE)
    assert pairs(index.refresh(NO_SPARK), Index(index.folder)) == expected(store)


# ---------------------------------------------------------------- Spark

MATCHING = """
import json, sys
from harken.spark import Subscriptions, build_index, match
from harken.spark.runtime.session import local_session

given = json.loads(sys.argv[1])
spark = local_session("local-cluster[2,1,1024]", settings=given["settings"])
texts = spark.createDataFrame([(id, text) for id, text in given["texts"]], "id long, expression string")
answers = []
for address in given["addresses"]:
    spark.range(0, 300, 1, 3).selectExpr("id", "id % 10 as n", "id % 7 as m").write.parquet(address + "/events")
    events = spark.read.parquet(address + "/events")
    store = Subscriptions.create(address + "/subscriptions")
    store.append(texts)
    build_index(spark, store, shards=2)
    store.delete([1])
    store.upsert([(2, "n = 9 and m = 0")])
    for strategy in ("local", "grid"):
        frame = match(events, store, event_id="id", strategy=strategy)
        frame.write.parquet(f"{address}/matches-{strategy}")
        answers.append(sorted(map(list, spark.read.parquet(f"{address}/matches-{strategy}").collect())))
print(json.dumps(answers))
spark.stop()
"""


def test_spark_matches_events_and_subscriptions_of_stores(
    s3_store: S3Server, hdfs_store: HdfsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {id: text for id, text in texts(*range(40)) if "s " not in text}
    try:
        configured = {**s3_store.spark_settings, **hdfs_store.spark_settings}
    except UnreachableError as error:
        pytest.skip(f"jars are not in the cache, and Maven Central cannot be reached: {error}")
    name = f"matched {uuid.uuid4().hex[:8]} ü%20"
    given = {
        "settings": {**configured, "spark.local.dir": str(tmp_path / "scratch"), "spark.driver.memory": "600m"},
        "addresses": [f"{s3_store.address}/{name}", f"{hdfs_store.address}/{name}"],
        "texts": list(asked.items()),
    }
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "workers"))
    finished = subprocess.run(
        [sys.executable, "-c", MATCHING, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    answers = json.loads(finished.stdout.splitlines()[-1])
    wanted = {id: parse(text) for id, text in (asked | {2: "n = 9 and m = 0"}).items() if id != 1}
    pairs_wanted = [
        [at, id]
        for at in range(300)
        for id, expression in sorted(wanted.items())
        if truth(expression, {"n": at % 10, "m": at % 7}) is True
    ]
    assert answers == [pairs_wanted] * 4
    assert list((tmp_path / "workers").glob("[!.]*/*")), "parts came through the cache"


# ---------------------------------------------------------------- the command line


@pytest.fixture(params=["s3", "hdfs"])
def addressed(request: pytest.FixtureRequest) -> tuple[Folder, list[str]]:
    """A folder in a store, and what the command line has to be told to get there."""
    server: S3Server | HdfsCluster = request.getfixturevalue(f"{request.param}_store")
    try:
        settings = server.spark_settings
    except UnreachableError as error:
        pytest.skip(f"jars are not in the cache, and Maven Central cannot be reached: {error}")
    options = server.options if isinstance(server, S3Server) else {}
    folder = folder_at(f"{server.address}/piped {uuid.uuid4().hex[:8]}", options)
    return folder, [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


def piped(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("harken")
    return subprocess.run(
        [program, "pipeline", *arguments], capture_output=True, text=True, timeout=600, check=False
    )


def rows_in(folder: Folder) -> list[tuple[object, ...]]:
    """All rows of a table of Parquet."""
    files = [
        each.name for each in folder.files() if each.name.endswith(".parquet") and "/." not in f"/{each.name}"
    ]
    tables = [pq.read_table(pa.BufferReader(folder.read(name))) for name in files]
    return sorted(tuple(row.values()) for table in tables for row in table.to_pylist())


EVENTS = "".join(json.dumps({"id": id, "n": id % 4}) + "\n" for id in range(8)).encode()
MATCHED = [(0, "zero"), (1, "some"), (2, "some"), (4, "zero"), (5, "some"), (6, "some")]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_command_reads_from_stores_and_writes_to_them(addressed: tuple[Folder, list[str]], kind: str) -> None:
    folder, told = addressed
    wanted = [{"id": "zero", "expression": "n = 0"}, {"id": "some", "expression": "n IN (1, 2)"}]
    table = pa.Table.from_pylist([*wanted, {"id": "bad", "expression": "n <"}])
    sink = pa.BufferOutputStream()
    if kind == "parquet":
        pq.write_table(table, sink)
    elif kind == "csv":
        csv.write_csv(table, sink)
    else:
        sink.write("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode())
    folder.create(f"subscriptions.{kind}", bytes(sink.getvalue()))
    folder.create("events/1.json", EVENTS)
    arguments = [
        *("-s", f"{folder.address}/subscriptions.{kind}", "-e", f"{folder.address}/events"),
        *("--events-format", "json"),
        *("-o", f"{folder.address}/matches", "--master", "local-cluster[1,1,1024]", *told),
    ]
    refused = piped(*arguments)
    assert refused.returncode != 0
    assert "1 subscriptions are bad" in refused.stderr
    if kind != "parquet":
        assert f"{folder.address}/subscriptions.{kind}:" in refused.stderr
    collected = piped(*arguments, "--on-error", "collect", "--rejects", f"{folder.address}/rejects")
    assert collected.returncode == 0, collected.stderr
    assert rows_in(folder.child("matches")) == MATCHED
    assert [row[1] for row in rows_in(folder.child("rejects/subscriptions"))] == ["bad"]
    assert {each.name for each in folder.entries()} == {f"subscriptions.{kind}", "events", "matches", "rejects"}


def test_the_command_follows_a_folder_of_a_store(addressed: tuple[Folder, list[str]]) -> None:
    folder, told = addressed
    store = Subscriptions.create(folder.child("subscriptions"), schema={"n": "int"})
    store.append([("zero", "n = 0"), ("some", "n IN (1, 2)")])
    folder.create("events/1.json", EVENTS)
    folder.create("events/2.json", b'{"id": 8, "n": 0}\n{"id": 9, "n": "many"}\n')
    arguments = [
        *("-s", f"{folder.address}/subscriptions", "-e", f"{folder.address}/events", "--stream", "--once"),
        *("--events-format", "json"),
        *("-o", f"{folder.address}/matches", "--master", "local[2]", "--on-error", "collect", *told),
        *("--rejects", f"{folder.address}/rejects"),
    ]
    for _ in range(2):  # the second run finds nothing new
        done = piped(*arguments)
        assert done.returncode == 0, done.stderr
        assert [row[:2] for row in rows_in(folder.child("matches"))] == [*MATCHED, (8, "zero")]
    assert len(rows_in(folder.child("rejects"))) == 1
