"""Servers as processes that end with the test, also if it is killed."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_GUARD = Path(__file__).with_name("guard_program.py")


@dataclass(frozen=True, slots=True)
class Server:
    """A process that runs, and the file that has what it says."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str, *, patience: float = 120.0) -> str:
        """Wait until the server has said something; gives the first group of the pattern."""
        until = time.monotonic() + patience
        while True:
            self.check(until)
            if found := re.search(pattern, self.log.read_text(errors="replace")):
                return found[1]
            time.sleep(0.05)

    def check(self, until: float) -> None:
        """AssertionError, with all it has said, if the server has ended or the time is over."""
        ended = self.process.poll()
        assert ended is None, f"the {self.name} ended with {ended}: {self.log.read_text(errors='replace')}"
        late = time.monotonic() >= until
        assert not late, f"the {self.name} is not ready: {self.log.read_text(errors='replace')}"


@contextmanager
def running(name: str, command: Sequence[str], folder: Path) -> Iterator[Server]:
    """Start a server that writes what it says into a folder; at the end it is killed, and is gone.

    Killed, because all that it keeps is temporary, and servers take their time to end in order.
    """
    log = folder / f"{name}.log"
    guarded = [sys.executable, "-I", "-S", str(_GUARD), *command]
    with log.open("wb") as output:
        process = subprocess.Popen(guarded, stdin=subprocess.PIPE, stdout=output, stderr=output)
    assert process.stdin is not None
    try:
        yield Server(name, process, log)
    finally:
        process.stdin.close()
        process.wait()
