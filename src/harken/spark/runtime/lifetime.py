"""A Spark session for as long as a command runs, of which nothing is left: no Java process, no line of its log."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from harken.errors import MissingExtraError
from harken.spark.runtime.failures import is_sparks
from harken.spark.runtime.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST_WORDS = 20
"""Lines of Java's log that are shown when something fails for no known reason."""

PATIENCE = 60.0
"""Seconds that Java gets to end."""


@contextmanager
def temporary_session(
    master: str = "local[*]", *, name: str = "harken", settings: Mapping[str, str] = {}
) -> Iterator[SparkSession]:
    """A session that ends with the block, and its Java process with it.

    If this process has a session already, that one is lent, and left as it is. Java and Python workers would write
    to the terminal, in the middle of whatever is shown there; so what they say goes to a file, and its end is
    printed if the block fails with an error of Spark's. Raises what `local_session` raises.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("Spark", "spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            with _logged_to(log):
                with _complaints_to(log):
                    session = local_session(master, name=name, settings=settings)
                try:
                    yield session
                finally:
                    end(session)
        except Exception as error:
            if is_sparks(error):
                _show_end(log)
            raise


@contextmanager
def _complaints_to(log: IO[str]) -> Iterator[None]:
    """Have processes that are started meanwhile write their errors to a file, for as long as they live."""
    kept = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _logged_to(log: IO[str]) -> Iterator[None]:
    """Have a logger that nobody has set up write to a file: an interrupted call to Java would log itself."""
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def end(session: SparkSession) -> None:
    """Stop a session and its Java process, which would otherwise live as long as this one, or a little longer."""
    from pyspark import SparkContext

    context = session.sparkContext
    gateway = context._gateway
    if SparkContext._active_spark_context is not context or gateway is None:
        return  # somebody was first
    session.stop()
    java = getattr(gateway, "proc", None)
    if java is None:
        return  # Java was there before Python, and started it
    gateway.shutdown()
    java.stdin.close()
    java.wait(timeout=PATIENCE)
    # So that a session can be started again, on a Java of its own.
    SparkContext._gateway = SparkContext._jvm = None


def _show_end(log: IO[str]) -> None:
    log.seek(0)
    lines = log.read().splitlines()[-LAST_WORDS:]
    if lines:
        print("The last that Java said:", *lines, sep="\n  ", file=sys.stderr)
