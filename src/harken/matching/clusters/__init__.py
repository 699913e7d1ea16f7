"""Fabret's family: clauses lie together in clusters, under keys that an event must have for them to match.

`clusters` holds them, `matcher` walks them for an event or a batch, and `propagation`, `static` and `dynamic` say
which keys there are: of one predicate, chosen for what is there, or following what comes.
"""
