"""Symmetric matching: publications and subscriptions are both constraints, and meet if both accept each other.

`semantics` and `reference` say what is right and `contract` what a store is; `memory` and `database` are stores,
`engine` and `auction` what people use. Constraints go in, pairs and notices come out.
"""
