"""The constants of all axes of a segment: distinct, ascending on each axis, and lying one axis after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.model import capacity
from harken.symmetric.memory.orders import AxisValues, Floats, Mask, Numbers, Places, Texts

_NO_TEXTS = pa.array([], pa.large_string())


@dataclass(slots=True)
class Constants:
    """A constant's number counts through all axes; numbers and texts lie apart, each in that order."""

    counts: Places
    """By axis."""
    is_text: Mask
    """By axis."""
    keys: Floats
    rests: Floats | None
    """None if all are zero."""
    texts: pa.Array

    @classmethod
    def of(cls, orders: Sequence[AxisValues]) -> Constants:
        """Those of axes, given one by one."""
        check_constants(sum(map(len, orders)))
        numbers = [order for order in orders if isinstance(order, Numbers)]
        return cls(
            np.array([len(order) for order in orders], np.int64),
            np.array([isinstance(order, Texts) for order in orders], np.bool_),
            np.concatenate([np.zeros(0), *(order.keys for order in numbers)]),
            _rests([(order.rests, len(order)) for order in numbers]),
            pa.concat_arrays([_NO_TEXTS, *(order.texts for order in orders if isinstance(order, Texts))]),
        )

    @property
    def first(self) -> Places:
        """By axis, the number of its first constant."""
        return np.asarray(np.cumsum(self.counts) - self.counts, np.int64)

    @property
    def places(self) -> Places:
        """By axis, where its first constant lies among the keys, or among the texts."""
        places = np.empty(len(self.counts), np.int64)
        for kind in (self.is_text, ~self.is_text):
            places[kind] = np.cumsum(self.counts[kind]) - self.counts[kind]
        return places

    def of_axes(self, axes: Mask) -> Constants:
        """Those of some axes."""
        fewer = self.only(np.repeat(axes, self.counts))
        fewer.counts, fewer.is_text = self.counts[axes], self.is_text[axes]
        return fewer

    def only(self, kept: Mask) -> Constants:
        """Some of them, by number; the axes stay."""
        of_text = np.repeat(self.is_text, self.counts)
        numbers = kept[~of_text]
        axis = np.repeat(np.arange(len(self.counts)), self.counts)
        return Constants(
            np.bincount(axis[kept], minlength=len(self.counts)),
            self.is_text,
            self.keys[numbers],
            None if self.rests is None else self.rests[numbers],
            self.texts.filter(pa.array(kept[of_text])),
        )


def check_constants(count: int) -> None:
    """CapacityError if there are no codes for so many: each has two."""
    capacity.check("constants of one segment", count, capacity.CONSTANTS)


def join_constants(several: Sequence[Constants], axes: Sequence[Places]) -> tuple[Constants, list[Places]]:
    """All constants of several, and the ranks that those of each have on their axes then.

    `axes` says for each which of the joint axes its own are. O(n), but for texts.
    """
    count = 1 + max(int(each.max(initial=-1)) for each in axes)
    is_text = np.zeros(count, np.bool_)
    for each, own in zip(several, axes, strict=True):
        is_text[own] = each.is_text
    of_each = [np.repeat(own, each.counts) for each, own in zip(several, axes, strict=True)]
    axis = np.concatenate(of_each)
    of_text = is_text[axis]
    ranks = np.empty(len(axis), np.int64)
    keys, rests, number_axis, ranks[~of_text] = _joined_numbers(several, axis[~of_text])
    texts, text_axis, ranks[of_text] = _joined_texts(several, axis[of_text])
    counts = np.bincount(number_axis, minlength=count) + np.bincount(text_axis, minlength=count)
    check_constants(int(counts.sum()))
    ends = np.cumsum([len(each) for each in of_each])
    return Constants(counts, is_text, keys, rests, texts), np.split(ranks, ends[:-1])


def _joined_numbers(several: Sequence[Constants], axis: Places) -> tuple[Floats, Floats | None, Places, Places]:
    """The distinct keys and rests, the axis of each; and the rank of each given one."""
    keys = np.concatenate([each.keys for each in several])
    rests = _rests([(each.rests, len(each.keys)) for each in several])
    # Lexsort merges where there are ascending runs, and there is hardly anything else here.
    order = np.lexsort((keys, axis) if rests is None else (rests, keys, axis))
    new = _differs(axis[order]) | _differs(keys[order])
    if rests is not None:
        new |= _differs(rests[order])
    distinct = order[new]
    return keys[distinct], None if rests is None else rests[distinct], axis[distinct], _ranks(axis, order, new)


def _rests(several: list[tuple[Floats | None, int]]) -> Floats | None:
    """Rests of several lengths as one column, zeros where there are none; None if there are none at all."""
    if all(rests is None for rests, _ in several):
        return None
    return np.concatenate([np.zeros(count) if rests is None else rests for rests, count in several])


def _joined_texts(several: Sequence[Constants], axis: Places) -> tuple[pa.Array, Places, Places]:
    """The distinct texts, the axis of each; and the rank of each given one."""
    order, ranks = Texts.of(pa.concat_arrays([_NO_TEXTS, *(each.texts for each in several)]))
    by_axis = np.lexsort((ranks, axis))
    new = _differs(axis[by_axis]) | _differs(ranks[by_axis])
    distinct = by_axis[new]
    return order.texts.take(pa.array(ranks[distinct])), axis[distinct], _ranks(axis, by_axis, new)


def _differs(values: npt.NDArray[np.generic]) -> Mask:
    """Which values are not what the one before is."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return new


def _ranks(axis: Places, order: Places, new: Mask) -> Places:
    """The rank on its axis of each value, given the order of all, and which of them are new in that order."""
    number = np.cumsum(new) - 1
    before = np.zeros(int(axis.max(initial=-1)) + 2, np.int64)
    before[1:] = np.cumsum(np.bincount(axis[order[new]], minlength=len(before) - 1))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = number
    return ranks - before[axis]
