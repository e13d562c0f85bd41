#!/bin/sh
# Runs the DWRF reader's fuzzer for SECONDS under AddressSanitizer and UndefinedBehaviorSanitizer, seeded with the corpus in
# the tree and with the example files where they exist.
set -eu
seconds=${1:-600}
root=$(cd "$(dirname "$0")/.." && pwd)
cmake --preset fuzz -S "$root" > /dev/null
cmake --build "$root/build-fuzz" --target dwrf_fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seeds=""
for folder in "${HEADRACE_DWRF_FILES:-$root/../shared/dwrf/files}" "$root/tests/fuzz/corpus"; do
  [ -d "$folder" ] || continue
  mkdir -p "$work/seeds"
  find "$folder" -type f ! -name '*.json' -size -64k -exec cp {} "$work/seeds/" \;
  seeds="$work/seeds"
done
[ -n "$seeds" ] || echo "fuzz: no seed files; starting from nothing" >&2
mkdir "$work/corpus"
cd "$work"
"$root/build-fuzz/dwrf_fuzz" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=65536 -print_final_stats=1 "$work/corpus" $seeds
