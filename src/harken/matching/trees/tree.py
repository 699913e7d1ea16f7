"""A search tree that asks property by property (Kale et al. 2005, section 3, after Aguilera et al. 1999)."""

from __future__ import annotations

from harken.matching.trees.matcher import WAITING, SearchTreeMatcher


class TreeMatcher(SearchTreeMatcher):
    """One tree of all clauses, but for those that came last: TreeMatch.

    Its work for an event is the number of nodes whose branch holds, and of their neighbours. That grows with the
    number of clauses, more slowly than counting does: what begins alike is asked once.
    """

    def __init__(self, *, waiting: int = WAITING) -> None:
        """Up to `waiting` clauses are in no tree; 0 makes trees at every change."""
        super().__init__(waiting)
