"""Harken: content-based publish/subscribe for Python and Spark.

People register standing subscriptions (boolean conditions over attributes); events arrive; Harken says which
subscriptions each event satisfies. Importing this package loads no kernel, no Spark and no driver.
"""

from typing import TYPE_CHECKING

from harken.deferring import deferred

if TYPE_CHECKING:
    from harken.engine import BatchMatches, Engine, LoadReport
    from harken.errors import HarkenError
    from harken.explanation import Explanation
    from harken.language import parse, to_text
    from harken.matching.parallel.options import Parallel
    from harken.matching.registry import algorithms
    from harken.model.builder import attr
    from harken.model.limits import Limits
    from harken.model.schema import Schema
    from harken.model.subscriptions import Subscription
    from harken.model.values import Box, Point
    from harken.symmetric.auction.auction import Auction
    from harken.symmetric.engine import SymmetricEngine
else:
    __getattr__ = deferred(
        __name__,
        {
            "engine": ("BatchMatches", "Engine", "LoadReport"),
            "errors": ("HarkenError",),
            "explanation": ("Explanation",),
            "language": ("parse", "to_text"),
            "matching.parallel.options": ("Parallel",),
            "matching.registry": ("algorithms",),
            "model.builder": ("attr",),
            "model.limits": ("Limits",),
            "model.schema": ("Schema",),
            "model.subscriptions": ("Subscription",),
            "model.values": ("Box", "Point"),
            "symmetric.auction.auction": ("Auction",),
            "symmetric.engine": ("SymmetricEngine",),
        },
    )

__all__ = [
    "Auction",
    "BatchMatches",
    "Box",
    "Engine",
    "Explanation",
    "HarkenError",
    "Limits",
    "LoadReport",
    "Parallel",
    "Point",
    "Schema",
    "Subscription",
    "SymmetricEngine",
    "algorithms",
    "attr",
    "parse",
    "to_text",
]
__version__ = "0.1.0"
