#!/bin/sh
# Prints every benchmark's table: kernels against their scalar twins, the decode path against the prototype, the cost of
# accounts. Each figure is a ratio taken within one run; absolute times belong to the machine at hand.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
table=$(mktemp -d)
trap 'rm -rf "$table"' EXIT
for bench in "$root"/build/*_bench; do
  [ -x "$bench" ] || continue
  case "$bench" in */pipe_bench | */scan_bench | */direct_bench) continue ;; esac
  echo "== $(basename "$bench")"
  case "$bench" in
    */dedup_bench | */io_probe_bench | */transport_bench | */whole_bench) "$bench" ;;  # their own pairs
    *) "$bench" --benchmark_min_time=0.2 ;;
  esac
done
"$root/build/headrace" generate rm1 -o "$table/rm1" --features 0.0625 --rows 16384 --seed 1 --optimize off 2> /dev/null
if [ -x "$root/build/pipe_bench" ]; then
  echo "== pipe_bench: rm1 against the prototype, interleaved"
  "$root/build/pipe_bench" "$table/rm1"
fi
if [ -x "$root/build/direct_bench" ]; then
  echo "== direct_bench: ids straight into tensors"
  "$root/build/direct_bench" "$table/rm1/pipeline.toml"
fi
echo "== account overhead: the same pipeline with accounts recorded and off, interleaved pairs"
python3 "$root/tests/truth/account_overhead.py" "$root/build/headrace"
