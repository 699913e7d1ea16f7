"""Asked constraints as the stream of numbers that kernels read (kernels/layout.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harken.symmetric.memory.dimensions import Dimensions
from harken.symmetric.memory.forms import FIRST_OF_SHAPES, MODES, Bounds, Form, Seen, spread
from harken.symmetric.memory.kernels.layout import ANY, LOOSE, NEVER
from harken.symmetric.memory.positions import INFINITY, POSITION_OF
from harken.symmetric.pointsets import Interval
from harken.symmetric.semantics import Boxes

_POSITION_OF_FORM = {Form[kind.name]: position_of for kind, position_of in POSITION_OF.items()}
_WITHOUT_INTERVALS = (NEVER, ANY, ANY | LOOSE)

_NO_TEXT = np.zeros(0, np.uint8)
_NO_LOW, _NO_HIGH = (-INFINITY, 0.0, 0.0), (INFINITY, 0.0, 0.0)


class Query(NamedTuple):
    """What is asked of every segment."""

    stream: npt.NDArray[np.float64]
    text: npt.NDArray[np.uint8]
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
                if asks is None:
                    continue
                stream += (place, len(seen), asks.pop(), *asks)
                count, last, repeats = count + 1, place, repeats or last == place
    if not count:
        return None
    stream[1] = count
    return Query(np.array(stream, np.float64), np.frombuffer(texts, np.uint8) if texts else _NO_TEXT, repeats)


def _asks(dimensions: Dimensions, seen: list[Seen], decides: bool, texts: bytearray) -> list[float] | None:
    """The asks of one alternative, and then their number; None if an attribute that counts is held by nobody."""
    asks: list[float] = []
    count = 0
    for attribute, (name, form, what) in enumerate(seen):
        forms = dimensions.of_attribute.get(name)
        if forms is None:
            if decides:
                return None
            continue
        for held_form, axis in forms.items():
            mode = MODES[form][held_form]
            if mode in _WITHOUT_INTERVALS:
                asks += (axis, attribute, mode, 0)
                if held_form >= FIRST_OF_SHAPES:
                    asks += (axis + 1, attribute, mode, 0)
            elif form >= FIRST_OF_SHAPES:
                asks += _asks_of_shape(axis, attribute, mode, what)  # type: ignore[arg-type]  # it has bounds
            else:
                asks += (axis, attribute, mode, len(what))
                for interval in what:
                    asks += _bounds(form, interval, texts)  # type: ignore[arg-type]  # ordered: intervals
            count += 2 if held_form >= FIRST_OF_SHAPES else 1
    asks.append(count)
    return asks


def _asks_of_shape(axis: int, attribute: int, mode: int, bounds: Bounds) -> tuple[float, ...]:
    min_x, min_y, max_x, max_y = bounds
    x = (axis, attribute, mode, 1, min_x, 0, 0, max_x, 0, 0)
    return (*x, axis + 1, attribute, mode, 1, min_y, 0, 0, max_y, 0, 0)


def _bounds(form: Form, interval: Interval, texts: bytearray) -> tuple[float, ...]:
    if form is Form.STRING:
        return _text_bounds(interval, texts)
    position_of = _POSITION_OF_FORM[form]
    if interval.low is None:
        low: tuple[float, ...] = _NO_LOW
    else:
        low = (*position_of(interval.low), 0 if interval.low_closed else 1)
        if interval.high is interval.low:
            return (*low, *low)
    if interval.high is None:
        return (*low, *_NO_HIGH)
    return (*low, *position_of(interval.high), 0 if interval.high_closed else -1)


def _text_bounds(interval: Interval, texts: bytearray) -> tuple[float, ...]:
    bounds: list[float] = []
    for value, none, nudge in (
        (interval.low, _NO_LOW, 0 if interval.low_closed else 1),
        (interval.high, _NO_HIGH, 0 if interval.high_closed else -1),
    ):
        if value is None:
            bounds += none
        else:
            begin = len(texts)
            texts += str(value).encode()
            bounds += (begin, len(texts), nudge)
    return tuple(bounds)
