"""Where matches go: tables on shared storage, databases, Kafka.

A stream writes a batch at least once: after a crash the same batch comes again, with the same rows, whatever had
become of it before. So a sink takes the number of the batch with its matches. A table and a database hold a batch
exactly once by it; Kafka's readers can tell a repetition by it. And it takes the
identity of the query, since another query has batches of the same numbers.
"""

from harken.spark.streaming.sinks.contract import Query, Sink
from harken.spark.streaming.sinks.database import DatabaseSink
from harken.spark.streaming.sinks.kafka import KafkaSink
from harken.spark.streaming.sinks.tables import TableSink, write_table

__all__ = ["DatabaseSink", "KafkaSink", "Query", "Sink", "TableSink", "write_table"]
