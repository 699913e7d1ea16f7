"""The data pipeline on Spark: subscriptions and indexes on shared storage, batch and stream matching, sinks.

DataFrames in, DataFrames out, and the engine, the language and the semantics are those of a single process.
Nothing here needs a jar, and tests/spark/test_connect.py says what runs on Spark Connect too.
"""

from typing import TYPE_CHECKING

from harken.deferring import deferred

if TYPE_CHECKING:
    from harken.spark.index.index import Index, build_index
    from harken.spark.matching.batch import MatchedEvents, Plan, match, plan
    from harken.spark.runtime.session import local_session
    from harken.spark.statistics.event_statistics import EventStatistics, event_statistics
    from harken.spark.streaming.operating import (
        StreamStatus,
        repin_batch,
        replan_batch,
        skip_batch,
        stream_status,
    )
    from harken.spark.streaming.retained_events import EventValidity
    from harken.spark.streaming.sinks import DatabaseSink, KafkaSink, Query, Sink, TableSink, write_table
    from harken.spark.streaming.stream import match_stream
    from harken.spark.subscriptions.compiling import CompiledSubscriptions, compile_subscriptions
    from harken.spark.subscriptions.subscriptions import Change, Subscriptions
    from harken.spark.symmetric import symmetric_match
else:
    __getattr__ = deferred(
        __name__,
        {
            "subscriptions.compiling": ("CompiledSubscriptions", "compile_subscriptions"),
            "index.index": ("Index", "build_index"),
            "streaming.retained_events": ("EventValidity",),
            "matching.batch": ("MatchedEvents", "Plan", "match", "plan"),
            "streaming.operating": ("StreamStatus", "repin_batch", "replan_batch", "skip_batch", "stream_status"),
            "runtime.session": ("local_session",),
            "streaming.sinks": ("DatabaseSink", "KafkaSink", "Query", "Sink", "TableSink", "write_table"),
            "statistics.event_statistics": ("EventStatistics", "event_statistics"),
            "streaming.stream": ("match_stream",),
            "subscriptions.subscriptions": ("Change", "Subscriptions"),
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
    "replan_batch",
    "skip_batch",
    "stream_status",
    "symmetric_match",
    "write_table",
]
