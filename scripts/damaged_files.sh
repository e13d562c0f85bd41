#!/bin/sh
# Puts sound files and COUNT damaged ones, whose lengths and checksums are right, through the whole command line of the build in
# folder BUILD: damaged_files.sh BUILD COUNT [--seed N] [--patience X] [--keep FOLDER]. With sanitizers:
#   cmake --preset asan && cmake --build --preset asan --target headrace damage && scripts/damaged_files.sh build-asan 3000 --patience 6
set -eu
[ $# -ge 2 ] || { echo "usage: damaged_files.sh BUILD COUNT [OPTIONS]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
build=$1
shift
exec python3 "$root/tests/fuzz/damaged_files.py" "$build/headrace" "$build/damage" "$@" --files "${HEADRACE_DWRF_FILES:-$root/../shared/dwrf/files}"
