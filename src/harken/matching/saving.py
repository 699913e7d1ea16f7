"""What an index holds, as flat arrays, small tables and a few facts; and how these lie in a folder.

Every array is a file of its own, which is mapped rather than read: processes that load one folder share its
pages, and what one of them changes it has for itself. The manifest of a folder says of every file how large it is,
its checksum and, of an array, its type and shape.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.errors import IndexFormatError

FACTS = "facts"
_FACTS, _ARRAY, _TABLE = ".json", ".npy", ".arrow"
_CHUNK = 1 << 20

Fact: TypeAlias = Any  # whatever JSON holds: who wrote it knows its form
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]  # of any type
Record: TypeAlias = dict[str, object]
"""What a manifest says of one file."""

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class State:
    """All that something holds. Arrays may be its own, not copies: write them before it changes."""

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

    def part(self, part: str) -> State:
        """The state of one part."""
        return State(_within(part, self.facts), _within(part, self.arrays), _within(part, self.tables))

    def with_facts(self, **facts: Fact) -> State:
        """The same, and some facts more."""
        return replace(self, facts={**self.facts, **facts})

    def fact(self, name: str) -> Fact:
        """A fact that must be there."""
        return _found(self.facts, name)

    def array(self, name: str, dtype: type[Scalar], dimensions: int = 1) -> npt.NDArray[Scalar]:
        """An array that must be there, of this type: kernels do not look twice."""
        array: npt.NDArray[Scalar] = _found(self.arrays, name)
        if array.dtype != dtype or array.ndim != dimensions:
            said = f"{name} is an array of {array.dtype} of {array.ndim} dimensions"
            raise ValueError(f"{said}, not of {np.dtype(dtype)} of {dimensions}")
        return array

    def table(self, name: str) -> pa.Table:
        """A table that must be there."""
        return _found(self.tables, name)

    def write(self, folder: Path) -> dict[str, Record]:
        """Write everything into a folder; what its manifest has to say of the files."""
        path = folder / f"{FACTS}{_FACTS}"
        path.write_text(json.dumps(self.facts), encoding="utf-8")
        records = {path.name: _record(path)}
        for name, table in self.tables.items():
            path = folder / f"{name}{_TABLE}"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            records[path.name] = _record(path)
        for name, array in self.arrays.items():
            path = folder / f"{name}{_ARRAY}"
            np.save(path, array, allow_pickle=False)
            records[path.name] = {**_record(path), "dtype": array.dtype.str, "shape": list(array.shape)}
        return records

    @classmethod
    def read(cls, folder: Path, records: Mapping[str, Record], *, verify: bool) -> State:
        """What `write` wrote, its arrays mapped; checksums are looked at only to `verify`."""
        contents: dict[str, dict[str, Any]] = {suffix: {} for suffix in _READ}
        for name, record in records.items():
            path = folder / name
            try:
                if path.parent != folder:
                    raise ValueError("a manifest may name files of its own folder only")
                _check(path, record, verify)
                contents[path.suffix][path.stem] = _READ[path.suffix](path, record)
            except FileNotFoundError:
                raise IndexFormatError(f"{path} is missing") from None
            except (ValueError, TypeError, KeyError, OSError, RecursionError, pa.ArrowException) as error:
                raise IndexFormatError(f"{path} is damaged: {error}") from error
        return cls(contents[_FACTS].get(FACTS, {}), contents[_ARRAY], contents[_TABLE])


def _within(part: str, named: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"{part}."
    return {name.removeprefix(prefix): each for name, each in named.items() if name.startswith(prefix)}


def _found(named: Mapping[str, Any], name: str) -> Any:
    if name not in named:
        raise ValueError(f"there is no {name}")
    return named[name]


def _record(path: Path) -> Record:
    return {"bytes": path.stat().st_size, "crc32": _checksum(path)}


def _check(path: Path, record: Record, verify: bool) -> None:
    size = path.stat().st_size
    if size != record["bytes"]:
        raise ValueError(f"it has {size:,} bytes, and should have {record['bytes']}")
    if verify and _checksum(path) != record["crc32"]:
        raise ValueError("its checksum is not that of the manifest")


def _checksum(path: Path) -> int:
    checksum, chunk = 0, memoryview(bytearray(_CHUNK))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(chunk):
            checksum = zlib.crc32(chunk[:count], checksum)
    return checksum


def _mapped(path: Path, record: Record) -> npt.NDArray[Any]:
    """An array whose pages are those of the file until they are written to; then they are private."""
    array = np.load(path, mmap_mode="c", allow_pickle=False)
    found = {"dtype": array.dtype.str, "shape": list(array.shape)}
    wanted = {name: record[name] for name in found}
    if found != wanted or not array.flags.c_contiguous:
        raise ValueError(f"it holds an array of {found}, and should hold one of {wanted}")
    return np.asarray(array)  # kernels know plain arrays only


def _read_table(path: Path, _: Record) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return table


def _read_facts(path: Path, _: Record) -> dict[str, Fact]:
    facts = json.loads(path.read_bytes())
    if not isinstance(facts, dict):
        raise TypeError("facts are named")
    return facts


_READ: dict[str, Callable[[Path, Record], object]] = {
    _FACTS: _read_facts,
    _ARRAY: _mapped,
    _TABLE: _read_table,
}


def joined(arrays: Iterable[npt.NDArray[Scalar]], dtype: type[Scalar]) -> tuple[npt.NDArray[Scalar], list[int]]:
    """Arrays as one, and their sizes."""
    listed = list(arrays)
    return np.concatenate([np.zeros(0, dtype), *listed]), [len(each) for each in listed]


def parted(values: npt.NDArray[Scalar], sizes: list[int]) -> list[npt.NDArray[Scalar]]:
    """The arrays that were joined."""
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return [values[end - size : end] for size, end in zip(sizes, ends, strict=True)]
