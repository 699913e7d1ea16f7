"""A market that uses every kind of operator: what the papers leave out, and databases find hard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from harken.compiler import Texts, compile_texts
from harken.language import parse
from harken.model.expressions import Expression
from harken.workloads.tomasic import ConstraintWorkload

PER_PRODUCT = 50
"""Subscriptions to be expected for a product."""

_COLOURS = ("red", "green", "blue", "black", "white")


class MarketWorkload(ConstraintWorkload):
    """Equality, ranges, half lines, sets, exclusion, prefixes and dates, in conditions of six attributes."""

    @property
    def products(self) -> int:
        """How many products there are."""
        return max(1, self.sizes.subscriptions // PER_PRODUCT)

    def _table(self, chance: np.random.Generator, first: int, size: int) -> pa.Table:
        texts = [self._wanted(row) for row in self._drawn(chance, size)]
        return compile_texts(Texts(list(range(first, first + size)), texts)).table

    def _publication(self, chance: np.random.Generator) -> Expression:
        [(product, lot, width, price, grade, colour, day)] = self._drawn(chance, 1)
        return parse(
            f"product = 'p{product}' AND lot BETWEEN {lot} AND {lot + 10 * width} AND price = {price}"
            f" AND grade IN ({grade}, {grade + 1}) AND colour = '{_COLOURS[colour]}'"
            f" AND day <= DATE '2026-12-{day:02d}'"
        )

    def _wanted(self, row: tuple[int, ...]) -> str:
        product, lot, width, price, grade, colour, day = row
        painted = f"!= '{_COLOURS[colour]}'" if product % 2 else f"STARTS WITH '{_COLOURS[colour][:1]}'"
        return (
            f"product = 'p{product}' AND lot BETWEEN {lot} AND {lot + width} AND price <= {price}"
            f" AND grade >= {grade} AND colour {painted} AND day > DATE '2026-12-{day:02d}'"
        )

    def _drawn(self, chance: np.random.Generator, size: int) -> list[tuple[int, ...]]:
        most = (self.products, 10_000, 2_000, 1_000, 9, len(_COLOURS), 28)
        columns = [chance.integers(0, most_of, size) for most_of in most]
        columns[-1] += 1  # days have no zeroth
        return list(zip(*(column.tolist() for column in columns), strict=True))
