"""Has Java keep the classes that Spark loads in a file that other processes map (class data sharing).

    python scripts/share-java.py build/spark.jsa

Whoever starts with it computes half as much before the first answer. Nothing happens if there is such a file for
these versions; Java passes over one that does not fit.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyspark

from harken.spark.runtime.java import java_home
from harken.spark.runtime.lifetime import temporary_session

OPTIONS = "-Xlog:disable -Xlog:all=error:stderr -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""As of the tests, quietly."""


def made_of() -> str:
    """What a file of classes depends on."""
    home = java_home().resolve()
    return f"{home}\n{(home / 'release').read_text()}\n{pyspark.__file__} {pyspark.__version__}\n"


def load_classes(spark: pyspark.sql.SparkSession, folder: Path) -> None:
    """Do a little of what tests do: tables, Python on Arrow, a stream."""
    table, copy = str(folder / "table"), str(folder / "copy")
    spark.range(10).selectExpr("id", "cast(id as string) as name", "array(id) as list").write.parquet(table)
    read = spark.read.parquet(table)
    read.write.json(str(folder / "json"))
    read.select("id", "name").write.csv(str(folder / "csv"))
    same = read.mapInArrow(lambda batches: batches, read.schema)
    same.groupBy("name").count().join(read, "name").orderBy("id").collect()
    spark.createDataFrame(pa.table({"x": [1, 2]})).toArrow()
    stream = spark.readStream.schema(read.schema).parquet(table)
    query = stream.writeStream.foreachBatch(lambda batch, _: batch.write.mode("append").parquet(copy))
    query.option("checkpointLocation", str(folder / "checkpoint")).start().processAllAvailable()
    for each in spark.streams.active:
        each.stop()


def main(archive: Path) -> None:
    """Make the file, unless it is there."""
    note = archive.with_suffix(".txt")
    if archive.exists() and note.exists() and note.read_text() == made_of():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / archive.name
        os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={new} {OPTIONS}"
        with temporary_session("local[2]", settings={"spark.sql.warehouse.dir": f"{folder}/warehouse"}) as spark:
            load_classes(spark, Path(folder))
        note.unlink(missing_ok=True)
        shutil.copyfile(new, archive.with_suffix(".new"))
        archive.with_suffix(".new").replace(archive)
        note.write_text(made_of())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
