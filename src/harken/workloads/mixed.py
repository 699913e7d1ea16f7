"""Subscriptions of the whole language and events to match: not after a paper, but to meet whatever can be asked.

Most subscriptions ask for the values of a few keys, and which keys are in fashion changes; others ask for ranges,
sets, strings, dates, places, and for what is missing. Orders are numbered on and on, so that constants come that
were never there before while others are never asked for again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from harken.model.values import EventValue, Point

FlatEvent = dict[str, EventValue]

KEYS = tuple(f"k{number:02d}" for number in range(16))
IN_FASHION = 5
VALUES = 16
RECENT = 5_000
"""Orders that events are about: the latest so many."""

_MAKERS = tuple(
    f"{name} {number}" for name in ("Sony", "Nikon", "Leica", "O'Hara", "Größe") for number in range(8)
)
_MODELS = tuple(f"{series} {number}" for series in ("EOS", "Alpha", "M") for number in range(60))
_DAWN = datetime(2026, 1, 1, tzinfo=UTC)
_SIDE = 20

_SCHEMA = pa.schema(
    [
        *((key, pa.int32()) for key in KEYS),
        ("order", pa.int64()),
        ("price", pa.float64()),
        ("stock", pa.int64()),
        ("maker", pa.string()),
        ("model", pa.string()),
        ("sold", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("place", pa.list_(pa.float64(), 2)),
    ]
)


def event_table(events: Sequence[FlatEvent]) -> pa.Table:
    """Events as an Arrow table; what is missing is null."""
    rows = [
        {name: value.bounds[:2] if isinstance(value, Point) else value for name, value in event.items()}
        for event in events
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


class Mixed:
    """Texts and events from a seed. Each call makes another one; `drift` changes what is in fashion."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._fashion = 0
        self._orders = RECENT

    def drift(self) -> None:
        """Let subscriptions ask for other keys from now on."""
        self._fashion += 3

    def text(self) -> str:
        """A subscription: one clause, several, or a negation."""
        roll = self._chance.random()
        if roll < 0.80:
            return self._clause()
        if roll < 0.92:
            return f"{self._clause()} OR {self._clause()}"
        if roll < 0.96:
            return f"{self._keys(2)} AND NOT ({self._other()} AND {self._other()})"
        return f"{self._keys(1)} AND ({self._other()} OR {self._other()})"

    def event(self) -> FlatEvent:
        """An event; each attribute is missing now and then."""
        chance = self._chance
        values: dict[str, EventValue] = {
            **{key: chance.randint(1, VALUES) for key in KEYS},
            "order": self._orders - chance.randrange(RECENT),
            "price": chance.randrange(4_000) / 4,
            "stock": chance.randrange(10_000),
            "maker": chance.choice(_MAKERS),
            "model": chance.choice(_MODELS),
            "sold": chance.random() < 0.5,
            "day": self._moment().date(),
            "at": self._moment(),
            "place": Point(chance.randrange(_SIDE), chance.randrange(_SIDE)),
        }
        return {name: value for name, value in values.items() if chance.random() < 0.9}

    def _clause(self) -> str:
        roll = self._chance.random()
        if roll < 0.10:
            self._orders += 1
            return f"order = {self._orders}"
        if roll < 0.12:
            return " AND ".join(self._other() for _ in range(3))
        others = "".join(f" AND {self._other()}" for _ in range(self._chance.randrange(3)))
        return self._keys(self._chance.randint(2, 4)) + others

    def _keys(self, count: int) -> str:
        among = [KEYS[(self._fashion + at) % len(KEYS)] for at in range(IN_FASHION)]
        picked = sorted(self._chance.sample(among, count))
        return " AND ".join(f"{key} = {self._chance.randint(1, VALUES)}" for key in picked)

    def _other(self) -> str:
        forms: tuple[Callable[[], str], ...] = (self._number, self._set, self._string, self._time, self._rest)
        return self._chance.choice(forms)()

    def _number(self) -> str:
        low = self._chance.randrange(900)
        high = low + self._chance.randrange(1, 100)
        forms = (
            f"price < {high}.5",
            f"price BETWEEN {low} AND {high}",
            f"price != {low}",
            f"stock >= {10 * low}",
            f"stock IN RANGE [{10 * low}, {10 * high})",
            f"stock NOT BETWEEN {low} AND {high}",
        )
        return self._chance.choice(forms)

    def _set(self) -> str:
        makers = ", ".join(_quoted(maker) for maker in self._chance.sample(_MAKERS, 3))
        values = ", ".join(str(self._chance.randint(1, VALUES)) for _ in range(4))
        key = self._chance.choice(KEYS)
        return self._chance.choice((f"maker IN ({makers})", f"maker NOT IN ({makers})", f"{key} IN ({values})"))

    def _string(self) -> str:
        maker, model = self._chance.choice(_MAKERS), self._chance.choice(_MODELS)
        forms = (
            f"maker = {_quoted(maker)}",
            f"maker != {_quoted(maker)}",
            f"model STARTS WITH {_quoted(model[: self._chance.randint(1, 5)])}",
            f"model ENDS WITH {_quoted(model[-1])}",
            f"model CONTAINS {_quoted(model[1:3])}",
            f"model LIKE {_quoted(model[0] + '%' + model[-1])}",
            f"model MATCHES {_quoted(model[-1] + '$')}",
            f"model > {_quoted(model)}",
        )
        return self._chance.choice(forms)

    def _time(self) -> str:
        moment = self._moment()
        forms = (
            f"day = DATE '{moment:%Y-%m-%d}'",
            f"day >= DATE '{moment:%Y-%m-%d}'",
            f"at < TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}Z'",
        )
        return self._chance.choice(forms)

    def _rest(self) -> str:
        x, y, key = self._chance.randrange(_SIDE), self._chance.randrange(_SIDE), self._chance.choice(KEYS)
        forms = (
            f"place WITHIN BOX({x}, {y}, {x + 4}, {y + 4})",
            f"place NOT WITHIN BOX({x}, 0, {x + 4}, {_SIDE})",
            f"{key} IS NULL",
            f"EXISTS {key}",
            f"{key} != {self._chance.randint(1, VALUES)}",
            "sold",
            "NOT sold",
        )
        return self._chance.choice(forms)

    def _moment(self) -> datetime:
        return _DAWN + timedelta(hours=self._chance.randrange(24 * 60))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
