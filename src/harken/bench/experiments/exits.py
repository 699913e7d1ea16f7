"""Whether every run of the command ends as it should, beside cores that are kept busy.

A thread that outlives the interpreter takes the process down only now and then, and more often the busier the
machine is. So the runs are many, and of every kind that can leave a reader behind: files read to their end, left
in the middle by an error, and output whose reader goes away.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harken.bench.measuring import Bench, Figure, Result

EVENTS = 4_000
PATIENCE = 600
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run: what is asked for, and how it has to end."""

    name: str
    arguments: tuple[str, ...]
    status: int = 0
    reads_on: bool = True
    """Whether somebody takes all that is printed."""


KINDS = (
    Kind("CSV", ("match", "-s", "s.csv", "-e", "e.csv")),
    Kind("compressed CSV", ("match", "-s", "s.csv", "-e", "e.csv.gz")),
    Kind("JSON Lines", ("match", "-s", "s.csv", "-e", "e.jsonl")),
    Kind("Parquet", ("match", "-s", "s.csv", "-e", "e.parquet", "-o", "matches.parquet")),
    Kind("a bad row of CSV", ("match", "-s", "s.csv", "-e", "bad.csv"), status=2),
    Kind("CSV, reader gone", ("match", "-s", "s.csv", "-e", "long.csv"), status=141, reads_on=False),
    Kind("check", ("check", "s.csv")),
)


def run(bench: Bench) -> Result:
    """Run each kind over and over; AssertionError for the first run that ends in another way than it should."""
    times = bench.pick(1, 60)
    at_once = bench.pick(1, 2) * (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder, _busy_cores() as busy, ThreadPoolExecutor(at_once) as pool:
        _write_files(Path(folder), bench.seed)
        runs = [pool.submit(_check, kind, Path(folder), turn) for turn in range(times) for kind in KINDS]
        with bench.progress.step("runs", len(runs)) as done:
            for count, each in enumerate(runs, 1):
                each.result()
                done(count)
    return Result(
        "How runs of the command end",
        {"events": f"{EVENTS:,}", "runs at once": str(at_once), "busy processes beside them": str(busy)},
        [Figure(f"ended well: {kind.name}", "runs", (float(times),)) for kind in KINDS],
        [],
        notes=["A run that ends with another status than it should, or is torn down, stops the experiment."],
    )


def _check(kind: Kind, folder: Path, turn: int = 0) -> None:
    arguments = [each.replace("matches", f"matches-{turn}") for each in kind.arguments]
    command = [sys.executable, "-m", "harken", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None, "it was asked for"
        if not kind.reads_on:
            process.stdout.readline()
            process.stdout.close()
            process.stdout = None
        _, said = process.communicate(timeout=PATIENCE)
    if process.returncode != kind.status or b"terminate" in said or b"Traceback" in said:
        raise AssertionError(f"{kind.name}: ended with {process.returncode}, not {kind.status}:\n{said.decode()}")


@contextmanager
def _busy_cores() -> Iterator[int]:
    """A process for every core that does nothing but compute."""
    count = os.cpu_count() or 1
    processes = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield count
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _write_files(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    rows = [
        {"id": at, "item": chance.choice(("camera", "lens")), "price": round(chance.uniform(0, 900), 2)}
        for at in range(EVENTS)
    ]
    cells = "id,item,price\n" + "".join(f"{row['id']},{row['item']},{row['price']}\n" for row in rows)
    (folder / "e.csv").write_text(cells)
    (folder / "long.csv").write_text("price\n" + "200\n" * (20 * EVENTS))  # more matches than a pipe holds
    (folder / "bad.csv").write_text(f"{cells}1,camera\n{cells}")
    (folder / "e.csv.gz").write_bytes(gzip.compress(cells.encode()))
    (folder / "e.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "e.parquet")
    (folder / "s.csv").write_text("id,expression\na,item = 'camera' AND price < 300\nb,price > 100\nc,price < 9\n")
