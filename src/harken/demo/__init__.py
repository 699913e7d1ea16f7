"""The demonstration: a small marketplace with a stream of offers, and a large one on Spark."""

from harken.demo.pipeline_presentation import show_pipeline
from harken.demo.presentation import show

__all__ = ["show", "show_pipeline"]
