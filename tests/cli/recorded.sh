#!/bin/sh
# recorded.sh FOLDER: makes FOLDER/small.toml and FOLDER/runs.db, a recording of it as run `first`, for tests that ask what is said
# of a run, so that they need neither make one nor have the machine for themselves. Made again when HEADRACE, the executable, or
# this script is newer. What it is to show is checked here: where another limit is named it is recorded again, a little later each time,
# for three minutes (exit code 77: it was named all the time); where other programs had the cores meanwhile, three times. Then it is kept,
# and tests that need a quiet machine ask `recorded_alone` (helpers.bash).
set -eu
folder=$1
mkdir -p "$folder"
exec 9> "$folder/lock"
flock 9
[ -z "$(find "$folder/runs.db" -newer "$HEADRACE" -newer "$0" 2> /dev/null)" ] || exit 0
rm -f "$folder/runs.db"  # of another program: better none
export HEADRACE_DB="$folder/new.db" NO_COLOR=1
cat > "$folder/small.toml" <<'TOML'
pipeline = { name = "small" }
source = { synthetic = { elements = 0, rows = 8, bytes = "64KiB" } }
consumer = { step = "1ms" }
stage = [
  { name = "load", operators = [{ sleep = "6ms" }] },
  { name = "parse", operators = [{ spin = "1ms" }] },
]
TOML
tries=0
while :; do
  rm -f "$HEADRACE_DB" "$HEADRACE_DB-wal" "$HEADRACE_DB-shm"
  "$HEADRACE" run "$folder/small.toml" --name first --duration 2500ms --quiet 9>&-
  "$HEADRACE" report first --json > "$folder/report.json" || [ $? -eq 4 ]
  jq -r '"limited by \(.verdict.limit.name), others used \(.resources.cores_used_by_others) cores"' "$folder/report.json" > "$folder/said"
  if jq -e '.verdict.limit.name == "load"' "$folder/report.json" > /dev/null; then
    [ $tries -lt 3 ] || break
    ! jq -e '.resources.cores_used_by_others | type == "number" and . < 0.3' "$folder/report.json" > /dev/null || break
  fi
  tries=$((tries + 1))
  [ $tries -lt 15 ] || {
    echo "recorded.sh: $(cat "$folder/said")" >&2
    exit 77
  }
  sleep $tries
done
rm -f "$HEADRACE_DB-wal" "$HEADRACE_DB-shm"
mv "$HEADRACE_DB" "$folder/runs.db"
