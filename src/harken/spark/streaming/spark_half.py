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
_KNOWN = b"v1"
"""The version of Spark's notes that is understood here; of others only that they are there."""

_READ = 10
"""Notes that are looked at, at most: Spark puts so many of a source's together."""


@dataclass(frozen=True, slots=True)
class Files:
    """Those of one kind, by number, ascending."""

    whole: list[int]
    torn: list[int]
    """The latest, if nothing can be read in them."""
    broken: list[int]
    """Earlier ones of which that is so, which Spark reads too."""


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
            raise StreamError(
                f"{self.folder}/metadata is damaged: {error!r}",
                suggestion="start with a new checkpoint folder, and a new output",
            ) from error

    @cached_property
    def planned(self) -> Files:
        """The latest batches that were planned; Spark forgets those of long ago."""
        return notes(self.folder.child("offsets"), 2)

    @cached_property
    def done(self) -> Files:
        """The latest batches that were done."""
        return notes(self.folder.child("commits"), 2, 1)

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
        return any(note not in self._sources[source].whole for source, note in self._needed.items())

    @property
    def unreadable(self) -> list[str]:
        """What Spark will read, and cannot, though neither mending nor planning a batch anew would do."""
        torn = {"offsets": self.planned.broken}
        for source, files in self._sources.items():
            torn[f"sources/{source}"] = files.broken if source in self._needed else [*files.broken, *files.torn]
        return [f"{self.folder}/{kind}/{number}" for kind, numbers in torn.items() for number in numbers]

    def mend(self) -> None:
        """Remove what is torn and stands for nothing: Spark would end with an error for ever.

        A batch that is not noted as done is repeated, and files that no batch was planned of are seen again.
        """
        _remove(self.folder.child("commits"), self.done.torn)
        for source, note in self._needed.items():
            unplanned = [each for each in self._sources[source].torn if each > note]
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
        version, _, *lines = self.folder.child("offsets").read(str(self.planned.whole[-1])).split(b"\n")
        if version != _KNOWN:
            return {}
        found = {str(source): _SEEN.search(line) for source, line in enumerate(lines)}
        seen = {source: int(match[1]) for source, match in found.items() if match is not None}
        return {source: note for source, note in seen.items() if source in self._names}

    @cached_property
    def _names(self) -> list[str]:
        return [each.name for each in self.folder.child("sources").entries()]

    @cached_property
    def _sources(self) -> dict[str, Files]:
        """What each source has noted: one of files, which ones it has seen; others, whatever they like."""
        sources = self.folder.child("sources")
        return {name: notes(sources.child(name), 2 if name in self._needed else 0, _READ) for name in self._names}


def notes(folder: Folder, lines: int, read: int = 2) -> Files:
    """Which files there are in one of Spark's logs; so many of the latest are read, and more while none is whole.

    Of a source's, none before those that were put together.
    """
    names = [each.name for each in folder.entries() if _is_note(each.name)]
    found = {int(name.removesuffix(".compact")): name for name in names}
    bad, last = list[int](), -1
    for count, number in enumerate(sorted(found, reverse=True), 1):
        if _is_whole(folder.read(found[number]), lines):
            last = max(last, number)
            if found[number].endswith(".compact"):
                break
        else:
            bad.append(number)
        if last >= 0 and count >= read:
            break
    whole, bad = sorted(found.keys() - bad), sorted(bad)
    return Files(whole, [each for each in bad if each > last], [each for each in bad if each < last])


def _is_note(name: str) -> bool:
    return name.removesuffix(".compact").isdigit()


def _is_whole(content: bytes, lines: int) -> bool:
    """Whether it begins with its format's version, goes on for some lines, and each of these can be read.

    What is of another version than is known here is whole, unless there are zeros in it; and whatever there is, if
    no line is asked for.
    """
    if not lines:
        return bool(content.strip(b"\0"))
    said = content.rstrip(b"\n").split(b"\n")
    if b"\0" in content or _VERSION.fullmatch(said[0]) is None:
        return False
    if said[0] != _KNOWN:
        return True
    # A source that has nothing yet has a dash.
    return len(said) >= lines and all(each == b"-" or _is_json(each) for each in said[1:])


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _remove(folder: Folder, numbers: list[int], *endings: str) -> None:
    for number in numbers:
        for name in [f"{number}{ending}" for ending in endings or ("",)]:
            folder.remove([name, f".{name}.crc"])
