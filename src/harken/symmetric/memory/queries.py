"""Asked constraints as the stream of numbers that kernels read (kernels/layout.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from harken.symmetric.memory.forms import MODES, Bound, Dimensions, Ends, Form, Seen, axes_of, spread
from harken.symmetric.memory.kernels.layout import ANY, LOOSE, NEVER, Bytes, Floats
from harken.symmetric.semantics import Boxes

_WITHOUT_INTERVALS = (NEVER, ANY, ANY | LOOSE)
_NO_INTERVALS: tuple[Sequence[Ends], ...] = ((), ())
_STRING = Form.STRING  # looked up once: members of enums take their time
_NO_TEXT = np.zeros(0, np.uint8)


class Query(NamedTuple):
    """What is asked of every segment."""

    stream: Floats
    text: Bytes
    repeats: bool
    """Whether several boxes have the same place, so that the same may be found more than once."""


def query_of(dimensions: Dimensions, asked: Iterable[tuple[int, Boxes]], decides: bool) -> Query | None:
    """What to ask of segments, of constraints by place; None if no segment can hold a match.

    `decides` says that the asked constraints are those whose attributes have to be covered.
    """
    stream: list[float] = [float(decides), 0]
    texts = bytearray()
    count, last, repeats = 0, -1, False
    for place, boxes in asked:
        for box in boxes.boxes:
            for seen in spread(box):
                asks = _asks(dimensions, seen, decides, texts)
                if asks is not None:
                    stream += (place, len(seen), asks[0])
                    stream += asks[1]
                    count, last, repeats = count + 1, place, repeats or last == place
    if not count:
        return None
    stream[1] = count
    return Query(np.array(stream, np.float64), np.frombuffer(texts, np.uint8) if texts else _NO_TEXT, repeats)


def _asks(
    dimensions: Dimensions, seen: list[Seen], decides: bool, texts: bytearray
) -> tuple[int, list[float]] | None:
    """How many asks one alternative has, and these; None if an attribute that counts is held by nobody."""
    asks: list[float] = []
    count = 0
    for attribute, (name, form, given) in enumerate(seen):
        held = dimensions.of_attribute.get(name)
        if held is None:
            if decides:
                return None
            continue
        for held_form, first in held.items():
            mode = MODES[form][held_form]
            axes = _NO_INTERVALS[: axes_of(held_form)] if mode in _WITHOUT_INTERVALS else given
            for axis, intervals in enumerate(axes, first):
                asks += (axis, attribute, mode, len(intervals))
                for low, high in intervals:
                    asks += _of_text(low, texts) if form is _STRING else low
                    asks += _of_text(high, texts) if form is _STRING else high
            count += len(axes)
    return count, asks


def _of_text(bound: Bound, texts: bytearray) -> Bound:
    """The bytes of a text are kept apart: in its place, where they begin and end."""
    if not isinstance(bound[0], str):
        return bound
    begin = len(texts)
    texts += bound[0].encode()
    return begin, len(texts), bound[2]
