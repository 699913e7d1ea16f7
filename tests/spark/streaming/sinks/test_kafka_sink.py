"""A topic of a real Kafka broker has every match, with what tells repetitions apart.

Spark reads the jars of its connector when its Java starts, so a session of its own, in another process, writes and
reads the topics here.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrameWriter, SparkSession

from harken.errors import HarkenError, SinkError
from harken.spark.streaming.sinks import KafkaSink
from tests.spark.servers.jars import UnreachableError
from tests.spark.streaming.sinks import kafka_broker

SESSION = """
import json, sys
from pathlib import Path
from harken.spark.runtime.session import local_session
from harken.spark.streaming.sinks import KafkaSink, Query

servers, jars, scratch = sys.argv[1:]
settings = {
    "spark.driver.memory": "512m",
    "spark.jars": ",".join(str(each) for each in Path(jars).glob("*.jar")),
    "spark.local.dir": scratch,
    "spark.sql.warehouse.dir": scratch + "/warehouse",
}
spark = local_session("local[1]", settings=settings)

pairs = KafkaSink(servers, "pairs")
rows = "(1L, 'a', 1.5d), (1L, 'b', null), (2L, 'a', 2.5d)"
first = spark.sql(f"select * from values {rows} t(event, subscription, price)")
second = spark.sql("select 3L event, 'Ω' subscription, 3.5d price")
pairs.write(0, first)
pairs.write(1, second, Query("mine", "checkpoint"))
pairs.write(0, first)
pairs.write(2, first.where("false"))

grouped = KafkaSink(servers, "grouped", options={"kafka.compression.type": "zstd"})
grouped.write(4, spark.sql("select X'00FF' event, array(7L, 8L) subscriptions"))

def records(topic):
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    rows = source.load().selectExpr("cast(key as string) key", "cast(value as string) value", "partition")
    return [row.asDict() for row in rows.collect()]

print(json.dumps({topic: records(topic) for topic in ("pairs", "grouped")}))
spark.stop()
"""


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What the topics hold after two batches of pairs, the first one again, an empty one, and a grouped one."""
    try:
        jars = kafka_broker.jars()
    except UnreachableError as error:
        pytest.skip(f"Kafka is not in the cache, and Maven Central cannot be reached: {error}")
    with kafka_broker.broker(tmp_path_factory.mktemp("kafka")) as servers:
        finished = subprocess.run(
            [
                sys.executable,
                "-c",
                SESSION,
                servers,
                str(jars / "connector"),
                str(tmp_path_factory.mktemp("scratch")),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert finished.returncode == 0, finished.stderr
    found: dict[str, list[dict[str, Any]]] = json.loads(finished.stdout.splitlines()[-1])
    return found


@pytest.mark.long
@pytest.mark.kafka
def test_every_match_is_a_message_and_a_batch_that_comes_again_is_told_by_its_number(
    topics: dict[str, list[dict[str, Any]]],
) -> None:
    seen = Counter(
        (value["batch"], value["event"], value["subscription"])
        for value in (json.loads(record["value"]) for record in topics["pairs"])
    )
    assert seen == {(0, 1, "a"): 2, (0, 1, "b"): 2, (0, 2, "a"): 2, (1, 3, "Ω"): 1}


@pytest.mark.long
@pytest.mark.kafka
def test_the_message_is_the_whole_row_nulls_too(topics: dict[str, list[dict[str, Any]]]) -> None:
    values = {record["value"] for record in topics["pairs"]}
    assert '{"batch":0,"event":1,"subscription":"b","price":null}' in values
    assert '{"batch":1,"query":"mine","event":3,"subscription":"Ω","price":3.5}' in values


@pytest.mark.long
@pytest.mark.kafka
def test_the_key_is_the_event_so_its_messages_are_in_one_partition(
    topics: dict[str, list[dict[str, Any]]],
) -> None:
    assert Counter(record["key"] for record in topics["pairs"]) == {"1": 4, "2": 2, "3": 1}
    assert len({record["partition"] for record in topics["pairs"] if record["key"] == "1"}) == 1


@pytest.mark.long
@pytest.mark.kafka
def test_grouped_matches_are_one_message_an_event(topics: dict[str, list[dict[str, Any]]]) -> None:
    ((key, value),) = ((record["key"], json.loads(record["value"])) for record in topics["grouped"])
    assert (key, value["batch"], value["subscriptions"]) == ("00FF", 4, [7, 8])


@pytest.mark.long
@pytest.mark.kafka
def test_only_a_repository_out_of_reach_is_a_reason_to_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UnreachableError, match="Connection refused"):
        kafka_broker.jars(through(1))
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with pytest.raises(AssertionError, match=r"HTTP/1\.0 501"):
                kafka_broker.jars(through(server.server_port))
        finally:
            server.shutdown()
    assert list((tmp_path / "harken").iterdir()) == []


def through(port: int) -> tuple[str, ...]:
    """Options that send a Java to a proxy on this machine."""
    return ("-Dhttps.proxyHost=127.0.0.1", f"-Dhttps.proxyPort={port}")


# Without a broker


def test_a_session_without_the_connector_is_told_which_package_it_lacks(spark: SparkSession) -> None:
    with pytest.raises(SinkError) as caught:
        KafkaSink("127.0.0.1:1", "matches").write(0, spark.sql("select 1L event, 2L subscription"))
    assert str(caught.value) == (
        "this Spark session has no connector to Kafka; start it with "
        f"spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
    )
    assert isinstance(caught.value, HarkenError)


def test_other_errors_of_spark_are_not_taken_for_a_missing_connector(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: DataFrameWriter) -> None:
        raise AnalysisException("[UNSUPPORTED] this cannot be written")

    monkeypatch.setattr(DataFrameWriter, "save", refuse)
    with pytest.raises(AnalysisException, match="UNSUPPORTED"):
        KafkaSink("127.0.0.1:1", "matches").write(0, spark.sql("select 1L event, 2L subscription"))


def test_columns_that_spark_takes_for_one_are_refused(spark: SparkSession) -> None:
    with pytest.raises(SinkError, match="takes the columns 'event' and 'Event' for one"):
        KafkaSink("127.0.0.1:1", "matches").write(0, spark.sql("select 1L event, 2L Event"))


def test_matches_without_events_are_refused(spark: SparkSession) -> None:
    with pytest.raises(SinkError, match="a Kafka sink needs a column 'event'; there are id"):
        KafkaSink("127.0.0.1:1", "matches").write(0, spark.range(1))


def test_a_column_that_would_hide_the_number_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SinkError, match="'batch' would be mistaken for the number of the batch"):
        KafkaSink("127.0.0.1:1", "matches").write(0, spark.sql("select 1L event, 2L subscription, 3 batch"))


def test_a_sink_can_be_pickled_and_does_not_show_its_options() -> None:
    options = {"kafka.sasl.jaas.config": "password=secret"}
    copy = pickle.loads(pickle.dumps(KafkaSink("host:9092", "matches", options=options)))
    assert copy.options == options
    assert repr(copy) == "KafkaSink(servers='host:9092', topic='matches')"
