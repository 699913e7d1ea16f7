"""Saving so that it lasts: whatever happens at whatever moment, a folder holds the old engine or the new one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harken import Engine
from harken.bench.damage import contents
from harken.errors import IndexFormatError
from harken.matching.untrusted import read_table
from tests.engine import killed_saves
from tests.engine.killed_saves import engine_of


def flattened(folder):
    """The folder as version 3 had it: no generation, texts in Parquet."""
    manifest = json.loads((folder / "manifest.json").read_text())
    pq.write_table(read_table(contents(folder) / "texts.arrow"), folder / "subscriptions.parquet")
    shutil.rmtree(contents(folder))
    for later in ("files", "generation", "keep_text"):
        del manifest[later]
    (folder / "manifest.json").write_text(json.dumps({**manifest, "version": 3}))


@pytest.mark.parametrize("start", ["nothing", "an engine", "an engine of version 3"])
def test_a_save_that_is_killed_at_any_step_leaves_the_old_engine_or_the_new_one(start, tmp_path):
    old = tmp_path / "old"
    if start != "nothing":
        engine_of(1, 2, 3).save(old)
    if start.endswith("3"):
        flattened(old)
    before = [1, 2, 3] if start != "nothing" else "none"
    arguments = [
        sys.executable,
        killed_saves.__file__,
        str(old if old.exists() else "nothing"),
        str(tmp_path / "it"),
    ]
    run = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    outcomes = json.loads(run.stdout)
    assert len(outcomes) > 12
    assert outcomes[0] == before
    assert outcomes[-1] == [4, 5]
    turn = outcomes.index([4, 5])
    assert outcomes == [before] * turn + [[4, 5]] * (len(outcomes) - turn)
    assert 0 < turn < len(outcomes) - 1


def test_everything_is_on_disk_before_it_is_relied_on(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, Path.replace

    def synced(handle):
        done.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def replaced(path, target):
        done.append("replaced")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    folder = tmp_path / "deep" / "engine"
    engine_of(1).save(folder)
    first, last = done[: done.index("replaced")], done[done.index("replaced") + 1 :]
    inside = contents(folder)
    assert {str(path) for path in (*inside.iterdir(), inside, folder, folder.parent, tmp_path)} <= set(first)
    assert any("/.manifest-" in path for path in first)
    assert max(first.index(str(path)) for path in inside.iterdir()) < first.index(str(inside))
    assert first.index(str(inside)) < len(first) - 1 - first[::-1].index(str(folder))
    assert last == [str(folder)]


def test_what_crashed_saves_left_behind_goes_with_the_next_one(tmp_path):
    folder = tmp_path / "engine"
    folder.mkdir()
    for name in ("data-" + "0" * 32, "data-" + "1" * 32):
        (folder / name).mkdir()
        (folder / name / "facts.json").write_text("{}")
    (folder / (".manifest-" + "2" * 32)).write_text("{")
    with pytest.raises(IndexFormatError, match=r"manifest\.json is missing"):
        Engine.load(folder)
    engine_of(1).save(folder)
    engine_of(1, 2).save(folder)
    assert sorted(Engine.load(folder)) == [1, 2]
    assert len(list(folder.iterdir())) == 2


def test_an_interrupt_right_after_the_step_does_not_take_the_new_engine_away(tmp_path, monkeypatch):
    folder, replace = tmp_path / "engine", Path.replace

    def interrupted(path, target):
        replace(path, target)
        raise KeyboardInterrupt

    engine_of(1).save(folder)
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine_of(2).save(folder)
    monkeypatch.undo()
    assert sorted(Engine.load(folder)) == [2]


def test_whoever_loads_while_others_save_gets_one_of_the_engines(tmp_path):
    folder, over, wrong = tmp_path / "engine", threading.Event(), []
    engine_of(0).save(folder)

    def save(first):
        engines = [engine_of(*range(first, first + size)) for size in (1, 2, 3)]
        while not over.is_set():
            for engine in engines:
                engine.save(folder)

    savers = [threading.Thread(target=save, args=(first,)) for first in (10, 20)]
    for saver in savers:
        saver.start()
    try:
        for _ in range(150):
            found = sorted(Engine.load(folder))
            if found != [0] and found not in [list(range(at, at + n)) for at in (10, 20) for n in (1, 2, 3)]:
                wrong.append(found)
    finally:
        over.set()
        for saver in savers:
            saver.join()
    assert not wrong
    assert len(list(folder.iterdir())) == 2


@pytest.mark.kernel
def test_an_engine_that_has_mapped_the_old_files_goes_on_while_others_replace_them(tmp_path):
    folder = tmp_path / "engine"
    engine = Engine("propagation")
    engine.subscribe_many((at, f"x = {at} and y < 5") for at in range(100))
    engine.save(folder)
    loaded = Engine.load(folder)
    engine.unsubscribe_many(range(50))
    engine.save(folder)
    assert loaded.match({"x": 7, "y": 1}) == [7]
    loaded.subscribe(1_000, "x = 7")
    assert sorted(loaded.match({"x": 7, "y": 1})) == [7, 1_000]
    assert Engine.load(folder).match({"x": 7, "y": 1}) == []
