"""Matching: which subscriptions an event satisfies.

In come compiled subscriptions, under slots, and events; out go the slots that match. `contract` says what an
algorithm is, `registry` finds one by its name, and `reference` is the judge of all others. From the bottom up:

- `kernels` and `saving`: the arrays that kernels share, and how an index lies on disk
- `events`: dictionaries and tables as they come, checked and put into columns
- `predicates`: what clauses ask, each predicate once, by dimension and in order
- `encoding`: events in the numbers of those predicates, and what all matchers of such numbers have in common
- `structures`: hash tables, trees that find intervals, and clauses, for whoever needs them
- `clusters`, `counting`, `pubsub`, `trees`: the algorithms; `auto` chooses between them
- `identities`: the ids of subscriptions, and their slots
"""
