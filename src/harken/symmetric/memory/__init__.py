"""Symmetric matching in memory: millions of constraints in flat arrays, one publication in microseconds."""

from harken.symmetric.memory.store import MemoryStore

__all__ = ["MemoryStore"]
