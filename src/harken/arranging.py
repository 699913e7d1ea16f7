"""What an engine does for itself, beside those who match: in a thread that holds up nobody's exit."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable


def start_beside(work: weakref.WeakMethod[Callable[[], None]]) -> bool:
    """Do some work of an engine in a thread of its own, unless the engine goes first. Failing, it is told.

    False without room for a thread, or when the interpreter is about to end: then nothing is done.
    """
    try:
        threading.Thread(target=_do, args=(work,), name="harken-arranging", daemon=True).start()
    except RuntimeError:
        return False
    return True


def _do(work: weakref.WeakMethod[Callable[[], None]]) -> None:
    try:
        method = work()
        if method is not None:
            method()
    except Exception as error:  # it was to be quicker, and is as before
        logging.getLogger("harken").warning(
            "the index could not be arranged, and stays as it is: %s: %s", type(error).__name__, error
        )
