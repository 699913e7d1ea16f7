"""What survives a crash or a power cut: files that are on disk, and folders whose contents change all at once.

A **kept folder** is one file, the manifest, and beside it one subfolder with all else, the **generation** that the
manifest names. Whoever writes makes a new generation and then replaces the manifest, which a file system does in
one step. So at any moment the folder is what it was or what it is to be; what a crash leaves behind is another
generation, which nobody names and the next to write removes.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

MANIFEST = "manifest.json"
GENERATION = "generation"
"""Where a manifest names the generation."""

_GENERATION = re.compile(r"data-[0-9a-f]{32}")
_DRAFT = re.compile(r"\.manifest-[0-9a-f]{32}")


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, text: str) -> None:
    """Write a new file that is on disk when this returns; its name is once its folder is synced."""
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def is_kept(folder: Path) -> bool:
    """Whether contents may be kept here: something was, or was about to be, or nothing is there."""
    if not folder.is_dir():
        return False
    names = os.listdir(folder)
    return MANIFEST in names or all(_GENERATION.fullmatch(name) or _DRAFT.fullmatch(name) for name in names)


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


def replace_contents(folder: Path, write: Callable[[Path], Mapping[str, object]]) -> None:
    """Let the contents of a folder be what `write` puts into another one; it gives what the manifest says of them.

    The folder is made if there is none. Others that write here at the same time wait; who reads never does.
    """
    _make_folder(folder)
    with _alone(folder):
        generation = folder / f"data-{uuid.uuid4().hex}"
        draft = folder / f".manifest-{uuid.uuid4().hex}"
        try:
            generation.mkdir()
            manifest = {**write(generation), GENERATION: generation.name}
            for path in (*generation.iterdir(), generation):
                sync(path)
            write_durably(draft, json.dumps(manifest, indent=2) + "\n")
            sync(folder)
            draft.replace(folder / MANIFEST)
        except BaseException:
            _remove(draft)
            if _generation_at(folder) != generation.name:  # an interrupt may come right after the step
                _remove(generation)
            raise
        sync(folder)
        for name in set(os.listdir(folder)) - {MANIFEST, generation.name}:
            _remove(folder / name)


def _generation_at(folder: Path) -> object:
    """The generation that a folder has now; None if it has none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest.get(GENERATION) if isinstance(manifest, dict) else None


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
