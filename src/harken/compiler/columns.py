"""Clauses of many subscriptions, columnwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.model import capacity
from harken.normal.compiled import IN_PARTS, PredicateColumns


@dataclass(slots=True)
class ClauseColumns:
    """How many clauses each subscription has, how many predicates each clause, and all predicates."""

    clause_counts: npt.NDArray[np.int32]
    predicate_counts: npt.NDArray[np.int32]
    predicates: PredicateColumns


def offsets_of(counts: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Where each of consecutive runs begins, and where the last one ends."""
    capacity.check(
        "predicates or clauses in one chunk", int(counts.sum(dtype=np.int64)), capacity.OFFSETS, IN_PARTS
    )
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def run_positions(starts: npt.NDArray[np.int32], counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The positions start, start + 1, ... of several runs, one run after the other."""
    before = offsets_of(counts)[:-1]
    return np.repeat(starts.astype(np.int64) - before, counts) + np.arange(int(counts.sum()))


Rows: TypeAlias = npt.NDArray[np.int64]


def merged(parts: Sequence[tuple[Rows, ClauseColumns]]) -> tuple[Rows, ClauseColumns]:
    """Subscriptions that were compiled apart, each part with its rows of the input, in the order of the input."""
    parts = [part for part in parts if len(part[0])] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([rows for rows, _ in parts])
    clause_counts = np.concatenate([each.clause_counts for _, each in parts])
    predicate_counts = np.concatenate([each.predicate_counts for _, each in parts])
    order = np.argsort(rows)
    clauses = run_positions(offsets_of(clause_counts)[order], clause_counts[order])
    predicates = run_positions(offsets_of(predicate_counts)[clauses], predicate_counts[clauses])
    columns = _joined([each.predicates for _, each in parts])
    return rows[order], ClauseColumns(clause_counts[order], predicate_counts[clauses], _taken(columns, predicates))


def _joined(parts: Sequence[PredicateColumns]) -> PredicateColumns:
    names: dict[str, int] = {}
    codes = [np.array([names.setdefault(name, len(names)) for name in each.names], np.int32) for each in parts]
    return PredicateColumns(
        list(names),
        np.concatenate([code[each.attribute] for code, each in zip(codes, parts, strict=True)]),
        np.concatenate([each.operator for each in parts]),
        np.concatenate([each.type for each in parts]),
        np.concatenate([each.integer for each in parts]),
        np.concatenate([each.real for each in parts]),
        pa.concat_arrays([each.text for each in parts]),
        pa.concat_arrays([each.shape for each in parts]),
    )


def _taken(columns: PredicateColumns, at: npt.NDArray[np.int64]) -> PredicateColumns:
    return PredicateColumns(
        columns.names,
        columns.attribute[at],
        columns.operator[at],
        columns.type[at],
        columns.integer[at],
        columns.real[at],
        columns.text.take(pa.array(at)),
        columns.shape.take(pa.array(at)),
    )
