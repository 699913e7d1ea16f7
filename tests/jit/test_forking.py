"""A child that is forked while another thread compiles can compile too."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from numba.core.compiler_lock import global_compiler_lock

from harken import jit
from harken.errors import EngineBusyError
from harken.jit import kernel


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_while_a_thread_compiles_can_compile():
    begun, over = threading.Event(), threading.Event()

    def compile_for_long() -> None:
        with global_compiler_lock:
            begun.set()
            over.wait(60)

    thread = threading.Thread(target=compile_for_long)
    thread.start()
    begun.wait(60)
    threading.Timer(0.3, over.set).start()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if kernel(lambda number: number + 1)(1) == 2 else 3)
    assert os.waitpid(child, 0)[1] == 0
    assert over.is_set(), "the fork waited"
    thread.join(60)
    assert kernel(lambda number: number + 2)(1) == 3, "here too"


def test_who_calls_a_kernel_while_his_own_thread_compiles_is_told_that_it_is_busy():
    fresh = kernel(lambda number: number + 4)
    with (
        global_compiler_lock,
        pytest.raises(EngineBusyError, match="compiled further up"),
    ):  # as a handler of signals
        fresh(1)
    assert fresh(1) == 5
    with global_compiler_lock:
        assert fresh(2) == 6


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_thread_that_compiles_for_ever_holds_up_a_fork_and_its_child_not_for_ever(monkeypatch):
    monkeypatch.setattr(jit, "PATIENCE", 0.1)
    monkeypatch.setattr(jit, "BRIEFLY", 0.1)
    begun, over = threading.Event(), threading.Event()

    def compile_for_ever() -> None:
        with global_compiler_lock:
            begun.set()
            over.wait(60)

    thread = threading.Thread(target=compile_for_ever)
    thread.start()
    begun.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if kernel(lambda number: number + 1)(1) == 2 else 3)
    assert os.waitpid(child, 0)[1] == 0
    over.set()
    thread.join(60)
