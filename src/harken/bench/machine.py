"""What a result was measured on: processor, memory, versions and commit. A figure without it means little."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("harken", "numpy", "pyarrow", "numba", "lark", "pyspark")


def machine() -> dict[str, object]:
    """Facts about this machine and this build, for a report."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
        "commit": commit(),
    }


def commit() -> str | None:
    """The commit that the running code is of, marked if there are changes on top; None outside a checkout."""
    folder = Path(__file__).resolve().parent
    try:
        found = _git(folder, "rev-parse", "--short=12", "HEAD")
        return found + ("+changes" if _git(folder, "status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    top = ["git", "-C", str(folder), "rev-parse", "--show-toplevel"]
    root = subprocess.run(top, capture_output=True, text=True, check=True).stdout.strip()
    command = ["git", "-C", root, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
