#!/bin/sh
# Sets up an environment for each Python from 3.11 to 3.13 that is installed, and runs the demo and most tests there.
# Arguments go to pytest, for instance a folder of tests instead of most. What needs Java or a database is left out:
# it does not depend on the version of Python.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- tests/compiler tests/conformance tests/contract tests/engine tests/files tests/hostile tests/jit \
    tests/judge tests/language tests/matching tests/model tests/normal tests/symmetric/test_memory.py \
    tests/symmetric/test_semantics.py tests/test_imports.py

sh scripts/find-python.sh --all | while read -r python; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "== Python $version ($python)"
    make --no-print-directory VENV="build/python$version" PYTHON="$python" demo
    "build/python$version/bin/pytest" -n 2 --dist worksteal "$@"
done
