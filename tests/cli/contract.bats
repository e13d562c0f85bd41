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

@test "run records, report, plan, runs and query read it" {
  run "$HEADRACE" run small.toml --name first --duration 3s --quiet
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [ -z "$output" ]
  run "$HEADRACE" report first
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *VERDICT* ]]
  "$HEADRACE" report first --format json | jq -e '.schema == "headrace.report/1"'
  "$HEADRACE" runs --json | jq -e '.schema == "headrace.runs/1" and .runs[0].name == "first"'
  "$HEADRACE" query --format json "SELECT operator FROM operator_summary" | jq -e '.rows | map(.operator) | index("parse") != null'
  run "$HEADRACE" plan first -o plan.json
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  jq -e '.schema == "headrace.plan/1"' plan.json
  run "$HEADRACE" run small.toml --plan plan.json --no-record --quiet --epochs 1
  [ "$status" -eq 0 ] || { echo "$output"; false; }
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

@test "bad durations are refused" {
  for bad in ten -5s; do
    run "$HEADRACE" run small.toml "--duration=$bad"
    one_line_error 2 "not a duration"
  done
}

@test "Ctrl-C stops within a second, saves the run, exits 130" {
  "$HEADRACE" run small.toml --name stopped --duration 60s --quiet 2> err &
  pid=$!
  sleep 1.5
  kill -INT $pid
  start=$(date +%s%N)
  code=0
  wait $pid || code=$?
  [ "$code" -eq 130 ]
  [ $(( ($(date +%s%N) - start) / 1000000 )) -lt 1500 ]
  grep -q "saved" err
  "$HEADRACE" runs --json | jq -e '.runs[0].name == "stopped"'
}

@test "an absent run is an error with a way out" {
  "$HEADRACE" run small.toml --quiet
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
  "$HEADRACE" run small.toml --quiet
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
  "$HEADRACE" run small.toml --quiet --duration 3s
  echo keep > r.md
  run "$HEADRACE" report latest --format md -o r.md
  one_line_error 2 "r.md.*exists"
  [ "$(cat r.md)" = keep ]
  run "$HEADRACE" report latest --format md -o r.md -f
  [ "$status" -eq 0 ]
  grep -q VERDICT r.md
}
