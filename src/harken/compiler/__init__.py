"""Text to compiled form, in bulk: a shape is parsed once, and its literals are bound columnwise."""

from harken.compiler.bulk import Compilation, Reject, Texts, compile_texts, read_expression
from harken.compiler.plans import PlanCache

__all__ = ["Compilation", "PlanCache", "Reject", "Texts", "compile_texts", "read_expression"]
