"""Harken: content-based publish/subscribe for Python and Spark.

People register standing subscriptions (boolean conditions over attributes); events arrive; Harken says which
subscriptions each event satisfies. Importing this package loads no kernel, no Spark and no driver.
"""

from harken.engine import BatchMatches, Engine, LoadReport
from harken.errors import HarkenError
from harken.explanation import Explanation
from harken.language import parse, to_text
from harken.matching.registry import algorithms
from harken.model.builder import attr
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.subscriptions import Subscription
from harken.model.values import Box, Point
from harken.symmetric.auction import Auction
from harken.symmetric.engine import SymmetricEngine

__all__ = [
    "Auction",
    "BatchMatches",
    "Box",
    "Engine",
    "Explanation",
    "HarkenError",
    "Limits",
    "LoadReport",
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
