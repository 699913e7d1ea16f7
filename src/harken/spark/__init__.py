"""The data pipeline on Spark: subscriptions and indexes on shared storage, batch and stream matching, sinks.

DataFrames in, DataFrames out, and the engine, the language and the semantics are those of a single process.
Nothing here needs a jar, and tests/spark/test_connect.py says what runs on Spark Connect too.
"""

from typing import TYPE_CHECKING

from harken.deferring import deferred

if TYPE_CHECKING:
    from harken.spark.compiling import CompiledSubscriptions, compile_subscriptions
    from harken.spark.index import Index, build_index
    from harken.spark.lasting import EventValidity
    from harken.spark.matching import MatchedEvents, Plan, match, plan
    from harken.spark.operating import StreamStatus, repin_batch, skip_batch, stream_status
    from harken.spark.session import local_session
    from harken.spark.sinks import DatabaseSink, KafkaSink, Query, Sink, TableSink, write_table
    from harken.spark.statistics import EventStatistics, event_statistics
    from harken.spark.stream import match_stream
    from harken.spark.subscriptions import Change, Subscriptions
    from harken.spark.symmetric import symmetric_match
else:
    __getattr__ = deferred(
        __name__,
        {
            "compiling": ("CompiledSubscriptions", "compile_subscriptions"),
            "index": ("Index", "build_index"),
            "lasting": ("EventValidity",),
            "matching": ("MatchedEvents", "Plan", "match", "plan"),
            "operating": ("StreamStatus", "repin_batch", "skip_batch", "stream_status"),
            "session": ("local_session",),
            "sinks": ("DatabaseSink", "KafkaSink", "Query", "Sink", "TableSink", "write_table"),
            "statistics": ("EventStatistics", "event_statistics"),
            "stream": ("match_stream",),
            "subscriptions": ("Change", "Subscriptions"),
            "symmetric": ("symmetric_match",),
        },
    )

__all__ = [
    "Change",
    "CompiledSubscriptions",
    "DatabaseSink",
    "EventStatistics",
    "EventValidity",
    "Index",
    "KafkaSink",
    "MatchedEvents",
    "Plan",
    "Query",
    "Sink",
    "StreamStatus",
    "Subscriptions",
    "TableSink",
    "build_index",
    "compile_subscriptions",
    "event_statistics",
    "local_session",
    "match",
    "match_stream",
    "plan",
    "repin_batch",
    "skip_batch",
    "stream_status",
    "symmetric_match",
    "write_table",
]
