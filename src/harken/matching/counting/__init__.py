"""The counting algorithm: for every clause, how many of its predicates an event satisfies."""
