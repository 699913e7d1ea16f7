"""How many of everything there can be: what indexes keep in 32 bits, and how far those reach.

Whoever writes a number into fewer bits than it might need asks here first, before anything is changed. The limits
are looked up when they are asked for, so that a test can lower them.
"""

from __future__ import annotations

from harken.errors import CapacityError

SLOTS = 2**31 - 1
"""Subscriptions of an engine. Entry ids have one bit for something else (matching/kernels/layout.py)."""

CLAUSES = 2**31 - 2
"""Clauses of an index, and owners of those that are shared."""

WORDS = 2**32 - 1
"""Predicates of all clauses together, where each clause has the place of its first."""

TREE_WORDS = 2**31 - 1
"""Words of one search tree, in which nodes tell how far it is to the next."""

LINES = 2**31 - 1
"""Cache lines of clusters: the place of a block has one bit for something else."""

PREDICATES = 2**31 - 2
"""Distinct predicates and members of their sets, together: so there are no more constants either."""

DIMENSIONS = 2**23 - 1
"""Attributes and kinds: each may have 256 cells, and those are numbered."""

CONSTRAINTS = 2**30 - 1
"""Constraints of one side: a slot and a flag are one word."""

SEGMENT_WORDS = 2**31 - 1
"""Words of one segment."""

CONSTANTS = 2**30 - 1
"""Constants of a segment. Each has two codes."""

LOADS = 2**31 - 1
"""Tables that were ever loaded into one side."""

OFFSETS = 2**31 - 1
"""Predicates, clauses and bytes of strings in one chunk of the compiled form, as Arrow counts them."""


def check(what: str, wanted: int, limit: int, suggestion: str | None = None) -> None:
    """CapacityError if there would be more of something than there can be."""
    if wanted > limit:
        raise CapacityError(what, wanted, limit, suggestion=suggestion)
