"""The loops over clusters: placing clauses, matching events, and proving that a file holds what they expect."""
