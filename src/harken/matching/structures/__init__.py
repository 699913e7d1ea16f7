"""Structures that algorithms are built of: hash tables, trees that find intervals, tries, R-trees, and clauses.

Those that find intervals hold many trees in one set of flat arrays. An **item** is a number that its user gives a
meaning, and there is a place for each in every array.
"""
