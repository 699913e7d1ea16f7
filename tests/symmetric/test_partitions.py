"""Rows of servers find what one store finds, before, while and after they are divided anew."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harken.errors import ConcurrentChangeError, IndexFormatError, UnknownSubscriptionError
from harken.symmetric.contract import Held, Store
from harken.symmetric.database.directory import DatabaseDirectory, schemas_of
from harken.symmetric.partitions import MemoryDirectory, PartitionedEngine, Partitions
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import boxes_of
from tests.symmetric.conftest import Backend
from tests.symmetric.constraints import Constraints

HALVES = {"low": "x < 2", "high": "x >= 2"}
THIRDS = {"one": "x < 1", "two": "x BETWEEN 1 AND 2", "three": "x > 2"}


class Farm:
    """Stores by name, as several processes would share them."""

    def __init__(self) -> None:
        self.stores: dict[str, ReferenceStore] = {}

    def open(self, name: str) -> Store:
        return self.stores.setdefault(name, ReferenceStore())


def started(constraints=HALVES):
    directory, farm = MemoryDirectory(), Farm()
    return PartitionedEngine.start(directory, farm.open, constraints), directory, farm


class Shared:
    """A directory and rows in a database, for as many processes as like to open it."""

    def __init__(self, backend: Backend) -> None:
        backend.empty()
        self._backend = backend
        self._directories: list[DatabaseDirectory] = []
        self.stores: dict[str, Store] = {}

    def directory(self) -> DatabaseDirectory:
        self._directories.append(DatabaseDirectory(self._backend.url, schema_name=self._backend.schema))
        return self._directories[-1]

    def open(self, name: str) -> Store:
        """A row in a schema whose name is the test's own."""
        if name not in self.stores:
            rows = schemas_of(self._backend.url)
            self.stores[name] = rows(f"{self._backend.schema}_{name}")
        return self.stores[name]

    def close(self) -> None:
        for each in (*self._directories, *self.stores.values()):
            each.close()
        if self._backend.name == "postgresql":
            for name in self.stores:
                self._backend.run(f"drop schema if exists {self._backend.schema}_{name} cascade")


@pytest.fixture
def shared(backend):
    found = Shared(backend)
    yield found
    found.close()


def test_a_directory_in_a_database_is_shared_and_exchanged_only_by_who_knows_it(shared):
    one, other = shared.directory(), shared.directory()
    assert one.read() is None
    first, second = Partitions(1, HALVES), Partitions(2, THIRDS, next_version=3)
    one.write(None, first)
    assert other.read() == first
    with pytest.raises(ConcurrentChangeError):
        other.write(None, second)
    other.write(first, second)
    with pytest.raises(ConcurrentChangeError):
        one.write(first, Partitions(2, HALVES))
    assert one.read() == second


def test_of_many_that_write_a_directory_at_once_one_succeeds(shared):
    directories = [shared.directory() for _ in range(4)]

    def write(place):
        try:
            directories[place].write(None, Partitions(1, {str(place): "x = 1"}))
        except ConcurrentChangeError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        wrote = list(threads.map(write, range(4)))
    assert sum(wrote) == 1
    assert directories[0].read() == Partitions(1, {str(wrote.index(True)): "x = 1"})


def test_rows_in_schemas_of_a_database_are_divided_anew(shared):
    engine = PartitionedEngine.start(shared.directory(), shared.open, HALVES)
    other = PartitionedEngine(shared.directory(), shared.open)
    made, one = Constraints("schemas"), ReferenceStore()
    for id in range(20):
        text, boxes = made.boxes()
        (engine if id % 2 else other).subscribe(id, text)
        one.put("subscriptions", [Held(id, boxes, text)], "publication")
    asked = [made.text() for _ in range(8)]
    found = [sorted(id for _, id in one.match("subscriptions", [boxes_of(text)], "publication")) for text in asked]
    assert [sorted(other.match(text)) for text in asked] == found
    engine.reconfigure(THIRDS)
    assert [sorted(other.match(text)) for text in asked] == found
    assert {name for name, store in shared.stores.items() if store.ids("subscriptions")} <= {
        "one_2",
        "two_2",
        "three_2",
    }


def test_subscriptions_lie_in_the_rows_they_can_concern():
    engine, _, farm = started()
    engine.subscribe("left", "x = 1")
    engine.subscribe("right", "x = 2 AND y = 5")
    engine.subscribe("both", "x BETWEEN 1 AND 3")
    engine.subscribe("any", "y = 5")
    assert set(farm.stores["low_1"].ids("subscriptions")) == {"left", "both", "any"}
    assert set(farm.stores["high_1"].ids("subscriptions")) == {"right", "both", "any"}
    assert sorted(engine.match("x BETWEEN 1 AND 2")) == ["both", "left", "right"]
    assert engine.match("y = 5") == ["any", "right"]


@pytest.mark.parametrize("seed", range(10))
def test_rows_find_what_one_store_finds(seed):
    made = Constraints(f"rows-{seed}")
    engine, _, _ = started(THIRDS)
    one = ReferenceStore()
    for id in range(30):
        text, boxes = made.boxes()
        engine.subscribe(id, text)
        one.put("subscriptions", [Held(id, boxes, text)], "publication")
    for text in [made.text() for _ in range(15)]:
        expected = [id for _, id in one.match("subscriptions", [boxes_of(text)], "publication")]
        assert sorted(engine.match(text)) == sorted(expected)
    engine.reconfigure(HALVES)
    for text in [made.text() for _ in range(15)]:
        expected = [id for _, id in one.match("subscriptions", [boxes_of(text)], "publication")]
        assert sorted(engine.match(text)) == sorted(expected)


def test_a_client_that_has_not_heard_of_new_partitions_joins_again():
    engine, directory, farm = started()
    stale = PartitionedEngine(directory, farm.open)
    engine.subscribe("buyer", "x = 1")
    engine.reconfigure(THIRDS)
    assert stale.match("x = 1") == ["buyer"]
    stale.subscribe("later", "x = 1")
    assert sorted(engine.match("x = 1")) == ["buyer", "later"]
    assert not farm.stores["low_1"].ids("subscriptions"), "rows of the version before are cleared"


def test_a_subscription_that_comes_during_a_reconfiguration_is_not_lost():
    engine, directory, farm = started()
    other = PartitionedEngine(directory, farm.open)
    for id in range(50):
        engine.subscribe(id, f"x = {id % 4}")
    threads = [threading.Thread(target=other.subscribe, args=(100 + id, "x = 1")) for id in range(10)]
    for thread in threads[:5]:
        thread.start()
    engine.reconfigure(THIRDS)
    for thread in threads[5:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(range(100, 110)) <= set(engine.match("x = 1"))


def test_two_reconfigurations_at_once_are_refused_and_a_dead_one_is_taken_over():
    engine, directory, farm = started()
    engine.subscribe("buyer", "x = 1")
    known = directory.read()
    directory.write(known, known.__class__(known.version, known.constraints, known.version + 1))  # one that died
    farm.open("one_2").put("subscriptions", [Held("ghost", boxes_of("x = 0"), "x = 0")], "publication")
    with pytest.raises(ConcurrentChangeError):
        engine.reconfigure(THIRDS)
    engine.reconfigure(THIRDS, take_over=True)
    assert engine.match("x IN (0, 1)") == ["buyer"]


def test_what_is_not_there_is_said():
    engine, _, farm = started()
    with pytest.raises(UnknownSubscriptionError):
        engine.unsubscribe("nobody")
    engine.subscribe("somebody", "x = 1")
    engine.unsubscribe("somebody")
    assert engine.match("x = 1") == []
    with pytest.raises(IndexFormatError, match="no partitions"):
        PartitionedEngine(MemoryDirectory(), farm.open)
