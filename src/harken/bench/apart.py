"""Work in a process of its own, where nothing is in memory and nothing is compiled yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_CODE = """
import json, sys
from {module} import {name}
print(json.dumps({name}(*json.loads(sys.argv[1]))))
"""


@dataclass(frozen=True, slots=True)
class Apart:
    """What a function returned in another process, what it said on standard error, and how long all took."""

    result: object
    said: str
    seconds: float


def run_apart(
    function: Callable[..., object], *arguments: object, environment: Mapping[str, str] | None = None
) -> Apart:
    """Call a function of a module in a fresh process; arguments and result are what JSON can carry."""
    code = _CODE.format(module=function.__module__, name=function.__name__)
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise RuntimeError(f"{function.__name__} failed in its own process:\n{done.stderr}")
    return Apart(json.loads(done.stdout), done.stderr, seconds)
