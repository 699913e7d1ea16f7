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


_INTERRUPTED_WHILE_LLVM_ASKS = """
import os, signal
from numba.core.codegen import CPUCodeLibrary
from harken import Engine

asks = CPUCodeLibrary._object_getbuffer_hook.__func__
left = times = 0

def interrupted(library, *given):  # which LLVM calls, and which nothing can be raised from
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGINT)
    return asks(library, *given)

CPUCodeLibrary._object_getbuffer_hook = classmethod(interrupted)
while True:
    left = times + 1
    try:
        engine = Engine("dynamic")
        engine.subscribe_many([(id, f"price > {id}") for id in range(300)])
        found = engine.match_batch([{"price": 200}]).num_rows
        break
    except KeyboardInterrupt:
        times += 1
print(times > 3, found)
"""

_TOO_DEEP = """
import sys
from harken import Engine

def below(frames, call):
    return call() if not frames else below(frames - 1, call)

def load():
    engine = Engine("dynamic")
    engine.subscribe_many([(id, f"price > {id}") for id in range(300)])
    return engine.match_batch([{"price": 200}]).num_rows

Engine("dynamic").subscribe_many([("1", "x = 1")])  # imports what it takes
limit, failed = sys.getrecursionlimit(), 0
for left in range(2, 200, 3):
    try:
        below(limit - left, load)
    except RecursionError:
        failed += 1
print(failed > 3, load())
"""


@pytest.mark.parametrize("program", [_INTERRUPTED_WHILE_LLVM_ASKS, _TOO_DEEP])
def test_what_cannot_be_raised_from_within_llvm_takes_nothing_down(program):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True 200\n", done.stderr
