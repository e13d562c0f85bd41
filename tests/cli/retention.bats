#!/usr/bin/env bats
# Old runs go; always-on recording finds pipelines by itself; the unit is sound.
load helpers

sql() { "$HEADRACE" query --format csv "$1" | tail -n +2; }
# fake NAME AGE_IN_DAYS: a finished run.
runs() {
  "$HEADRACE" profile -q --level 1 --name "$1" -- true
  python3 - "$HEADRACE_DB" "$2" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE runs SET started_realtime_ns = started_realtime_ns - ? WHERE run_id = (SELECT MAX(run_id) FROM runs)",
           (int(float(sys.argv[2]) * 86400e9),))
db.commit()
PY
}

@test "runs rm by age and number" {
  runs a 30; runs b 8; runs c 2; runs d 0
  "$HEADRACE" runs rm --older-than 7d
  [ "$(sql "SELECT GROUP_CONCAT(name, '') FROM run_summary")" = cd ]
  "$HEADRACE" runs rm --keep 1
  [ "$(sql "SELECT GROUP_CONCAT(name, '') FROM run_summary")" = d ]
  "$HEADRACE" runs rm --older-than 12h
  [ "$(sql "SELECT COUNT(*) FROM run_summary")" = 1 ]
}

@test "runs rm by size gives the room back to the disk" {
  runs a 3; runs b 2
  python3 - "$HEADRACE_DB" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE runs SET pipeline_text = ? WHERE run_id = 1", ("x" * 3000000,))
db.commit()
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
PY
  [ "$(stat -c %s "$HEADRACE_DB")" -gt 3000000 ]
  "$HEADRACE" runs rm --max-size 1MiB
  [ "$(sql "SELECT GROUP_CONCAT(name, '') FROM run_summary")" = b ]
  [ "$(stat -c %s "$HEADRACE_DB")" -lt 1000000 ]
}

@test "runs rm without saying which, and nonsense, are usage errors" {
  runs a 0
  run "$HEADRACE" runs rm
  one_line_error 2 "say which"
  run "$HEADRACE" runs rm --older-than soon
  one_line_error 2 "not a duration"
  run "$HEADRACE" runs rm --max-size big
  [ "$status" -eq 2 ]
  [ "$(sql "SELECT COUNT(*) FROM run_summary")" = 1 ]
}

@test "collect --discover records pipelines that appear, once each, and leaves recorded ones alone" {
  export HEADRACE_ACCOUNT_DIR=$DIR/accounts
  mkdir accounts
  "$HEADRACE" collect --discover --level 1 --keep 5 2> log &
  daemon=$!
  until_true 20 test -e "$HEADRACE_DB"
  HEADRACE_ACCOUNTS=on "$HEADRACE" run small.toml --no-record --quiet --duration 3s &
  one=$!
  "$HEADRACE" run small.toml --level 1 --db other.db --quiet --duration 3s &
  two=$!
  wait $one $two
  until_true 20 grep -q "run 1 of process" log
  kill -TERM $daemon
  wait $daemon
  grep -q "recording process $one as run 1" log || { cat log; false; }
  [ "$(sql "SELECT COUNT(*), MIN(state), MIN(pid) FROM run_summary")" = "1,complete,$one" ]
  [ "$(sql "SELECT COUNT(*) FROM operator_summary")" = 3 ]
}

@test "the systemd unit verifies and is hardened" {
  command -v systemd-analyze > /dev/null || skip "no systemd-analyze"
  unit=$BATS_TEST_DIRNAME/../../packaging/headrace-collect.service.in
  sed "s|@CMAKE_INSTALL_FULL_BINDIR@/headrace|$(realpath "$HEADRACE")|" "$unit" > headrace-collect.service
  run systemd-analyze verify ./headrace-collect.service
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  ! grep -i 'headrace-collect.service:' <<< "$output" || { echo "$output"; false; }
  run systemd-analyze security --offline=true --threshold=30 ./headrace-collect.service
  [ "$status" -eq 0 ] || { echo "$output" | tail -3; false; }
  for capability in CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH; do
    grep -q "^CapabilityBoundingSet=.*$capability" headrace-collect.service
  done
  [ "$(grep -o 'CAP_[A-Z_]*' <(grep '^CapabilityBoundingSet' headrace-collect.service) | wc -l)" -eq 4 ]
}

@test "collect --discover starts nothing for files that no process stands behind, and says so" {
  [ "$(id -u)" -eq 0 ] || skip "giving files away needs root"
  export HEADRACE_ACCOUNT_DIR=$DIR/accounts
  mkdir accounts
  HEADRACE_ACCOUNTS=on "$HEADRACE" run small.toml --no-record --quiet --duration 60s 3>&- &
  real=$!
  until_true 20 test -s "accounts/headrace.$real"
  sleep 0.5  # until it is whole
  # 40 living processes that keep none, and process 1, each with another user's file that is sound.
  sleeps=()
  for _ in $(seq 40); do
    sleep 120 3>&- &
    sleeps+=($!)
  done
  for pid in 1 "${sleeps[@]}"; do
    cp --sparse=always "accounts/headrace.$real" "accounts/headrace.$pid"
    printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((pid & 255)) $((pid >> 8 & 255)) $((pid >> 16 & 255)) $((pid >> 24 & 255)))" |
      dd of="accounts/headrace.$pid" bs=1 seek=24 conv=notrunc status=none
    chown 65534 "accounts/headrace.$pid"
  done
  "$HEADRACE" collect --discover --level 1 2> log 3>&- &
  daemon=$!
  until_true 30 grep -q "recording process $real as run" log
  sleep 3
  kill -TERM $daemon
  wait $daemon || true
  kill $real "${sleeps[@]}"
  [ "$(grep -c 'recording process' log)" -eq 1 ] || { cat log; false; }
  [ "$(grep -c "41 files named like instrumentation are no process's, and ignored: .*headrace.* (written by user 65534" log)" -eq 1 ] || { cat log; false; }
  [ "$(sql "SELECT COUNT(*), MIN(pid) FROM run_summary")" = "1,$real" ]
  [ "$(sql "SELECT state FROM probe_status WHERE probe = 'discovery' AND reason LIKE '41 files%'")" = degraded ]
}

@test "the database of collect --discover is its owner's alone, and so is the service's" {
  umask 022
  "$HEADRACE" collect --discover 2> log 3>&- &
  daemon=$!
  until_true 20 test -e "$HEADRACE_DB"
  [ "$(stat -c %a "$HEADRACE_DB")" = 600 ]
  kill -TERM $daemon
  wait $daemon || true
  unit=$BATS_TEST_DIRNAME/../../packaging/headrace-collect.service.in
  grep -q '^UMask=0077' "$unit"
  grep -q '^StateDirectoryMode=0700' "$unit"
}
