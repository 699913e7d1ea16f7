"""Expressions written in Python, reading like the text: `(attr("price") < 300) & attr("maker").is_in([...])`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from harken.errors import ExpressionError
from harken.model.expressions import (
    Comparator,
    Comparison,
    Membership,
    Not,
    Presence,
    Range,
    Spatial,
    SpatialOperator,
    TextMatch,
)
from harken.model.text import TextOperator
from harken.model.values import Box, Point, Value


class Attribute:
    """A name to build predicates from; get one with `attr`."""

    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment]  # == builds a predicate, so attributes cannot be dict keys

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"attr({self._name!r})"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} has no truth value by itself; write {self!r} == True, and combine with & | ~")

    def __invert__(self) -> NoReturn:
        raise TypeError(f"{self!r} is no condition by itself; write ~({self!r} == True)")

    def __eq__(self, value: Value) -> Comparison:  # type: ignore[override]
        return Comparison(self._name, Comparator.EQ, value)

    def __ne__(self, value: Value) -> Comparison:  # type: ignore[override]
        return Comparison(self._name, Comparator.NE, value)

    def __lt__(self, value: Value) -> Comparison:
        return Comparison(self._name, Comparator.LT, value)

    def __le__(self, value: Value) -> Comparison:
        return Comparison(self._name, Comparator.LE, value)

    def __gt__(self, value: Value) -> Comparison:
        return Comparison(self._name, Comparator.GT, value)

    def __ge__(self, value: Value) -> Comparison:
        return Comparison(self._name, Comparator.GE, value)

    def between(self, low: Value, high: Value) -> Range:
        """Low <= value <= high."""
        return Range(self._name, low, high)

    def in_range(self, low: Value, high: Value, *, low_closed: bool = True, high_closed: bool = False) -> Range:
        """Between two bounds, each end open or closed; half-open `[low, high)` unless said otherwise."""
        return Range(self._name, low, high, low_closed, high_closed)

    def is_in(self, values: Iterable[Value]) -> Membership:
        """Equal to one of the values."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise ExpressionError(
                f"is_in on {self._name!r} takes several values, found {type(values).__name__}",
                suggestion=f"write is_in([{values!r}])",
            )
        return Membership(self._name, tuple(values))

    def not_in(self, values: Iterable[Value]) -> Not:
        """Present, of the same kind, and equal to none of the values."""
        return Not(self.is_in(values))

    def like(self, pattern: str, escape: str | None = None) -> TextMatch:
        """SQL LIKE: % stands for any run of characters, _ for any one."""
        return TextMatch(self._name, TextOperator.LIKE, pattern, escape)

    def starts_with(self, prefix: str) -> TextMatch:
        """A string with this beginning."""
        return TextMatch(self._name, TextOperator.STARTS_WITH, prefix)

    def ends_with(self, suffix: str) -> TextMatch:
        """A string with this end."""
        return TextMatch(self._name, TextOperator.ENDS_WITH, suffix)

    def contains(self, part: str | Point | Box) -> TextMatch | Spatial:
        """A string that has this part; or a region that has this one inside or on its edge."""
        if isinstance(part, Point | Box):
            return Spatial(self._name, SpatialOperator.CONTAINS, part)
        return TextMatch(self._name, TextOperator.CONTAINS, part)

    def matches(self, regex: str) -> TextMatch:
        """A string in which the regular expression (RE2 syntax) is found somewhere."""
        return TextMatch(self._name, TextOperator.MATCHES, regex)

    def overlaps(self, shape: Point | Box) -> Spatial:
        """A region that shares at least one point with this one."""
        return Spatial(self._name, SpatialOperator.OVERLAPS, shape)

    def within(self, shape: Point | Box) -> Spatial:
        """A region that lies inside this one, edges included."""
        return Spatial(self._name, SpatialOperator.WITHIN, shape)

    def is_null(self) -> Presence:
        """Missing or null."""
        return Presence(self._name, False)

    def exists(self) -> Presence:
        """Present and not null."""
        return Presence(self._name, True)


def attr(name: str) -> Attribute:
    """An attribute to build predicates from.

    >>> from harken.language import to_text
    >>> to_text((attr("price") < 300) & attr("maker").is_in(["Sony", "Nikon"]))
    "price < 300 AND maker IN ('Sony', 'Nikon')"
    """
    return Attribute(name)
