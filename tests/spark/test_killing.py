"""A stream that is killed again and again gives exactly the matches of one that never was."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harken.spark.ledger import Ledger
from tests.spark import streaming_program
from tests.spark.streaming_program import BATCHES, STEPS, Layout, prepare

KILLS = 10
"""How often a batch must have been cut short."""
MOST_LIVES = 20
PATIENCE = 600
"""Seconds that one life may take, however busy the machine is."""

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
    begun, done = (_numbers(layout.checkpoint / "spark" / folder) for folder in ("offsets", "commits"))
    return max(begun, default=-1) > max(done, default=-1)


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("*") if path.name.isdigit()]


def table(layout: Layout) -> list[tuple[int, int, int]]:
    rows = pq.read_table(layout.table).to_pylist()
    return sorted((row["batch"], row["event"], row["subscription"]) for row in rows)


def database(layout: Layout) -> tuple[list[object], list[object]]:
    """The pairs, and the notes of batches."""
    with closing(sqlite3.connect(layout.database)) as connection:
        pairs = connection.execute("select batch, event, subscription from notifications").fetchall()
        notes = connection.execute("select batch, matches from notifications_batches").fetchall()
    return sorted(pairs), sorted(notes)


def decisions(layout: Layout) -> list[tuple[int, int, int, datetime]]:
    entries = Ledger(layout.checkpoint / "harken" / "ledger").entries()
    return [(entry.batch, entry.before, entry.version, entry.clock) for entry in entries]


def prepared(folder: Path) -> Layout:
    layout = Layout(folder)
    prepare(layout)
    return layout


def test_a_stream_that_is_killed_again_and_again_ends_with_the_matches_of_an_undisturbed_one(
    tmp_path: Path, begin: Callable[..., Life]
) -> None:
    calm, killed = prepared(tmp_path / "calm"), prepared(tmp_path / "killed")
    classes = tmp_path / "classes.jsa"
    undisturbed = begin(calm, f"-XX:ArchiveClassesAtExit={classes}")
    undisturbed.go()
    undisturbed.finish()

    # What Java has loaded once it starts with twice as fast; and while one life is lived, the next one gets ready.
    ready = f"-XX:SharedArchiveFile={classes}"
    chance = random.Random("kills")
    cut_short: list[str] = []
    life, following = begin(killed, ready), begin(killed, ready)
    for point in chance.sample(POINTS * 2, MOST_LIVES):
        life.go()
        if not life.reaches(point, times=chance.choice([1, 1, 2])):
            break
        time.sleep(chance.choice([0.0, 0.1, 0.8]) * chance.random())
        life.kill()
        if unfinished(killed):
            cut_short.append(life.said()[-1])
        if len(cut_short) >= KILLS:
            break
        life, following = following, begin(killed, ready)
    following.go()
    following.finish()

    written = POINTS.index("TableSink.write ends")
    assert len(cut_short) >= KILLS
    assert any(POINTS.index(point) < written for point in cut_short), "some before the matches were there"
    assert any(POINTS.index(point) >= written for point in cut_short), "and some after"
    assert [batch for batch, *_ in decisions(calm)] == list(range(BATCHES))
    assert any(event // 100 < batch for batch, event, _ in table(calm)), "some events met later subscriptions"
    assert decisions(killed) == decisions(calm)
    assert table(killed) == table(calm)
    assert database(killed) == database(calm)
