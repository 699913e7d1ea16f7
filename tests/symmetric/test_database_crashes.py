"""However writers and servers die, nothing that was acknowledged is lost, and nothing is half done."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Literal, TypeAlias

import psutil
import pytest

from harken.errors import DatabaseError
from harken.symmetric.contract import Held, Side, Store
from harken.symmetric.database import DatabaseStore
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import DIRECTIONS, boxes_of
from tests.symmetric.checks import NOW, SIDES
from tests.symmetric.conftest import ENCODINGS, Backend, started_postgres

Step: TypeAlias = tuple[Literal["put", "remove"], Side, str, str]
Note: TypeAlias = tuple[Literal["begin", "done"], Step]

TEXTS = [
    "x = 1 and name > 'a'",
    "x in (1, 2) or name = 'b'",
    "x between 0 and 5 and name = 'b' and place within box(0, 0, 2, 2)",
    "place overlaps box(1, 1, 3, 3)",
    "x is not null and name < 'c'",
    "x = 2",
]
PROBES = [boxes_of(text) for text in [*TEXTS, "true", "x = 1 and name = 'b' and place = box(1, 1, 2, 2)"]]
IDS = [f"id-{at}" for at in range(8)]
KILLED_WRITERS = {"sqlite": 22, "postgresql": 8}
"""For each encoding."""
KILLED_SERVERS = 8


def steps(seed: int, known: dict[Side, set[str]]) -> Iterator[Step]:
    """Random changes; `known` follows what they did."""
    chance = random.Random(seed)
    while True:
        side = chance.choice(SIDES)
        if known[side] and chance.random() < 0.3:
            id = chance.choice(sorted(known[side]))
            yield "remove", side, id, ""
            known[side].discard(id)
        else:
            id = chance.choice(IDS)
            yield "put", side, id, chance.choice(TEXTS)
            known[side].add(id)


def do(store: Store, step: Step) -> None:
    what, side, id, text = step
    if what == "put":
        store.put(side, [Held(id, boxes_of(text), text)], "publication", replace=True, notify=True, at=NOW)
    else:
        store.remove(side, [id])


def churn(store: Store, seed: int, note: Callable[[Note], None]) -> None:
    """Change a store until something goes wrong, with a note before and after each change."""
    known: dict[Side, set[str]] = {side: {str(id) for id in store.ids(side)} for side in SIDES}
    for step in steps(seed, known):
        note(("begin", step))
        do(store, step)
        note(("done", step))


def churn_until_killed(url: str, schema: str, encoding: Any, seed: int, out: Connection) -> None:
    """What a child process does."""
    churn(DatabaseStore(url, schema_name=schema, encoding=encoding), seed, out.send)


def picture(store: Store) -> object:
    """All that can be seen of a store."""
    kept = {(side, id): store.get(side, id) for side in SIDES for id in store.ids(side)}
    told = Counter((each.publication, each.subscription) for each in store.notices(10_000))
    found = [set(store.match(side, PROBES, covers, at=NOW)) for side in SIDES for covers in DIRECTIONS]
    return kept, told, found


def compare(store: Store, model: Store, notes: list[Note]) -> None:
    """What was acknowledged is there; what was begun last is there entirely, or not at all."""
    for state, step in notes:
        if state == "done":
            do(model, step)
    seen = picture(store)
    if seen != picture(model):
        state, step = notes[-1]
        assert state == "begin"
        do(model, step)
        assert seen == picture(model)
    for each in (store, model):
        each.settle([notice.number for notice in each.notices(10_000)])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_writers_that_are_killed(backend: Backend, encoding: str) -> None:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    chance = random.Random(f"{backend.name}-{encoding}")
    store, model = backend.empty(encoding=encoding), ReferenceStore()
    store.count("subscriptions")
    for seed in range(KILLED_WRITERS[backend.name]):
        inlet, outlet = processes.Pipe(duplex=False)
        arguments = (backend.url, backend.schema, encoding, seed, outlet)
        writer = processes.Process(target=churn_until_killed, args=arguments)
        writer.start()
        outlet.close()
        notes: list[Note] = []
        for _ in range(chance.randint(1, 24)):
            notes.append(inlet.recv())
        time.sleep(chance.random() * 0.01)
        writer.kill()
        try:
            while True:
                notes.append(inlet.recv())
        except (EOFError, OSError):  # perhaps in the middle of a note
            writer.join()
        wait_for_orphans(backend)
        compare(store, model, notes)


def wait_for_orphans(backend: Backend) -> None:
    """Until the server has done, or dropped, what a killed writer had sent: it may even commit after the kill."""
    if backend.name == "sqlite":
        return
    busy = (
        "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        " and pid <> pg_backend_pid() and state <> 'idle'"
    )
    deadline = time.monotonic() + 60
    while backend.run(busy) != [(0,)]:
        assert time.monotonic() < deadline, "the server still works for somebody who is gone"
        time.sleep(0.01)


def test_servers_that_are_killed() -> None:
    """Now and then a process of the server, which then starts anew by itself; now and then the server."""
    chance = random.Random(7)
    with started_postgres() as server:
        store, model = DatabaseStore(server.get_uri(), schema_name="killed"), ReferenceStore()
        store.count("subscriptions")
        for seed in range(KILLED_SERVERS):
            notes: list[Note] = []
            writer = threading.Thread(target=_until_it_fails, args=(store, seed, notes))
            writer.start()
            while len(notes) < chance.randint(1, 24):
                time.sleep(0.001)
            time.sleep(chance.random() * 0.01)
            postmaster = psutil.Process(server.get_pid())
            if seed % 2:
                _kill_backends(postmaster)
            else:
                postmaster.send_signal(signal.SIGQUIT)  # no farewell: as after a loss of power
                psutil.wait_procs([postmaster], timeout=60)
            writer.join()
            if not postmaster.is_running():
                server.ensure_postgres_running()
            _wait_for(store)
            compare(store, model, notes)
        store.close()


def _until_it_fails(store: Store, seed: int, notes: list[Note]) -> None:
    with pytest.raises(DatabaseError):
        churn(store, seed, notes.append)


def _kill_backends(postmaster: psutil.Process) -> None:
    """The server ends all others then, and starts anew: until it has, some of them still answer."""
    before = {process: " ".join(process.cmdline()) for process in postmaster.children()}
    killed = [process for process, said in before.items() if "postgres postgres" in said]  # its user and database
    for process in killed:
        os.kill(process.pid, signal.SIGKILL)
    if killed:
        psutil.wait_procs([process for process, said in before.items() if "logger" not in said], timeout=60)


def _wait_for(store: Store) -> None:
    for _ in range(600):
        try:
            store.count("subscriptions")
        except DatabaseError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the server does not come back")
