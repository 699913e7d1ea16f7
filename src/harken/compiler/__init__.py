"""Text to compiled form, in bulk: a shape is parsed once, and its literals are bound columnwise."""

from harken.compiler.bulk import Compilation, Reject, Texts, compile_texts, read_expression

__all__ = ["Compilation", "Reject", "Texts", "compile_texts", "read_expression"]
