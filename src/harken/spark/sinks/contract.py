"""What every sink does, and what sinks ask of the matches they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harken.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BATCH = "batch"
"""What sinks call the number of a batch in what they write."""


class Sink(Protocol):
    """Takes the matches of a stream, batch by batch.

    Batches are numbered by the stream's checkpoint. A stream with a new checkpoint counts from 0 again, so it
    needs a place of its own: to a sink that has seen these numbers, its batches are repetitions.

    Sinks can be pickled: a server of Spark Connect runs them in a process of its own.
    """

    def write(self, batch: int, matches: DataFrame) -> None:
        """Afterwards the matches of this batch are there exactly once, whatever was there of this batch before.

        `matches` has a column `event`, a column `subscription` (or `subscriptions`, if they are grouped), and
        columns that were kept. It is computed by this call, and not at all if the batch is known to be there.
        """


def require(matches: DataFrame, *wanted: str, sink: str) -> None:
    """SinkError if matches lack a column that the sink cannot do without."""
    for name in wanted:
        if name not in matches.columns:
            raise SinkError(f"{sink} needs a column {name!r}; there are {', '.join(matches.columns)}")


def reserve_batch(matches: DataFrame) -> None:
    """SinkError if matches have a column of the name under which sinks write the batch; Spark ignores case."""
    for name in matches.columns:
        if name.lower() == BATCH:
            raise SinkError(
                f"a column {name!r} would be mistaken for the number of the batch",
                suggestion="keep it by another name",
            )


def text(matches: DataFrame, name: str) -> Column:
    """A column as text, the way Spark writes its type; bytes, which need not be text, as hexadecimal digits."""
    from pyspark.sql import functions
    from pyspark.sql.types import BinaryType

    column = functions.col(f"`{name}`")
    return (
        functions.hex(column) if isinstance(matches.schema[name].dataType, BinaryType) else column.cast("string")
    )
