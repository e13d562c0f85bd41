#!/bin/sh
# This reader and others on the same rows, on one core: each in its best layouts (tests/bench/best_layouts.py); with the first argument
# --tensors as far as batches of tensors, beside PyTorch and tf.data (tests/bench/tensor_loaders.py); with --same-layout in one layout, in
# pairs (tests/bench/peers.py). Their packages go into a folder of their own (HEADRACE_PEERS_CACHE, else ~/.cache/headrace/peers), unless
# HEADRACE_PEERS_PYTHON names a Python that has them. Other arguments: those of the script.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
script=best_layouts.py
packages="pyarrow numpy duckdb polars vortex-data pylance datasets"
modules="pyarrow, numpy, duckdb, polars, vortex, lance, datasets"
case ${1-} in
  --same-layout) script=peers.py ;;
  --tensors)
    script=tensor_loaders.py
    packages="pyarrow numpy vortex-data datasets tensorflow-cpu torch"
    modules="pyarrow, numpy, vortex, datasets, tensorflow, torch"
    ;;
esac
[ $script = best_layouts.py ] || shift
cache=${HEADRACE_PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace/peers}
python=${HEADRACE_PEERS_PYTHON:-$cache/bin/python}
if [ -z "${HEADRACE_PEERS_PYTHON-}" ] && ! "$python" -c "import $modules" 2> /dev/null; then
  python3 -m venv "$cache" || { echo "bench_peers.sh: no folder for Python packages: apt install python3-venv" >&2; exit 1; }
  # shellcheck disable=SC2086  # a list of words
  "$python" -m pip install --quiet --disable-pip-version-check $packages
fi
exec "$python" "$root/tests/bench/$script" "$root/build" "$@"
