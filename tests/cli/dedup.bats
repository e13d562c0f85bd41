#!/usr/bin/env bats
# Deduplication and the trainer from the command line.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$HEADRACE" generate rm1 --features 0.02 --rows 2000 --seed 4 -o time > /dev/null 2>&1
  "$HEADRACE" generate rm1 --features 0.02 --rows 2000 --seed 4 --clustered -o clustered > /dev/null 2>&1
}

setup() { cd "$BATS_FILE_TMPDIR"; }
teardown() { :; }

# sql DATABASE QUERY: the one value it gives.
sql() { python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])' "$@"; }

@test "layout --dedup: the factor if clustered of the one table is the factor now of the other" {
  "$HEADRACE" layout time --pipeline time/pipeline.toml --dedup --json > time.json
  "$HEADRACE" layout clustered --pipeline time/pipeline.toml --dedup --json > clustered.json
  python3 - <<PY
import json
time, clustered = json.load(open("time.json")), json.load(open("clustered.json"))
assert time["schema"] == "headrace.dedup/1" and time["rows_count"] == 2000
assert time["factor_now_ratio"] < 1.6, time
then, now = time["factor_clustered_ratio"], clustered["factor_now_ratio"]
assert abs(then / now - 1) < 0.1, (then, now)
assert then > 2, then
PY
  run "$HEADRACE" layout time --pipeline time/pipeline.toml --dedup
  [ "$status" -eq 0 ]
  [[ "$output" == *"if clustered"* ]]
}

@test "layout --dedup: says what is missing" {
  run "$HEADRACE" layout time --dedup
  [ "$status" -eq 2 ]
  [[ "$output" == *"add --pipeline FILE"* ]]
  run "$HEADRACE" layout time --pipeline time/pipeline.toml --dedup --session nobody
  [ "$status" -eq 0 ]
  [[ "$output" == *"not known: the table has no column 'nobody'"* ]]
  run "$HEADRACE" layout time --projection label --dedup
  [ "$status" -eq 2 ]
  [[ "$output" == *"no sparse feature"* ]]
}

@test "run: a deduplicated run delivers the same rows, and accounts say what was saved" {
  plain=$("$HEADRACE" run clustered/pipeline.toml --no-record --checksum --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["checksum"]["multiset"])')
  "$HEADRACE" run clustered/pipeline.toml --level 1 --set dedup.mode=on --db r.db --checksum --json > run.json
  [ "$(python3 -c 'import json; print(json.load(open("run.json"))["checksum"]["multiset"])')" = "$plain" ]
  "$HEADRACE" query --db r.db "SELECT 1" > /dev/null  # the views are there
  [ "$(sql r.db "SELECT sum(bytes_in_bytes) > 1.5 * sum(bytes_out_bytes) FROM operator_summary WHERE operator LIKE 'dedup.%' AND kind = 'dedup'")" = 1 ]
}

@test "run: the trainer trains, the parts of its step have accounts, and dedup changes no loss" {
  "$HEADRACE" run clustered/pipeline.toml --level 1 --set consumer.kind=trainer --set consumer.model.rows=1000 --set pipeline.order=file --db t.db --json > plain.json
  "$HEADRACE" run clustered/pipeline.toml --set consumer.kind=trainer --set consumer.model.rows=1000 --set pipeline.order=file --set dedup.mode=auto --no-record --json > dedup.json
  python3 - <<PY
import json
plain, dedup = (json.load(open(f + ".json"))["training"] for f in ("plain", "dedup"))
assert plain["steps_count"] == dedup["steps_count"] > 0
assert abs(plain["last_loss"] - dedup["last_loss"]) < 1e-5, (plain, dedup)
PY
  for part in embedding interaction mlp update; do
    [ "$(sql t.db "SELECT count(*) FROM operator_summary WHERE operator = '$part' AND stage = 'consumer'")" = 1 ]
  done
}

@test "run: mistakes in [dedup] and [consumer] name the nearest key" {
  run "$HEADRACE" run time/pipeline.toml --no-record --set dedup.mod=on
  [ "$status" -eq 2 ]
  [[ "$output" == *"did you mean 'mode'"* ]]
  run "$HEADRACE" run time/pipeline.toml --no-record --set consumer.kind=trainr
  [ "$status" -eq 2 ]
  [[ "$output" == *"did you mean 'trainer'"* ]]
}
