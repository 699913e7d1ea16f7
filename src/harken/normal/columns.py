"""The columns of a compiled table, unpacked: whose clause each predicate is, and its words as codes.

Predicates of a batch lie in flat columns, one after the other; subscriptions and clauses are lists of them.
Whoever reads a table column by column reads it through this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UNKNOWN = -1
"""The code of what is null, or has none."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NestedClauses:
    """The clauses of a batch, flat."""

    clause_counts: npt.NDArray[np.int64]
    """By subscription."""
    predicate_counts: npt.NDArray[np.int64]
    """By clause."""
    predicates: pa.StructArray

    @classmethod
    def of(cls, clauses: pa.ListArray) -> NestedClauses:
        """Of the column `clauses`."""
        inner = flattened(clauses)
        return cls(_lengths(clauses), _lengths(inner), flattened(inner))

    @property
    def subscription_of(self) -> npt.NDArray[np.int64]:
        """By clause, whose it is: the place in the batch."""
        return np.repeat(np.arange(len(self.clause_counts)), self.clause_counts)

    @property
    def clause_of(self) -> npt.NDArray[np.int64]:
        """By predicate, which clause has it."""
        return np.repeat(np.arange(len(self.predicate_counts)), self.predicate_counts)


def flattened(lists: pa.ListArray) -> pa.Array:
    """What is in lists. Spark 4.0 hands over no lists without offsets, on which Arrow would crash."""
    return lists.flatten() if len(lists) else pa.array([], lists.type.value_type)


def _lengths(lists: pa.ListArray) -> npt.NDArray[np.int64]:
    # Not by their offsets: a null may hide some, which flattening leaves out.
    return filled(pc.list_value_length(lists)).astype(np.int64)


def places(words: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Each word's place in the dictionary; the one after the last for null."""
    indices = words.indices.cast(pa.int64())
    if words.null_count:
        indices = indices.fill_null(len(words.dictionary))
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)


def codes_of_dictionary(words: pa.DictionaryArray, known: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Our codes of what the dictionary holds, and one more for null. It may hold what no row has."""
    return np.array([*(known.get(word, UNKNOWN) for word in words.dictionary.to_pylist()), UNKNOWN], np.int64)


def codes(words: pa.DictionaryArray, known: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Words as our codes."""
    return codes_of_dictionary(words, known)[places(words)]


def is_any_of(words: pa.DictionaryArray, wanted: Collection[str]) -> Mask:
    """Where there is one of these words."""
    return np.asarray(codes(words, dict.fromkeys(wanted, 0)) == 0, np.bool_)


def filled(column: pa.Array) -> npt.NDArray[Any]:
    """A column of numbers with zeros for nulls."""
    values = column.fill_null(0) if column.null_count else column
    return np.asarray(values.to_numpy(zero_copy_only=False))


def nulls(column: pa.Array) -> Mask:
    """Where there is nothing."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
