"""Expressions in normal form, and the compiled form that engines, databases and Spark share."""
