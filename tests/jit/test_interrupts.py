"""An interrupt that comes while a kernel runs is told once it is over, and takes nothing down."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from harken.jit.interrupts import held_back


def test_interrupts_while_kernels_run_leave_the_process_alive_and_all_or_nothing_loaded():
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.engine.interrupted_loads"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 16


_INTERRUPTED_BETWEEN_KERNELS = """
import signal, sys
from harken import Engine

def interrupt(frame, event, _):
    if event == "call" and frame.f_code.co_name == "sublist_iterator":  # numba asks what has been registered
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

engine = Engine("counting")
sys.setprofile(interrupt)
try:
    engine.subscribe(1, "a > 1")
    engine.match({"a": 2})
except KeyboardInterrupt:
    print("interrupted")
if 1 not in engine:
    engine.subscribe(1, "a > 1")
print(engine.match({"a": 2}))
"""


def test_an_interrupt_before_a_kernel_leaves_all_kernels_usable():
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_BETWEEN_KERNELS], capture_output=True, text=True, check=False
    )
    assert done.stdout == "interrupted\n[1]\n", done.stderr


def test_signals_are_held_back_and_then_handled_as_before():
    came = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
    try:
        handler = signal.getsignal(signal.SIGUSR1)

        @held_back()
        @held_back()
        def interrupted():
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGINT)
            came.append("held")

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert came == ["held", signal.SIGUSR1]
        assert signal.getsignal(signal.SIGUSR1) is handler
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(ValueError, match="itself"), held_back():
            raise ValueError("itself")
        assert signal.getsignal(signal.SIGUSR1) is handler

        @held_back()
        def failed():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGUSR1)
            raise ValueError("itself")

        with pytest.raises(KeyboardInterrupt):
            failed()
        assert came == ["held", signal.SIGUSR1, signal.SIGUSR1], "each is told, whatever else is raised"
    finally:
        signal.signal(signal.SIGUSR1, before)
