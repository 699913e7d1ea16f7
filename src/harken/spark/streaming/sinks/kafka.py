"""Matches as messages of a Kafka topic, through Spark's own connector."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harken.errors import SinkError
from harken.spark.streaming.sinks.contract import BATCH, QUERY, Query, require, reserve, text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""The package that teaches Spark Kafka; its version is Spark's."""

_NOT_FOUND = re.compile(r"Failed to find (?:the )?data source: kafka", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """A topic that gets a message with every row: the key is the event as text, the value the row as JSON.

    Takes any columns, `event` among them; the JSON has all of them, null or not, and `batch` and `query`: the
    number of the batch, and whose it is. The messages of an event are in one partition of the topic, in no
    particular order.

    Kafka cannot be asked whether it has a batch, so every message is there at least once, and again with every
    repetition of a batch or of a task of it. Readers tell by `query`, `batch`, `event` and `subscription` (not by
    `subscription` if they are grouped) what they have seen. Events without an id of their own have a number in
    their batch, which may be another in a repetition: give them one.

    `options` are those of Spark's connector, such as `kafka.security.protocol`. The workers send, and nothing
    comes to the driver. Threads may share a sink.
    """

    servers: str
    """One or more `host:port`, separated by commas."""
    topic: str
    options: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)  # they may hold passwords

    @property
    def place(self) -> str:
        """The topic and its servers."""
        return f"topic {self.topic} of {self.servers}"

    def check(self, columns: Sequence[str]) -> None:
        """SinkError without `event`, or with a name that messages use for something else."""
        require(columns, "event", sink="a Kafka sink")
        reserve(columns, BATCH, QUERY)

    def write(self, batch: int, matches: DataFrame, query: Query | None = None) -> None:
        """Send the matches of a batch, each at least once.

        SinkError if matches have no column `event` or one named `batch` or `query`, or if the session lacks the
        connector. What goes wrong with Kafka is told by Spark's errors.
        """
        from pyspark.errors import AnalysisException

        self.check(matches.columns)
        messages = _messages(batch, matches, query)
        to = {**self.options, "kafka.bootstrap.servers": self.servers, "topic": self.topic}
        try:
            messages.write.format("kafka").options(**to).save()
        except AnalysisException as error:
            if _NOT_FOUND.search(str(error)) is None:
                raise
            raise SinkError(
                "this Spark session has no connector to Kafka",
                suggestion=f"start it with spark.jars.packages={CONNECTOR}:{matches.sparkSession.version}",
            ) from None


def _messages(batch: int, matches: DataFrame, query: Query | None) -> DataFrame:
    from pyspark.sql import functions

    of = [functions.lit(batch).alias(BATCH)]
    if query is not None:
        of.append(functions.lit(query.id).alias(QUERY))
    row = functions.struct(*of, "*")
    value = functions.to_json(row, {"ignoreNullFields": "false"})
    return matches.select(text(matches, "event").alias("key"), value.alias("value"))
