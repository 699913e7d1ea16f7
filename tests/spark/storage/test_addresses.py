"""An address means the same folder to Harken as to Spark, or is refused by name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from harken.errors import StorageError
from harken.spark import Subscriptions
from harken.spark.storage import folder_at
from harken.spark.storage.hadoop import s3_options, session_options
from harken.spark.storage.hdfs import HdfsFolder
from harken.spark.storage.local import LocalFolder
from harken.spark.storage.objects import ObjectFolder

# ---------------------------------------------------------------- which folder is meant


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a b/100%/ü#?", "/a b/100%/ü#?"),
        ("/a:/b", "/a:/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file:///", "/"),
        ("file:///a b/c%20d/e#f?g", "/a b/c%20d/e#f?g"),
    ],
)
def test_files_of_this_machine(address: str, path: str) -> None:
    folder = folder_at(address)
    assert type(folder) is LocalFolder
    assert folder.path == Path(path)
    assert folder_at(folder.address) == folder_at(folder.path) == folder_at(folder) == folder
    assert str(folder) == path


def test_a_path_without_a_root_begins_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_at("a/b").address == f"file://{tmp_path}/a/b"
    assert folder_at(Path("a")).path == tmp_path / "a"


@pytest.mark.parametrize(
    ("address", "kind", "again"),
    [
        ("s3a://bucket/a/b", ObjectFolder, "s3a://bucket/a/b"),
        ("s3://bucket/a/b/", ObjectFolder, "s3://bucket/a/b"),
        ("S3A://bucket", ObjectFolder, "s3a://bucket"),
        ("gs://bucket/a b%20c#d?e", ObjectFolder, "gs://bucket/a b%20c#d?e"),
        ("abfss://box@account.dfs.core.windows.net/x", ObjectFolder, "abfss://box@account.dfs.core.windows.net/x"),
        ("abfs://box@account.dfs.core.windows.net/x", ObjectFolder, "abfs://box@account.dfs.core.windows.net/x"),
        ("hdfs://node:9000/a/b", HdfsFolder, "hdfs://node:9000/a/b"),
        ("hdfs://service/a%20b", HdfsFolder, "hdfs://service/a%20b"),
        ("hdfs:///a", HdfsFolder, "hdfs:///a"),
        ("hdfs:/a", HdfsFolder, "hdfs:///a"),
    ],
)
def test_stores_are_known_by_their_schemes(address: str, kind: type, again: str) -> None:
    folder = folder_at(address)
    assert type(folder) is kind
    assert folder.path is None
    assert folder.address == str(folder) == again
    assert folder_at(again) == folder
    assert folder.child("x y/z").address == f"{again}/x y/z"


@pytest.mark.parametrize(
    "scheme", ["wasb", "wasbs", "http", "https", "ftp", "oss", "viewfs", "webhdfs", "adl", "x"]
)
def test_what_is_not_supported_is_refused_by_name(scheme: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = rf"addresses with {scheme}: are not supported, found '{scheme}://h/x'; supported are abfs, .*s3a"
    with pytest.raises(StorageError, match=told):
        folder_at(f"{scheme}://h/x")
    with pytest.raises(StorageError, match=told):
        Subscriptions.create(f"{scheme}://h/x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["dbfs:/x", "dbfs:///x"])
def test_a_mount_of_databricks_is_refused_with_what_to_do(address: str) -> None:
    with pytest.raises(
        StorageError, match=rf"dbfs: are not supported, found '{address}'; name the store behind it"
    ):
        folder_at(address)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("file://host/a", "names a host, and files are on this one: write file:///folder"),
        ("s3a:///a", "names no bucket: write s3a://bucket/folder"),
        ("gs:/a", "names no bucket: write gs://bucket/folder"),
    ],
)
def test_half_an_address_is_refused(address: str, told: str) -> None:
    with pytest.raises(StorageError, match=told):
        folder_at(address)


@pytest.mark.parametrize(
    "address",
    ["s3a:bucket/a", "S3A:", " s3a://bucket/a", "hdfs:a", "file:a", "dbfs:a", "/here/s3a:/bucket/a", "a/gs:"],
)
def test_what_was_meant_for_an_address_does_not_become_a_folder(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="is no address"):
        Subscriptions.create(address)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["./gs:a", "a:b/c", "/a/s3a:b", "/a/12:30/b"])
def test_names_may_have_colons(path: str) -> None:
    assert folder_at(path).path == Path(path).absolute()


def test_spark_and_harken_mean_the_same_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = folder_at(f"file://{tmp_path}/a b%20c#d")
    spark.createDataFrame([("by Spark",)], ["value"]).coalesce(1).write.text(folder.address)
    (part,) = [each.name for each in folder.entries() if each.name.startswith("part-")]
    assert folder.read(part) == b"by Spark\n"


# ---------------------------------------------------------------- what a session knows


def test_settings_of_s3a_become_options() -> None:
    known = {
        "access.key": "k",
        "secret.key": "s",
        "session.token": "t",
        "endpoint.region": "eu-north-1",
        "endpoint": "http://127.0.0.1:1",
        "path.style.access": "true",
    }
    assert s3_options(known.get) == {
        "access_key_id": "k",
        "secret_access_key": "s",
        "session_token": "t",
        "region": "eu-north-1",
        "endpoint": "http://127.0.0.1:1",
        "client_options": {"allow_http": True},
    }
    assert s3_options({}.get) == {}


@pytest.mark.parametrize(
    ("known", "options"),
    [
        ({"endpoint": "s3.host"}, {"endpoint": "https://s3.host", "region": "us-east-1"}),
        (
            {"endpoint": "s3.host", "connection.ssl.enabled": "false"},
            {"endpoint": "http://s3.host", "region": "us-east-1", "client_options": {"allow_http": True}},
        ),
        ({"path.style.access": "false"}, {"virtual_hosted_style_request": True}),
        ({"aws.credentials.provider": "o.a.h.fs.s3a.AnonymousAWSCredentialsProvider"}, {"skip_signature": True}),
    ],
)
def test_an_endpoint_and_its_ways(known: dict[str, str], options: dict[str, object]) -> None:
    assert s3_options(known.get) == options


def test_a_session_is_asked_and_a_bucket_has_its_own(lent_spark: SparkSession) -> None:
    hadoop = lent_spark.sparkContext._jsc.hadoopConfiguration()
    told = {
        "fs.s3a.access.key": "of all",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.bucket.mine.access.key": "of mine",
        "fs.azure.account.key.a.dfs.core.windows.net": "azure",
        "fs.gs.auth.service.account.json.keyfile": "/key.json",
    }
    for name, value in told.items():
        hadoop.set(name, value)
    try:
        assert session_options("s3a", "other")["access_key_id"] == "of all"
        assert session_options("s3", "mine")["access_key_id"] == "of mine"
        assert session_options("abfss", "box@a.dfs.core.windows.net") == {"account_key": "azure"}
        assert session_options("abfss", "box@b.dfs.core.windows.net") == {}
        assert session_options("gs", "bucket") == {"service_account": "/key.json"}
        folder = folder_at("s3a://mine/x", {"secret_access_key": "said here"})
        assert folder.options["access_key_id"] == "of mine"
        assert folder.options["secret_access_key"] == "said here"
        lent_spark.conf.set("fs.s3a.access.key", "set later")
        assert session_options("s3a", "other")["access_key_id"] == "set later"
    finally:
        lent_spark.conf.unset("fs.s3a.access.key")
        for name in told:
            hadoop.unset(name)


def test_a_session_that_cannot_be_asked_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of Spark Connect, whose settings for stores are the server's."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: SimpleNamespace())
    assert session_options("s3a", "bucket") == {}
