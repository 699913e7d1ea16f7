"""Streams run on a real S3 and a real HDFS: everything they keep is there, each batch once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.servers.hdfs import hdfs_cluster
from tests.spark.servers.jars import UnreachableError
from tests.spark.servers.s3 import s3_server

PROGRAM = Path(__file__).with_name("streams_program.py")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What became of the same streams on either store."""
    try:
        with s3_server() as s3, hdfs_cluster() as hdfs:
            scratch = {"spark.local.dir": str(tmp_path_factory.mktemp("scratch")), "spark.driver.memory": "512m"}
            settings = {**s3.spark_settings, **hdfs.spark_settings, **scratch}
            given = json.dumps([settings, f"{s3.address}/streams", f"{hdfs.address}/streams"])
            command = [sys.executable, str(PROGRAM), given]
            finished = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except UnreachableError as error:
        pytest.skip(f"jars are not in the cache, and Maven Central cannot be reached: {error}")
    assert finished.returncode == 0, finished.stderr[-5_000:]
    return dict(zip(("s3", "hdfs"), json.loads(finished.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_a_stream_goes_on_where_it_was(told: dict[str, dict[str, Any]], store: str) -> None:
    assert told[store]["plain"] == [[0, 0, "a"], [1, 1, "a"]]
    assert told[store]["status"][0].startswith("batch 1 began at")
    assert told[store]["status"][1:] == ["no batch is pending"]


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_events_that_hold_are_kept_in_the_store(told: dict[str, dict[str, Any]], store: str) -> None:
    assert sorted(told[store]["lasting"]) == [[0, "a"], [0, "b"], [1, "a"], [1, "b"]]


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_a_batch_that_is_cut_short_while_it_is_put_in_place_is_there_once(
    told: dict[str, dict[str, Any]], store: str
) -> None:
    assert told[store]["counts"], "once it is recorded, or renamed, it counts"
    assert told[store]["cut"]
    hidden = [".batches/7.json"] if store == "s3" else []
    assert told[store]["files"] == [*hidden, ".query", ".schema", "batch=7/"]
    assert told[store]["foreign"]
    assert told[store]["once"] == 3
