"""Subscriptions, events and matches in files: CSV, JSON and Parquet, told apart by the file's ending.

Readers check all they read and say in which file and line something is wrong. Events come in chunks, so that
a file larger than memory can be matched.
"""

from harken.files.events import EventChunk, read_event, read_events
from harken.files.lines import is_one_line, spans_lines
from harken.files.matches import MatchWriter, match_chunk, write_matches
from harken.files.sampling import sample_csv, sample_json
from harken.files.schemas import read_schema
from harken.files.subscriptions import SubscriptionFile, read_subscriptions

__all__ = [
    "EventChunk",
    "MatchWriter",
    "SubscriptionFile",
    "is_one_line",
    "match_chunk",
    "read_event",
    "read_events",
    "read_schema",
    "read_subscriptions",
    "sample_csv",
    "sample_json",
    "spans_lines",
    "write_matches",
]
