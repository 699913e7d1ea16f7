"""The demonstrations: a small marketplace with a stream of offers, a large one on Spark, and an auction."""

from harken.demo.auction import show_auction
from harken.demo.pipeline_presentation import show_pipeline
from harken.demo.presentation import show

__all__ = ["show", "show_auction", "show_pipeline"]
