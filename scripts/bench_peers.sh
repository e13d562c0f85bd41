#!/bin/sh
# This reader and others on the same rows, on one core: each in its best layouts (tests/bench/best_layouts.py), or with the first
# argument --same-layout in one layout, in pairs (tests/bench/peers.py). Their packages go into a folder of their own
# (HEADRACE_PEERS_CACHE, else ~/.cache/headrace/peers). Arguments: those of the script.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
script=best_layouts.py
if [ "${1-}" = --same-layout ]; then
  script=peers.py
  shift
fi
cache=${HEADRACE_PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace/peers}
python=$cache/bin/python
if ! [ -x "$python" ] || ! "$python" -c 'import pyarrow, numpy, duckdb, polars, vortex, lance, datasets' 2> /dev/null; then
  python3 -m venv "$cache" || { echo "bench_peers.sh: no folder for Python packages: apt install python3-venv" >&2; exit 1; }
  "$python" -m pip install --quiet --disable-pip-version-check pyarrow numpy duckdb polars vortex-data pylance datasets
fi
exec "$python" "$root/tests/bench/$script" "$root/build" "$@"
