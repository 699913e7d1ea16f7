"""What every sink does, and what sinks ask of the matches they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from harken.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BATCH = "batch"
"""What sinks call the number of a batch in what they write."""


QUERY = "query"
"""What sinks call the query that a batch is of."""

_OF_TYPE = "a sink of the type "


@dataclass(frozen=True, slots=True)
class Query:
    """Whose batches these are: batches of one query have a number of their own, for ever."""

    id: str
    """As Spark keeps it in the checkpoint: the same after a restart, another with a new checkpoint."""
    checkpoint: str
    """The address of the checkpoint, for people."""

    def refuse(self, owner: Query, place: str) -> None:
        """SinkError if a place belongs to another query, to which its batches would be repetitions."""
        if self.id != owner.id:
            raise SinkError(
                f"{place} has the batches of another query, {owner.id}, of the checkpoint {owner.checkpoint}",
                suggestion=f"write to another place, or go on with that checkpoint instead of {self.checkpoint}",
            )


def refuse_beside(batch: int, owner: Query | None, place: str) -> None:
    """SinkError if a batch that is of no query has a number that one of the owner's has, or will have."""
    if owner is not None and batch >= 0:
        raise SinkError(
            f"{place} has the batches of the query {owner.id}, which are numbered from 0 on, and this one, "
            f"{batch}, is of no query",
            suggestion="give what is written beside a stream a number below 0",
        )


class Sink(Protocol):
    """Takes the matches of a stream, batch by batch.

    Batches are numbered by the stream's checkpoint. A stream with a new checkpoint is another query and counts
    from 0 again, so it needs a place of its own. The first query that writes to a place owns it.

    Sinks can be pickled: a server of Spark Connect runs them in a process of its own.
    """

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        """Afterwards the matches of this batch are there exactly once, whatever was there of this batch before.

        SinkError if the place belongs to another query.

        `matches` has a column `event`, a column `subscription` (or `subscriptions`, if they are grouped), and
        columns that were kept. It is computed by this call, and not at all if the batch is known to be there.
        """


@runtime_checkable
class Remembers(Protocol):
    """A sink that can be asked what it has."""

    def has(self, batch: int) -> bool:
        """Whether a batch is there."""

    def owner(self) -> Query | None:
        """The query that has written here first, if any has."""


@runtime_checkable
class Counts(Remembers, Protocol):
    """A sink that can be asked how far it is, too."""

    def latest_batch(self) -> int | None:
        """The latest batch that is there."""


@runtime_checkable
class Tabular(Protocol):
    """A sink whose matches are in a folder that somebody may have put something else in."""

    def check_empty(self, first: int | None = None) -> None:
        """SinkError if there is something that no query owns; with `first`, batches from there on."""

    def check_like(self, columns: Sequence[str], types: Mapping[str, str]) -> None:
        """SinkError if what is there has other columns, or types where they are said, or another format."""


@runtime_checkable
class Placed(Protocol):
    """A sink that knows where its matches are, and which it can take."""

    @property
    def place(self) -> str:
        """The place, by a name that two sinks share if they write to the same one. Without passwords."""

    def check(self, columns: Sequence[str]) -> None:
        """SinkError if it cannot take matches of these columns: before a stream is started, not with a batch."""


def place_of(sink: Sink) -> str:
    """Where the matches of a sink are; of one that does not know, what kind of sink it is."""
    if isinstance(sink, Placed):
        return sink.place
    kind = type(sink)
    module = "" if kind.__module__ == "__main__" else f"{kind.__module__}."
    return f"{_OF_TYPE}{module}{kind.__qualname__}"


def are_one(place: str, other: str) -> bool:
    """Whether two places are one. A class of the program that was started may be one of a module elsewhere."""
    if not (place.startswith(_OF_TYPE) and other.startswith(_OF_TYPE)):
        return place == other
    one, two = (f".{each.removeprefix(_OF_TYPE)}" for each in (place, other))
    return one.endswith(two) or two.endswith(one)


def require(columns: Sequence[str], *wanted: str, sink: str) -> None:
    """SinkError if matches lack a column that the sink cannot do without."""
    for name in wanted:
        if name not in columns:
            raise SinkError(f"{sink} needs a column {name!r}; there are {', '.join(columns)}")


def reserve(columns: Sequence[str], *taken: str) -> None:
    """SinkError if matches have a column of a name that stands for something else; Spark ignores case."""
    said = {BATCH: "the number of the batch", QUERY: "the query"}
    for name, count in Counter(each.lower() for each in columns).items():
        if count > 1:
            alike = [each for each in columns if each.lower() == name]
            raise SinkError(
                f"Spark takes the columns {' and '.join(map(repr, alike))} for one",
                suggestion="keep it by another name",
            )
    for name in columns:
        if name.lower() in taken:
            raise SinkError(
                f"a column {name!r} would be mistaken for {said[name.lower()]}",
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
