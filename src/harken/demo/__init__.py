"""The demonstration: a small marketplace, its standing subscriptions, and a stream of offers."""

from harken.demo.presentation import show

__all__ = ["show"]
