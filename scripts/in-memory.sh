#!/bin/sh
# Runs a command with its temporary files in memory, if there is room for them, and removes what it left there.
# Tests write much, and durably: on a disk, a fifth of their time is spent waiting for it.
set -eu

shared=/dev/shm
needed=8000000 # kilobytes, several times what tests take

# The fourth word of the second line that df prints, and what Linux says it could give.
room=$(df -Pk "$shared" 2>/dev/null | awk 'NR == 2 { print $4 }') || room=0
free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null) || free=0
if [ "${room:-0}" -lt "$needed" ] || [ "${free:-0}" -lt "$needed" ] || [ ! -w "$shared" ]; then exec "$@"; fi

folder=$(mktemp -d "$shared/harken.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
TMPDIR=$folder "$@"
