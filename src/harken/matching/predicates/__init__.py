"""What clauses ask: compiled subscriptions go in, numbered predicates and the arrays that kernels test come out.

A **dimension** is an attribute and a kind of value. Its constants are coded, for equality, and labelled in order,
for comparison; predicates of all subscriptions are held once, in `table`.
"""
