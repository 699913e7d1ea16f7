"""Where indices are checked, an index that is out of bounds is caught, however the kernel came by its array."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.kernel


def test_a_kernel_that_looks_where_nothing_is_is_caught_where_indices_are_checked(tmp_path):
    environment = {
        **os.environ,
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "NUMBA_DISABLE_JIT": "0",
    }
    command = [sys.executable, "-m", "tests.matching.kernels.wrong_kernels"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    last = {"writing": 7, "by_address_2d": 5}
    named = ("ordinary", "uncounted", "inlining", "unsigned", "writing", "by_address", "by_address_2d")
    caught = " IndexError IndexError IndexError"
    assert done.stdout.splitlines() == [f"{name} {last.get(name, 2)}{caught}" for name in named]
