"""The constants of the axes of a segment: distinct, ascending on each axis, and lying one axis after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.matching.runs import changes, starts
from harken.model import capacity
from harken.symmetric.memory.kernels.layout import Floats, Mask, Places

_NO_TEXTS = pa.nulls(0, pa.large_string())

_SAMPLE = 1024
"""Values that are looked at to see whether many are the same."""


@dataclass(slots=True)
class Constants:
    """A constant's number counts through all axes; numbers and texts lie apart, each in that order.

    So if one axis has 5 and 7, the next "x" and "y", and the last one 6:

        counts [2, 2, 1]    is_text [no, yes, no]    keys [5, 7, 6]    texts ["x", "y"]
    """

    counts: Places
    """By axis."""
    is_text: Mask
    """By axis."""
    keys: Floats
    rests: Floats | None
    """None if all are zero."""
    texts: pa.Array
    """Large strings, none null."""

    def __post_init__(self) -> None:
        check_constants(int(self.counts.sum()))

    @classmethod
    def of_numbers(cls, keys: Floats, rests: Floats | None = None) -> tuple[Constants, Places]:
        """Those of one axis, of a column of keys and one of rests (see `forms`), and the rank of each value."""
        if rests is not None and rests.any():
            first, ranks = _ranked(rests, keys)
            return _numbers(keys[first], rests[first]), ranks
        if not _repeats(keys):
            first, ranks = _ranked(keys)
            return _numbers(keys[first]), ranks
        encoded = pa.array(keys + 0.0).dictionary_encode()
        distinct = encoded.dictionary.to_numpy()
        first, ranks = _ranked(distinct)
        return _numbers(distinct[first]), ranks[encoded.indices.to_numpy()]

    @classmethod
    def of_texts(cls, texts: pa.Array) -> tuple[Constants, Places]:
        """Those of one axis, of a column of strings, and the rank of each value: strings go by code point."""
        encoded = texts.cast(pa.large_string()).dictionary_encode()
        # Arrow compares bytes, and the bytes of UTF-8 are ordered as the characters are.
        order = pc.sort_indices(encoded.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[order.to_numpy()] = np.arange(len(order))
        distinct = encoded.dictionary.take(order)
        constants = cls(np.array([len(order)]), np.ones(1, np.bool_), np.zeros(0), None, distinct)
        return constants, ranks[encoded.indices.to_numpy()]

    @classmethod
    def chained(cls, several: Sequence[Constants]) -> Constants:
        """All axes of several, one after the other."""
        rests = None
        if any(each.rests is not None for each in several):
            own = [np.zeros(len(each.keys)) if each.rests is None else each.rests for each in several]
            rests = np.concatenate(own)
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(each.counts for each in several)]),
            np.concatenate([np.zeros(0, np.bool_), *(each.is_text for each in several)]),
            np.concatenate([np.zeros(0), *(each.keys for each in several)]),
            rests,
            pa.concat_arrays([_NO_TEXTS, *(each.texts for each in several if len(each.texts))]),
        )

    @classmethod
    def ranked(
        cls, is_text: Mask, axis: Places, keys: Floats, rests: Floats | None, texts: pa.Array
    ) -> tuple[Constants, Places]:
        """Those of several axes, of values in any order, and the rank that each value has on its axis.

        `axis` says of each whose it is; keys and rests are those of numbers, texts the other ones, both in that
        order. O(n) where values come in ascending runs, but for texts.
        """
        of_text = is_text[axis]
        if rests is not None and not rests.any():
            rests = None
        # Lexsort merges where there are ascending runs, and there is hardly anything else here.
        numbers, number_ranks = _ranked(*([] if rests is None else [rests]), keys, axis[~of_text])
        spellings, spelling = cls.of_texts(texts)
        words, word_ranks = _ranked(spelling, axis[of_text])
        own = np.concatenate([axis[~of_text][numbers], axis[of_text][words]])
        constants = cls(
            np.bincount(own, minlength=len(is_text)),
            is_text,
            keys[numbers],
            None if rests is None else rests[numbers],
            spellings.texts.take(pa.array(spelling[words])),
        )
        ranks = np.empty(len(axis), np.int64)
        ranks[~of_text], ranks[of_text] = number_ranks, word_ranks
        return constants, ranks - constants.places[axis]

    @property
    def first(self) -> Places:
        """By axis, the number of its first constant."""
        return starts(self.counts)

    @property
    def places(self) -> Places:
        """By axis, where its first constant lies among the keys, or among the texts."""
        return np.where(self.is_text, starts(self.counts * self.is_text), starts(self.counts * ~self.is_text))

    def only(self, kept: Mask, axes: Mask) -> Constants:
        """Some of them, by number, and some of the axes: all that still have any, and others."""
        of_text = np.repeat(self.is_text, self.counts)
        axis = np.repeat(np.arange(len(self.counts)), self.counts)
        numbers = kept[~of_text]
        return Constants(
            np.bincount(axis[kept], minlength=len(self.counts))[axes],
            self.is_text[axes],
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
    chained, of_chained = Constants.chained(several), np.concatenate(axes)
    is_text = np.zeros(1 + int(of_chained.max(initial=-1)), np.bool_)
    is_text[of_chained] = chained.is_text
    axis = np.repeat(of_chained, chained.counts)
    constants, ranks = Constants.ranked(is_text, axis, chained.keys, chained.rests, chained.texts)
    return constants, np.split(ranks, np.cumsum([each.counts.sum() for each in several])[:-1])


def _numbers(keys: Floats, rests: Floats | None = None) -> Constants:
    """Those of one axis, distinct and ascending."""
    # + 0.0: there is one zero only.
    return Constants(np.array([len(keys)]), np.zeros(1, np.bool_), keys + 0.0, rests, _NO_TEXTS)


def _repeats(keys: Floats) -> bool:
    """Whether many values seem to be the same: then hashing them takes less time than sorting does."""
    some = keys[:: max(1, len(keys) // _SAMPLE)]
    return len(set(some.tolist())) < len(some) // 4


def _ranked(*columns: npt.NDArray[np.generic]) -> tuple[Places, Places]:
    """Where the distinct rows stand, ascending, the last column first; and the rank of each row among them."""
    order = np.argsort(columns[0]) if len(columns) == 1 else np.lexsort(columns)
    new = changes(*(column[order] for column in columns))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new) - 1
    return order[new], ranks
