"""A stream that is killed again and again gives exactly the matches of one that never was."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harken.spark.ledger import Ledger
from tests.spark import streaming_program
from tests.spark.streaming_program import BATCHES, Layout, prepare

KILLS = 10
"""How often a batch must have been cut short."""
MOST_LIVES = 20
PATIENCE = 600
"""Seconds that one life may take, however busy the machine is."""

STAGES = ("planned", "decided", "staged", "written", "kept", "committed")
"""How far a batch can be, by what it has left in the folders."""

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Progress:
    """How far a stream is: its latest batch, and the stage of that."""

    batch: int
    stage: str

    @classmethod
    def of(cls, layout: Layout) -> Progress | None:
        """None before the first batch."""
        batch = max(_numbers(layout.checkpoint / "spark" / "offsets"), default=None)
        if batch is None:
            return None
        marks: dict[str, Callable[[], bool]] = {
            "committed": lambda: (layout.checkpoint / "spark" / "commits" / str(batch)).exists(),
            "kept": lambda: (layout.checkpoint / "harken" / "events" / f"batch={batch}").exists(),
            "written": lambda: (layout.table / f"batch={batch}").exists(),
            "staged": lambda: any((layout.table / ".staging").glob(f"{batch}-*")),
            "decided": lambda: Ledger(layout.checkpoint / "harken" / "ledger").entry(batch) is not None,
        }
        return cls(batch, next((stage for stage, reached in marks.items() if reached()), "planned"))

    def beyond(self, batch: int, stage: str) -> bool:
        """Whether this stage of this batch is reached."""
        return (self.batch, STAGES.index(self.stage)) >= (batch, STAGES.index(stage))


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()]


class Life:
    """One process of the program, in a session of its own so that all it starts can be found."""

    def __init__(self, layout: Layout, *java_options: str) -> None:
        self.layout = layout
        self.log = layout.folder / "log.txt"
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, streaming_program.__file__, str(layout.folder), *java_options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
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
        while self._members() and time.monotonic() < deadline:
            time.sleep(0.05)

    def reaches(self, batch: int, stage: str) -> bool:
        """Wait until a stage of a batch is reached; False if all was done before."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            progress = Progress.of(self.layout)
            if progress is not None and progress.beyond(batch, stage):
                return True
            if self._process.poll() is not None:
                self._healthy()
                return False
            time.sleep(0.003)
        raise AssertionError(f"batch {batch} was not {stage} in time:\n{self._said()}")

    def kill(self) -> None:
        """End it at once, with Java and the workers; afterwards nothing of it runs."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while running := self._members():
            for process in running:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self._process.poll()
            assert time.monotonic() < deadline, f"{running} do not end"
            time.sleep(0.01)
        self._process.wait(60)
        if self._process.stdin is not None:
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
        assert self._process.returncode == 0, f"the program failed:\n{self._said()}"

    def _said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-5_000:]


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


def table(layout: Layout) -> Rows:
    rows = pq.read_table(layout.table).to_pylist()
    return sorted((row["batch"], row["event"], row["subscription"]) for row in rows)


def database(layout: Layout) -> tuple[Rows, Rows]:
    """The pairs, and the notes of batches."""
    with closing(sqlite3.connect(layout.database)) as connection:
        pairs = connection.execute("select batch, event, subscription from notifications").fetchall()
        notes = connection.execute("select batch, matches from notifications_batches").fetchall()
    return sorted(pairs), sorted(notes)


def decisions(layout: Layout) -> Rows:
    entries = Ledger(layout.checkpoint / "harken" / "ledger").entries()
    return [(entry.batch, entry.before, entry.version, entry.clock) for entry in entries]


def prepared(folder: Path) -> Layout:
    layout = Layout(folder)
    prepare(layout)
    return layout


def test_a_stream_that_is_killed_again_and_again_ends_with_the_matches_of_an_undisturbed_one(
    tmp_path: Path, begin: Callable[..., Life]
) -> None:
    T0 = time.monotonic()
    calm, killed = prepared(tmp_path / "calm"), prepared(tmp_path / "killed")
    classes = tmp_path / "classes.jsa"
    undisturbed = begin(calm, f"-XX:ArchiveClassesAtExit={classes}")
    undisturbed.go()
    undisturbed.finish()
    print(f"{time.monotonic() - T0:.1f} {classes.exists()}")

    # What Java has loaded once it starts with twice as fast; and while one life is lived, the next one gets ready.
    ready = f"-XX:SharedArchiveFile={classes}"
    chance = random.Random("kills")
    cut_short: list[str] = []
    life, following = begin(killed, ready), begin(killed, ready)
    for stage in chance.sample(STAGES * 4, MOST_LIVES):
        life.go()
        done = max(_numbers(killed.checkpoint / "spark" / "commits"), default=-1)
        if not life.reaches(done + chance.choice([1, 1, 2]), stage):
            break
        time.sleep(chance.choice([0.0, 0.1, 0.8]) * chance.random())
        life.kill()
        at = Progress.of(killed)
        assert at is not None
        print(f"{time.monotonic() - T0:.1f} wanted {stage}, found {at}")
        if at.stage != "committed":
            cut_short.append(at.stage)
        if len(cut_short) >= KILLS:
            break
        life, following = following, begin(killed, ready)
    following.go()
    following.finish()
    print(f"{time.monotonic() - T0:.1f}")

    assert len(cut_short) >= KILLS
    assert {"written", "kept"} & set(cut_short), "some were cut short after the matches were there"
    assert {"planned", "decided", "staged"} & set(cut_short), "and some before"
    assert [batch for batch, *_ in decisions(calm)] == list(range(BATCHES))
    assert decisions(killed) == decisions(calm)
    assert table(killed) == table(calm)
    assert database(killed) == database(calm)
