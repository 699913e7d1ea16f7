"""Text to expression and back: the WHERE language, its parser and its printer."""

from harken.language.parser import parse
from harken.language.printer import to_text

__all__ = ["parse", "to_text"]
