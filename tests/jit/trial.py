"""A small package with kernels in several files, to be edited, and processes that use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__import__("harken").__file__).parents[1]
"""The folder that Harken is imported from."""

FILES = {
    "__init__.py": "",
    "constants.py": "STEP = 1\n",
    "callee.py": """
from harken.jit import part
from shop.constants import STEP

@part
def raised(number):
    return number + STEP
""",
    "caller.py": """
from harken.jit import kernel, tight
from shop.callee import raised

@tight
def total(numbers):
    result = 0
    for at in range(len(numbers)):
        result += raised(numbers[at])
    return result

@kernel
def doubled(number):
    return number * 2

@tight
def element(numbers, at):
    return numbers[at]
""",
}

USE = """
import json
import numpy as np
from shop import caller

kinds = [np.int64, np.float64]
totals = [int(caller.total(np.arange(4, dtype=kind))) for kind in kinds]
totals.append(caller.doubled(6))
stats = [each.stats for each in (caller.total, caller.doubled)]
count = lambda name: sum(sum(getattr(each, name).values()) for each in stats)
print(json.dumps([totals, count("cache_hits"), count("cache_misses")]))
"""
"""Three kernels: `total` for two types, and `doubled`."""


@dataclass(frozen=True)
class Outcome:
    """What the kernels gave, how many came from disk and how many were compiled, and what was said."""

    totals: list[int]
    kept: int
    compiled: int
    said: str


class Shop:
    """The package in a folder, and a home for its compiled kernels beside it; a warm one has them already."""

    def __init__(self, folder: Path, warm: Path | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.package = folder / "shop"
        self.package.mkdir()
        for name, text in FILES.items():
            self.edit(name, text)
        if warm is not None:
            shutil.copytree(warm, self.home)

    def edit(self, name: str, text: str) -> None:
        (self.package / name).write_text(text, encoding="utf-8")

    def environment(self, more: Mapping[str, str] | None = None, source: Path = SOURCE) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), str(source)])
        plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        # An edit within a second that leaves the size as it was would not be noticed by Python's own bytecode.
        own = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**plain, **own, **(more or {})}

    def start(
        self, code: str = USE, more: Mapping[str, str] | None = None, source: Path = SOURCE
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            env=self.environment(more, source),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def use(self, more: Mapping[str, str] | None = None, source: Path = SOURCE, before: str = "") -> Outcome:
        """Use the kernels in a fresh process."""
        return outcome(self.start(before + USE, more, source))

    def files(self) -> list[Path]:
        """The compiled kernels of the package that lie in the home."""
        return sorted(path for path in self.home.rglob("shop*/**/*") if path.is_file())


def outcome(process: subprocess.Popen[str]) -> Outcome:
    printed, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    totals, kept, compiled = json.loads(printed)
    return Outcome(totals, kept, compiled, said)
