"""Text to compiled form, in bulk: by kernels that read any shape, or by a plan for each, or one by one."""

from harken.compiler.bulk import Compilation, Reading, Reject, Texts, compile_texts, read_expression, read_texts
from harken.compiler.plans import PlanCache

__all__ = [
    "Compilation",
    "PlanCache",
    "Reading",
    "Reject",
    "Texts",
    "compile_texts",
    "read_expression",
    "read_texts",
]
