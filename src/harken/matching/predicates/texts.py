"""Which of many predicates on texts a value satisfies, without asking each.

Those that ask for a beginning, an end or a part are found by tries. Of LIKE and of regular expressions a piece is
looked for that a text must contain and few others ask for, and only who has it, and all other pieces, is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.predicates.literals import pieces_of_like, pieces_of_regex
from harken.matching.structures.kernels.tries import Texts
from harken.matching.structures.segments import Segmented, numbers_in, pairs_in
from harken.matching.structures.tries import PatternTrie, Place, single, texts_of
from harken.model.expressions import TextMatch
from harken.model.text import TextOperator, text_test

Numbers = npt.NDArray[np.int64]

MOST = 2**30
"""Bytes of patterns that become one trie: there are numbers for the nodes of no more than twice as many."""

TOGETHER = 64
"""Texts of which it is known at the same time what they may satisfy."""

SHORT = 3
"""Pieces of fewer characters are looked for only if there is no other."""

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
        self._uses: Counter[str] = Counter()
        """How many of those have a piece."""
        self._others: dict[int, None] = {}
        """Those of which nothing is known to look for."""

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def nbytes(self) -> int:
        """Bytes taken by the tries."""
        return sum(each.nbytes for each in self.segmented)

    def add(self, number: int, predicate: TextMatch) -> None:
        """Ask for a predicate too; what is found by tries is to be settled."""
        self._asked[number] = predicate
        place, pieces = _PLACES.get(predicate.operator), _pieces(predicate)
        if place is not None:
            self._found[place].add(number, predicate.pattern.encode())
        elif pieces:
            self._led_to.add(number, min(pieces, key=self._dullness).encode())
            self._pieces[number] = pieces
            self._uses.update(pieces)
        else:
            self._others[number] = None

    def discard(self, number: int) -> None:
        """Ask for a predicate no more; what is found by tries is to be settled."""
        predicate = self._asked.pop(number)
        place = _PLACES.get(predicate.operator)
        if place is not None:
            self._found[place].discard(number)
        elif number in self._others:
            del self._others[number]
        else:
            self._led_to.discard(number)
            for piece in self._pieces.pop(number):
                self._uses[piece] -= 1
                if not self._uses[piece]:
                    del self._uses[piece]

    @property
    def segmented(self) -> tuple[Segmented[bytes, PatternTrie], ...]:
        """What is found by tries: these are to be settled."""
        return (*self._found.values(), self._led_to)

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
        asked = [(place, number) for place, number in self._doubtful(texts) if self._holds(number, values[place])]
        pairs = np.array(asked, np.int64).reshape(-1, 2)
        places, numbers = (np.concatenate(each) for each in zip(*found, (pairs[:, 0], pairs[:, 1]), strict=True))
        return places, numbers

    def _doubtful(self, texts: Texts) -> Iterator[tuple[int, int]]:
        """Which texts are to be asked by which predicates: some texts at a time, as each may have all pieces."""
        count = len(texts.bounds) - 1
        for begin in range(0, count, TOGETHER):
            some = texts._replace(bounds=texts.bounds[begin : begin + TOGETHER + 1])
            which, numbers = pairs_in(self._led_to, partial(_find, some))
            yield from zip((which + begin).tolist(), numbers.tolist(), strict=True)
        for each in self.segmented:
            yield from product(range(count), each.waiting)
        yield from product(range(count), self._others)

    def _dullness(self, piece: str) -> tuple[bool, int, int]:
        """How little it helps to look for a piece: short ones are in most texts, as is what many look for."""
        return len(piece) < SHORT, self._uses[piece], -len(piece)

    def _holds(self, number: int, value: str) -> bool:
        """Ask a predicate: first whether the pieces are there, as few patterns can be kept compiled."""
        predicate = self._asked[number]
        return all(piece in value for piece in self._pieces.get(number, ())) and text_test(
            predicate.operator, predicate.pattern, predicate.escape
        )(value)


def _find(texts: Texts, trie: PatternTrie) -> tuple[Numbers, Numbers]:
    return trie.find(texts)


def _segmented(place: Place) -> Segmented[bytes, PatternTrie]:
    return Segmented(partial(PatternTrie, place), len, MOST)


def _pieces(predicate: TextMatch) -> tuple[str, ...]:
    """What is to be looked for, of a predicate that is not satisfied by what is found."""
    if predicate.operator is TextOperator.LIKE:
        return pieces_of_like(predicate.pattern, predicate.escape)
    return pieces_of_regex(predicate.pattern) if predicate.operator is TextOperator.MATCHES else ()
