"""Whether Spark's workers run a Python that has this Harken: asked once per session, before its first job.

Where PYSPARK_PYTHON is not set, workers run whatever `python3` they find, and what comes back of a job then is an
ImportError from deep inside of Spark.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from harken.errors import WorkerPythonError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ASKED: set[str] = set()
"""The sessions whose workers are known to be good."""

_UNFIT = re.compile(
    r"\[?PYTHON_VERSION_MISMATCH\][^\n]*|Cannot run program \"[^\"]+\"[^\n]*|No module named [^\n]*|"
    r"Python in worker has different version[^\n]*"
)
"""What Spark says of a Python that does not even come to answer."""


def check_workers(spark: SparkSession) -> None:
    """WorkerPythonError unless workers have this very version of Harken. One tiny job, for the first call."""
    session = _name(spark)
    if session not in _ASKED:
        _ask(spark)
        _ASKED.add(session)


def _name(spark: SparkSession) -> str:
    """What is the same for all handles of a session: every batch of a stream comes with one of its own."""
    context = getattr(spark, "_sc", None)
    return str(spark.session_id if context is None else context.applicationId)  # type: ignore[attr-defined]  # Connect's


def _ask(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions

    from harken import __version__

    asked = functions.udf(_probe(), "string", useArrow=False)
    try:
        (row,) = spark.range(0, 1, 1, 1).select(asked("id")).collect()
    except Exception as error:
        unfit = _UNFIT.search(str(error))
        if unfit is None or not (isinstance(error, PySparkException) or type(error).__module__ == "py4j.protocol"):
            raise
        raise _refusal(f"Spark's workers run a Python that cannot be used: {unfit[0]}") from error
    answer = json.loads(row[0])
    python = f"Spark's workers run {answer['python']} (Python {answer['version']})"
    if answer["harken"] is None:
        raise _refusal(f"{python}, which has no Harken: {answer['reason']}")
    if answer["harken"] != __version__:
        raise _refusal(f"{python}, which has Harken {answer['harken']}; here it is {__version__}")


def _refusal(said: str) -> WorkerPythonError:
    advice = (
        f"before the session is started, set PYSPARK_PYTHON to a Python that has Harken, on every machine; "
        f"here that is {sys.executable}"
    )
    return WorkerPythonError(said, suggestion=advice)


def _probe() -> Callable[[int], str]:
    """A function that workers can run though they lack Harken: it travels by its code, not by its name."""

    def probe(_: int) -> str:
        import importlib
        import json
        import platform
        import sys

        answer = {"python": sys.executable, "version": platform.python_version(), "harken": None, "reason": None}
        try:
            import harken

            importlib.import_module("harken.spark.matching.tasks")
        except Exception as error:
            answer["reason"] = f"{type(error).__name__}: {error}"
        else:
            answer["harken"] = harken.__version__
        return json.dumps(answer)

    probe.__module__ = "__main__"
    return probe
