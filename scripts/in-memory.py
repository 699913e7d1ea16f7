"""Runs a command with its temporary files in memory, if there is room for them, and removes what it left there.

Tests write much, and durably: on a disk, they wait for it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SHARED = Path("/dev/shm")

NEEDED = 8 << 30
"""Bytes to be free: several times what tests take."""


def has_room() -> bool:
    """Whether there is memory for temporary files, and a folder that lies there."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        (free,) = (int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
        return os.access(SHARED, os.W_OK) and min(free, shutil.disk_usage(SHARED).free) >= NEEDED
    except (OSError, ValueError):
        return False


def run(command: list[str]) -> int:
    """Run a command; its exit status."""
    child: subprocess.Popen[bytes] | None = None
    is_told = False

    def end(*_: object) -> None:
        """Whoever ends this process means the command."""
        nonlocal is_told
        is_told = True
        if child is not None:
            child.terminate()

    signal.signal(signal.SIGINT, lambda *_: None)  # from a terminal, it comes to the command as well
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:  # as with nohup
            signal.signal(each, end)
    folder = tempfile.mkdtemp(prefix="harken.", dir=SHARED)
    try:
        child = subprocess.Popen(command, env={**os.environ, "TMPDIR": folder})
        if is_told:
            child.terminate()
        status = child.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    if has_room():
        sys.exit(run(sys.argv[1:]))
    os.execvp(sys.argv[1], sys.argv[1:])
