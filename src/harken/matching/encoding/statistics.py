"""What events look like: how often an attribute is there, how often it has each constant, and where it lies.

Counts are kept while matching, on a sample, and decay, so that they follow events whose pattern changes. Before
any event has been seen, constants of a dimension are taken to be equally likely.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harken.matching.growing import GrowingArray
from harken.matching.kernels.estimating import add_constants
from harken.matching.kernels.layout import BANDS, CELLS, MEMBER, MISSING, Chances, Events
from harken.matching.predicates.table import PredicateTable
from harken.matching.saving import State, counted, joined, parted, require

SAMPLE = 256
"""Events looked at per block."""

MEMORY = 50_000
"""About how many sampled events are remembered before older ones fade."""

PRIOR = 64
"""Events that what is thought beforehand counts for."""

LEAST_VALUES = 8
"""Values that an attribute is taken to have at least, however few constants ask for it."""

LABELS = 2_048
"""Labels remembered of each ordered dimension: the latest ones seen."""

_UNTOLD, UNSEEN = 0.1, 0.5
"""What is thought of a predicate nothing is known of, and of the presence of an attribute not yet looked for."""

SPARE = 8
"""Chances have room for one more predicate for so many there are."""


class ObservedEvents:
    """Decayed counts per dimension and constant. Changes must not run beside anything else."""

    def __init__(self) -> None:
        self.events = 0.0
        self._present = GrowingArray(np.float64)
        self._constants: list[GrowingArray[np.float64]] = []
        self._labels: dict[int, _Labels] = {}

    def copy(self) -> ObservedEvents:
        """What has been seen so far, for whoever looks at it while others go on counting."""
        copy = ObservedEvents()
        copy.events = self.events
        copy._present = self._present.twin()
        copy._constants = [each.twin() for each in self._constants]
        copy._labels = {dimension: each.copy() for dimension, each in self._labels.items()}
        return copy

    def state(self) -> State:
        """All that has been seen, copied: others go on counting while it is written."""
        constants, constant_sizes = joined([each.values for each in self._constants], np.float64)
        labels, label_sizes = joined([each.values for each in self._labels.values()], np.int64)
        facts = {
            "events": self.events,
            "constant_sizes": constant_sizes,
            "label_sizes": label_sizes,
            "labelled": [(dimension, each.epoch) for dimension, each in self._labels.items()],
        }
        return State(facts, {"present": self._present.values.copy(), "constants": constants, "labels": labels})

    def restore(self, state: State, dimensions: int) -> None:
        """Have seen what others have, of so many dimensions."""
        self.events = float(state.fact("events"))
        self._present = GrowingArray.of(state.array("present", np.float64))
        constants = parted(state.array("constants", np.float64), state.fact("constant_sizes"))
        self._constants = [GrowingArray.of(each) for each in constants]
        require(len(self._present) <= dimensions and len(constants) <= dimensions, "events had other attributes")
        require(0 <= self.events < 2**53, f"{self.events} is no number of events")
        for counts in (self._present.values, *constants):
            require(bool(((counts >= 0) & (counts <= self.events * 1.001)).all()), "more was seen than events")
        labels = parted(state.array("labels", np.int64), state.fact("label_sizes"))
        for (dimension, epoch), each in zip(state.fact("labelled"), labels, strict=True):
            require(counted("a dimension", dimension) < dimensions, "labels are of no dimension")
            self._labels[dimension] = _Labels()
            self._labels[dimension].add(counted("an epoch", epoch), each)

    def observe(self, events: Events, predicates: PredicateTable) -> None:
        """Count a sample of encoded events."""
        step = max(1, len(events.code) // SAMPLE)
        code, label = events.code[::step], events.label[::step]
        if self.events > MEMORY:
            self._fade(0.5)
        self.events += len(code)
        self._present.grow_to(len(predicates.dimensions))
        for column in np.flatnonzero((code != MISSING).any(axis=0)).tolist():
            codes, dimension = code[:, column], int(events.dimension[column])
            there = codes != MISSING
            self._present.values[dimension] += np.count_nonzero(there)
            counts = np.bincount(codes[there])
            while len(self._constants) <= dimension:
                self._constants.append(GrowingArray(np.float64))
            seen = self._constants[dimension]
            seen.grow_to(len(counts))
            seen.values[: len(counts)] += counts
            if events.label_column[column] >= 0:
                epoch = predicates.dimensions[dimension].order.epoch
                known = self._labels.setdefault(dimension, _Labels())
                known.add(epoch, label[there, events.label_column[column]])

    def forget(self, dimension: int) -> None:
        """A dimension has become another one, of which nothing has been seen."""
        if dimension < len(self._present):
            self._present.values[dimension] = UNSEEN * self.events
        if dimension < len(self._constants):
            self._constants[dimension] = GrowingArray(np.float64)
        self._labels.pop(dimension, None)

    def chances(self, predicates: PredicateTable) -> Chances:
        """How likely an event opens each access path that there could be."""
        presence = self._presence(predicates)
        return Chances(self._selectivity(predicates, presence), presence, self._cells(predicates, presence))

    def extended(self, known: Chances, predicates: PredicateTable) -> Chances:
        """Chances as known, with a guess for what has come since, and will come next: this copies all of them."""
        selectivity = np.full(len(predicates) + len(predicates) // SPARE, _UNTOLD, np.float32)
        selectivity[: len(known.selectivity)] = known.selectivity
        presence = np.full(max(1, len(predicates.dimensions)), UNSEEN, np.float32)
        presence[: len(known.presence)] = known.presence
        return Chances(selectivity, presence, known.cell)

    def rebanded(self, known: Chances, predicates: PredicateTable, dimensions: Sequence[int]) -> Chances:
        """Chances as known, but for the cells of dimensions that have been cut into bands anew."""
        known = self.extended(known, predicates)
        cell = np.ones(max(1, len(predicates.bands) * CELLS), np.float32)
        cell[: len(known.cell)] = known.cell
        for dimension in dimensions:
            number = predicates.bands.number_of(dimension)
            chances = self._cells_of(dimension, predicates, known.presence)
            cell[number * CELLS : (number + 1) * CELLS] = chances
        return known._replace(cell=cell)

    def _presence(self, predicates: PredicateTable) -> npt.NDArray[np.float32]:
        chances = np.full(max(1, len(predicates.dimensions)), UNSEEN, np.float32)
        if self.events:
            chances[: len(self._present)] = self._present.values / self.events
        return chances

    def _selectivity(
        self, predicates: PredicateTable, presence: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        arrays = predicates.arrays()
        chances = np.full(len(predicates), _UNTOLD, np.float32)
        chances[arrays.operator == MEMBER] = 0.0
        add_constants(arrays, self._constant_chances(predicates, presence), chances)
        for dimension, numbers in predicates.intervals():
            low, high = arrays.low[numbers], arrays.high[numbers]
            chances[numbers] = presence[dimension] * self._seen_labels(dimension, predicates).between(low, high)
        # However few have been seen, nothing is impossible.
        return np.clip(chances, 1e-9, 1.0)

    def _constant_chances(
        self, predicates: PredicateTable, presence: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        """By the constants' places, how often an event has them."""
        arrays = predicates.arrays()
        likely = np.zeros(len(arrays.equal), np.float32)
        for dimension in predicates.dimensions:
            number, size = dimension.number, len(dimension.constants)
            if size < 2:
                continue
            own = likely[arrays.equal_first[number] : arrays.equal_first[number] + size]
            if self.events and number < len(self._constants):
                seen = self._constants[number].values[:size]
                # As if some events with all constants alike had come before: few events tell little.
                own[:] = PRIOR * presence[number] / max(LEAST_VALUES, size)
                own[: len(seen)] += seen
                own /= self.events + PRIOR
            else:
                own[:] = presence[number] / max(LEAST_VALUES, size)
        return likely

    def _cells(self, predicates: PredicateTable, presence: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        bands = predicates.bands
        chances = np.ones(max(1, len(bands) * CELLS), np.float32)
        for number, dimension in enumerate(bands.dimensions.tolist()):
            cells = self._cells_of(dimension, predicates, presence)
            chances[number * CELLS : (number + 1) * CELLS] = cells
        return chances

    def _cells_of(
        self, dimension: int, predicates: PredicateTable, presence: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        bands, labels = predicates.bands, self._seen_labels(dimension, predicates).values
        per_band = np.bincount(bands.band_of(bands.number_of(dimension), labels), minlength=BANDS)
        return np.clip(bands.chances(per_band / max(1, len(labels)) * presence[dimension]), 1e-9, 1.0)

    def _seen_labels(self, dimension: int, predicates: PredicateTable) -> _Labels:
        """The labels seen of a dimension, or as if its constants themselves had been seen."""
        order = predicates.dimensions[dimension].order
        known = self._labels.get(dimension)
        if known is None or known.epoch != order.epoch or not len(known.values):
            known = _Labels()
            known.add(order.epoch, order.some_labels(LABELS))
        return known

    def _fade(self, factor: float) -> None:
        # The events last, so that whatever fails or forks no more was seen of them than there were.
        self._present.values[:] *= factor
        for counts in self._constants:
            counts.values[:] *= factor
        self.events *= factor


class _Labels:
    """The latest labels seen of a dimension, as long as labels mean the same."""

    def __init__(self) -> None:
        self.epoch = -1
        self.values: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def copy(self) -> _Labels:
        copy = _Labels()
        copy.epoch, copy.values = self.epoch, self.values  # which are exchanged, never changed
        return copy

    def add(self, epoch: int, labels: npt.NDArray[np.int64]) -> None:
        known = self.values if epoch == self.epoch else self.values[:0]
        self.epoch = epoch
        self.values = np.concatenate([known, labels])[-LABELS:]

    def between(self, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Which part of the labels lies in each interval."""
        ascending = np.sort(self.values)
        inside = np.searchsorted(ascending, high, side="right") - np.searchsorted(ascending, low)
        return (inside + 0.5) / (len(ascending) + 1)
