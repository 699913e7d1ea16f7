"""Which of many predicates on texts a value satisfies, without asking each.

Those that ask for a beginning, an end or a part are found by tries. Of LIKE and of regular expressions the longest
piece that a text must contain is looked for, and only who has it, and all other pieces, is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.predicates.literals import pieces_of_like, pieces_of_regex
from harken.matching.structures.segments import Segmented, numbers_in, pairs_in
from harken.matching.structures.tries import PatternTrie, Place, single, texts_of
from harken.model.expressions import TextMatch
from harken.model.text import TextOperator, text_test

Numbers = npt.NDArray[np.int64]

MOST = 2**30
"""Bytes of patterns that become one trie: there are numbers for the nodes of no more than twice as many."""

_PLACES: dict[TextOperator, Place] = {
    TextOperator.STARTS_WITH: "prefix",
    TextOperator.ENDS_WITH: "suffix",
    TextOperator.CONTAINS: "part",
}


class TextTests:
    """Predicates on texts by number. Changes must not run beside anything else; any thread may ask."""

    def __init__(self) -> None:
        self._asked: dict[int, TextMatch] = {}
        self._found = {place: _segmented(place) for place in _PLACES.values()}
        """By place: those that are satisfied wherever their pattern is found ..."""
        self._led_to = _segmented("part")
        """... and those that may be, where a piece of theirs is."""
        self._pieces: dict[int, tuple[str, ...]] = {}
        """What a text must contain, by predicate of those that are led to."""
        self._others: dict[int, None] = {}
        """Those of which nothing is known to look for."""

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def nbytes(self) -> int:
        """Bytes taken by the tries."""
        return sum(each.nbytes for each in (*self._found.values(), self._led_to))

    def add(self, number: int, predicate: TextMatch) -> None:
        """Ask for a predicate too; `settle` is to follow."""
        self._asked[number] = predicate
        place, pieces = _PLACES.get(predicate.operator), _pieces(predicate)
        if place is not None:
            self._found[place].add(number, predicate.pattern.encode())
        elif pieces:
            self._pieces[number] = pieces
            self._led_to.add(number, max(pieces, key=len).encode())
        else:
            self._others[number] = None

    def discard(self, number: int) -> None:
        """Ask for a predicate no more; `settle` is to follow."""
        predicate = self._asked.pop(number)
        place = _PLACES.get(predicate.operator)
        if place is not None:
            self._found[place].discard(number)
        elif number in self._others:
            del self._others[number]
        else:
            del self._pieces[number]
            self._led_to.discard(number)

    def settle(self) -> None:
        """Make tries of those that have come, if they are many."""
        for each in (*self._found.values(), self._led_to):
            each.settle()

    @property
    def is_indexed(self) -> bool:
        """Whether there is any trie."""
        return any(each.segments for each in (*self._found.values(), self._led_to))

    def passed_by(self, value: str) -> list[int]:
        """The predicates that a value satisfies."""
        text, found, doubtful = single(value), list[int](), list(self._others)
        for each in self._found.values():
            found += numbers_in(each, lambda trie: trie.find_in(text)) if each.segments else ()
            doubtful += each.waiting
        doubtful += numbers_in(self._led_to, lambda trie: trie.find_in(text))
        doubtful += self._led_to.waiting
        return found + [number for number in doubtful if self._holds(number, value)]

    def passed(self, values: Sequence[str]) -> tuple[Numbers, Numbers]:
        """Which of these values satisfy which predicates, pair by pair, in any order."""
        texts = texts_of(pa.array(values, pa.large_string()))
        found = [pairs_in(each, lambda trie: trie.find(texts)) for each in self._found.values()]
        which, led_to = pairs_in(self._led_to, lambda trie: trie.find(texts))
        waiting = [number for each in (*self._found.values(), self._led_to) for number in each.waiting]
        doubtful = [
            *zip(which.tolist(), led_to.tolist(), strict=True),
            *((place, number) for number in (*waiting, *self._others) for place in range(len(values))),
        ]
        asked = [(place, number) for place, number in doubtful if self._holds(number, values[place])]
        pairs = np.array(asked, np.int64).reshape(-1, 2)
        places, numbers = (np.concatenate(each) for each in zip(*found, (pairs[:, 0], pairs[:, 1]), strict=True))
        return places, numbers

    def _holds(self, number: int, value: str) -> bool:
        """Ask a predicate: first whether the pieces are there, as few patterns can be kept compiled."""
        predicate = self._asked[number]
        return all(piece in value for piece in self._pieces.get(number, ())) and text_test(
            predicate.operator, predicate.pattern, predicate.escape
        )(value)


def _segmented(place: Place) -> Segmented[bytes, PatternTrie]:
    return Segmented(partial(PatternTrie, place), len, MOST)


def _pieces(predicate: TextMatch) -> tuple[str, ...]:
    """What is to be looked for, of a predicate that is not satisfied by what is found."""
    if predicate.operator is TextOperator.LIKE:
        return pieces_of_like(predicate.pattern, predicate.escape)
    return pieces_of_regex(predicate.pattern) if predicate.operator is TextOperator.MATCHES else ()
