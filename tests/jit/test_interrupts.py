"""An interrupt that comes while a kernel runs is told once it is over, and takes nothing down."""

from __future__ import annotations

import subprocess
import sys


def test_interrupts_while_kernels_run_leave_the_process_alive_and_all_or_nothing_loaded():
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.engine.interrupted_loads"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 16
