"""Run apart by test_saving_durably.py: saves an engine again and again, each time killed one step later.

A step is anything that changes what is on disk, or has it stay there. Prints what a load found after each.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from harken import Engine
from harken.errors import IndexFormatError

STEPS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.chmod", "os.truncate"}


def kill_at(step, folder):
    """End this process right before its so many-th step in or around a folder."""
    taken = 0

    def watch(event, arguments):
        nonlocal taken
        if event in STEPS and str(folder.name) in str(arguments[0]):
            taken += 1
            if taken == step:
                os._exit(9)

    fsync = os.fsync

    def watched(handle):
        watch("open", (os.readlink(f"/proc/self/fd/{handle}") + folder.name,))
        fsync(handle)

    sys.addaudithook(watch)
    os.fsync = watched


def found(folder):
    try:
        return sorted(Engine.load(folder))
    except IndexFormatError as error:
        return "none" if "is missing" in str(error) else str(error)


def engine_of(*ids):
    engine = Engine("reference")
    engine.subscribe_many((id, f"x = {id}") for id in ids)
    return engine


def main(start, folder):
    new, outcomes = engine_of(4, 5), []
    for step in range(1, 1_000):
        shutil.rmtree(folder, ignore_errors=True)
        if start != "nothing":
            shutil.copytree(start, folder)
        pid = os.fork()
        if not pid:
            kill_at(step, folder)
            new.save(folder)
            os._exit(0)
        is_done = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        outcomes.append(found(folder))
        new.save(folder)
        left = {path.name for path in folder.iterdir()}
        assert found(folder) == [4, 5]
        assert len(left) == 2, left
        if is_done:
            break
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
