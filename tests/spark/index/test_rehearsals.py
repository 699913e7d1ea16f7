"""A part that is built for nothing, so that the first changes of a stream do not wait for kernels."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from harken.spark.index.building import rehearse

# What the first changes load after a rehearsal, name by name.
_PROGRAM = """
import tempfile
from pathlib import Path
import pyarrow as pa
from harken.jit.keeping import KeptKernels
from harken.spark import Subscriptions, build_index
from harken.spark.index.building import rehearse
from harken.workloads import workload

loaded, load = [], KeptKernels.load_overload

def noting(self, signature, context):
    loaded.append(str(self.cache_path) + str(signature))
    return load(self, signature, context)

KeptKernels.load_overload = noting
made = workload("w0", 1)
with tempfile.TemporaryDirectory() as folder:
    subscriptions = Subscriptions.create(Path(folder) / "subscriptions")
    subscriptions.append(pa.concat_tables(made.subscriptions(3_000)))
    rehearse("dynamic", {}).join()
    rehearsed = len(loaded)
    build_index(None, subscriptions)
    print(rehearsed, len(loaded) - rehearsed)
"""


def test_after_a_rehearsal_changes_need_hardly_a_kernel_more():
    # Kernels that have to be compiled ask for others that are built in: the first process may be the first of all.
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    rehearsed, more = map(int, done.stdout.split())
    assert rehearsed >= 10
    assert more <= 3  # of those that only many subscriptions need


def test_a_rehearsal_leaves_nothing_and_fails_nobody(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rehearse("dynamic", {}).join()
    assert not list(tmp_path.iterdir())
    rehearse("dynamic", {"no": "option"}).join()
    assert capsys.readouterr().err == ""
