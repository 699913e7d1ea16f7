"""Workers and executors are killed, writers come at once, jobs fail: what is there afterwards is right and whole.

Run as a program, this file is a cluster of its own, whose executors may be killed, or a writer among others.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harken import Engine
from harken.errors import DuplicateSubscriptionError
from harken.spark import Subscriptions, TableSink, build_index, local_session, match, write_table

EVENTS = 60
HELD = {id: f"n = {id % 10} and m >= {id % 4}" for id in range(30)} | {100: "m = 3", 101: "n in (1, 2)"}


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def expected() -> list[tuple[int, int]]:
    engine = Engine()
    engine.subscribe_many(HELD.items())
    return sorted((id, found) for id in range(EVENTS) for found in engine.match({"n": id % 10, "m": id % 7}))


# ---------------------------------------------------------------- killed

CLUSTER = "local-cluster[2,1,1024]"


@pytest.mark.long
def test_workers_and_executors_that_are_killed_change_nothing(tmp_path: Path) -> None:
    """In the middle of every job, one of those who do it is killed."""
    run = [sys.executable, __file__, "survive", str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert {path.name for path in tmp_path.glob("killed-*")} == {f"killed-{job}" for job in outcome}
    pairs = [list(pair) for pair in expected()]
    assert outcome == {"local": pairs, "grid": pairs, "append": sorted(HELD)}


def survive(folder: Path) -> None:
    """Match and append on a cluster some of whose processes are killed, and print what came of it."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    os.environ["SPARK_WORKER_DIR"] = str(folder / "work")
    spark = local_session(CLUSTER, name="harken faults", settings=settings)
    store, again = (Subscriptions.create(folder / name) for name in ("subscriptions", "again"))
    store.append(HELD.items())
    index = build_index(spark, store, shards=3)
    outcome: dict[str, list[object]] = {}
    for strategy, kill in (("local", kill_worker), ("grid", kill_executor)):
        ids = deadly(spark.range(0, EVENTS, 1, 4), kill, folder / f"killed-{strategy}")
        events = ids.selectExpr("id", "id % 10 as n", "id % 7 as m")
        write_table(match(events, index, event_id="id", strategy=strategy), folder / strategy)  # type: ignore[arg-type]
        rows = pq.read_table(folder / strategy).to_pylist()
        outcome[strategy] = sorted((row["event"], row["subscription"]) for row in rows)
    ids = deadly(spark.createDataFrame([(id,) for id in HELD], "id bigint"), kill_worker, folder / "killed-append")
    again.append(ids.selectExpr("id", "'n = 1' as expression"))
    outcome["append"] = sorted(again.ids(again.snapshot()).to_pylist())
    print(json.dumps(outcome))
    spark.stop()


def deadly(rows: DataFrame, kill: Callable[[], None], marker: Path) -> DataFrame:
    """The same rows, but whoever comes to them first is killed when some have gone on."""
    return rows.mapInArrow(partial(passed_on, kill, str(marker)), rows.schema)


def passed_on(
    kill: Callable[[], None], marker: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        kill()


def kill_worker() -> None:
    """End this Python process, as a lack of memory would."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_executor() -> None:
    """End the Java process that this Python process works for."""
    process = os.getppid()
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{process}/cmdline").read_bytes():
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(process, signal.SIGKILL)


# ---------------------------------------------------------------- at once


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each appends some of its own, and one that all of them want."""
    store = Subscriptions.create(tmp_path / "subscriptions")
    command = [sys.executable, __file__, "append", str(store.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, str(number)], **pipes) for number in range(3)]  # type: ignore[call-overload]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    said = [writer.communicate(timeout=120)[0].strip() for writer in writers]
    assert sorted(said) == ["refused", "refused", "taken"]
    ids = sorted(store.ids(store.snapshot()).to_pylist())
    assert ids == sorted([*(10 * number + at for number in range(3) for at in range(4)), 99])
    assert store.version == 13
    assert store.vacuum() == 0, "what was refused is gone"


def append(path: Path, number: int) -> None:
    store = Subscriptions(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for at in range(4):
        store.append([(10 * number + at, "x = 1")])
    try:
        store.append([(99, f"x = {number}")])
    except DuplicateSubscriptionError:
        print("refused")
    else:
        print("taken")


def test_jobs_that_append_at_once_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    store = Subscriptions.create(tmp_path / "subscriptions")

    def append_some(number: int) -> int:
        rows = spark.range(10 * number, 10 * number + 5, 1, 2).selectExpr("id", "concat('x = ', id) as expression")
        return Subscriptions(store.path).append(rows).rows

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(append_some, range(3))) == [5, 5, 5]
    assert len(store.ids(store.snapshot())) == 15


# ---------------------------------------------------------------- failed


@pytest.mark.parametrize("strategy", ["local", "grid"])
def test_a_job_that_fails_leaves_no_output(spark: SparkSession, tmp_path: Path, strategy: str) -> None:
    """An event of the last partition cannot be matched, when others have been."""
    store = Subscriptions.create(tmp_path / "subscriptions", schema={"n": "float", "m": "float"})
    store.append(HELD.items())
    index = build_index(spark, store, shards=2)
    bad = "if(id = 59, double('NaN'), id % 10) as n"
    events = spark.range(0, EVENTS, 1, 4).selectExpr("id", bad, "id % 7 as m")
    found = match(events, index, event_id="id", strategy=strategy)  # type: ignore[arg-type]
    out = tmp_path / "new" / "folder"
    with pytest.raises(PySparkException, match=r"EventError: .*attribute 'n' is declared float, found NaN"):
        write_table(found, out / "table")
    assert not out.parent.exists()
    sink = TableSink(out)
    with pytest.raises(PySparkException, match="EventError"):
        sink.write(0, found)
    assert [path for path in everything(out) if path.is_file()] == []
    sink.write(0, match(events.where("id < 59"), index, event_id="id", strategy=strategy))  # type: ignore[arg-type]
    rows = sorted((row["event"], row["subscription"]) for row in sink.read(spark).collect())
    assert rows == [pair for pair in expected() if pair[0] < 59]


if __name__ == "__main__":
    _, role, place, *rest = sys.argv
    if role == "survive":
        survive(Path(place))
    else:
        append(Path(place), *map(int, rest))
