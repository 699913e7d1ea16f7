"""Workers whose Python lacks Harken are noticed before the first job, and it is said what to set."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from harken.spark.runtime import workers
from harken.spark.runtime.workers import check_workers

SESSION = """
import os, sys
from pyspark.sql import SparkSession
from harken.errors import WorkerPythonError
from harken.spark import Subscriptions, build_index, compile_subscriptions, match
from harken.spark.runtime.session import require_java

require_java()
os.environ["PYSPARK_PYTHON"] = sys.argv[1]
settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
builder = SparkSession.builder.master("local[1]").config("spark.local.dir", sys.argv[2])
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
stored = Subscriptions.create(sys.argv[2] + "/subscriptions")
stored.append([("a", "x > 0")])
events = spark.range(1).withColumnRenamed("id", "x")
texts = spark.createDataFrame([("b", "x > 1")], "id string, expression string")
for call in (
    lambda: match(events, stored),
    lambda: build_index(spark, stored),
    lambda: compile_subscriptions(texts),
    lambda: stored.append(texts),
):
    try:
        call()
    except WorkerPythonError as error:
        print("refused:", error)
spark.stop()
"""


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python of the same version that finds Spark, and nothing that is installed."""
    home = Path(pyspark.__file__).parents[1]
    linked = tmp_path / "only spark"
    linked.mkdir()
    (linked / "pyspark").symlink_to(home / "pyspark")
    (linked / "py4j").symlink_to(home / "py4j")
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nPYTHONPATH='{linked}' exec '{sys.executable}' -S \"$@\"\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.long
def test_a_python_without_harken_is_named_before_the_first_job(bare_python: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-c", SESSION, str(bare_python), str(scratch)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    said = [line for line in finished.stdout.splitlines() if line.startswith("refused:")]
    assert len(said) == 4, finished.stdout + finished.stderr
    for line in said:
        assert re.match(
            r"refused: Spark's workers run \S+ \(Python [\d.]+\), which has no Harken: .*No module", line
        )
        assert (
            f"set PYSPARK_PYTHON to a Python that has Harken, on every machine; here that is {sys.executable}"
            in line
        )


def test_a_session_is_asked_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    check_workers(spark)
    monkeypatch.setattr(workers, "_ask", None)
    check_workers(spark)
    check_workers(spark.newSession())
