"""Siena's forwarding: constraints found by name and by operator, filters counted (Carzaniga and Wolf 2003)."""
