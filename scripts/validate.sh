#!/bin/sh
# Makes the trials of docs/accuracy.md and docs/accuracy-real.md in a build, JOBS ranges of seeds at a time, and the pages.
# usage: validate.sh BUILD_FOLDER [JOBS [SHARE [REAL [RULES]]]]   SHARE: 1 = all pipelines, 0.1 = a tenth of them
#   REAL: how many pipelines really run, one after the other (half a minute each, on a machine that does nothing else)
#   RULES: how many pipelines of a kind each rule is switched off for (60; an hour on two cores)
# Seeds lie behind a number drawn from the text of analysis/: a model that was changed is tried on pipelines that nobody has looked at,
# the same text on the same ones. HEADRACE_SEED_BASE=N takes another.
set -eu
build=$1
jobs=${2:-$(nproc)}
share=${3:-1}
real=${4:-42}
rules=${5:-60}
out=$build/validation
folder=$(dirname "$0")
base=${HEADRACE_SEED_BASE:-$(cd "$folder/../analysis" && find . -type f | LC_ALL=C sort | xargs cat | cksum |
  awk '{ print 100000 * (1 + $1 % 10000) }')}
echo "seeds behind $base"
rm -rf "$out"
mkdir -p "$out"
# part, first seed, pipelines
while read -r part first count; do
  count=$(awk "BEGIN { n = int($count * $share); print n < 1 ? 1 : n }")
  step=10
  at=0
  while [ "$at" -lt "$count" ]; do
    end=$((at + step < count ? at + step : count))
    echo "$part $((base + first + at)) $((base + first + end - 1))"
    at=$end
  done
done > "$out/ranges" << 'PARTS'
predict 10000 400
load 15000 200
name 20000 400
worth 25000 300
choose 41000 300
cache 35000 120
tune 55000 300
drift 56000 100
attribute 55000 300
solve 50000 1
PARTS
xargs -P "$jobs" -L 1 sh -c '"$0"/accuracy "$2" "$3" "$4" > "$1/$2.$3.tsv.part" && mv "$1/$2.$3.tsv.part" "$1/$2.$3.tsv"' \
  "$build" "$out" < "$out/ranges"
# What each rule of analysis/thresholds.def is worth.
count=$(awk "BEGIN { n = int($rules * $share); print n < 1 ? 1 : n }")
{ echo none; "$build/accuracy" rules; } |
  xargs -P "$jobs" -I RULE sh -c '"$0"/accuracy ablate RULE "$2" "$3" > "$1/ablate.RULE.tsv"' "$build" "$out" "$count" "$base"
if [ "$real" -gt 0 ]; then
  python3 "$folder/../tests/validation/real.py" "$build/headrace" --count "$real" --first "$((base + 70000))" > "$out/real.tsv"
  python3 "$folder/../tests/validation/real.py" "$build/headrace" --count "$(((real + 1) / 2))" --first "$((base + 80000))" \
    --beside 1.5 > "$out/beside.tsv"
  # What did not hold stands on the page.
  python3 "$folder/../tests/validation/accounting.py" "$build/headrace" > "$out/accounting.tsv" || true
  python3 "$folder/../tests/validation/attribution.py" "$build/headrace" > "$out/attribution.tsv" || true
  python3 "$folder/../tests/validation/controls.py" "$build/headrace" > "$out/controls.tsv" || true
  python3 "$folder/../tests/truth/undeclared.py" "$build/headrace" --tsv "$out/undeclared.tsv" || true
  # Needs PyTorch.
  python3 "$folder/../tests/abroad/abroad.py" "$build/headrace" --tsv "$out/abroad.tsv" || true
fi
"$build/accuracy" gates "$out"/*.tsv
HEADRACE_VALIDATED="$(date -u +%F) of $(git -C "$folder" describe --always --dirty 2> /dev/null || echo 'an unknown commit')"
export HEADRACE_VALIDATED
"$build/accuracy" render "$out"/*.tsv > "$out/accuracy.md"
[ "$real" -eq 0 ] || "$build/accuracy" render-real "$out"/*.tsv > "$out/accuracy-real.md"
