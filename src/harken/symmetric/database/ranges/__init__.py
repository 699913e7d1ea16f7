"""Clauses as rows with a range for each attribute: the quicker of the two encodings."""
