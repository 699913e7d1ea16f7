"""Texts as Spark has them: those with a collation, or a bound on their length, are plain texts to Harken."""

from __future__ import annotations

_OTHERS = ("string ", "varchar(", "char(")


def is_other_text(kind: str) -> bool:
    """Whether a type, as Spark writes it, is one of texts that it compares by rules of its own, or bounds."""
    return kind.startswith(_OTHERS)


def as_plain_text(expression: str) -> str:
    """The plain text of one of them, in Spark's SQL."""
    return f"CAST({expression} AS STRING)"
