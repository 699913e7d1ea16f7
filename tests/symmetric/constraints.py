"""Constraints for tests: small domains, so that bounds often touch."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

from harken.errors import ExpressionError
from harken.model.expressions import Expression
from harken.symmetric.semantics import Boxes, boxes_of

DAY, MOMENT = date(2026, 11, 15), datetime(2026, 11, 15, tzinfo=UTC)
WORDS = ["", "a", "a\0", "ab", "abc", "b", "é", "z"]


SAID: dict[int, tuple[str, Boxes]] = {}
"""By identity, what boxes were made of, for those that can only be asked by texts."""


class Constraints:
    """Texts of constraints from a seed."""

    def __init__(self, seed: object) -> None:
        self._chance = random.Random(str(seed))

    def text(self, most: int = 3) -> str:
        """A constraint of one or more clauses."""
        clauses = [self._clause() for _ in range(self._chance.choice([1, 1, 1, 2]))]
        return " OR ".join(f"({clause})" for clause in clauses)

    def boxes(self) -> tuple[str, Boxes]:
        """A text, and its boxes."""
        text = self.text()
        boxes = boxes_of(text)
        SAID[id(boxes)] = text, boxes
        return text, boxes

    def _clause(self) -> str:
        names = self._chance.sample(
            ["x", "y", "price", "name", "day", "at", "flag", "place"], self._chance.randint(1, 3)
        )
        return " AND ".join(getattr(self, f"_{_KIND[name]}")(name) for name in names)

    def _number(self, name: str) -> str:
        pick = self._chance.choice
        low, high = sorted((self._value(), self._value()))
        return pick(
            [
                f"{name} = {low}",
                f"{name} {pick(['<', '<=', '>', '>=', '!='])} {low}",
                f"{name} BETWEEN {low} AND {high}",
                f"({name} > {low} AND {name} < {high + 1})",
                f"{name} IN ({low}, {high})",
                f"{name} NOT IN ({low}, {high})",
                f"{name} IS NOT NULL",
                f"NOT ({name} < {low})",
            ]
        )

    def _value(self) -> float | int:
        return self._chance.choice([0, 1, 2, 3, 1.0, 1.5, -1, 2**53 + 1, float(2**53)])

    def _string(self, name: str) -> str:
        pick, word = self._chance.choice, self._word
        return pick(
            [
                f"{name} = {word()}",
                f"{name} {pick(['<', '<=', '>', '>=', '!='])} {word()}",
                f"{name} STARTS WITH {word()}",
                f"{name} LIKE 'a%'",
                f"{name} IN ({word()}, {word()})",
            ]
        )

    def _word(self) -> str:
        return "'" + self._chance.choice(WORDS) + "'"

    def _date(self, name: str) -> str:
        days = sorted(DAY + timedelta(days=self._chance.randint(0, 3)) for _ in range(2))
        operator = self._chance.choice(["=", "<", "<=", ">", ">=", "!="])
        return self._chance.choice(
            [
                f"{name} {operator} DATE '{days[0]}'",
                f"{name} BETWEEN DATE '{days[0]}' AND DATE '{days[1]}'",
                f"({name} > DATE '{days[0]}' AND {name} < DATE '{days[1] + timedelta(days=1)}')",
            ]
        )

    def _timestamp(self, name: str) -> str:
        moment = MOMENT + timedelta(microseconds=self._chance.randint(0, 3))
        return f"{name} {self._chance.choice(['=', '<', '<=', '>', '>='])} TIMESTAMP '{moment.isoformat()}'"

    def _bool(self, name: str) -> str:
        return self._chance.choice([f"{name} = TRUE", f"{name} = FALSE", name, f"NOT {name}", f"{name} >= FALSE"])

    def _shape(self, name: str) -> str:
        operator = self._chance.choice(["=", "OVERLAPS", "CONTAINS", "WITHIN"])
        return f"{name} {operator} {self._region()}"

    def _region(self) -> str:
        x, y = self._chance.randint(0, 3), self._chance.randint(0, 3)
        if self._chance.random() < 0.3:
            return f"POINT({x}, {y})"
        return f"BOX({x}, {y}, {x + self._chance.randint(0, 2)}, {y + self._chance.randint(0, 2)})"


_KIND = {
    "x": "number",
    "y": "number",
    "price": "number",
    "name": "string",
    "day": "date",
    "at": "timestamp",
    "flag": "bool",
    "place": "shape",
}


def is_sayable(expression: Expression) -> bool:
    """Whether an expression can be said in points."""
    try:
        boxes_of(expression)
    except ExpressionError:
        return False
    return True
