"""Pairs of ranges as access paths, for clauses that ask for several ranges and for nothing rarer.

One range alone is often true: where each is true of a tenth of the events, and a million clauses have five, an
event checks some sixty thousand of them. Under two ranges it checks less than ten thousand.

The cells of a dimension (layout.py) are too fine to have a place for each two of them. So eight bands make a
**sector**: a dimension has SIDE of them for upper bounds, SIDE for lower bounds, and SIDE for ranges, which begin
in theirs and end there or in the next. A clause stands under the two least likely sectors that two of its
predicates lie in, each on a dimension of its own, and all that it asks for is checked there. An event opens each
two of those that it lies in and that are in use.

The places of pairs (high, low) are those of a triangle, so that those of further dimensions come after all others:

    low      0  1  2
    high 1   0
    high 2   1  2
    high 3   3  4  5
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from harken.jit import part, tight
from harken.matching.clusters.kernels.ranges import band_of, note_cell
from harken.matching.kernels.layout import (
    ABOVE_CELLS,
    BANDS,
    BETWEEN_CELLS,
    CELLS,
    FIRST_KEY_TABLE,
    IN_PAIRS,
    LEVELS,
    MISSING,
    PAIRED,
    PAIRS_OPEN,
    PAIRS_TABLE,
    RANGE_TABLE,
    SECTORS,
    SIDE,
    Blocks,
    Chances,
    Events,
    PredicateArrays,
    Scratch,
    Tables,
)

WIDE = 3
"""Two to the power of this many bands make a sector. Ranges of higher levels of the pyramid have none."""

_UP_TO_WIDE = 2 * BANDS - (2 * BANDS >> WIDE)
"""Cells of the levels of the pyramid below that."""

NO_SECTOR = -1


def sectors_for(banded: int) -> int:
    """How many sectors so many dimensions with bands have."""
    return min(banded, PAIRED) * SECTORS


def pairs_for(sectors: int) -> int:
    """How many pairs there are of so many sectors."""
    return sectors * (sectors - 1) // 2


@part
def sector_of(cell: int) -> int:
    """The sector that a cell lies in, or NO_SECTOR."""
    if cell < 0 or cell >= PAIRED * CELLS:
        return NO_SECTOR
    first, at = cell // CELLS * SECTORS, cell % CELLS
    if at < ABOVE_CELLS:
        return first + (at >> WIDE)
    if at < BETWEEN_CELLS:
        return first + SIDE + (at - ABOVE_CELLS >> WIDE)
    at, size = at - BETWEEN_CELLS, BANDS
    for level in range(LEVELS):
        if at < size:
            return first + 2 * SIDE + (at << level >> WIDE) if level <= WIDE else NO_SECTOR
        at -= size
        size >>= 1
    return NO_SECTOR


@part
def chance_of(chances: Chances, sector: int) -> float:
    """The chance that an event opens a sector: that of the cell that events open with it."""
    cells, at = sector // SECTORS * CELLS, sector % SECTORS
    if at < SIDE:
        return np.float64(chances.cell[cells + (at + 1 << WIDE) - 1])
    if at < 2 * SIDE:
        return np.float64(chances.cell[cells + ABOVE_CELLS + (at - SIDE << WIDE)])
    return np.float64(chances.cell[cells + BETWEEN_CELLS + _UP_TO_WIDE + at - 2 * SIDE])


@part
def place_of(high: int, low: int) -> int:
    """The place of a pair among those of all pairs."""
    return high * (high - 1) // 2 + low


@part
def pair_at(place: int) -> tuple[int, int]:
    """The pair that has a place: its higher sector, and its lower one."""
    high = np.int64((1.0 + math.sqrt(1.0 + 8.0 * place)) / 2.0)
    return high, place - place_of(high, 0)


def dimensions_at(places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The two dimensions, by their numbers among those with bands, of the pair at each place."""
    high = ((1.0 + np.sqrt(1.0 + 8.0 * places)) / 2.0).astype(np.int64)
    low = places - high * (high - 1) // 2
    return high // SECTORS, low // SECTORS


@part
def choose_pair(predicates: PredicateArrays, chances: Chances, clause: npt.NDArray[np.int64]) -> tuple[int, float]:
    """The pair that the fewest events open, and the chance that an event does; -1 if a clause has none."""
    one, other, chance_of_one, chance_of_other = NO_SECTOR, NO_SECTOR, 2.0, 2.0
    for word in clause:
        sector = sector_of(np.int64(predicates.cell[word]))
        if sector == NO_SECTOR:
            continue
        chance = chance_of(chances, sector)
        if one != NO_SECTOR and sector // SECTORS == one // SECTORS:
            if chance < chance_of_one:
                one, chance_of_one = sector, chance
        elif chance < chance_of_one:
            one, other, chance_of_one, chance_of_other = sector, one, chance, chance_of_one
        elif chance < chance_of_other:
            other, chance_of_other = sector, chance
    if other == NO_SECTOR:
        return -1, 2.0
    return place_of(max(one, other), min(one, other)), chance_of_one * chance_of_other


@tight
def is_in_pair(predicates: PredicateArrays, word: int, place: int) -> bool:
    """Whether one of the two sectors of a pair is that of a predicate."""
    sector = sector_of(np.int64(predicates.cell[word]))
    high, low = pair_at(place)
    return sector in (high, low)


@part
def count_clauses(tables: Tables, table: int, key: int, by: int) -> None:
    """Take note that clauses have come to stand under an access path, or no longer do."""
    tables.population[table] += by
    if table == RANGE_TABLE:
        note_cell(tables, key)
    elif is_of_pairs(tables, table):
        high, low = pair_at(key)
        tables.pairs[IN_PAIRS + high] += by
        tables.pairs[IN_PAIRS + low] += by


@part
def is_of_pairs(tables: Tables, table: int) -> bool:
    """Whether a table is that of pairs. Where there is none, its number is that of another."""
    return table >= FIRST_KEY_TABLE and table == tables.pairs[PAIRS_TABLE]


@part
def may_pair(tables: Tables) -> bool:
    """Whether clauses may stand in pairs."""
    return tables.pairs[PAIRS_OPEN] != 0


@part
def _open_sectors(
    predicates: PredicateArrays, tables: Tables, events: Events, event: int, into: npt.NDArray[np.int64]
) -> int:
    """List the sectors in use that an event lies in, ascending; how many."""
    count, in_use = 0, tables.pairs[IN_PAIRS:]
    for number in range(len(in_use) // SECTORS):
        column = events.column[predicates.banded[number]]
        if events.band[column] != number or events.code[event, column] == MISSING:
            continue
        band = band_of(predicates, number, events.label[event, events.label_column[column]])
        first, at = number * SECTORS, band >> WIDE
        for sector in range(first + at, first + SIDE):
            into[count] = sector
            count += in_use[sector] > 0
        for sector in range(first + SIDE, first + SIDE + at + 1):
            into[count] = sector
            count += in_use[sector] > 0
        for sector in range(first + 2 * SIDE + max(0, at - 1), first + 2 * SIDE + at + 1):
            into[count] = sector
            count += in_use[sector] > 0
    return count


@part
def open_pairs(
    predicates: PredicateArrays,
    tables: Tables,
    blocks: Blocks,
    events: Events,
    event: int,
    scratch: Scratch,
    into: int,
) -> int:
    """Collect, from places[into] on, the pairs that an event opens and in which clauses stand; where they end."""
    table = tables.pairs[PAIRS_TABLE]
    if table == 0 or tables.population[table] == 0:
        return into
    sectors, places, directory = scratch.sectors, scratch.places, blocks.directory
    for at in range(_open_sectors(predicates, tables, events, event, sectors)):
        row = tables.base[table] + place_of(sectors[at], 0)
        for other in range(at):
            place = row + sectors[other]
            places[into] = place
            into += directory[place] != 0
    return into
