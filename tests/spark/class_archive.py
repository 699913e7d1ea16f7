"""Makes an archive of the classes that Spark loads, so that every Java of the tests starts in half the time.

    python -m tests.spark.class_archive FILE

Java writes down, as it ends, what it has loaded: so this does, once, what tests do. Java passes over an archive that
does not fit it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from harken.spark.runtime.lifetime import temporary_session


def main(archive: Path) -> None:
    """Have Java write the archive; whole or not at all."""
    unfinished = archive.with_suffix(".unfinished")
    os.environ["SPARK_SUBMIT_OPTS"] += f" -XX:ArchiveClassesAtExit={unfinished} -Xlog:cds=error"
    with tempfile.TemporaryDirectory() as folder:
        with temporary_session("local[2]", name="class archive", settings={"spark.local.dir": folder}) as spark:
            _work(spark, Path(folder))
    unfinished.rename(archive)


def _work(spark: SparkSession, folder: Path) -> None:
    """A table is written, read, joined and handed to Python, as a whole and as a stream."""
    table = str(folder / "table")
    spark.createDataFrame(pa.table({"id": [1, 2], "name": ["a", "b"]})).write.parquet(table)
    read = spark.read.parquet(table)
    counts = read.groupBy("name").count()
    read.join(counts, "name").mapInArrow(lambda batches: batches, "name string, id long, count long").toArrow()
    stream = spark.readStream.schema(read.schema).parquet(table)
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: batch.count() and None)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
