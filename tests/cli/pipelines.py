"""Running `harken pipeline`, and what it leaves."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from tests.cli.running import Outcome, run

MATCHES = [("e1", "ann"), ("e1", "bob"), ("e2", "bob")]
"""Of the files of the fixtures."""


def pipeline(subscriptions: Path, events: Path, output: object, *more: object) -> Outcome:
    """Run it in this process, with the session of the tests."""
    return run("pipeline", "-s", subscriptions, "-e", events, "-o", output, *more)


def stream(subscriptions: Path, incoming: Path, out: object, *more: object) -> Outcome:
    """Run it as a stream, of all there is."""
    return pipeline(subscriptions, incoming, out, "--stream", "--once", *more)


def pairs(folder: Path) -> list[tuple[object, object]]:
    """The matches in a folder."""
    table = pq.read_table(folder)
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def rows(folder: Path) -> list[dict[str, object]]:
    """The rows of a table."""
    found: list[dict[str, object]] = pq.read_table(folder).to_pylist()
    return found


def apart(*arguments: object, folder: Path) -> subprocess.Popen[str]:
    """A run as users make it, in a session of processes by which those that it leaves behind can be found."""
    command = [sys.executable, "-m", "harken", "pipeline", *map(str, arguments), "--master", "local[2]"]
    return subprocess.Popen(
        command, cwd=folder, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def left_behind(session: int) -> list[str]:
    """The processes of a session."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            name, fields = status.read_text().split("(", 1)[1].rsplit(")", 1)
            state, _, _, of = fields.split()[:4]
            if int(of) == session and state != "Z":  # of a zombie nothing is left but its name
                found.append(name)
    return found
