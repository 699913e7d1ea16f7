"""Functions that tests call in another process."""

from __future__ import annotations

import os
import sys


def describe(given):
    """What was given, and where this runs."""
    print("said aside", file=sys.stderr)
    return {"process": os.getpid(), "given": given, "told": os.environ.get("HARKEN_TOLD")}


def fail():
    """Raise."""
    raise ValueError("no such luck")
