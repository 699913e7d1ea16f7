"""What comes back from Spark is told in one line."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harken.errors import EventError, TaskError
from harken.spark.runtime.failures import retold, said

CHAINED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "tasks.py", line 50, in match_events
harken.errors.ValueOutOfRangeError: nan is not a number

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "tasks.py", line 52, in match_events
harken.errors.EventError: event 3: attribute 'x': nan is not a number; leave it out
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
"""

NESTED = """An error occurred while calling o74.save.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///e.csv.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:933)
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record parsing: [2,null].
Parse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' as 'PERMISSIVE'.  SQLSTATE: 22023
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.malformed(QueryExecutionErrors.scala:1528)
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///e.csv.  SQLSTATE: KD001
Caused by: org.apache.spark.sql.catalyst.util.BadRecordException: java.lang.NumberFormatException: For input string: "abc"
\t... 18 more
"""  # noqa: E501  # as Spark writes it


def test_an_error_of_a_task_is_told_in_its_own_words() -> None:
    assert said(PySparkException(CHAINED)) == "event 3: attribute 'x': nan is not a number; leave it out"


def test_conditions_of_spark_are_told_from_the_outermost_to_the_cause() -> None:
    assert said(PySparkException(NESTED)) == (
        "Spark says: Encountered error while reading file file:///e.csv; "
        'Malformed records are detected in record parsing: [2,null]; For input string: "abc"'
    )


def test_of_what_says_nothing_and_of_what_is_not_from_spark_nothing_is_told() -> None:
    assert said(PySparkException("An error occurred while calling o60.save")) is None
    assert said(ValueError(CHAINED)) is None


def test_errors_of_harken_and_of_others_pass_through_unchanged() -> None:
    for error in (EventError("no"), ValueError("harken.errors.EventError: no"), PySparkException("nothing")):
        with pytest.raises(type(error)) as caught, retold():
            raise error
        assert caught.value is error


def test_the_error_behind_it_is_kept() -> None:
    with pytest.raises(TaskError, match=r"^event 3") as caught, retold():
        raise PySparkException(CHAINED)
    assert isinstance(caught.value.__cause__, PySparkException)


def test_an_error_that_a_real_task_raises_is_found(spark: SparkSession) -> None:
    # Defined here, it travels whole: workers cannot import the tests.
    def refuse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise EventError("not this one", row=7, suggestion="or so it is said")
        yield from batches

    with pytest.raises(TaskError) as caught, retold():
        spark.range(1).mapInArrow(refuse, "id long").collect()
    assert str(caught.value) == "event 7: not this one; or so it is said"


def test_an_error_of_java_without_a_condition_is_told(spark: SparkSession) -> None:
    spark.conf.set("fs.nowhere.impl", "no.such.FileSystem")
    with pytest.raises(TaskError, match=r"Class no\.such\.FileSystem not found"), retold():
        spark.read.text("nowhere://bucket/x").collect()


def test_an_error_whose_text_java_took_with_it_passes_through() -> None:
    class LostError(PySparkException):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    LostError.__module__ = "py4j.protocol"
    assert said(LostError("lost")) is None
