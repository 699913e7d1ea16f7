"""Clauses as rows of predicates, as Tomasic et al. 2006 keep them (section 3)."""
