"""Changes in memory: one at a time, seen entirely or not at all, and taken back if they do not succeed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from harken.locking import Door
from harken.matching.growing import GrowingArray

Result = TypeVar("Result")
Scalar = TypeVar("Scalar", bound=np.generic)
Places = npt.NDArray[np.integer]


class Guard:
    """Lets threads look at the same time, and whoever changes something be alone: a `Door` for work that is given.

    A change within a look or a change of the same thread, such as a signal handler might make, is refused with
    EngineBusyError, and so is a look within a change. What an interrupted change left in the journal is taken back
    by the next to come.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self._door = Door()
        self._journal = Journal() if journal is None else journal

    def look(self, work: Callable[[], Result]) -> Result:
        """Do some work that changes nothing, while nothing changes."""
        return self._door.look(work, self._let_in)

    def alone(self, work: Callable[[], Result]) -> Result:
        """Do some work while nobody else looks or changes anything."""
        with self._door.turn():
            return self._behind_the_door(work)

    def _behind_the_door(self, work: Callable[[], Result]) -> Result:
        try:
            self._door.close()
            return work()
        finally:
            if not self._journal.is_pending:
                self._door.open()

    def _let_in(self) -> None:
        self._journal.take_back()
        self._door.open()


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
