"""The marketplace of the demonstration: who wants what, and what is offered. Same seed, same market."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

import pyarrow as pa

from harken import Point, Schema
from harken.model.values import Type

Offer: TypeAlias = dict[str, object]

SCHEMA = Schema(
    {
        "kind": "string",
        "title": "string",
        "price": "float",
        "city": "string",
        "location": "point",
        "seller.rating": "float",
        "maker": "string",
        "condition": "string",
        "shutter_count": "int",
        "origin": "string",
        "destination": "string",
        "airline": "string",
        "stops": "int",
        "departs": "timestamp",
        "bags_included": "bool",
        "rooms": "int",
        "area": "float",
        "balcony": "bool",
        "pets": "bool",
        "free_from": "date",
    }
)


_ARROW = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.BOOL: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us", "UTC"),
    Type.POINT: pa.list_(pa.float64(), 2),
}


@dataclass(frozen=True, slots=True)
class Wish:
    """A standing subscription as somebody wrote it."""

    person: str
    id: str
    expression: str


WISHES: tuple[Wish, ...] = (
    Wish("Maria", "cheap-sony", "kind = 'camera' AND maker = 'Sony' AND price < 400"),
    Wish("Maria", "lisbon-hop", "kind = 'flight' AND destination = 'Lisbon' AND price < 60 AND stops = 0"),
    Wish("João", "leica-anything", "kind = 'camera' AND title LIKE 'Leica%'"),
    Wish("João", "fresh-shutter", "kind = 'camera' AND shutter_count < 5000 AND condition != 'new'"),
    Wish("Aylin", "berlin-balcony", "kind = 'apartment' AND city = 'Berlin' AND balcony AND price <= 1100"),
    Wish(
        "Aylin",
        "home-for-christmas",
        "origin = 'Berlin' AND departs BETWEEN TIMESTAMP '2026-12-20' "
        "AND TIMESTAMP '2026-12-24 18:00' AND price < 150",
    ),
    Wish(
        "Tomás",
        "madrid-centre",
        "kind = 'apartment' AND location WITHIN BOX(-3.74, 40.39, -3.67, 40.44) AND price < 1500",
    ),
    Wish("Tomás", "bargain-bin", "kind = 'camera' AND price < 120 AND seller.rating >= 4.5"),
    Wish(
        "Chloé", "paris-with-cat", "kind = 'apartment' AND city = 'Paris' AND pets AND rooms >= 2 AND price < 1600"
    ),
    Wish(
        "Chloé",
        "weekend-away",
        "kind = 'flight' AND origin = 'Paris' AND destination IN ('Rome', 'Porto', 'Vienna') AND price < 70",
    ),
    Wish("Ravi", "full-frame", "kind = 'camera' AND title MATCHES '(A7|Z6|R6)' AND price BETWEEN 600 AND 1200"),
    Wish("Ravi", "light-traveller", "kind = 'flight' AND bags_included AND stops = 0 AND price < 90"),
    Wish("Ingrid", "vienna-flat", "kind = 'apartment' AND city = 'Vienna' AND rooms IN (3, 4) AND area > 75"),
    Wish(
        "Ingrid",
        "not-canon",
        "kind = 'camera' AND maker NOT IN ('Canon', 'Sony') AND condition = 'mint' AND price < 500",
    ),
    Wish("Kwame", "porto-soon", "city = 'Porto' AND free_from < DATE '2026-12-15' AND price < 900"),
    Wish("Kwame", "any-nikon-z", "maker = 'Nikon' AND title CONTAINS ' Z' AND price < 1000"),
    Wish("Lena", "studio", "kind = 'apartment' AND rooms = 1 AND price < 600"),
    Wish("Lena", "morning-to-rome", "destination = 'Rome' AND price < 80 AND airline != 'Cheapair'"),
    Wish("Petr", "film-is-not-dead", "kind = 'camera' AND title ENDS WITH '(film)'"),
    Wish("Petr", "big-flat", "kind = 'apartment' AND area >= 130 AND price < 2200"),
    Wish("Sofia", "unrated-sellers", "kind = 'camera' AND seller.rating IS NULL AND price < 250"),
    Wish(
        "Sofia",
        "berlin-or-vienna",
        "kind = 'apartment' AND (city = 'Berlin' OR city = 'Vienna') AND pets AND NOT (price > 1200)",
    ),
    Wish(
        "Yusuf", "near-the-sea", "kind = 'apartment' AND city IN ('Lisbon', 'Porto') AND balcony AND price < 1000"
    ),
    Wish("Yusuf", "fuji", "maker = 'Fujifilm' AND (price < 450 OR (condition = 'mint' AND price < 700))"),
    Wish("Hanna", "long-weekend", "kind = 'flight' AND stops <= 1 AND price < 40"),
    Wish("Hanna", "trusted-mint", "condition = 'mint' AND seller.rating >= 4.9 AND price < 800"),
    Wish("Olu", "lisbon-family", "kind = 'apartment' AND city = 'Lisbon' AND rooms >= 4 AND price < 1900"),
    Wish("Olu", "new-year", "destination = 'Vienna' AND departs >= TIMESTAMP '2026-12-28' AND stops = 0"),
    Wish("Marek", "cheap-square-metres", "kind = 'apartment' AND area > 90 AND price < 1000"),
    Wish("Marek", "canon-used", "maker = 'Canon' AND condition = 'used' AND price < 200"),
    Wish("Giulia", "back-to-rome", "origin = 'Madrid' AND destination = 'Rome' AND price < 100"),
    Wish("Giulia", "paris-by-the-canal", "kind = 'apartment' AND location WITHIN BOX(2.35, 48.86, 2.39, 48.89)"),
)

_CITIES = {
    "Berlin": (13.40, 52.52),
    "Lisbon": (-9.14, 38.72),
    "Madrid": (-3.70, 40.42),
    "Paris": (2.35, 48.86),
    "Porto": (-8.61, 41.15),
    "Rome": (12.50, 41.90),
    "Vienna": (16.37, 48.21),
}
_CAMERAS = {
    "Canon": ("EOS R6", "EOS 80D", "AE-1 (film)"),
    "Fujifilm": ("X-T30", "X100V", "GFX 50S"),
    "Leica": ("Q2", "M6 (film)", "D-Lux 7"),
    "Nikon": ("Z6", "Z50", "FM2 (film)"),
    "Sony": ("A7 III", "A6400", "RX100"),
}
_AIRLINES = ("Blueways", "Cheapair", "Meridian")
_CONDITIONS = ("new", "mint", "used", "used")


def robots(count: int, seed: int) -> Iterator[Wish]:
    """Subscriptions as programs write them: few shapes, many constants."""
    chance = random.Random(seed)
    shapes = (_robot_camera, _robot_flight, _robot_apartment)
    for number in range(count):
        yield Wish("robot", f"robot-{number:04}", shapes[number % len(shapes)](chance))


def _robot_camera(chance: random.Random) -> str:
    maker = chance.choice(list(_CAMERAS))
    return f"kind = 'camera' AND maker = '{maker}' AND price < {chance.randrange(60, 500)}"


def _robot_flight(chance: random.Random) -> str:
    origin, destination = chance.sample(list(_CITIES), 2)
    return (
        f"kind = 'flight' AND origin = '{origin}' AND destination = '{destination}' "
        f"AND price < {chance.randrange(20, 120)}"
    )


def _robot_apartment(chance: random.Random) -> str:
    city, rooms, price = chance.choice(list(_CITIES)), chance.randrange(1, 5), chance.randrange(400, 1100)
    return (
        f"kind = 'apartment' AND city = '{city}' AND rooms >= {rooms} AND price BETWEEN {price - 300} AND {price}"
    )


def offers(count: int, seed: int) -> list[Offer]:
    """What comes in, in order."""
    chance = random.Random(seed)
    kinds = (_camera, _camera, _flight, _apartment)
    return [chance.choice(kinds)(chance) for _ in range(count)]


def as_columns(batch: list[Offer]) -> pa.Table:
    """Offers as a table with a column for every attribute."""
    return pa.table(
        {name: pa.array([_cell(offer, name) for offer in batch], _ARROW[SCHEMA[name]]) for name in SCHEMA}
    )


def _cell(offer: Offer, name: str) -> object:
    first, _, inner = name.partition(".")
    value = offer.get(first)
    if inner and isinstance(value, dict):
        value = value.get(inner)
    return (value.x, value.y) if isinstance(value, Point) else value


def _camera(chance: random.Random) -> Offer:
    maker = chance.choice(list(_CAMERAS))
    condition = chance.choice(_CONDITIONS)
    offer: Offer = {
        "kind": "camera",
        "title": f"{maker} {chance.choice(_CAMERAS[maker])}",
        "maker": maker,
        "condition": condition,
        "price": _price(chance, 450, 0.6),
        **_place(chance),
    }
    if condition != "new" and chance.random() < 0.7:
        offer["shutter_count"] = chance.randrange(500, 90_000)
    # A new seller has no rating yet: the attribute is missing, not zero.
    offer["seller"] = {"rating": round(chance.uniform(3.5, 5.0), 1)} if chance.random() < 0.85 else {}
    return offer


def _flight(chance: random.Random) -> Offer:
    origin, destination = chance.sample(list(_CITIES), 2)
    departs = datetime(2026, 12, 1, 6, tzinfo=UTC) + timedelta(minutes=15 * chance.randrange(3_000))
    return {
        "kind": "flight",
        "title": f"{origin} → {destination}, {departs:%d %b}",
        "origin": origin,
        "destination": destination,
        "airline": chance.choice(_AIRLINES),
        "stops": chance.choice((0, 0, 1, 2)),
        "departs": departs,
        "bags_included": chance.random() < 0.4,
        "price": _price(chance, 95, 0.5),
    }


def _apartment(chance: random.Random) -> Offer:
    rooms = chance.randrange(1, 6)
    area = round(rooms * chance.uniform(18, 34), 1)
    offer: Offer = {
        "kind": "apartment",
        "rooms": rooms,
        "area": area,
        "balcony": chance.random() < 0.4,
        "free_from": date(2026, 12, 1) + timedelta(days=chance.randrange(60)),
        "price": _price(chance, 350 + 12 * area, 0.3),
        **_place(chance),
    }
    if chance.random() < 0.6:
        offer["pets"] = chance.random() < 0.5
    offer["title"] = f"{rooms} room{'s' if rooms > 1 else ''}, {area:.0f} m², {offer['city']}"
    return offer


def _price(chance: random.Random, usual: float, spread: float) -> float:
    return float(round(usual * chance.lognormvariate(0, spread)))


def _place(chance: random.Random) -> Offer:
    city = chance.choice(list(_CITIES))
    x, y = _CITIES[city]
    return {"city": city, "location": Point(round(chance.gauss(x, 0.03), 4), round(chance.gauss(y, 0.02), 4))}
