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

from dataclasses import dataclass, replace
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
    """The greedy choice, step by step: each table with what it saved and held when it was added.

    Take 1,000 clauses with equalities on the dimensions a, b, c and 500 with such on a, d; one event in ten
    satisfies each equality, and a lookup costs as much as 10 checks. Under single predicates a tenth of the events
    check a clause. A table of two dimensions leaves a hundredth, one of three a thousandth:

        candidate   saves per event at first       of bytes   then                             in the end
        (a, b)      1,000 (0.1 - 0.01)  - 10 = 80     7,260   taken
        (a, c)      1,000 (0.1 - 0.01)  - 10 = 80     7,260   1,000 (0.01 - 0.01)  - 10 = -10
        (b, c)      1,000 (0.1 - 0.01)  - 10 = 80     7,260   1,000 (0.01 - 0.01)  - 10 = -10
        (a, b, c)   1,000 (0.1 - 0.001) - 10 = 89    44,700   1,000 (0.01 - 0.001) - 10 =  -1
        (a, d)        500 (0.1 - 0.01)  - 10 = 35     7,150     500 (0.1  - 0.01)  - 10 =  35   taken

    (a, b, c) saves the most, but not per byte. Once there is (a, b), it no longer pays for its lookup.

    >>> from harken.matching.clusters.cost import Costs
    >>> dimensions = [0, 1, 2] * 1_000 + [0, 3] * 500
    >>> first = np.cumsum([0] + [3] * 1_000 + [2] * 500)
    >>> sample = Sample(first, np.array(dimensions), np.full(4_000, 0.1), np.full(1_500, 0.1))
    >>> terms = Terms(np.ones(4), np.full(4, 11), Costs(lookup=10, check=1), space=1e6, most_places=10_000)
    >>> [(choice.schema, round(choice.benefit), round(choice.population)) for choice in steps(sample, terms)]
    [((0, 1), 80, 1000), ((0, 3), 35, 500)]
    """
    greedy = _Greedy(sample, terms)
    made: list[Choice] = []
    while len(made) < terms.most_tables and (choice := greedy.take_best()) is not None:
        made.append(choice)
    return made


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
    """Schemas and their occurrences: clause row[k] has the schema number[k]."""

    dimensions: Integers
    """A row per schema, ascending; where lengths differ, shorter ones end in -1."""
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

    def occurring(self, kept: npt.NDArray[np.bool_]) -> _Schemas:
        """All of the schemas, with some of the occurrences."""
        return replace(
            self, number=self.number[kept], row=self.row[kept], last=self.last[kept], chance=self.chance[kept]
        )

    def totals(self, values: Numbers | None = None) -> Numbers:
        """By schema: its occurrences, or the sum of values that they have."""
        return np.asarray(np.bincount(self.number, values, minlength=len(self.places)), np.float64)


def _candidates(sample: Sample, terms: Terms) -> _Schemas:
    """The schemas that may pay, shortest first: the part of the paper's GA(S) that is worth looking at."""
    longer = _hopeful(_singles(sample, terms), sample, terms)
    # Of one dimension there are none: what a table of those would do, single predicates do without a lookup.
    found = [longer.only(np.zeros(len(longer.places), np.bool_))]
    for _ in range(terms.longest - 1):
        longer = _hopeful(_extended(_extensible(longer, sample), sample, terms), sample, terms)
        found.append(longer)
    return _joined(found)


def _joined(parts: list[_Schemas]) -> _Schemas:
    """Schemas of several lengths, which ascend, as one."""
    longest = parts[-1].dimensions.shape[1]
    filling = [((0, 0), (0, longest - each.dimensions.shape[1])) for each in parts]
    first = np.cumsum([0, *(len(each.places) for each in parts)], dtype=np.int32)
    return _Schemas(
        np.concatenate(
            [np.pad(each.dimensions, by, constant_values=-1) for each, by in zip(parts, filling, strict=True)]
        ),
        np.concatenate([each.places for each in parts]),
        np.concatenate([each.there for each in parts]),
        np.concatenate([each.number + begin for each, begin in zip(parts, first, strict=False)]),
        np.concatenate([each.row for each in parts]),
        np.concatenate([each.last for each in parts]),
        np.concatenate([each.chance for each in parts]),
    )


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
    """The tables taken so far, the access path that clauses have by them, and the candidates that better some."""

    def __init__(self, sample: Sample, terms: Terms) -> None:
        self._terms = terms
        self._weight = sample.weight
        self._taken: list[int] = []
        self._chance = sample.otherwise.copy()
        """Of each clause: that an event opens its access path."""
        self._table = np.full(len(sample), -1)
        """Of each clause: in which of the tables taken that is, or -1."""
        self._candidates = _candidates(sample, terms)
        self._keep_better(np.full(len(self._candidates.places), True))

    def take_best(self) -> Choice | None:
        """Take the table that saves the most per byte (section 3.2.3); None if none pays and fits."""
        candidates, benefit = self._candidates, self._benefit()
        population = self._weight * candidates.totals()
        space = table_bytes(candidates.places, population)
        able = (benefit > 0) & (self._used() + space <= self._terms.space)
        if not able.any():
            return None
        best = int(np.argmax(np.where(able, benefit / space, 0.0)))
        self._move_clauses(best)
        # Benefits only fall as tables are added: what does not pay now never will.
        self._keep_better(benefit > 0)
        schema = tuple(each for each in candidates.dimensions[best].tolist() if each >= 0)
        return Choice(schema, float(benefit[best]), float(population[best]), int(candidates.places[best]))

    def _benefit(self) -> Numbers:
        """Of each candidate: nanoseconds per event of the checks it saves, less its lookup (section 3.2.2)."""
        candidates, costs = self._candidates, self._terms.costs
        checks = self._weight * candidates.totals(self._chance[candidates.row] - candidates.chance)
        return costs.check * checks - costs.lookup * candidates.there

    def _used(self) -> float:
        """The space of the tables taken so far, with the clauses that later ones have left them."""
        holders = np.bincount(self._table[self._table >= 0], minlength=len(self._taken)).astype(np.float64)
        return float(table_bytes(self._candidates.places[self._taken], self._weight * holders).sum())

    def _move_clauses(self, best: int) -> None:
        """Put the clauses that a table betters into it."""
        moving = np.flatnonzero(self._candidates.number == best)
        rows = self._candidates.row[moving]
        self._chance[rows] = self._candidates.chance[moving]
        self._table[rows] = len(self._taken)
        self._taken.append(best)

    def _keep_better(self, paying: npt.NDArray[np.bool_]) -> None:
        """Forget occurrences of schemas that do not pay, and those that are no better than what a clause has."""
        known = self._candidates
        better = known.chance < self._chance[known.row]
        self._candidates = known.occurring(paying[known.number] & better)
