"""A marketplace too large for one list: what a hundred thousand people wait for, and a million offers, as columns.

The wishes exist twice, made of the same numbers: as texts, which is what Harken reads, and as a table with a
column per condition and nulls where there is none, which is what one would join with in SQL. Same seed, same
market.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask: TypeAlias = npt.NDArray[np.bool_]

# fmt: off
CITIES = (
    "Amsterdam", "Athens", "Barcelona", "Berlin", "Bergen", "Bologna", "Bordeaux", "Bratislava", "Brussels",
    "Budapest", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva", "Hamburg", "Helsinki", "Kraków",
    "Lisbon", "Ljubljana", "London", "Lyon", "Madrid", "Marseille", "Milan", "Munich", "Naples", "Oslo",
    "Palermo", "Paris", "Porto", "Prague", "Riga", "Rome", "Seville", "Stockholm", "Tallinn", "Turin",
    "Valencia", "Vienna",
)
# fmt: on
CAMERAS = (
    ("Canon", "EOS R6"),
    ("Canon", "EOS 80D"),
    ("Canon", "AE-1"),
    ("Fujifilm", "X-T30"),
    ("Fujifilm", "X100V"),
    ("Fujifilm", "GFX 50S"),
    ("Leica", "Q2"),
    ("Leica", "M6"),
    ("Leica", "D-Lux 7"),
    ("Nikon", "Z6"),
    ("Nikon", "Z50"),
    ("Nikon", "FM2"),
    ("Olympus", "OM-1"),
    ("Olympus", "PEN-F"),
    ("Pentax", "K-1"),
    ("Pentax", "K1000"),
    ("Sony", "A7 III"),
    ("Sony", "A6400"),
    ("Sony", "RX100"),
    ("Sony", "ZV-1"),
)
CONDITIONS = ("new", "mint", "good", "used")
# fmt: off
NAMES = (
    "Aylin", "Chloé", "Giulia", "Hanna", "Ingrid", "João", "Kwame", "Lena", "Marek", "Maria", "Mateo",
    "Nadia", "Olu", "Petr", "Ravi", "Sofia", "Tomás", "Wei", "Yusuf", "Zoë",
)
# fmt: on

FIRST_DAY = (date(2026, 12, 1) - date(1970, 1, 1)).days
DAYS = 120
USUAL_PRICE = {"camera": 450.0, "flight": 110.0, "apartment": 1_100.0}
KINDS = tuple(USUAL_PRICE)


class _Draw:
    """Random columns of one length."""

    def __init__(self, count: int, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._count = count

    def whole(self, low: int, high: int) -> npt.NDArray[np.int64]:
        """Numbers from `low` up to, not including, `high`."""
        return self._chance.integers(low, high, self._count)

    def some(self, part: float) -> Mask:
        """A part of the rows."""
        return self._chance.random(self._count) < part

    def kinds(self) -> npt.NDArray[np.int64]:
        """A kind of offer for each row."""
        return self._chance.choice(len(KINDS), self._count, p=(0.4, 0.3, 0.3))

    def prices(self, kinds: npt.NDArray[np.int64], share: float = 1.0) -> npt.NDArray[np.float64]:
        """Prices about a share of what is usual for each kind."""
        usual = np.array(list(USUAL_PRICE.values()))[kinds]
        return np.round(share * usual * self._chance.lognormal(0, 0.4, self._count))


def offers(count: int, seed: int) -> pa.Table:
    """Offers with ids from 0; what a kind of offer does not have is null."""
    draw = _Draw(count, seed)
    kinds = draw.kinds()
    camera, flight, apartment = (kinds == at for at in range(len(KINDS)))
    models = draw.whole(0, len(CAMERAS))
    origin = draw.whole(0, len(CITIES))
    away = (origin + draw.whole(1, len(CITIES))) % len(CITIES)
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "kind": _words(KINDS, kinds),
            "maker": _words([maker for maker, _ in CAMERAS], models, camera),
            "model": _words([model for _, model in CAMERAS], models, camera),
            "condition": _words(CONDITIONS, draw.whole(0, len(CONDITIONS)), camera),
            "city": _words(CITIES, draw.whole(0, len(CITIES)), ~flight),
            "origin": _words(CITIES, origin, flight),
            "destination": _words(CITIES, away, flight),
            "departs": _days(draw.whole(0, DAYS), flight),
            "stops": _where(draw.whole(0, 3), flight),
            "rooms": _where(draw.whole(1, 7), apartment),
            "price": pa.array(draw.prices(kinds)),
        }
    )


def wishes(count: int, seed: int) -> pa.Table:
    """Conditions with ids from 0 and owners: a column for each, and null where a wish has none."""
    draw = _Draw(count, seed)
    kinds = draw.kinds()
    # Some take anything, so long as it is near and nearly free.
    anything = draw.some(0.05)
    camera, flight, apartment = ((kinds == at) & ~anything for at in range(len(KINDS)))
    models = draw.whole(0, len(CAMERAS))
    origin = draw.whole(0, len(CITIES))
    away = (origin + draw.whole(1, len(CITIES))) % len(CITIES)
    first = draw.whole(0, DAYS)
    most = np.where(anything, draw.whole(15, 60), draw.prices(kinds, share=0.45))
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "owner": _owners(draw.whole(0, len(NAMES)), draw.whole(1, 10_000)),
            "kind": _words(KINDS, kinds, camera | apartment | (flight & draw.some(0.5))),
            "maker": _words([maker for maker, _ in CAMERAS], models, camera),
            "model": _words([model for _, model in CAMERAS], models, camera & draw.some(0.8)),
            "condition": _words(CONDITIONS, draw.whole(0, len(CONDITIONS)), camera & draw.some(0.4)),
            "city": _words(CITIES, draw.whole(0, len(CITIES)), ~flight),
            "origin": _words(CITIES, origin, flight),
            "destination": _words(CITIES, away, flight & draw.some(0.9)),
            "departs_from": _days(first, flight & (first % 4 > 0)),
            "departs_until": _days(first + draw.whole(3, 15), flight & (first % 4 > 0)),
            "most_stops": _where(draw.whole(0, 2), flight & draw.some(0.5)),
            "least_rooms": _where(draw.whole(3, 7), apartment),
            "least_price": _where(np.round(most * 0.8), apartment & draw.some(0.7)),
            "most_price": pa.array(most),
        }
    )


ASKED = (
    ("kind", "=", "kind"),
    ("maker", "=", "maker"),
    ("model", "=", "model"),
    ("condition", "=", "condition"),
    ("city", "=", "city"),
    ("origin", "=", "origin"),
    ("destination", "=", "destination"),
    ("departs", ">=", "departs_from"),
    ("departs", "<=", "departs_until"),
    ("stops", "<=", "most_stops"),
    ("rooms", ">=", "least_rooms"),
    ("price", ">=", "least_price"),
    ("price", "<=", "most_price"),
)
"""Attribute of an offer, operator, and the column of a wish that it is compared with."""


def as_subscriptions(wanted: pa.Table) -> pa.Table:
    """Wishes as people write them: `id`, `owner` and `expression`."""
    parts = [_part(attribute, operator, wanted.column(name)) for attribute, operator, name in ASKED]
    expression = pc.binary_join_element_wise(*parts, " AND ", null_handling="skip")
    return pa.table({"id": wanted.column("id"), "owner": wanted.column("owner"), "expression": expression})


def as_join_condition() -> str:
    """The same in SQL, with an offer `o` and a wish `w`: a condition that a wish has not is no condition."""
    return " AND ".join(f"(w.{name} IS NULL OR o.{attribute} {op} w.{name})" for attribute, op, name in ASKED)


def described(offer: dict[str, Any]) -> str:
    """An offer for people."""
    price = f"€ {offer['price']:,.0f}"
    if offer["kind"] == "camera":
        return f"{offer['maker']} {offer['model']}, {offer['condition']}, {offer['city']}, {price}"
    if offer["kind"] == "flight":
        stops = f"{offer['stops']} stop{'' if offer['stops'] == 1 else 's'}"
        return f"{offer['origin']} → {offer['destination']}, {offer['departs']:%d %b}, {stops}, {price}"
    return f"{offer['rooms']} room{'s' if offer['rooms'] > 1 else ''} in {offer['city']}, {price}"


def _part(attribute: str, operator: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """`attribute operator constant` for each row; null where there is no constant."""
    if pa.types.is_date(column.type):
        before, text, after = "DATE '", column.cast(pa.string()), "'"
    elif pa.types.is_floating(column.type):
        before, text, after = "", column.cast(pa.int64()).cast(pa.string()), ""
    elif pa.types.is_integer(column.type):
        before, text, after = "", column.cast(pa.string()), ""
    else:
        before, text, after = "'", column, "'"
    return pc.binary_join_element_wise(f"{attribute} {operator} {before}", text, after, "")


def _words(words: Sequence[str], at: npt.NDArray[np.int64], where: Mask | None = None) -> pa.Array:
    found = pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), pa.array(words)).cast(pa.string())
    return found if where is None else pc.if_else(pa.array(where), found, None)


def _days(days: npt.NDArray[np.int64], where: Mask) -> pa.Array:
    return pa.array(FIRST_DAY + days, pa.int32(), mask=~where).cast(pa.date32())


def _where(numbers: npt.NDArray[Any], where: Mask) -> pa.Array:
    return pa.array(numbers, mask=~where)


def _owners(names: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pc.binary_join_element_wise(_words(NAMES, names), pa.array(numbers).cast(pa.string()), " ")
