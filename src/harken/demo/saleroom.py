"""The auction of the demonstration: what is for sale, and who bids what when. Same seed, same sale."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Sale:
    """An offer, and about what a bidder would pay."""

    seller: str
    product: str
    conditions: str
    worth: float


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens: a bid comes, or one is withdrawn."""

    what: Literal["bid", "withdraw"]
    bidder: str
    product: str = ""
    conditions: str = ""


SALES = (
    Sale("Faber", "pencils", "price >= 1.00 AND lot BETWEEN 1000 AND 10000", 1.10),
    Sale("Staedt", "pencils", "price >= 0.95 AND lot BETWEEN 5000 AND 50000", 1.05),
    Sale("Leitz", "camera", "price >= 1800 AND condition IN ('mint', 'used')", 2200),
    Sale("Nordair", "flight", "price >= 60 AND day BETWEEN DATE '2026-12-20' AND DATE '2026-12-27'", 95),
    Sale("Casa", "apartment", "price >= 900 AND rooms = 3 AND place WITHIN BOX(-3.80, 40.35, -3.60, 40.50)", 1250),
)

_BIDDERS = ("Maria", "João", "Aylin", "Tomás", "Chloé", "Ravi", "Ingrid", "Kwame", "Lena", "Petr", "Sofia")


def steps(count: int, seed: int) -> Iterator[Step]:
    """Bids that rise as time goes by; now and then somebody thinks better of it."""
    chance = random.Random(seed)
    standing: list[str] = []
    for number in range(count):
        if standing and chance.random() < 0.08:
            yield Step("withdraw", standing.pop(chance.randrange(len(standing))))
            continue
        sale = chance.choice(SALES)
        eager = 0.75 + 0.6 * number / count + chance.uniform(-0.15, 0.1)
        bidder = f"{chance.choice(_BIDDERS)} {number + 1}"
        standing.append(bidder)
        yield Step("bid", bidder, sale.product, _conditions(sale, eager, chance))


def _conditions(sale: Sale, eager: float, chance: random.Random) -> str:
    said = f"price <= {sale.worth * eager:.2f}"
    if sale.product == "pencils":
        low, high = chance.choice((500, 800, 2000)), chance.choice((2000, 6000, 20000))
        return f"{said} AND lot BETWEEN {low} AND {high}"
    if sale.product == "camera":
        condition = chance.choice(("= 'mint'", "!= 'broken'", "IN ('new', 'used')"))
        return f"{said} AND condition {condition}"
    if sale.product == "flight":
        return f"{said} AND day {chance.choice(('<=', '>='))} DATE '2026-12-{chance.randrange(18, 30)}'"
    x, y = chance.uniform(-3.85, -3.60), chance.uniform(40.30, 40.50)
    place = f"BOX({x:.2f}, {y:.2f}, {x + 0.15:.2f}, {y + 0.1:.2f})"
    return f"{said} AND rooms >= {chance.randrange(1, 5)} AND place WITHIN {place}"
