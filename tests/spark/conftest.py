"""The servers of stores, started by the first test that asks for one, and where tests may write on each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.spark.storage import Folder, folder_at
from tests.spark.servers.hdfs import HdfsCluster, hdfs_cluster
from tests.spark.servers.jars import UnreachableError
from tests.spark.servers.s3 import S3Server, s3_server


@pytest.fixture(scope="session")
def s3_store() -> Iterator[S3Server]:
    """An S3 server for all tests of this process."""
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_store() -> Iterator[HdfsCluster]:
    """An HDFS for all tests of this process."""
    try:
        with hdfs_cluster() as cluster:
            yield cluster
    except UnreachableError as error:
        pytest.skip(f"jars are not in the cache, and Maven Central cannot be reached: {error}")


@pytest.fixture(params=["local", "s3", pytest.param("hdfs", marks=pytest.mark.long)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """A folder of a test's own that is not there yet, on each kind of store."""
    return a_folder(request.param, request, tmp_path)


@pytest.fixture(params=["s3", pytest.param("hdfs", marks=pytest.mark.long)])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """The same, on stores that are not of this machine."""
    return a_folder(request.param, request, tmp_path)


def a_folder(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """A folder that is not there yet."""
    name = f"folder {uuid.uuid4().hex[:8]} 100% ü"
    if kind == "local":
        return folder_at(tmp_path / name)
    if kind == "s3":
        server: S3Server = request.getfixturevalue("s3_store")
        return folder_at(f"{server.address}/{name}", server.options)
    cluster: HdfsCluster = request.getfixturevalue("hdfs_store")
    return folder_at(f"{cluster.address}/{name}")
