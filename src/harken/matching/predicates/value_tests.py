"""The predicates of a dimension that need a value rather than its code, or that one is not so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from harken.matching.predicates.shapes import ShapeTests
from harken.matching.predicates.texts import TextTests
from harken.matching.structures.segments import Segmented, Settled
from harken.model.evaluation import holds
from harken.model.expressions import Expression, Not, Predicate, Spatial, TextMatch
from harken.model.values import Box, EventValue, Point

Numbers = npt.NDArray[np.int64]

SettledTests: TypeAlias = list[Settled[Any, Any]]
"""Structures, of each sort of predicates."""


class ValueTests:
    """Predicates by number. Changes must not run beside anything else; any thread may ask."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[Predicate, bool]] = {}
        """Of each what is asked, and which answer is wanted."""
        self._texts, self._shapes = TextTests(), ShapeTests()
        self._unwanted: dict[int, None] = {}
        """Those that are satisfied by what is not so."""
        self._indexed = False

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def nbytes(self) -> int:
        """Bytes taken by structures."""
        return self._texts.nbytes + self._shapes.nbytes

    def add(self, number: int, expression: Expression) -> None:
        """Ask for a predicate, or that it is not so, too; `settled` is to follow."""
        leaf, wanted = (expression.term, False) if isinstance(expression, Not) else (expression, True)
        if isinstance(leaf, TextMatch):
            self._texts.add(number, leaf)
        else:
            assert isinstance(leaf, Spatial), "others need no value, but its code"
            self._shapes.add(number, leaf)
        self._asked[number] = leaf, wanted
        if not wanted:
            self._unwanted[number] = None

    def discard(self, number: int) -> None:
        """Ask for a predicate no more; `settled` is to follow."""
        leaf, _ = self._asked.pop(number)
        self._unwanted.pop(number, None)
        if isinstance(leaf, TextMatch):
            self._texts.discard(number)
        else:
            self._shapes.discard(number)

    @property
    def is_settled(self) -> bool:
        """Whether there are structures for nearly all there are."""
        return all(each.is_settled for each in self._segmented)

    def settled(self) -> SettledTests:
        """Structures of those that have come, if they are many.

        Others may ask meanwhile. Nothing may come or go before these are had.
        """
        return [each.settled() for each in self._segmented]

    def have(self, several: SettledTests) -> SettledTests:
        """Have structures as were just made; what was there."""
        before = [each.have(settled) for each, settled in zip(self._segmented, several, strict=True)]
        self._indexed = any(each.segments for each in self._segmented)
        return before

    @property
    def _segmented(self) -> tuple[Segmented[Any, Any], ...]:
        return (*self._texts.segmented, *self._shapes.segmented)

    def passed_by(self, value: EventValue) -> list[int]:
        """The predicates that a value satisfies."""
        if not self._indexed:
            return [number for number, (leaf, wanted) in self._asked.items() if holds(leaf, value) is wanted]
        if isinstance(value, str):
            found = self._texts.passed_by(value)
        elif isinstance(value, Point | Box):
            found = self._shapes.passed_by(value)
        else:
            return []
        if not self._unwanted:
            return found
        places, numbers = np.zeros(len(found), np.int64), np.array(found, np.int64)
        wanted: list[int] = self._as_wanted([value], places, numbers)[1].tolist()
        return wanted

    def passed(self, values: Sequence[EventValue]) -> tuple[Numbers, Numbers]:
        """Which of these values satisfy which predicates, pair by pair, in any order."""
        found = []
        if len(self._texts):
            texts = [(place, value) for place, value in enumerate(values) if isinstance(value, str)]
            places = np.array([place for place, _ in texts], np.int64)
            which, numbers = self._texts.passed([value for _, value in texts])
            found.append((places[which], numbers))
        if len(self._shapes):
            found.append(self._shapes.passed(values))
        places, numbers = (np.concatenate(each) for each in zip(*found, strict=True))
        return self._as_wanted(values, places, numbers) if self._unwanted else (places, numbers)

    def _as_wanted(
        self, values: Sequence[EventValue], places: Numbers, numbers: Numbers
    ) -> tuple[Numbers, Numbers]:
        """What is satisfied, of what holds: what holds of the one sort, and what does not of the other."""
        unwanted = np.array(list(self._unwanted), np.int64)
        of_texts = np.array([isinstance(self._asked[number][0], TextMatch) for number in self._unwanted], bool)
        wanted = ~np.isin(numbers, unwanted)
        kept_places, kept_numbers = [places[wanted]], [numbers[wanted]]
        by_place = np.argsort(places, kind="stable")
        bounds = np.searchsorted(places[by_place], np.arange(len(values) + 1))
        for place, value in enumerate(values):
            if isinstance(value, str):
                asked = unwanted[of_texts]
            elif isinstance(value, Point | Box):
                asked = unwanted[~of_texts]
            else:
                continue
            holding = numbers[by_place[bounds[place] : bounds[place + 1]]]
            others = asked[~np.isin(asked, holding)]
            kept_places.append(np.full(len(others), place))
            kept_numbers.append(others)
        return np.concatenate(kept_places), np.concatenate(kept_numbers)
