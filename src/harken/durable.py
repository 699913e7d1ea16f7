"""What survives a crash or a power cut: files that are on disk, and folders whose contents change all at once.

A **kept folder** is one file, the manifest, and beside it one subfolder with all else, the **generation** that the
manifest names. Whoever writes makes a new generation and then replaces the manifest, which a file system does in
one step. So at any moment the folder is what it was or what it is to be; what a crash leaves behind is another
generation, which nobody names and the next to write removes.

Others may have a `manifest.json` too, and files beside ours: a folder is ours if its manifest says so, and nothing
is removed from it but what writing here makes.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import uuid
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

MANIFEST = "manifest.json"
GENERATION = "generation"
"""Where a manifest names the generation."""
BESIDE = "beside"
"""Where it names files beside it that it replaces, should a crash have left them there."""

_CHUNK = 1 << 20

_GENERATION = re.compile(r"data-[0-9a-f]{32}")
_DRAFT = re.compile(r"\.manifest-[0-9a-f]{32}")


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file that is on disk when this returns; its name is once its folder is synced."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def checksum(path: Path) -> int:
    """The CRC-32 of a file."""
    crc, chunk = 0, memoryview(bytearray(_CHUNK))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(chunk):
            crc = zlib.crc32(chunk[:count], crc)
    return crc


def is_kept(folder: Path, form: str) -> bool:
    """Whether contents of a format may be kept here: some were, or were about to be, or nothing is there."""
    if not folder.is_dir():
        return False
    names = os.listdir(folder)
    return manifest_of(folder).get("format") == form if MANIFEST in names else all(map(_is_ours, names))


def _is_ours(name: str) -> bool:
    """Whether a name is one that is given only here."""
    return bool(_GENERATION.fullmatch(name) or _DRAFT.fullmatch(name))


def manifest_of(folder: Path) -> Mapping[str, object]:
    """What the manifest of a folder says; nothing if it has none, or one that cannot be read."""
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if stat.S_ISREG(path.lstat().st_mode) else None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def contents_of(folder: Path, manifest: Mapping[str, object]) -> Path:
    """Where the files are that a manifest of this folder speaks of; ValueError if it names no such place."""
    generation = manifest.get(GENERATION)
    if generation is None:  # as it was before there were generations
        return folder
    if not isinstance(generation, str) or not _GENERATION.fullmatch(generation):
        raise ValueError(f"{generation!r} is no generation")
    contents = folder / generation
    if contents.is_symlink():
        raise ValueError(f"{contents} leads elsewhere")
    return contents


def replace_contents(
    folder: Path,
    write: Callable[[Path], Mapping[str, object]],
    older: Callable[[Mapping[str, object]], Collection[str]],
) -> None:
    """Let the contents of a folder be what `write` puts into another one; it gives what the manifest says of them.

    The folder is made if there is none. Others that write here at the same time wait; who reads never does.
    Before there were generations, files lay beside the manifest: `older` tells by a manifest which.
    """
    _make_folder(folder)
    with _alone(folder):
        replaced = set(os.listdir(folder)).intersection(older(manifest_of(folder))) - {MANIFEST}
        generation = folder / f"data-{uuid.uuid4().hex}"
        draft = folder / f".manifest-{uuid.uuid4().hex}"
        try:
            generation.mkdir()
            manifest = {**write(generation), GENERATION: generation.name}
            if replaced:
                manifest[BESIDE] = sorted(replaced)
            for path in (*generation.iterdir(), generation):
                sync(path)
            write_durably(draft, f"{json.dumps(manifest, indent=2)}\n".encode())
            sync(folder)
            draft.replace(folder / MANIFEST)
        except BaseException:
            _remove(draft)
            if (
                manifest_of(folder).get(GENERATION) != generation.name
            ):  # an interrupt may come right after the step
                _remove(generation)
            raise
        sync(folder)
        for name in os.listdir(folder):
            if name != generation.name and (_is_ours(name) or name in replaced):
                _remove(folder / name)


def _make_folder(folder: Path) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync(made.parent)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let nobody else write into a folder meanwhile, as far as its file system knows locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems lock no folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
