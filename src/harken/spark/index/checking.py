"""Whether what an index consists of is still there: by size, which is quick, or by reading all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from harken.durable import checksum
from harken.engine import Engine
from harken.errors import IndexFormatError
from harken.spark.index.layers import Layer, Part
from harken.spark.storage import Folder
from harken.spark.storage.folders import AT_ONCE
from harken.spark.subscriptions.segments import Segment


def damaged(folder: Folder, layers: Sequence[Layer], *, verify: bool = False) -> list[str]:
    """The parts and files of layers that are missing or have other sizes; with `verify`, also other contents.

    Costs one listing for each part, or reading all of their bytes.
    """
    parts = [part for layer in layers for part in layer.parts.values()]
    hidden = [layer.hides for layer in layers if layer.hides is not None]
    held, hides = folder.child("parts"), folder.child("hidden")
    checks: list[tuple[str, Callable[[], bool]]] = [
        *((f"{held}/{part.folder}", _check_of_part(held, part, verify)) for part in parts),
        *((f"{hides}/{each.file}", _check_of_file(hides, each, verify)) for each in hidden),
    ]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        sound = list(threads.map(lambda check: check[1](), checks))
    return [name for (name, _), is_sound in zip(checks, sound, strict=True) if not is_sound]


def _check_of_part(folder: Folder, part: Part, verify: bool) -> Callable[[], bool]:
    def check() -> bool:
        found = sum(each.bytes for each in folder.child(part.folder).files())
        if found != part.bytes or not verify:
            return found == part.bytes
        try:
            with _tree(folder, part.folder) as path:
                Engine.load(path)
        except (IndexFormatError, FileNotFoundError):
            return False
        return True

    return check


def _check_of_file(folder: Folder, segment: Segment, verify: bool) -> Callable[[], bool]:
    def check() -> bool:
        found = {each.name: each.bytes for each in folder.entries()}
        if found.get(segment.file) != segment.bytes or not verify:
            return found.get(segment.file) == segment.bytes
        with TemporaryDirectory(prefix="harken-") as here:
            folder.download(segment.file, Path(here) / segment.file)
            return checksum(Path(here) / segment.file) == segment.crc32

    return check


@contextmanager
def _tree(folder: Folder, name: str) -> Iterator[Path]:
    """A part as the store has it now, not as a cache may."""
    if folder.path is not None:
        yield folder.path / name
        return
    with TemporaryDirectory(prefix="harken-") as here:
        folder.download_folder(name, Path(here) / name)
        yield Path(here) / name
