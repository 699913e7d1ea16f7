"""Arrow tables out of files that nobody vouches for.

Arrow reads such files safely if they are checked afterwards, with one exception: compressed ones state how large
they become. What is read here is never compressed, lies in memory as it lies in the file, and so takes no more.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa

_MAGIC = b"ARROW1\0\0"
_HEADER, _COMPRESSION = 2, 3
"""The places of fields: the header among those of a message, the compression among those of a record batch."""


def read_table(path: Path) -> pa.Table:
    """The table of an Arrow file; ValueError or an error of Arrow's if it holds none."""
    content = pa.py_buffer(path.read_bytes())
    if content.slice(0, len(_MAGIC)).to_pybytes() != _MAGIC:
        raise ValueError("it is no Arrow file")
    stream = content.slice(len(_MAGIC))  # a file is a stream with a directory behind it, which is not needed
    _refuse_compression(stream)
    table = pa.ipc.open_stream(stream).read_all()
    table.validate(full=True)
    return table


def _refuse_compression(stream: pa.Buffer) -> None:
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(stream))
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if message.type in ("record batch", "dictionary") and _is_compressed(message):
            raise ValueError("it is compressed")


def _is_compressed(message: pa.Message) -> bool:
    """Whether the metadata of a record batch, or of the one in a dictionary, names a compression."""
    metadata = message.metadata.to_pybytes()
    try:
        header = _field(metadata, _table_at(metadata, 0), _HEADER)
        if header is None:
            raise ValueError("a message has no header")
        batch = _table_at(metadata, header)
        if message.type == "dictionary":
            inner = _field(metadata, batch, 1)
            if inner is None:
                raise ValueError("a dictionary has no contents")
            batch = _table_at(metadata, inner)
        return _field(metadata, batch, _COMPRESSION) is not None
    except struct.error:
        raise ValueError("a message has no metadata that can be read") from None


def _table_at(metadata: bytes, at: int) -> int:
    """Where the table is that an offset at a place leads to."""
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Where the field of a table is, if it has it (FlatBuffers: a table leads back to where its fields are)."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    if fields < 0:
        raise ValueError("a message has no metadata that can be read")
    (size,) = struct.unpack_from("<H", metadata, fields)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", metadata, fields + 4 + 2 * number)
    return table + offset if offset else None
