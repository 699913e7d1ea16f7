"""What `make` runs beside the tests themselves."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
from pathlib import Path

import pytest

IN_MEMORY = [sys.executable, str(Path(__file__).parent.parent / "scripts" / "in-memory.py")]


def test_temporary_files_are_gone_with_the_command_and_its_status_is_told() -> None:
    done = subprocess.run(
        [*IN_MEMORY, "sh", "-c", 'mktemp -d; touch "$(mktemp)"; exit 7'], capture_output=True, text=True
    )
    assert done.returncode == 7, done.stderr
    folder = Path(done.stdout.strip())
    if folder.is_relative_to("/dev/shm"):  # or there is no room in memory
        assert not folder.parent.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_told_to_end_ends_the_command_and_leaves_nothing(number: signal.Signals) -> None:
    command = [*IN_MEMORY, "sh", "-c", "mktemp; exec sleep 600"]
    attend = functools.partial(signal.signal, number, signal.SIG_DFL)  # though whoever runs this may ignore it
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=attend) as running:
        assert running.stdout is not None
        made = Path(running.stdout.readline().strip())
        running.send_signal(number)
        assert running.wait() != 0
    if made.is_relative_to("/dev/shm"):
        assert not made.parent.exists()
    made.unlink(missing_ok=True)
