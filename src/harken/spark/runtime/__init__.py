"""Spark itself: a session, its Java, what becomes of it, and whether its workers can run Harken."""
