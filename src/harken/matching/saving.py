"""What an index holds, as flat arrays, small tables and a few facts; and how these lie in a folder.

Every array is a file of its own, which is mapped rather than read: processes that load one folder share its
pages, and what one of them changes it has for itself. The manifest of a folder says of every file how large it is,
its checksum and, of an array, its type and shape.

Nothing of a file is believed before it is looked at: names lead out of no folder, sizes are those of the files,
and no length that a file states makes anything larger than the file. What the contents mean is for those to check
who restore them; they raise ValueError and the like.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.durable import checksum
from harken.errors import IndexFormatError
from harken.matching.untrusted import read_table

SMALL = 1 << 16
"""Bytes of an array up to which it is read: what is mapped keeps a file open, and a process may have few."""

_LINE = 64

FACTS = "facts"
_FACTS, _ARRAY, _TABLE = ".json", ".npy", ".arrow"

_NAME = re.compile(r"[a-z][a-z0-9_.]*\.(json|npy|arrow)")
_DTYPE = re.compile(r"[<>|][biuf][1248]")
_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[^']{3})', 'fortran_order': False, 'shape': \((?P<shape>[0-9, ]*)\), \} *\n"
)
"""The header of an array in numpy's format, as numpy writes it."""

_MAGIC = b"\x93NUMPY\x01\x00"

Fact: TypeAlias = Any  # whatever JSON holds: who wrote it knows its form
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]  # of any type
Record: TypeAlias = dict[str, object]
"""What a manifest says of one file."""

Scalar = TypeVar("Scalar", bound=np.generic)

DAMAGE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    OSError,
    pa.ArrowException,
)
"""What comes of reading a file that is not as it was written."""


@dataclass(frozen=True, slots=True)
class State:
    """All that something holds. Arrays may be its own, not copies: write them before it changes.

    What matching changes, which goes on while an engine is saved, has to be copied.
    """

    facts: Mapping[str, Fact] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    @classmethod
    def of_parts(cls, parts: Mapping[str, State]) -> State:
        """The states of several parts as one."""
        return cls(
            {f"{part}.{name}": fact for part, state in parts.items() for name, fact in state.facts.items()},
            {f"{part}.{name}": array for part, state in parts.items() for name, array in state.arrays.items()},
            {f"{part}.{name}": table for part, state in parts.items() for name, table in state.tables.items()},
        )

    def has_part(self, part: str) -> bool:
        """Whether there is anything under this name."""
        return any(_within(part, named) for named in (self.facts, self.arrays, self.tables))

    def part(self, part: str) -> State:
        """The state of one part."""
        return State(_within(part, self.facts), _within(part, self.arrays), _within(part, self.tables))

    def with_facts(self, **facts: Fact) -> State:
        """The same, and some facts more."""
        return replace(self, facts={**self.facts, **facts})

    def fact(self, name: str) -> Fact:
        """A fact that must be there."""
        return _found(self.facts, name)

    def count(self, name: str) -> int:
        """A fact that must be there and be a number of things."""
        return counted(name, self.fact(name))

    def array(
        self, name: str, dtype: type[Scalar], dimensions: int = 1, *, size: int | None = None
    ) -> npt.NDArray[Scalar]:
        """An array that must be there, of this type and, if said, with so many rows: kernels do not look twice."""
        array: npt.NDArray[Scalar] = _found(self.arrays, name)
        if array.dtype != dtype or array.ndim != dimensions:
            said = f"{name} is an array of {array.dtype} of {array.ndim} dimensions"
            raise ValueError(f"{said}, not of {np.dtype(dtype)} of {dimensions}")
        if size is not None and len(array) != size:
            raise ValueError(f"{name} has {len(array):,} rows, not {size:,}")
        return array

    def table(self, name: str, schema: pa.Schema) -> pa.Table:
        """A table that must be there, with these columns."""
        table: pa.Table = _found(self.tables, name)
        if not table.schema.equals(schema):
            raise ValueError(f"{name} has other columns than {', '.join(schema.names)}, or of other types")
        return table

    def write(self, folder: Path) -> dict[str, Record]:
        """Write everything into a folder; what its manifest has to say of the files."""
        path = folder / f"{FACTS}{_FACTS}"
        path.write_text(json.dumps(self.facts), encoding="utf-8")
        records = {path.name: _record(path)}
        for name, table in self.tables.items():
            path = folder / f"{name}{_TABLE}"
            with open(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            records[path.name] = _record(path)
        for name, array in self.arrays.items():
            path = folder / f"{name}{_ARRAY}"
            with open(path, "wb") as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), (1, 0), allow_pickle=False)
            records[path.name] = {**_record(path), "dtype": array.dtype.str, "shape": list(array.shape)}
        return records

    @classmethod
    def read(cls, folder: Path, records: Mapping[str, Record], *, verify: bool) -> State:
        """What `write` wrote, its arrays mapped; checksums are looked at only to `verify`."""
        contents: dict[str, dict[str, Any]] = {suffix: {} for suffix in _READ}
        for name, record in records.items():
            path = folder / name
            try:
                if not is_file_name(name):
                    raise ValueError("a manifest may name files of its own folder only, as they are called there")
                _check(path, record, verify)
                contents[path.suffix][path.stem] = _READ[path.suffix](path, record)
            except FileNotFoundError:
                raise IndexFormatError(f"{path} is missing") from None
            except DAMAGE as error:
                raise IndexFormatError(f"{path} is damaged: {error}") from error
        return cls(contents[_FACTS].get(FACTS, {}), contents[_ARRAY], contents[_TABLE])


def is_file_name(name: str) -> bool:
    """Whether files that `write` makes may be called so."""
    return _NAME.fullmatch(name) is not None


def require(is_so: bool | np.bool_, said: str) -> None:
    """ValueError unless something is so."""
    if not is_so:
        raise ValueError(said)


def counted(name: str, value: object) -> int:
    """What must be a number of things; far more than there can be is none."""
    if type(value) is not int or not 0 <= value < 2**62:
        raise ValueError(f"{name} is {value!r}, which is no number of things")
    return value


def _within(part: str, named: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"{part}."
    return {name.removeprefix(prefix): each for name, each in named.items() if name.startswith(prefix)}


def _found(named: Mapping[str, Any], name: str) -> Any:
    if name not in named:
        raise ValueError(f"there is no {name}")
    return named[name]


def _record(path: Path) -> Record:
    return {"bytes": path.stat().st_size, "crc32": checksum(path)}


def _check(path: Path, record: Record, verify: bool) -> None:
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is no file")
    if about.st_size != record["bytes"]:
        raise ValueError(f"it has {about.st_size:,} bytes, and should have {record['bytes']}")
    if verify and checksum(path) != record["crc32"]:
        raise ValueError("its checksum is not that of the manifest")


def _mapped(path: Path, record: Record) -> npt.NDArray[Any]:
    """An array whose pages are those of the file until they are written to; then they are private."""
    found, offset = _header(path)
    wanted = {name: record[name] for name in ("dtype", "shape")}
    if found != wanted:
        raise ValueError(f"it holds an array of {found}, and should hold one of {wanted}")
    dtype, shape = np.dtype(found["dtype"]), tuple(found["shape"])
    size = math.prod(shape) * dtype.itemsize
    if offset + size != path.stat().st_size:
        raise ValueError(f"it holds an array of {found}, and has no room for that or too much")
    if size <= SMALL:
        return _read(path, offset, size).view(dtype).reshape(shape)
    return np.asarray(np.memmap(path, dtype, "c", offset, shape))  # kernels know plain arrays only


def _read(path: Path, offset: int, size: int) -> npt.NDArray[np.uint8]:
    """Bytes of a file, from the beginning of a cache line on, as pages begin."""
    room = np.empty(size + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    found = room[begin : begin + size]
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        if file.readinto(found.data) != size:
            raise ValueError("it has become shorter")
    return found


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """Type and shape as the header of an array says, and where the array begins."""
    with path.open("rb") as file:
        begin = file.read(len(_MAGIC) + 2)
        length = int.from_bytes(begin[len(_MAGIC) :], "little")
        header = _HEADER.fullmatch(file.read(length))
    if not begin.startswith(_MAGIC) or header is None:
        raise ValueError("it is no array as numpy writes one")
    dtype = header["dtype"].decode()
    if not _DTYPE.fullmatch(dtype):
        raise ValueError(f"it holds an array of {dtype}")
    shape = [int(extent) for extent in header["shape"].decode().split(",") if extent.strip()]
    return {"dtype": dtype, "shape": shape}, len(begin) + length


def _read_facts(path: Path, _: Record) -> dict[str, Fact]:
    facts = json.loads(path.read_bytes())
    if not isinstance(facts, dict):
        raise TypeError("facts are named")
    return facts


_READ: dict[str, Callable[[Path, Record], object]] = {
    _FACTS: _read_facts,
    _ARRAY: _mapped,
    _TABLE: lambda path, _: read_table(path),
}


def joined(arrays: Iterable[npt.NDArray[Scalar]], dtype: type[Scalar]) -> tuple[npt.NDArray[Scalar], list[int]]:
    """Arrays as one, and their sizes."""
    listed = list(arrays)
    return np.concatenate([np.zeros(0, dtype), *listed]), [len(each) for each in listed]


def parted(values: npt.NDArray[Scalar], sizes: object) -> list[npt.NDArray[Scalar]]:
    """The arrays that were joined; ValueError if these cannot be their sizes."""
    if not isinstance(sizes, list) or sum(counted("a size", size) for size in sizes) != len(values):
        raise ValueError("sizes do not add up to what there is")
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return [values[end - size : end] for size, end in zip(sizes, ends, strict=True)]
