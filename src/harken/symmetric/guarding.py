"""Changes in memory: one at a time, seen entirely or not at all, and taken back if they do not succeed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, get_ident
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from harken.matching.growing import GrowingArray

Result = TypeVar("Result")
Scalar = TypeVar("Scalar", bound=np.generic)
Places = npt.NDArray[np.integer]

_GROUPS = 7
"""A prime, so that the idents of threads, which are addresses, spread over the groups."""


class Guard:
    """Lets threads look at the same time, and whoever changes something be alone.

    Threads are in a few groups, and each group has a lock: whoever looks holds that of its group, whoever changes
    holds all. They are held by `with` and nothing else, so that no interrupt comes between taking a lock and being
    sure to give it back.
    """

    def __init__(self) -> None:
        self._turn = Lock()
        self._groups = tuple(Lock() for _ in range(_GROUPS))

    def looking(self) -> Lock:
        """What to hold while looking. Those of one group wait for each other, and all for a change."""
        if self._turn.locked():
            with self._turn:  # who changes goes first, or might never get all locks
                pass
        return self._groups[get_ident() % _GROUPS]

    def alone(self, work: Callable[[], Result]) -> Result:
        """Do some work while nobody else looks or changes anything."""
        a, b, c, d, e, f, g = self._groups
        with self._turn, a, b, c, d, e, f, g:
            return work()


class Journal:
    """How to take back the change that is under way.

    Before anything is changed, it is noted how to put it back: as it was, not by how much, so that it does no harm
    to be put back twice. What was noted is taken back last things first; what an interrupt leaves of that is done
    by the next who comes.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    @property
    def is_pending(self) -> bool:
        """Whether a change is under way, or was left in the middle."""
        return bool(self._undo)

    def note(self, undo: Callable[..., object], *arguments: object) -> None:
        """Say how to put back what is about to be changed."""
        self._undo.append((undo, arguments))

    def note_values(self, array: GrowingArray[Scalar], places: Places) -> None:
        """Note what stands at some places of an array, which may grow."""
        self.note(_put_values, array, places, array.values[places])

    def run(self, work: Callable[[], Result]) -> Result:
        """Make a change: entirely, or not at all."""
        self.take_back()
        try:
            result = work()
        except BaseException:
            self.take_back()
            raise
        self._undo.clear()  # from here on it is made
        return result

    def take_back(self) -> None:
        """Put everything back that was noted."""
        while self._undo:
            undo, arguments = self._undo[-1]
            undo(*arguments)
            self._undo.pop()


def _put_values(array: GrowingArray[Scalar], places: Places, values: npt.NDArray[Scalar]) -> None:
    array.values[places] = values
