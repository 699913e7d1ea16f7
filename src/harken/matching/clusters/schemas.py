"""Which multi-attribute key tables to have: the greedy choice of Fabret et al. 2000, section 3.2.

An event pays for a lookup in every key table whose dimensions it has, and for a check of every clause in the
clusters that it opens (section 3.1.1). A clause stands under the access path that the fewest events open
(section 3.2.1), so a further table saves checks for those clauses to which it gives a rarer key. The choice
starts from what costs no further lookup, single predicates, and adds tables one by one, each time the one that
saves the most per byte, until none pays or the space is used up (section 3.2.3).

The paper looks at all clauses and all sets of attributes that occur in them. Here a sample of clauses stands for
all, and sets grow from their subsets: one is followed up only if clauses that have it cost enough now for a
lookup to be worth while. Everything is counted in arrays of **occurrences**: a clause of the sample that has
equalities on all dimensions of a schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from harken.matching.clusters.cost import Costs

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

PLACE_BYTES = 4
"""What a table takes for each of its keys, used or not: an entry of the directory."""

CLUSTER_BYTES = 56
"""What a cluster takes beside its clauses: its header, and on average half of its last cache line."""

MOST_OCCURRENCES = 1 << 20
"""Occurrences of schemas of one length that are looked at; the schemas that promise least are left out."""

FEWEST_CLAUSES = 8
"""Clauses of a sample in which a schema must occur: of thousands of rare ones, chance makes some look frequent."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Some clauses: clause j has equalities on dimension[first[j] : first[j + 1]], which ascend."""

    first: Integers
    dimension: Integers
    chance: Numbers
    """Of each equality: that an event satisfies it."""
    otherwise: Numbers
    """Of each clause: that an event opens its best access path that is not a key table."""
    weight: float = 1.0
    """Clauses that each of the sample stands for."""

    def __len__(self) -> int:
        return len(self.otherwise)

    @property
    def row(self) -> Integers:
        """The clause of each equality."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))


@dataclass(frozen=True, slots=True)
class Terms:
    """What the choice depends on besides the clauses."""

    presence: npt.NDArray[np.floating]
    """Of each dimension: that an event has a value there."""
    radixes: Integers
    """Of each dimension: the codes that a table has places for. A table has the product of those."""
    costs: Costs
    space: float
    """Bytes that all tables may take."""
    most_places: int
    """Places that one table may have."""
    longest: int = 4
    """Dimensions that one table may have."""
    most_tables: int = 256


class Choice(NamedTuple):
    """A key table that pays."""

    schema: tuple[int, ...]
    benefit: float
    """Nanoseconds per event that it saves, beside the tables chosen before it."""
    population: float
    """Clauses that stand under its keys."""
    places: int


def table_bytes(places: Numbers, population: Numbers) -> Numbers:
    """The space of tables (section 3.1.2): all their places, and a cluster for each key that is probably in use.

    The words that clusters save because the key already says what they would are not counted.
    """
    occupied = -places * np.expm1(-population / places)
    return np.asarray(PLACE_BYTES * places + CLUSTER_BYTES * occupied)


def steps(sample: Sample, terms: Terms) -> list[Choice]:
    """The greedy choice, step by step: each table with what it saved and held when it was added."""
    return _Greedy(sample, terms, _candidates(sample, terms)).run()


def choose(sample: Sample, terms: Terms) -> list[Choice]:
    """The tables to have, in the order of the choice, with the population they have in the end.

    Tables that later ones have made superfluous are left out again, which the paper's algorithm does not do:
    small tables save much per byte and are taken early, and longer keys then take their clauses away.
    """
    taken = steps(sample, terms)
    keys = _Keys(sample, [choice.schema for choice in taken])
    lookups = np.array([terms.costs.lookup * _all_there(terms, choice.schema) for choice in taken])
    kept = _that_pay(keys, lookups, sample.weight * terms.costs.check)
    populations = sample.weight * np.bincount(keys.best(kept), minlength=len(taken) + 1)
    return [taken[at]._replace(population=float(populations[at])) for at in kept]


def _all_there(terms: Terms, schema: tuple[int, ...]) -> float:
    """The chance that an event has all attributes of a schema (the paper's mu)."""
    return float(np.prod(terms.presence[list(schema)], dtype=np.float64))


class _Keys:
    """The chances of the keys that clauses have in tables: a row per clause, a column per table.

    The last column is for the best other access path. 2 stands for a key that a clause does not have.
    """

    def __init__(self, sample: Sample, schemas: list[tuple[int, ...]]) -> None:
        self._chance = np.empty((len(sample), len(schemas) + 1))
        self._chance[:, -1] = sample.otherwise
        row = sample.row
        for column, schema in enumerate(schemas):
            product, has = np.ones(len(sample)), np.zeros(len(sample), np.int64)
            for dimension in schema:
                at = np.flatnonzero(sample.dimension == dimension)
                product[row[at]] *= sample.chance[at]
                has[row[at]] += 1
            self._chance[:, column] = np.where(has == len(schema), product, 2.0)

    def best(self, tables: list[int]) -> Integers:
        """For each clause the best of these tables, or the last column."""
        columns = np.array([*tables, self._chance.shape[1] - 1])
        return np.asarray(columns[np.argmin(self._chance[:, columns], axis=1)])

    def worth(self, tables: list[int]) -> Numbers:
        """What each of these tables saves beside the others: chances, summed over the clauses it holds."""
        chance = self._chance[:, [*tables, -1]]
        best = np.argmin(chance, axis=1)
        two = np.partition(chance, 1, axis=1)
        saved = np.bincount(best, two[:, 1] - two[:, 0], minlength=chance.shape[1])
        return np.asarray(saved[: len(tables)], np.float64)


def _that_pay(keys: _Keys, lookups: Numbers, check: float) -> list[int]:
    """The tables without those that do not save their lookup; they go one by one, the most useless first."""
    kept = list(range(len(lookups)))
    while kept:
        net = check * keys.worth(kept) - lookups[kept]
        worst = int(np.argmin(net))
        if net[worst] > 0:
            break
        del kept[worst]
    return kept


@dataclass(slots=True)
class _Schemas:
    """Schemas of one length, and their occurrences: clause row[k] has the schema number[k]."""

    dimensions: Integers
    """A row per schema, ascending."""
    places: Numbers
    there: Numbers
    """The chance that an event has all dimensions."""
    number: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    """Where in the sample the equality on the schema's last dimension is."""
    chance: Numbers
    """That an event has the clause's key."""

    def only(self, wanted: npt.NDArray[np.bool_]) -> _Schemas:
        """Some of the schemas, renumbered."""
        at = np.flatnonzero(wanted[self.number])
        renumbered = np.cumsum(wanted, dtype=np.int32) - np.int32(1)
        return _Schemas(
            self.dimensions[wanted],
            self.places[wanted],
            self.there[wanted],
            renumbered[self.number[at]],
            self.row[at],
            self.last[at],
            self.chance[at],
        )

    def totals(self, values: Numbers | None = None) -> Numbers:
        """By schema: its occurrences, or the sum of values that they have."""
        return np.asarray(np.bincount(self.number, values, minlength=len(self.places)), np.float64)


def _candidates(sample: Sample, terms: Terms) -> list[_Schemas]:
    """The schemas that may pay, shortest first: the part of the paper's GA(S) that is worth looking at."""
    found: list[_Schemas] = []
    longer = _hopeful(_singles(sample, terms), sample, terms)
    for _ in range(terms.longest - 1):
        longer = _hopeful(_extended(_extensible(longer, sample), sample, terms), sample, terms)
        found.append(longer)
    return found


def _singles(sample: Sample, terms: Terms) -> _Schemas:
    used, number = np.unique(sample.dimension, return_inverse=True)
    return _Schemas(
        used[:, None],
        terms.radixes[used].astype(np.float64),
        terms.presence[used].astype(np.float64),
        number.astype(np.int32),
        sample.row.astype(np.int32),
        np.arange(len(number), dtype=np.int32),
        sample.chance,
    )


def _extended(shorter: _Schemas, sample: Sample, terms: Terms) -> _Schemas:
    """The schemas with one dimension more. That comes after the others, so that each schema is made once."""
    counts = _further(shorter, sample)
    parent = np.repeat(np.arange(len(counts)), counts)
    ahead = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    last = shorter.last[parent] + 1 + ahead
    dimensions = len(terms.radixes)
    made, number = np.unique(
        shorter.number[parent].astype(np.int64) * dimensions + sample.dimension[last], return_inverse=True
    )
    known, added = made // max(1, dimensions), made % max(1, dimensions)
    return _Schemas(
        np.column_stack([shorter.dimensions[known], added]),
        shorter.places[known] * terms.radixes[added],
        shorter.there[known] * terms.presence[added],
        number.astype(np.int32),
        shorter.row[parent],
        last.astype(np.int32),
        shorter.chance[parent] * sample.chance[last],
    )


def _further(schemas: _Schemas, sample: Sample) -> Integers:
    """For each occurrence, how many equalities its clause has after those of the schema."""
    return np.asarray(sample.first[schemas.row + 1] - 1 - schemas.last)


def _hopeful(schemas: _Schemas, sample: Sample, terms: Terms) -> _Schemas:
    """The schemas that may pay, or be part of one that does.

    Neither a schema nor any longer one can save more than all that its clauses cost now.
    """
    at_stake = sample.weight * terms.costs.check * _burden(schemas, sample)
    rarest = float(terms.presence[sample.dimension].min(initial=1.0))
    least = terms.costs.lookup * schemas.there * rarest ** (terms.longest - schemas.dimensions.shape[1])
    fewest = FEWEST_CLAUSES if sample.weight > 1 else 1
    return schemas.only((at_stake > least) & (schemas.places <= terms.most_places) & (schemas.totals() >= fewest))


def _extensible(schemas: _Schemas, sample: Sample) -> _Schemas:
    """The schemas to extend: those with most at stake, as many as there is time for."""
    made = schemas.totals(_further(schemas, sample).astype(np.float64))
    order = np.argsort(-_burden(schemas, sample), kind="stable")
    within = np.zeros(len(order), np.bool_)
    within[order] = np.cumsum(made[order]) <= MOST_OCCURRENCES
    return schemas.only(within)


def _burden(schemas: _Schemas, sample: Sample) -> Numbers:
    """By schema: how many of its clauses an event is expected to check while there are no key tables."""
    return schemas.totals(sample.otherwise[schemas.row])


class _Greedy:
    """The state of a choice: the access path of each clause so far, and the occurrences that would better it."""

    def __init__(self, sample: Sample, terms: Terms, candidates: list[_Schemas]) -> None:
        self._terms = terms
        self._weight = sample.weight
        self._chance_now = sample.otherwise.copy()
        self._table_now = np.full(len(sample), -1)
        self._schemas = [tuple(schema) for each in candidates for schema in each.dimensions.tolist()]
        self._places = np.concatenate([np.zeros(0), *(each.places for each in candidates)])
        there = np.concatenate([np.zeros(0), *(each.there for each in candidates)])
        self._lookup = terms.costs.lookup * there
        offsets = np.cumsum([0, *(len(each.places) for each in candidates)])
        numbers = [each.number + offset for each, offset in zip(candidates, offsets, strict=False)]
        self._number = np.concatenate([np.zeros(0, np.int64), *numbers])
        self._row = np.concatenate([np.zeros(0, np.int32), *(each.row for each in candidates)])
        self._chance = np.concatenate([np.zeros(0), *(each.chance for each in candidates)])
        self._chosen: list[int] = []

    def run(self) -> list[Choice]:
        """Take tables while one pays and fits."""
        made: list[Choice] = []
        self._keep(self._chance < self._chance_now[self._row])
        while len(made) < self._terms.most_tables and len(self._row):
            benefit, population = self._benefits()
            number = self._best(benefit, population)
            if number is None:
                break
            self._take(number)
            made.append(
                Choice(
                    self._schemas[number],
                    float(benefit[number]),
                    float(population[number]),
                    int(self._places[number]),
                )
            )
            # Benefits only fall as tables are added: what does not pay now never will.
            self._keep((benefit[self._number] > 0) & (self._chance < self._chance_now[self._row]))
        return made

    def _benefits(self) -> tuple[Numbers, Numbers]:
        """Of each candidate: what it saves per event (section 3.2.2), and the clauses it would hold."""
        saved = self._chance_now[self._row] - self._chance
        checks = self._weight * np.bincount(self._number, saved, minlength=len(self._places))
        holders = np.bincount(self._number, minlength=len(self._places)).astype(np.float64)
        return self._terms.costs.check * checks - self._lookup, self._weight * holders

    def _best(self, benefit: Numbers, population: Numbers) -> int | None:
        """The candidate that saves most per byte, of those that save and fit."""
        space = table_bytes(self._places, population)
        able = (benefit > 0) & (self._used() + space <= self._terms.space)
        if not able.any():
            return None
        return int(np.argmax(np.where(able, benefit / space, 0.0)))

    def _used(self) -> float:
        """The space of the tables taken so far, with the clauses that later ones have left them."""
        moved = self._table_now[self._table_now >= 0]
        holders = np.bincount(moved, minlength=len(self._chosen)).astype(np.float64)
        return float(table_bytes(self._places[self._chosen], self._weight * holders).sum())

    def _take(self, number: int) -> None:
        moving = np.flatnonzero(self._number == number)
        rows = self._row[moving]
        self._chance_now[rows] = self._chance[moving]
        self._table_now[rows] = len(self._chosen)
        self._chosen.append(number)

    def _keep(self, alive: npt.NDArray[np.bool_]) -> None:
        self._number, self._row, self._chance = self._number[alive], self._row[alive], self._chance[alive]
