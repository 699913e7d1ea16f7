"""Tables, from whatever can hand them over as Arrow does: pandas, Polars, DuckDB and others."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pyarrow as pa

from harken.errors import HarkenError


@runtime_checkable
class ArrowStream(Protocol):
    """What has the Arrow stream interface: data frames of pandas and Polars, readers of record batches."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A stream of record batches."""


def table_of(source: object, refuse: type[HarkenError]) -> pa.Table | None:
    """The table that a source is or can be read as, None if it is no table; `refuse` is raised if that fails."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    try:
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise refuse(f"a {type(source).__name__} that cannot be read as an Arrow table: {said}") from error
