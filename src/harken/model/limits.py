"""Bounds on what one subscriber may ask for, so that nothing hangs, recurses out or takes others down."""

from __future__ import annotations

from dataclasses import dataclass, fields

from harken.errors import ArgumentError, ArgumentTypeError, BoundError


@dataclass(frozen=True, slots=True)
class Limits:
    """How large one expression may be. All bounds are inclusive."""

    max_length: int = 262_144
    """Characters of text."""
    max_depth: int = 100
    """Levels of AND, OR, NOT and parentheses inside each other."""
    max_clauses: int = 256
    """Disjuncts after rewriting to disjunctive normal form."""
    max_pattern: int = 4_096
    """Characters of one LIKE pattern or regular expression."""
    max_regexes: int = 256
    """Regular expressions, each of which takes up to some ten milliseconds to compile."""
    max_work: int = 1_000_000
    """Steps of rewriting to disjunctive normal form: constraints and values compared."""

    def __post_init__(self) -> None:
        for each in fields(self):
            found = getattr(self, each.name)
            expected = "a whole number from 0 on"
            if isinstance(found, bool) or not hasattr(found, "__index__"):
                raise ArgumentTypeError.of(each.name, expected, repr(found))
            if found < 0:
                raise ArgumentError.of(each.name, expected, repr(found))

    def check_length(self, text: str) -> None:
        """Refuse a text that is too long to look at."""
        if len(text) > self.max_length:
            raise BoundError("max_length", self.max_length, f"the expression has {len(text):,} characters")

    def check_regexes(self, count: int) -> None:
        """Refuse more regular expressions than may be compiled for one expression."""
        if count > self.max_regexes:
            raise BoundError("max_regexes", self.max_regexes, f"the expression has {count:,} regular expressions")


DEFAULT_LIMITS = Limits()
