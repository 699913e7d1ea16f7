"""Arrays that grow: flat, doubling, and handed to kernels without a copy."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


def places_for(slots: npt.NDArray[np.int64]) -> int:
    """How many places there have to be for each of these slots to have its own."""
    if len(slots) == 1:  # numpy takes as long to look for the largest of one as of a hundred
        return int(slots[0]) + 1
    return int(slots.max(initial=-1)) + 1


class GrowingArray(Generic[Scalar]):
    """A one-dimensional array with room to spare; `values` is the part in use."""

    __slots__ = ("_fill", "_room", "values")

    def __init__(self, dtype: type[Scalar], fill: int | float = 0, size: int = 0) -> None:
        self._fill = fill
        self._room: npt.NDArray[Scalar] = np.full(max(size, 16), fill, dtype)
        self.values: npt.NDArray[Scalar] = self._room[:size]
        """A view that stays valid until the array grows. Kept, as a change asks for some eighty of them."""

    def __getstate__(self) -> tuple[int | float, npt.NDArray[Scalar]]:
        return self._fill, self.values  # which a copy would otherwise hold twice

    def __setstate__(self, state: tuple[int | float, npt.NDArray[Scalar]]) -> None:
        self._fill, values = state
        self.hold(values)

    @classmethod
    def of(cls, values: npt.NDArray[Scalar], fill: int | float = 0) -> GrowingArray[Scalar]:
        """These values, not copied until the array grows."""
        array = cls(values.dtype.type, fill)
        array.hold(values)
        return array

    def twin(self) -> GrowingArray[Scalar]:
        """Another one of these values, with as much room to spare."""
        twin = type(self)(self.dtype, self._fill)
        room = self._room.copy()
        twin._room, twin.values = room, room[: len(self.values)]
        return twin

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dtype(self) -> type[Scalar]:
        """Of what type the values are."""
        return self._room.dtype.type

    @property
    def nbytes(self) -> int:
        """Bytes taken, room to spare included."""
        return self._room.nbytes

    def grow_to(self, size: int) -> None:
        """Make at least this many values, new ones filled."""
        if size > len(self.values):
            self.make_room(size)
            self.values = self._room[:size]

    def make_room(self, size: int) -> None:
        """Have room for this many values. Nothing that others read is changed."""
        room, used = self._room, len(self.values)
        if size > len(room):
            room = np.full(max(size, len(room) + len(room) // 2), self._fill, room.dtype)
            room[:used] = self.values
            self._room, self.values = room, room[:used]  # both, as no interrupt comes in between

    def hold(self, values: npt.NDArray[Scalar]) -> None:
        """Have these values instead, not copied until the array grows."""
        self._room = self.values = values

    def append(self, value: int | float) -> int:
        """Add one value; its place."""
        at = len(self.values)
        self.grow_to(at + 1)
        self.values[at] = value
        return at
