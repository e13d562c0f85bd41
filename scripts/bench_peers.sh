#!/bin/sh
# Scans of the same rows by this reader and by pyarrow (ORC, Parquet), DuckDB and Polars, in pairs on one core. Their packages go
# into a folder of their own (HEADRACE_PEERS_CACHE, else ~/.cache/headrace/peers). Arguments: those of tests/bench/peers.py.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cache=${HEADRACE_PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace/peers}
python=$cache/bin/python
if ! [ -x "$python" ] || ! "$python" -c 'import pyarrow, numpy, duckdb, polars' 2> /dev/null; then
  python3 -m venv "$cache" || { echo "bench_peers.sh: no folder for Python packages: apt install python3-venv" >&2; exit 1; }
  "$python" -m pip install --quiet --disable-pip-version-check pyarrow numpy duckdb polars
fi
exec "$python" "$root/tests/bench/peers.py" "$root/build" "$@"
