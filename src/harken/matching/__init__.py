"""Matching: the contract every algorithm obeys, the registry that finds them, and the algorithms."""
