"""The distinct values of one axis, ascending, and where each value of a column stands among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]

_SAMPLE = 1024
"""Values that are looked at to see whether many are the same."""


@dataclass(slots=True)
class Numbers:
    """Positions of numbers, dates, timestamps, bools or coordinates."""

    keys: Floats
    rests: Floats | None = None
    """None if all are zero."""

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, keys: Floats, rests: Floats | None = None) -> tuple[Numbers, Places]:
        """The distinct positions of a column, and the rank of each of its values."""
        if rests is not None and rests.any():
            return _sorted(keys, rests)
        if not _repeats(keys):
            return _sorted(keys, None)
        encoded = pa.array(keys + 0.0).dictionary_encode()  # + 0.0: there is one zero only
        distinct = encoded.dictionary.to_numpy()
        order = np.argsort(distinct)
        return cls(distinct[order]), _ranked(order)[encoded.indices.to_numpy()]


@dataclass(slots=True)
class Texts:
    """Strings by code point."""

    texts: pa.Array
    """Of large strings, none null."""

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of(cls, texts: pa.Array) -> tuple[Texts, Places]:
        """The distinct strings of a column, and the rank of each of its values."""
        encoded = texts.cast(pa.large_string()).dictionary_encode()
        # Arrow compares bytes, and the bytes of UTF-8 are ordered as the characters are.
        order = pc.sort_indices(encoded.dictionary)
        ranks = _ranked(order.to_numpy().astype(np.int64))
        return cls(encoded.dictionary.take(order)), ranks[encoded.indices.to_numpy()]


AxisValues: TypeAlias = Numbers | Texts


def _repeats(keys: Floats) -> bool:
    """Whether many values seem to be the same: then hashing them takes less time than sorting does."""
    some = keys[:: max(1, len(keys) // _SAMPLE)]
    return len(set(some.tolist())) < len(some) // 4


def _sorted(keys: Floats, rests: Floats | None) -> tuple[Numbers, Places]:
    order = np.argsort(keys) if rests is None else np.lexsort((rests, keys))
    new = np.ones(len(order), np.bool_)
    new[1:] = keys[order][1:] != keys[order][:-1]
    if rests is not None:
        new[1:] |= rests[order][1:] != rests[order][:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new) - 1
    distinct = order[new]
    return Numbers(keys[distinct] + 0.0, None if rests is None else rests[distinct]), ranks


def _ranked(order: Places) -> Places:
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
