"""Changes of folders that fail or are killed at any step are there or not at all, and the next ones work."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from harken.bench.experiments.faults import sampled
from harken.bench.failing import FAILURES, Steps
from harken.engine import Engine
from harken.errors import OutputExistsError, SubscriptionError
from harken.spark import Subscriptions
from harken.spark.index import index as indexing
from harken.spark.index.building import Blueprint, build_here
from harken.spark.index.index import Index, build_index
from harken.spark.index.layers import Part
from harken.spark.subscriptions.versions import VersionLog

WITHIN = ("spark/", "persistence.py")
FAILING, KILLED = 30, 12
"""Steps of each change at which it fails, and at which its process ends."""

NONE = timedelta(0)
HELD = {id: f"x = {id}" for id in range(6)}
COMING = {id: f"x = {id + 100}" for id in range(4, 9)}

Texts = dict[int, str]
Change = Callable[[Subscriptions], object]

CHANGES: dict[str, tuple[Change, Texts]] = {
    "append": (lambda store: store.append([(20, "x = 20"), (21, "x = 21")]), HELD | {20: "x = 20", 21: "x = 21"}),
    "upsert": (lambda store: store.upsert(COMING.items()), HELD | COMING),
    "delete": (lambda store: store.delete([1, 3]), {id: HELD[id] for id in HELD if id not in (1, 3)}),
    "compact": (lambda store: store.compact(), HELD),
    "vacuum": (lambda store: store.vacuum(keep=1, grace=NONE, orphans=NONE), HELD),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with some history."""
    store = Subscriptions.create(tmp_path_factory.mktemp("original") / "store")
    store.append([(id, "x = 0") for id in range(3)])
    store.upsert(HELD.items())
    store.append([(99, "x = 99")])
    store.delete([99])
    return store.path


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are built in this process: what fails is how they are put in place."""

    def build(_: object, blueprint: Blueprint) -> dict[int, Part]:
        return build_here(blueprint)

    monkeypatch.setattr(indexing, "build_by_tasks", build)


def copied(original: Path, folder: Path) -> Subscriptions:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    return Subscriptions(folder)


def matches(texts: Texts) -> list[int]:
    return sorted(int(text.removeprefix("x = ")) for text in texts.values())


def held(store: Subscriptions) -> list[int]:
    tables = store.tables(store.snapshot())
    return sorted(row["clauses"][0][0]["integer"] for table in tables for row in table.to_pylist())


def works(store: Subscriptions, before: list[int]) -> None:
    """Every kind of change goes on, and nothing is left over."""
    store.append([(500, "x = 500")])
    store.upsert([(500, "x = 501")])
    assert held(store) == [*before, 501]
    store.delete([500])
    store.compact()
    store.vacuum(keep=1, grace=NONE, orphans=NONE)
    assert held(store) == before
    segments = {segment.file for segment in store.snapshot().segments}
    assert {path.name for path in (store.path / "segments").iterdir()} == segments


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_fails_at_any_step_is_there_or_not(name: str, original: Path, tmp_path: Path) -> None:
    change, after = CHANGES[name]
    count = Steps(within=WITHIN).of(lambda: change(copied(original, tmp_path / "counted"))).count
    for at in sampled(count, FAILING, seed=3):
        store = copied(original, tmp_path / "store")
        Steps(at, FAILURES[at % len(FAILURES)], WITHIN).of(lambda: change(Subscriptions(tmp_path / "store")))
        now = held(Subscriptions(store.path))
        assert now in (matches(HELD), matches(after)), f"at step {at} of {count}"
        works(Subscriptions(store.path), now)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_whose_process_is_killed_at_any_step_is_there_or_not(
    name: str, original: Path, tmp_path: Path
) -> None:
    change, after = CHANGES[name]
    count = Steps(within=WITHIN).of(lambda: change(copied(original, tmp_path / "counted"))).count
    for at in sampled(count, KILLED, seed=4):
        store = copied(original, tmp_path / "store")
        killed_at(at, lambda: change(Subscriptions(tmp_path / "store")))
        now = held(store)
        assert now in (matches(HELD), matches(after)), f"at step {at} of {count}"
        works(store, now)


def killed_at(step: int, act: Callable[[], object]) -> None:
    """Have another process act, and end at a step as if it were killed: nothing is closed or cleared away."""
    child = os.fork()
    if child == 0:
        sys.settrace(None)
        Killed(step, within=WITHIN).of(act)
        os._exit(0)
    os.waitpid(child, 0)


class Killed(Steps):
    """Ends the process where others raise."""

    def _step(self, frame, event, given):  # type: ignore[no-untyped-def]  # as that of Steps
        try:
            return super()._step(frame, event, given)
        except BaseException:
            os._exit(9)


def test_creating_that_fails_at_any_step_can_be_done_again(tmp_path: Path) -> None:
    count = Steps(within=WITHIN).of(lambda: Subscriptions.create(tmp_path / "counted")).count
    for at in range(1, count + 1):
        path = tmp_path / str(at)
        Steps(at, FAILURES[at % len(FAILURES)], WITHIN).of(lambda path=path: Subscriptions.create(path))  # type: ignore[misc]
        store = Subscriptions.create(path, exist_ok=True)
        assert store.version == 0
        works(store, [])


@pytest.mark.parametrize("name", ["build", "refresh", "compact", "vacuum"])
def test_an_index_whose_making_fails_at_any_step_is_there_or_not(
    name: str, original: Path, tmp_path: Path
) -> None:
    acts = {
        "build": lambda store, path: build_index(None, store, path=path, shards=1),  # type: ignore[arg-type]
        "refresh": lambda _, path: Index(path).refresh(None),  # type: ignore[arg-type]
        "compact": lambda _, path: Index(path).compact(None),  # type: ignore[arg-type]
        "vacuum": lambda _, path: Index(path).vacuum(keep=1, grace=NONE, orphans=NONE),
    }

    def begun() -> tuple[Subscriptions, Path]:
        store, path = copied(original, tmp_path / "store"), tmp_path / "index"
        shutil.rmtree(path, ignore_errors=True)
        if name != "build":
            build_index(None, store, path=path, shards=1)  # type: ignore[arg-type]
            store.upsert(COMING.items())
            if name == "vacuum":
                Index(path).refresh(None)  # type: ignore[arg-type]
        return store, path

    start = begun()
    count = Steps(within=WITHIN).of(lambda: acts[name](*start)).count
    for at in sampled(count, FAILING // 2, seed=5):
        store, path = begun()
        Steps(at, FAILURES[at % len(FAILURES)], WITHIN).of(lambda store=store, path=path: acts[name](store, path))  # type: ignore[misc]
        if VersionLog(path / "versions").latest() is None:
            build_index(None, store, path=path, shards=1)  # type: ignore[arg-type]
        state = Index(path).refresh(None)  # type: ignore[arg-type]
        assert state.covers == store.version
        assert answered(path, state.layers) == held(store), f"at step {at} of {count}"
        Index(path).vacuum(keep=1, grace=NONE, orphans=NONE)
        assert answered(path, Index(path).state().layers) == held(store)


def answered(path: Path, layers) -> list[int]:  # type: ignore[no-untyped-def]  # the layers of an index
    """The numbers that the parts of an index ask for, those hidden by later layers left out."""
    found: dict[object, int] = {}
    for layer in layers:
        for part in layer.parts.values():
            engine = Engine.load(path / "parts" / part.folder)
            found |= {id: engine.subscription(id).expression.value for id in engine}
    return sorted(found.values())


# ---------------------------------------------------------------- again


def test_creating_what_exists_says_so_and_how_to_open_it(tmp_path: Path) -> None:
    store = Subscriptions.create(tmp_path / "store")
    store.append([(1, "x = 1")])
    with pytest.raises(OutputExistsError, match=r"store exists; Subscriptions\(path\) opens it"):
        Subscriptions.create(store.path)
    store.compact()
    store.vacuum(keep=1, grace=NONE, orphans=NONE)
    with pytest.raises(OutputExistsError):
        Subscriptions.create(store.path)
    assert store.version == 2


def test_a_script_that_creates_or_opens_may_be_run_again(tmp_path: Path) -> None:
    for _ in range(2):
        store = Subscriptions.create(tmp_path / "store", schema={"x": "int"}, exist_ok=True)
        store.upsert([("alice", "x = 1")])
        assert held(store) == [1]


def test_what_was_created_otherwise_is_not_opened_as_if_it_were_the_same(tmp_path: Path) -> None:
    Subscriptions.create(tmp_path / "store", schema={"x": "int"})
    with pytest.raises(SubscriptionError, match="another schema or other limits"):
        Subscriptions.create(tmp_path / "store", schema={"x": "string"}, exist_ok=True)


def test_a_taken_id_is_told_the_verb_that_replaces(tmp_path: Path) -> None:
    store = Subscriptions.create(tmp_path / "store")
    store.append([(1, "x = 1")])
    with pytest.raises(SubscriptionError, match=r"subscription 1 is already registered; upsert puts new"):
        store.append([(1, "x = 2")])
    with pytest.raises(SubscriptionError, match="subscription 2 comes twice in one change; name every id once"):
        store.upsert([(2, "x = 2"), (2, "x = 3")])
