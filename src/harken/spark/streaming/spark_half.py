"""Spark's half of a checkpoint: what it has planned, what it has done, and what a loss of power has left of it.

Spark writes a small file for each batch when it is planned (`offsets`) and when it is done (`commits`); sources of
files write which ones they have seen before that (`sources`). None is on disk for certain when the next is begun,
so the latest of each may be missing, empty, full of zeros or cut off.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property

from harken.errors import StreamError
from harken.spark.storage import Folder

_VERSION = re.compile(rb"v\d+")
_SEEN = re.compile(rb'"logOffset":(\d+)')


@dataclass(frozen=True, slots=True)
class Files:
    """Those of one kind, by number, ascending."""

    whole: list[int]
    torn: list[int]
    """The latest, if nothing can be read in them."""


@dataclass(frozen=True)
class SparkHalf:
    """A look at the folder: each part of it is read once."""

    folder: Folder

    @property
    def has_state(self) -> bool:
        """Whether the stream remembers something from batch to batch, such as what came already."""
        return any(each.name == "state" for each in self.folder.entries())

    def id(self) -> str | None:
        """Of the query; None if none has begun."""
        try:
            return str(json.loads(self.folder.read("metadata"))["id"])
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise StreamError(f"{self.folder}/metadata is damaged: {error!r}") from error

    @cached_property
    def planned(self) -> Files:
        """The latest batches that were planned; Spark forgets those of long ago."""
        return notes(self.folder.child("offsets"), lines=2)

    @cached_property
    def done(self) -> Files:
        """The latest batches that were done."""
        return notes(self.folder.child("commits"), lines=2)

    @property
    def pending(self) -> int | None:
        """The batch that was planned and not noted as done; it is repeated when the stream is started."""
        planned = self.planned.whole
        return planned[-1] if planned and planned[-1] not in self.done.whole else None

    @property
    def new(self) -> int:
        """The batch that is planned next."""
        return self.planned.whole[-1] + 1 if self.planned.whole else 0

    @property
    def following(self) -> int:
        """The batch that is done next."""
        return self.new if self.pending is None else self.pending

    @property
    def misses_files(self) -> bool:
        """Whether it is not known any more which files the batch that was planned last is of."""
        return any(torn[0] <= self._needed.get(source, -1) for source, torn in self._torn_sources.items())

    def mend(self) -> None:
        """Remove what is torn and stands for nothing: Spark would end with an error for ever.

        A batch that is not noted as done is repeated, and files that no batch was planned of are seen again.
        """
        _remove(self.folder.child("commits"), self.done.torn)
        for source, torn in self._torn_sources.items():
            unplanned = [each for each in torn if each > self._needed.get(source, -1)]
            _remove(self.folder.child(f"sources/{source}"), unplanned, "", ".compact")

    def forget_done(self, batch: int) -> None:
        """Have a batch not noted as done."""
        _remove(self.folder.child("commits"), [batch])

    def forget_planned(self, batch: int) -> None:
        """Have a batch not planned, nor any that is torn, nor what is torn of its files."""
        _remove(self.folder.child("offsets"), sorted({batch, *self.planned.torn}, reverse=True))
        SparkHalf(self.folder).mend()

    @cached_property
    def _needed(self) -> dict[str, int]:
        """By source of files, up to which of its notes the batch that was planned last needs them."""
        if not self.planned.whole:
            return {}
        # After the version and what all sources share.
        lines = self.folder.child("offsets").read(str(self.planned.whole[-1])).split(b"\n")[2:]
        found = {str(source): _SEEN.search(line) for source, line in enumerate(lines)}
        return {source: int(match[1]) for source, match in found.items() if match is not None}

    @cached_property
    def _torn_sources(self) -> dict[str, list[int]]:
        """By source, the latest notes about files that cannot be read, ascending."""
        sources = self.folder.child("sources")
        found = {each.name: notes(sources.child(each.name)).torn for each in sources.entries()}
        return {source: torn for source, torn in found.items() if torn}


def notes(folder: Folder, lines: int = 1) -> Files:
    """Which files there are in one of Spark's logs; the latest are read until one is whole."""
    found = {
        int(each.name.removesuffix(".compact")): each.name for each in folder.entries() if _is_note(each.name)
    }
    whole, torn = sorted(found), list[int]()
    while whole and not _is_whole(folder.read(found[whole[-1]]), lines):
        torn.insert(0, whole.pop())
    return Files(whole, torn)


def _is_note(name: str) -> bool:
    return name.removesuffix(".compact").isdigit()


def _is_whole(content: bytes, lines: int) -> bool:
    """Whether it begins with its format's version, goes on for some lines, and ends with what can be read."""
    said = content.lstrip(b"\0").rstrip(b"\n").split(b"\n")  # the first notes of Kafka begin with a zero
    if len(said) < lines or _VERSION.fullmatch(said[0]) is None:
        return False
    if len(said) == 1 or said[-1] == b"-":  # nothing to note, and nothing of the last source
        return True
    try:
        json.loads(said[-1])
    except ValueError:
        return False
    return True


def _remove(folder: Folder, numbers: list[int], *endings: str) -> None:
    for number in numbers:
        for name in [f"{number}{ending}" for ending in endings or ("",)]:
            folder.remove([name, f".{name}.crc"])
