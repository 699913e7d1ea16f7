"""Damage to a saved engine: bytes, words, lengths, numbers and files gone wrong; checksums may tell, or not.

Every mutation is a function of a folder and a random source, and each of them by its number the same every time.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

MANIFEST = "manifest.json"

_INTERESTING = (0, 1, 2, -1, -2, 5, 16, 63, 255, 2**15, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**62, 2**63 - 1)
_ODD: tuple[object, ...] = (
    *(None, True, False, "", "x", [], {}, [0], [[]], -1, 0, 1, 2, 0.5, -1e300, math.inf, math.nan),
    *(2**31, 2**63, 2**64, 10**30, "../../manifest.json", "a" * 1_000),
)


def contents(folder: Path) -> Path:
    """Where the files of a saved engine are."""
    generation = json.loads((folder / MANIFEST).read_text()).get("generation")
    return folder / generation if generation else folder


def seal(folder: Path) -> None:
    """Have the manifest say of every file what it is now, as far as that can be said."""
    manifest, inside = json.loads((folder / MANIFEST).read_text()), contents(folder)
    records = manifest.get("files")
    for name, record in records.items() if isinstance(records, dict) else ():
        path = inside / str(name)
        if not _is_plain(path) or not isinstance(record, dict):
            continue
        content = path.read_bytes()
        record.update(bytes=len(content), crc32=zlib.crc32(content))
        if path.suffix == ".npy":
            record.update(_header(content))
    _write(folder / MANIFEST, json.dumps(manifest).encode())


def mutate(folder: Path, chance: Random) -> str:
    """Do one to three things to a saved engine; what was done. Its files may be links, and are not written to."""
    done = []
    mutations = [chance.choice(_MUTATIONS) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    # What is no file any more cannot be read either: it goes last.
    for mutation in sorted(mutations, key=lambda each: each is gone):
        try:
            path = chance.choice(sorted(each for each in contents(folder).iterdir() if _is_plain(each)))
            mutation(path, chance)
        except (OSError, ValueError, LookupError, EOFError, MemoryError, pa.ArrowException):
            continue  # what an earlier mutation left has nothing of the kind
        done.append(f"{mutation.__name__} {path.name}")
    if chance.random() < 0.15:
        numbers_said(folder / MANIFEST, chance)
        done.append("numbers_said manifest")
    if chance.random() < 0.8:
        try:
            seal(folder)
        except (OSError, ValueError, AttributeError, TypeError):
            return ", ".join(done)
        done.append("sealed")
    return ", ".join(done)


def copied(pristine: Path, folder: Path) -> None:
    """A copy of a saved engine, by links: what is replaced there stays here."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pristine, folder, copy_function=os.link)


# ---------------------------------------------------------------- bytes


def bytes_changed(path: Path, chance: Random) -> None:
    """Some bytes anywhere."""
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 4, 16))):
        content[_place(content, chance)] ^= chance.randint(1, 255)
    _write(path, bytes(content))


def truncated(path: Path, chance: Random) -> None:
    """Its end is missing."""
    content = path.read_bytes()
    _write(path, content[: chance.choice((0, _place(content, chance), max(0, len(content) - 1)))])


def extended(path: Path, chance: Random) -> None:
    """There is more."""
    _write(path, path.read_bytes() + chance.randbytes(chance.choice((1, 4, 64, 4_096))))


def moved(path: Path, chance: Random) -> None:
    """A piece stands where another was."""
    content = bytearray(path.read_bytes())
    size, begin, to = chance.choice((4, 8, 64)), _place(content, chance), _place(content, chance)
    piece = content[begin : begin + size]
    content[to : to + len(piece)] = piece
    _write(path, bytes(content))


def swapped(path: Path, chance: Random) -> None:
    """It has changed names with another of its kind."""
    other = chance.choice(sorted(path.parent.glob(f"*{path.suffix}")))
    own, others = path.read_bytes(), other.read_bytes()
    _write(path, others)
    _write(other, own)


def gone(path: Path, chance: Random) -> None:
    """It is not there, or something else is."""
    path.unlink()
    kind = chance.randrange(4)
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        os.mkfifo(path)


# ---------------------------------------------------------------- what the bytes mean


def words_changed(path: Path, chance: Random) -> None:
    """Some numbers of an array are others."""
    path = _of_kind(path, ".npy", chance)
    array = np.load(path)
    flat = array.reshape(-1)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(flat))
        near = int(flat[at]) + chance.choice((-2, -1, 1, 2, 16)) if flat.dtype.kind in "iu" else 0
        value = chance.choice((near, near, len(flat), chance.choice(_INTERESTING), chance.randrange(256)))
        if flat.dtype.kind == "f":
            flat[at] = chance.choice((math.nan, math.inf, -1.0, 1e300, 0.0))
        else:
            flat[at : at + 1] = np.array([value % 2**64], np.uint64).astype(flat.dtype)
    _save(path, array)


def lengths_changed(path: Path, chance: Random) -> None:
    """An array is shorter or longer, or of another type."""
    path = _of_kind(path, ".npy", chance)
    array = np.load(path)
    kind = chance.randrange(4)
    if kind == 0:
        array = array[: chance.randrange(len(array) + 1)]
    elif kind == 1:
        array = np.concatenate([array, array[: chance.randrange(len(array) + 1)]])
    elif kind == 2:
        array = array.astype(chance.choice((np.uint8, np.int32, np.uint32, np.int64, np.float64)))
    else:
        array = np.roll(array, chance.randint(1, 3))
    _save(path, array)


def headers_changed(path: Path, chance: Random) -> None:
    """The header of an array says what is not so."""
    path = _of_kind(path, ".npy", chance)
    content = path.read_bytes()
    end = content.index(b"\n")
    claimed = chance.choice(
        (b"(2147483648,)", b"(4611686018427387904, 4)", b"(0,)", b"(1, 1, 1)", b"(-1,)", b"(9,)")
    )
    begin = content.index(b"(")
    header = (content[:begin] + claimed + b", }").ljust(end)[:end]
    _write(path, header + content[end:])


def numbers_said(path: Path, chance: Random) -> None:
    """A value somewhere in a JSON file is another."""
    path = path if path.suffix == ".json" else path.parent / "facts.json"
    said = json.loads(path.read_text())
    parent, key = _somewhere(said, chance)
    old = parent[key]
    near = [old + 1, old - 1, 2 * old] if type(old) in (int, float) else []
    parent[key] = chance.choice((*_ODD, *near, *near))
    if chance.random() < 0.1:
        del parent[key]
    _write(path, json.dumps(said).encode())


def tables_changed(path: Path, chance: Random) -> None:
    """A table has other rows, cells or columns, or is packed."""
    path = _of_kind(path, ".arrow", chance)
    with pa.OSFile(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    kind, column = chance.randrange(6), chance.randrange(table.num_columns)
    name = table.column_names[column]
    if kind == 0:
        table = table.slice(chance.randrange(table.num_rows + 1))
    elif kind == 1:
        table = pa.concat_tables([table, table.slice(0, chance.randrange(3))])
    elif kind == 2:
        table = table.remove_column(column)
    elif kind in (3, 4):
        cells = table.column(column).to_pylist()
        if cells:
            cells[chance.randrange(len(cells))] = _cell(table.column(column).type, cells, chance)
        table = table.set_column(column, name, pa.array(cells, table.column(column).type))
    compression = "zstd" if kind == 5 else None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    _write(path, sink.getvalue().to_pybytes())


def _cell(kind: pa.DataType, cells: list[Any], chance: Random) -> object:
    if pa.types.is_integer(kind):
        return chance.choice((*(each for each in _INTERESTING if -(2**63) <= each < 2**63), None, cells[0]))
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        return chance.choice((*cells, None, "", "x", "(" * 500 + "x", "x matches '('", "zzz"))
    if pa.types.is_floating(kind):
        return chance.choice((math.nan, math.inf, -0.0, 1e300, None))
    return chance.choice((None, cells[0]))


_MUTATIONS: tuple[Callable[[Path, Random], None], ...] = (
    *(bytes_changed, truncated, extended, moved, swapped, gone),
    *(words_changed, words_changed, words_changed, words_changed, words_changed, words_changed),
    *(lengths_changed, lengths_changed, headers_changed, numbers_said, numbers_said),
    *(tables_changed, tables_changed, tables_changed),
)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _place(content: bytes | bytearray, chance: Random) -> int:
    return chance.randrange(max(1, len(content))) if content else 0


def _of_kind(path: Path, suffix: str, chance: Random) -> Path:
    """The file itself, or another that is of this kind."""
    others = sorted(each for each in path.parent.glob(f"*{suffix}") if _is_plain(each))
    return path if path in others or not others else chance.choice(others)


def _somewhere(said: Any, chance: Random) -> tuple[Any, Any]:
    """A place within what JSON holds: what it is in, and where there."""
    while True:
        keys = list(said) if isinstance(said, dict) else list(range(len(said)))
        if not keys:
            raise ValueError("there is nothing")
        key = chance.choice(keys)
        if isinstance(said[key], dict | list) and said[key] and chance.random() < 0.9:
            said = said[key]
        else:
            return said, key


def _header(content: bytes) -> dict[str, object]:
    """What the header of an array says; nothing if it is none."""
    said = re.search(rb"'descr': '([^']+)'.*'shape': \(([0-9, ]*)\)", content[:200])
    if said is None:
        return {}
    return {
        "dtype": said[1].decode("latin-1"),
        "shape": [int(each) for each in said[2].split(b",") if each.strip()],
    }


def _save(path: Path, array: np.ndarray) -> None:
    path.unlink()
    np.save(path, array)


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(content)
