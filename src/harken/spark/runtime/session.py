"""A Spark session on this machine, set up the way Harken wants it.

The library takes any session; this one is for those who have none: the command line, the tests, a first try. It
keeps to the local network interface, has no web page and is quiet. Importing this module loads no pyspark.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harken.errors import MissingExtraError
from harken.spark.runtime.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
ARROW_BATCH = 50_000
"""Rows per Arrow batch. Spark's own 10,000 take 1.4 times as long per event; 200,000 gain little more."""

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_LIMIT = str(2**31 - 1)
"""With any other limit, Spark adds up the size of a batch after every row, which takes longer than writing it:
with 32 columns, handing events over to Python takes 2.4 times as long."""

# Without Hadoop's native library, Java starts a `chmod` for every file, and checksums of files are files too. For
# checkpoints it is told to do without: a batch of a stream would take a tenth of a second longer. For all others,
# `fs.file.impl`, it cannot be: state stores and S3's buffers are made for Hadoop's own.
_PLAIN_CHECKPOINTS = {"spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs"}

_LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,.*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]")

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
# Left unset, Spark would raise the whole log to this logger's default and print that it did.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""


def local_session(
    master: str = "local[*]", *, name: str = "harken", settings: Mapping[str, str] = {}
) -> SparkSession:
    """Start a Spark session on this machine; `settings` take precedence over Harken's.

    Sets JAVA_HOME, PYSPARK_PYTHON and SPARK_LOCAL_IP of this process where Spark needs them. If the process has a
    session already, that one is returned, with those settings that can still change. Raises MissingExtraError
    without pyspark and JavaError without a Java that is new enough. Takes about ten seconds.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("Spark", "spark") from None
    require_java()
    _prepare_environment(master)
    with _quiet_logging() as java_options:
        builder = SparkSession.builder.master(master).appName(name)
        chosen = {"spark.driver.defaultJavaOptions": java_options, **_settings(master), **settings}
        for key, value in chosen.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def require_java() -> None:
    """Make sure that Spark finds a Java that is new enough, or raise JavaError: call it before any long work."""
    home = java_home()
    configured = os.environ.get("JAVA_HOME")
    if not configured or Path(configured).resolve() != home.resolve():
        os.environ["JAVA_HOME"] = str(home)


def cores_of(master: str) -> int | None:
    """How many tasks a master on this machine runs at once; None for a master elsewhere.

    >>> cores_of("local"), cores_of("local[3]"), cores_of("local-cluster[2,4,1024]"), cores_of("spark://host:7077")
    (1, 3, 8, None)
    """
    if threads := _LOCAL.fullmatch(master):
        return (os.cpu_count() or 1) if threads[1] == "*" else int(threads[1] or 1)
    if executors := _LOCAL_CLUSTER.fullmatch(master):
        return int(executors[1]) * int(executors[2])
    return None


def _prepare_environment(master: str) -> None:
    """Say what Spark takes from the environment only."""
    # Left alone, the workers run whatever python3 is on the PATH, which has neither Harken nor pyarrow.
    if cores_of(master) is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)


def _settings(master: str) -> dict[str, str]:
    everywhere = {
        "spark.driver.memory": "2g",
        BATCH_ROWS: str(ARROW_BATCH),
        BATCH_BYTES: NO_LIMIT,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    cores = cores_of(master)
    if cores is None:
        return everywhere
    return {
        **everywhere,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        **_PLAIN_CHECKPOINTS,
        "spark.sql.shuffle.partitions": str(cores),
    }


@contextmanager
def _quiet_logging() -> Iterator[str]:
    """Options that make the driver's Java log errors only, from its start: most of the chatter comes then.

    The file they name is read while Java starts, and is gone when the session is there.
    """
    with tempfile.TemporaryDirectory(prefix="harken-") as folder:
        file = Path(folder) / "log4j2.properties"
        file.write_text(_LOGGING, encoding="utf-8")
        # A query that is stopped within a batch gets a long message from Python, which Spark searches with an
        # expression that recurses for every character. Java's usual stacks of 1 MB overflow then, which takes a
        # thousand lines to tell; 8 MB are too little until the code is compiled.
        yield f"-Dlog4j2.configurationFile={file.as_uri()} -Xss32m"
