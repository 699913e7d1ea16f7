"""A stream that is killed again and again gives exactly the matches of one that never was."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken.spark.storage import Folder
from harken.spark.streaming.ledger import Ledger
from tests.spark.servers.hdfs import HdfsCluster
from tests.spark.servers.jars import UnreachableError
from tests.spark.servers.s3 import S3Server
from tests.spark.streaming import streaming_program
from tests.spark.streaming.streaming_program import STEPS, Layout, prepare

PATIENCE = 600
"""Seconds that one life may take, however busy the machine is."""

pytestmark = pytest.mark.long

POINTS = tuple(f"{owner.__name__}.{name} {when}" for owner, name in STEPS for when in ("begins", "ends"))
"""What a program says in the course of a batch."""


class Life:
    """One process of the program, in a session of its own so that all it starts can be found."""

    def __init__(self, layout: Layout, *java_options: str) -> None:
        self._over = False
        self._output = layout.folder / f"{uuid.uuid4().hex}.out"
        self._errors = self._output.with_suffix(".err")
        with open(self._output, "wb") as output, open(self._errors, "wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, streaming_program.__file__, str(layout.folder), *java_options],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def go(self) -> None:
        """Let it begin with the stream."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def finish(self) -> None:
        """Wait until all is done, and Java and the workers have ended too."""
        self._process.wait(PATIENCE)
        self._healthy()
        deadline = time.monotonic() + 60
        while self._members():
            assert time.monotonic() < deadline, "not all of its processes end"
            time.sleep(0.05)
        self._over = True

    def said(self) -> list[str]:
        """At which points of batches it has been."""
        return [line for line in self._output.read_text(encoding="utf-8").splitlines() if line in POINTS]

    def reaches(self, point: str, times: int) -> bool:
        """Wait until it is at a point for the second time, say; False if all is done before."""
        deadline = time.monotonic() + PATIENCE
        while self.said().count(point) < times:
            if self._process.poll() is not None:
                self._healthy()
                return False
            assert time.monotonic() < deadline, f"it takes too long:\n{self._complaints()}"
            time.sleep(0.005)
        return True

    def kill(self) -> None:
        """End it at once, with Java and the workers; afterwards nothing of it runs."""
        if self._over:  # its number may be that of others by now
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while running := self._members():
            for process in running:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            assert time.monotonic() < deadline, f"{running} do not end"
            time.sleep(0.01)
        self._process.wait(60)
        self._over = True

    def close(self) -> None:
        """Let go of its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _members(self) -> list[int]:
        """All processes of its session that are alive; workers have a group of their own in it."""
        members = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self._process.pid and state not in "ZX":
                    members.append(int(folder.name))
        return members

    def _healthy(self) -> None:
        assert self._process.returncode == 0, f"the program failed:\n{self._complaints()}"

    def _complaints(self) -> str:
        return self._errors.read_text(encoding="utf-8", errors="replace")[-5_000:]


@pytest.fixture
def begin() -> Iterator[Callable[..., Life]]:
    """Begins lives, none of which outlives the test."""
    lives: list[Life] = []

    def begun(layout: Layout, *java_options: str) -> Life:
        lives.append(Life(layout, *java_options))
        return lives[-1]

    yield begun
    for life in lives:
        life.kill()
        life.close()


def unfinished(layout: Layout) -> bool:
    """Whether Spark has begun a batch that it has not done."""
    begun, done = (_numbers(layout.checkpoint.child(f"spark/{folder}")) for folder in ("offsets", "commits"))
    return max(begun, default=-1) > max(done, default=-1)


def _numbers(folder: Folder) -> list[int]:
    return [int(each.name) for each in folder.entries() if each.name.isdigit()]


def table(layout: Layout) -> list[tuple[int, int, int]]:
    """All rows that readers of the table find."""
    found = []
    for each in layout.table.files():
        batch = re.fullmatch(r"batch=(\d+)/[^.].*\.parquet", each.name)
        if batch is not None:
            rows = pq.read_table(pa.BufferReader(layout.table.read(each.name))).to_pylist()
            found += [(int(batch[1]), row["event"], row["subscription"]) for row in rows]
    return sorted(found)


def database(layout: Layout) -> tuple[list[object], list[object]]:
    """The pairs, and the notes of batches."""
    with closing(sqlite3.connect(layout.database)) as connection:
        pairs = connection.execute("select batch, event, subscription from notifications").fetchall()
        notes = connection.execute("select batch, matches from notifications_batches").fetchall()
    return sorted(pairs), sorted(notes)


def decisions(layout: Layout) -> list[tuple[int, int, int, datetime]]:
    entries = Ledger(layout.checkpoint.child("harken/ledger")).entries()
    return [(entry.batch, entry.before, entry.version, entry.clock) for entry in entries]


@dataclass(frozen=True)
class Ground:
    """Where folders of runs are made, and a folder of a store, with what leads there, if one is used."""

    folder: Path
    store: Mapping[str, Any] | None = None
    batches: int = 18
    kills: int = 10
    """How often a batch must have been cut short."""

    def prepared(self, name: str) -> Layout:
        """A run that can begin."""
        layout = Layout(self.folder / name)
        layout.folder.mkdir()
        if self.store is not None:
            store = {**self.store, "address": f"{self.store['address']}/{name}"}
            (layout.folder / "store.json").write_text(json.dumps(store), encoding="utf-8")
        prepare(layout, self.batches)
        return layout


@pytest.fixture(params=["local", "s3", "hdfs"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """A disk, S3 and HDFS."""
    if request.param == "local":
        return Ground(tmp_path)
    server: S3Server | HdfsCluster = request.getfixturevalue(f"{request.param}_store")
    options = server.options if isinstance(server, S3Server) else {}
    try:
        settings = server.spark_settings
    except UnreachableError as error:
        pytest.skip(f"jars are not in the cache, and Maven Central cannot be reached: {error}")
    address = f"{server.address}/killed {uuid.uuid4().hex[:8]}"
    return Ground(tmp_path, {"address": address, "options": options, "settings": settings})


def test_a_stream_that_is_killed_again_and_again_ends_with_the_matches_of_an_undisturbed_one(
    ground: Ground, begin: Callable[..., Life]
) -> None:
    calm, killed = ground.prepared("calm"), ground.prepared("killed")
    classes = ground.folder / "classes.jsa"
    undisturbed = begin(calm, f"-XX:ArchiveClassesAtExit={classes}")
    undisturbed.go()
    undisturbed.finish()

    # What Java has loaded once it starts with twice as fast; and while one life is lived, the next one gets ready.
    ready = f"-XX:SharedArchiveFile={classes}"
    chance = random.Random("kills")
    cut_short: list[str] = []
    life, following = begin(killed, ready), begin(killed, ready)
    for point in chance.sample(POINTS * 2, 2 * ground.kills):
        life.go()
        if not life.reaches(point, times=chance.choice([1, 1, 2])):
            break
        time.sleep(chance.choice([0.0, 0.1, 0.8]) * chance.random())
        life.kill()
        if unfinished(killed):
            cut_short.append(life.said()[-1])
        if len(cut_short) >= ground.kills:
            break
        life, following = following, begin(killed, ready)
    following.go()
    following.finish()

    written = POINTS.index("TableSink.write ends")
    assert len(cut_short) >= ground.kills
    assert any(POINTS.index(point) < written for point in cut_short), "some before the matches were there"
    assert any(POINTS.index(point) >= written for point in cut_short), "and some after"
    assert [batch for batch, *_ in decisions(calm)] == list(range(ground.batches))
    assert any(event // 100 < batch for batch, event, _ in table(calm)), "some events met later subscriptions"
    assert decisions(killed) == decisions(calm)
    assert table(killed) == table(calm)
    assert database(killed) == database(calm)


def test_where_another_file_system_is_the_default_all_of_a_stream_is_where_it_was_told_to_be(
    tmp_path: Path, begin: Callable[..., Life]
) -> None:
    # Nobody listens there: whatever Spark was told without a scheme would fail.
    elsewhere = {
        "spark.hadoop.fs.defaultFS": "hdfs://127.0.0.1:9",
        "spark.hadoop.ipc.client.connect.max.retries": "0",
    }
    warehouse = {"spark.sql.warehouse.dir": (tmp_path / "warehouse").as_uri()}
    ground = Ground(
        tmp_path, {"address": str(tmp_path), "options": {}, "settings": elsewhere | warehouse}, batches=3
    )
    layout = ground.prepared("run")
    life = begin(layout)
    life.go()
    life.finish()
    assert _numbers(layout.checkpoint.child("spark/commits")) == list(range(ground.batches))
    assert [batch for batch, *_ in decisions(layout)] == list(range(ground.batches))
    assert {batch for batch, *_ in table(layout)} <= set(range(ground.batches))
    assert len(table(layout)) == len(database(layout)[0]) > 0
