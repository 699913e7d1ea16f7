"""Arrays that grow: flat, doubling, and handed to kernels without a copy."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


class GrowingArray(Generic[Scalar]):
    """A one-dimensional array with room to spare; `values` is the part in use."""

    __slots__ = ("_fill", "_room", "_size")

    def __init__(self, dtype: type[Scalar], fill: int | float = 0, size: int = 0) -> None:
        self._fill = fill
        self._room: npt.NDArray[Scalar] = np.full(max(size, 16), fill, dtype)
        self._size = size

    @classmethod
    def of(cls, values: npt.NDArray[Scalar], fill: int | float = 0) -> GrowingArray[Scalar]:
        """These values, not copied until the array grows."""
        array = cls(values.dtype.type, fill)
        array.hold(values)
        return array

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> npt.NDArray[Scalar]:
        """The part in use: a view that stays valid until the array grows."""
        return self._room[: self._size]

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
        if size > len(self._room):
            larger = np.full(max(size, len(self._room) + len(self._room) // 2), self._fill, self._room.dtype)
            larger[: self._size] = self._room[: self._size]
            self._room = larger
        self._size = max(self._size, size)

    def hold(self, values: npt.NDArray[Scalar]) -> None:
        """Have these values instead, not copied until the array grows."""
        self._room, self._size = values, len(values)

    def append(self, value: int | float) -> int:
        """Add one value; its place."""
        at = self._size
        self.grow_to(at + 1)
        self._room[at] = value
        return at
