#!/bin/sh
# Prints the path of a Python that Harken runs on: the first that will do of those given as arguments, or else of those
# that are usually there. With --all in front, one of each version.
set -eu

# Debian ships a Python that cannot make environments unless python3-venv is installed: such a one will not do.
trial='
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit("too old or too new")
import ensurepip, venv
print("%d.%d" % sys.version_info[:2], sys.executable)
'

all=no
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi
asked=$*
[ $# -gt 0 ] || set -- python3.11 python3.12 python3.13 python3 python ~/.pyenv/versions/3.1[123].*/bin/python3

seen=
for python in "$@"; do
    said=$("$python" -c "$trial" 2>/dev/null) || continue
    version=${said%% *}
    case " $seen " in *" $version "*) continue ;; esac
    seen="$seen $version"
    echo "${said#* }"
    if [ "$all" = no ]; then exit 0; fi
done

if [ -z "$seen" ]; then
    echo "Harken needs Python 3.11, 3.12 or 3.13, able to make environments (on Debian: python3-venv);" \
        "${asked:+$asked will not do; }install one, or name it: make PYTHON=/path/to/python" >&2
    exit 1
fi
