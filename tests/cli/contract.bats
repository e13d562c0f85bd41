#!/usr/bin/env bats
# The contract of the command line: help, exit codes, one-line errors, data on standard output.
load helpers

@test "help lists every command and exits 0" {
  run "$HEADRACE" --help
  [ "$status" -eq 0 ]
  for command in doctor demo generate inspect cat run profile runs report plan query; do
    [[ "$output" == *"$command"* ]]
  done
}

@test "every command explains itself with examples and exit codes" {
  for command in doctor demo generate inspect cat run profile runs report plan query; do
    run "$HEADRACE" "$command" --help
    [ "$status" -eq 0 ] || { echo "$command: $output"; false; }
    [[ "$output" == *"examples:"* ]] || { echo "$command has no examples"; false; }
    [[ "$output" == *"exit:"* ]] || { echo "$command has no exit codes"; false; }
  done
}

@test "no command: overview on standard error, exit 2" {
  run "$HEADRACE"
  [ "$status" -eq 2 ]
}

@test "a mistyped command suggests the right one" {
  run "$HEADRACE" reprot
  one_line_error 2 "unknown command 'reprot'.*Did you mean 'report'"
}

@test "a mistyped option suggests the right one" {
  run "$HEADRACE" doctor --jsn
  one_line_error 2 "unknown option '--jsn'.*--json"
}

@test "doctor says what works, as text and as JSON" {
  run "$HEADRACE" doctor
  [ "$status" -eq 0 ]
  [[ "$output" == *"operator accounts"* ]]
  "$HEADRACE" doctor --json | jq -e '.schema == "headrace.doctor/1" and (.probes | length > 4)'
}

@test "a run too short for a verdict says so and exits 4" {
  "$HEADRACE" run small.toml --set source.synthetic.elements=3 --quiet
  run "$HEADRACE" report latest
  [ "$status" -eq 4 ]
  [[ "$output" == *"too short"* ]]
}

@test "run --json is one object with the rows" {
  "$HEADRACE" run small.toml --no-record --json | jq -e '.schema == "headrace.run/1" and .rows_count == 320 and .batches_count == 40'
}

@test "pipeline mistakes: file, line, column, nearest name" {
  sed 's/spin/spinn/' small.toml > bad.toml
  run "$HEADRACE" run bad.toml
  one_line_error 2 "bad.toml:6:[0-9]+: unknown operator 'spinn', did you mean 'spin'"
}

@test "a plan that is none is refused" {
  for plan in '{"schema": 1}' '{"schema": "headrace.plan/1"}' '[]' 'no'; do
    echo "$plan" > plan.json
    run "$HEADRACE" run small.toml --no-record --plan plan.json
    one_line_error 5 "^headrace run: plan.json.*is not a plan"
  done
  { printf '{"schema": "headrace.plan/1", "settings": {"a": '; head -c 3000000 /dev/zero | tr '\0' '['; } > plan.json
  run "$HEADRACE" run small.toml --no-record --plan plan.json
  one_line_error 5 "plan.json: byte 79: .*more than 32 levels deep"
  head -c 5000000 /dev/zero > plan.json
  run "$HEADRACE" run small.toml --no-record --plan plan.json
  one_line_error 5 "plan.json: is 5000000 bytes, more than"
}

@test "a plan with a knob that the pipeline has not names the plan" {
  echo '{"schema": "headrace.plan/1", "settings": {"prse.parallelism": 2}}' > plan.json
  run "$HEADRACE" run small.toml --no-record --plan plan.json
  one_line_error 2 "plan.json.*'parse'"
}

@test "bad durations are refused" {
  for bad in ten -5s; do
    run "$HEADRACE" run small.toml "--duration=$bad"
    one_line_error 2 "not a duration"
  done
}

@test "Ctrl-C stops long before the run's time is up, saves the run, exits 130" {
  "$HEADRACE" run small.toml --name stopped --duration 10m --quiet 2> err &
  pid=$!
  until_true 10 newest_run_is recording
  until_true 10 has_steps
  kill -INT $pid
  code=0
  wait $pid || code=$?  # without an end of its own within 10 minutes, if the signal were lost
  [ "$code" -eq 130 ]
  grep -q "saved" err
  "$HEADRACE" runs --json | jq -e '.runs[0].name == "stopped" and .runs[0].state != "recording"'
  # What it did after the signal, by its own clock: 100 ms here; at most a few seconds where others have the cores.
  [ "$("$HEADRACE" query --format csv 'SELECT duration_ns < 60000000000 FROM run_summary' | tail -n 1)" = 1 ]
}

@test "an absent run is an error with a way out" {
  "$HEADRACE" run small.toml --level 1 --quiet
  run "$HEADRACE" report nosuch
  [ "$status" -eq 5 ]
  [[ "$output" == *nosuch* ]]
}

@test "databases that are not ours are refused" {
  echo "hello" > x.db
  run "$HEADRACE" report latest --db x.db
  one_line_error 5 "x.db"
  : > empty.sqlite
  run "$HEADRACE" report latest --db nowhere.db
  one_line_error 5 "nowhere.db"
}

@test "query is read-only" {
  "$HEADRACE" run small.toml --level 1 --quiet
  run "$HEADRACE" query "DROP TABLE runs"
  [ "$status" -ne 0 ]
  [[ "$output" == *"read-only"* ]]
}

@test "profile of an absent process" {
  run "$HEADRACE" profile -p 4194000
  [ "$status" -eq 5 ]
  [[ "$output" == *"no process 4194000"* ]]
}

@test "existing outputs are not replaced unless asked" {
  "$HEADRACE" run small.toml --quiet --duration 1500ms
  echo keep > r.md
  run "$HEADRACE" report latest --format md -o r.md
  one_line_error 2 "r.md.*exists"
  [ "$(cat r.md)" = keep ]
  run "$HEADRACE" report latest --format md -o r.md -f
  [ "$status" -eq 0 ]
  grep -q "^- \*\*limit\*\*" r.md
}

@test "help of an unknown command is a mistake, not the overview" {
  run "$HEADRACE" help reprot
  one_line_error 2 "unknown command 'reprot'.*Did you mean 'report'"
}

@test "numbers that are none are refused in plain words" {
  run "$HEADRACE" generate rm1 -o t --rows=-5
  one_line_error 2 "--rows: '-5' is negative"
  run "$HEADRACE" generate rm1 -o t --rows ten
  one_line_error 2 "--rows: 'ten' is not a whole number"
  run "$HEADRACE" generate rm1 -o t --seed=-1
  one_line_error 2 "--seed: '-1' is negative"
  run "$HEADRACE" run small.toml --epochs=-1
  one_line_error 2 "--epochs: '-1' is negative"
  run "$HEADRACE" profile -p 0
  one_line_error 2 "'0' is not a number above 0"
  run "$HEADRACE" plan --cores zero
  one_line_error 2 "'zero' is not a number"
  [ ! -e t ]
}

@test "a wrong setting is named, not the file it is not in" {
  run "$HEADRACE" run small.toml --set parse.queue=2 --set parse.parallelism=two
  one_line_error 2 "setting 'parse.parallelism=two': expected a whole number"
  run "$HEADRACE" run small.toml --set parse.parallelism=0
  one_line_error 2 "setting 'parse.parallelism=0': parallelism must be from 1"
}

@test "a database where none can be" {
  run "$HEADRACE" run small.toml --db no/such.db
  one_line_error 5 "no/such.db: there is no folder 'no'"
  mkdir folder
  run "$HEADRACE" run small.toml --db folder
  one_line_error 5 "folder: is a folder"
}

@test "demo: a wrong option is one line, before any work" {
  run "$HEADRACE" demo --duration ten --folder d
  one_line_error 2 "not a duration"
  [ ! -e d ]
}

@test "a failed recording is said once" {
  "$HEADRACE" run small.toml --name killed --duration 3s --quiet 2> err &
  pid=$!
  until_true 10 newest_run_is recording
  kill -9 "$(pgrep -P $pid)"
  code=0
  wait $pid || code=$?
  [ "$code" -eq 1 ]
  [ "$(wc -l < err)" -eq 1 ] || { cat err; false; }
  [ "$("$HEADRACE" runs --json | jq -r '.runs[0].state')" = interrupted ]
}

@test "kill -9 of the pipeline: the run is interrupted and can be reported" {
  "$HEADRACE" run small.toml --name dead --duration 60s --quiet &
  pid=$!
  until_true 10 newest_run_is recording
  until_true 10 has_steps
  kill -9 $pid
  wait $pid || true
  until_true 10 newest_run_is interrupted
  run "$HEADRACE" report dead
  [[ "$output" == *"This run is interrupted"* ]]
}

@test "a process seen from outside: nothing unmeasured is a number, and the next command works" {
  sleep 30 &
  pid=$!
  "$HEADRACE" profile -p $pid -d 1s --quiet
  kill $pid
  run "$HEADRACE" report latest --full
  [ "$status" -eq 4 ]
  [[ "$output" != *"Steps of the trainer"* ]]
  next=$(sed -n 's/^next: //p' <<< "$output")
  run bash -c "$next"
  [ "$status" -eq 0 ] || { echo "$next: $output"; false; }
  [[ "$output" == *metric* ]]
}

@test "every column of the operators fits 120 columns" {
  "$HEADRACE" run small.toml --quiet --duration 1500ms
  COLUMNS=120 run "$HEADRACE" report latest --full
  for column in threads busy b+q "wait in" "wait out" rows/s "1 thread alone" visits/batch "bytes in" "bytes out"; do
    [[ "$output" == *"$column"* ]] || { echo "no column '$column': $output"; false; }
  done
  [[ "$output" != *"no room for"* ]] || { echo "$output"; false; }
  wide="$(printf '%s\n' "$output" | grep -v 'headrace\|^next' | awk 'length($0) > 120')"
  [ -z "$wide" ] || { echo "wider than 120 columns: $wide"; false; }
}

@test "query refuses every writing statement as such" {
  "$HEADRACE" run small.toml --level 1 --quiet
  for sql in "DROP TABLE nosuch" "INSERT INTO nosuch VALUES (1)" "DELETE FROM runs" "ATTACH 'x' AS y" "PRAGMA journal_mode = delete"; do
    run "$HEADRACE" query "$sql"
    one_line_error 2 "read-only"
  done
  run "$HEADRACE" query "SELEC 1"
  one_line_error 2 "syntax error"
}

@test "a result too large for memory is refused" {
  "$HEADRACE" run small.toml --level 1 --quiet
  run "$HEADRACE" query "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
  [[ "$status" -eq 7 || "$status" -eq 1 ]]
  [[ "$output" == *"narrow it"* ]]
  "$HEADRACE" query --json "SELECT 1 AS a, 2 AS a" | jq -e '.rows[0] == {"a": 1, "a_2": 2}'
}

# A disk that fills up, wherever it happens to: a run that is whole, or one line and exit 7.
full_or_whole() {
  [ "$status" -eq 0 ] || one_line_error 7 "disk full|[Nn]o space|[Ff]ile too large"
}

@test "a full disk under the database is exit 7, whenever it fills up" {
  [ "$(id -u)" -eq 0 ] || skip "mounting a small file system needs root"
  unshare -m true 2> /dev/null || skip "unshare -m is not allowed here"
  mkdir small
  full=0
  for kib in 60 160 240 260 280 300 320 400 600; do
    run timeout 900 unshare -m sh -c "mount -t tmpfs -o size=${kib}k tmpfs small || exit 99
      exec \"\$0\" run small.toml --db small/x.db --quiet --level 1 --duration 300ms" "$HEADRACE"
    [ "$status" -ne 99 ] || skip "mounting is not allowed here"
    full_or_whole || { echo "of $kib KiB"; false; }
    [ "$status" -eq 0 ] || full=$((full + 1))
  done
  [ "$full" -ge 3 ] || { echo "only $full were too small"; false; }
}

@test "a limit of the size of files is a full disk" {
  full=0
  for kib in 16 100 200 300 400; do
    run timeout 900 bash -c "ulimit -f $kib; HEADRACE_ACCOUNTS=off exec \"\$0\" run small.toml --quiet --level 0 --duration 300ms" "$HEADRACE"
    full_or_whole || { echo "of $kib KiB"; false; }
    [ "$status" -eq 0 ] || full=$((full + 1))
    rm -f runs.db*
  done
  [ "$full" -ge 1 ] || { echo "none was too small"; false; }
}

@test "output that is cut by a limit of the size of files is exit 7" {
  run bash -c 'ulimit -f 1; exec "$0" doctor --json > out.json' "$HEADRACE"
  one_line_error 7 "standard output"
}
