"""How much two columns tell of each other: Cramér's V, with its bias corrected.

Cost models multiply the chances of conditions as if attributes were independent; this says where that is wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CLASSES = 64
"""Classes of values told apart per column: what few rows share tells of chance only."""


def dependence(first: pa.ChunkedArray, second: pa.ChunkedArray) -> float:
    """From 0 if the columns are independent to 1 if one determines the other. Costs a sort.

    The bias of Cramér's V is corrected after Bergsma, "A bias-correction for Cramér's V and Tschuprow's T" (2013),
    so that few rows and many values do not feign a dependence; with fewer than two rows there is none. Null is a
    value. Of more than 64 values, neighbours are taken together.

    >>> parity = pa.chunked_array([[0, 1] * 50])
    >>> dependence(parity, parity), dependence(parity, pa.chunked_array([[1, 1, 2, 2] * 25]))
    (1.0, 0.0)
    """
    return _cramers_v(_classes(first), _classes(second)) if len(first) > 1 else 0.0


def _classes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number for each row, from 0 without gaps: that of its value, or of an interval that it lies in."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    classes = coded.indices.to_numpy()
    if len(coded.dictionary) > CLASSES:
        rank = pc.rank(column, sort_keys="ascending", tiebreaker="min").to_numpy().astype(np.int64)
        classes = np.where(column.is_null().to_numpy(), CLASSES, (rank - 1) * CLASSES // len(rank))
    return np.asarray(np.unique(classes, return_inverse=True)[1], np.int64)


def _cramers_v(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> float:
    rows, columns, others = int(first.max()) + 1, int(second.max()) + 1, len(first) - 1
    cells = np.bincount(first * columns + second, minlength=rows * columns).reshape(rows, columns)
    by_chance = np.outer(cells.sum(axis=1), cells.sum(axis=0))
    # Of the mean square contingency, what chance alone brings is taken away, and so from the domains' sizes.
    contingency = float((cells**2 / by_chance).sum()) - 1 - (rows - 1) * (columns - 1) / others
    most = min(size - 1 - (size - 1) ** 2 / others for size in (rows, columns))
    return float(np.sqrt(min(1.0, max(0.0, contingency) / most))) if most > 0 else 0.0
