"""What went wrong in a Spark job, in one line.

An error that Harken raises in a task comes back as text, inside a Python traceback, inside Java's; and what Spark
itself has to say stands among hundreds of lines. Both are found here, for people who cannot use the rest. Nothing
here imports pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from harken.errors import HarkenError, TaskError

_OURS = re.compile(r"\bharken\.errors\.\w+: (.+)")
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] (?P<said>.+)")
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )+(.+)", re.MULTILINE)
_JAVAS = re.compile(r"^: (?:[\w.$]+: )+(.+)", re.MULTILINE)
"""An error of Java's that has no other cause."""
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")
_SPARKS = ("pyspark.", "py4j.")


def is_sparks(error: BaseException) -> bool:
    """Whether an error came out of Spark."""
    return type(error).__module__.startswith(_SPARKS)


def said(error: BaseException) -> str | None:
    """What an error that came out of Spark is about; None if it is not Spark's, or says nothing of use.

    An error of Harken's that a task raised is told in its own words. Of others it is Spark's error conditions,
    from the outermost, which may name a file, and what Java gives as their last cause.
    """
    if not is_sparks(error):
        return None
    try:
        text = str(error)
    except OSError:  # of some errors Java has the text, and it has ended
        return None
    # The last one: where errors were chained, the earlier are what it was made of.
    ours: list[str] = _OURS.findall(text)
    if ours:
        return ours[-1].strip()
    conditions: dict[str, str] = {}
    for found in _CONDITION.finditer(text):
        conditions.setdefault(found["name"], _STATE.sub("", found["said"]).strip().rstrip("."))
    causes = [cause.strip().rstrip(".") for cause in _CAUSE.findall(text) if not _CONDITION.match(cause)]
    if not conditions and not causes:
        causes = _JAVAS.findall(text)
    told = [*conditions.values(), *causes[-1:]]
    return f"Spark says: {'; '.join(told)}" if told else None


@contextmanager
def retold() -> Iterator[None]:
    """Errors that come out of Spark inside become a TaskError of one line, if they can be told in one."""
    try:
        yield
    except HarkenError:
        raise
    except Exception as error:
        message = said(error)
        if message is None:
            raise
        raise TaskError(message) from error
