#!/bin/sh
# Sets up an environment with another PySpark than the locked one, 4.0 unless SPARK says which, and runs the tests of
# Spark there. Arguments go to pytest, for instance some of these tests. Kafka's are left out: its connector is
# fetched for one version of Spark.
set -eu
cd "$(dirname "$0")/.."

spark=${SPARK:-4.0}
venv="build/spark$spark"
[ $# -gt 0 ] || set -- tests/spark

python=$(sh scripts/find-python.sh)
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
grep -v '^pyspark' requirements.lock | sed 's/ *--hash=[^ ]*//g; s/ *\\$//' >"$venv/requirements.txt"
"$venv/bin/python" -m pip install --quiet --requirement "$venv/requirements.txt" "pyspark[connect]==$spark.*"
"$venv/bin/python" -m pip install --quiet --no-deps --editable .
"$venv/bin/python" -c 'import pyspark; print("== PySpark", pyspark.__version__)'
# PySpark 4.0 leaves the closing of its sockets to Python, which complains.
"$venv/bin/python" -m pytest -m "not kafka and not install and not long" \
    -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning "$@"
