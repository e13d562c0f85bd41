#!/usr/bin/env bats
# Recordings whose verdict is asked for: alone on the machine.
load helpers

setup_file() { make_recorded; }

@test "run records, report, plan, runs and query read it" {
  sed -i 's/sleep = "1ms"/sleep = "6ms"/' small.toml
  run "$HEADRACE" run small.toml --name first --duration 2s --quiet
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [ -z "$output" ]
  run "$HEADRACE" report first
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *input-bound*limit*load*fix*next* ]] || { echo "$output"; false; }
  "$HEADRACE" report first --format json | jq -e '.schema == "headrace.report/1"'
  "$HEADRACE" runs --json | jq -e '.schema == "headrace.runs/1" and .runs[0].name == "first"'
  "$HEADRACE" query --format json "SELECT operator FROM operator_summary" | jq -e '.rows | map(.operator) | index("parse") != null'
  run "$HEADRACE" plan first -o plan.json
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  jq -e '.schema == "headrace.plan/1"' plan.json
  run "$HEADRACE" run small.toml --plan plan.json --no-record --quiet --epochs 1
  [ "$status" -eq 0 ] || { echo "$output"; false; }
}

@test "a folder with a blank and a quote: the printed commands work when pasted" {
  mkdir "it's here"
  # One clear limit.
  sed 's/sleep = "1ms"/sleep = "6ms"/' small.toml > "it's here/p.toml"
  HEADRACE_DB= run "$HEADRACE" run "it's here/p.toml" --db "it's here/r.db" --duration 2s
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  page=$output
  more=$(sed -n 's/^ more *//p' <<< "$page")
  run bash -c "$more"
  [ "$status" -eq 0 ] || [ "$status" -eq 4 ] || { echo "$more: $output"; false; }
  # On a machine whose cores are taken there may be no fix to paste.
  paste=$(sed -n '/^ fix /,/^ next /s/^ *\(.*apply .*\)$/\1/p' <<< "$page")
  [ -n "$paste" ] || skip "no fix on this page: $page"
  run bash -c "$paste --pairs 2 --duration 500ms"
  case $status in 0 | 3 | 4) ;; *) echo "$paste: $output"; false ;; esac
  [[ "$output" == *"The plan changed the rate by"* ]] || { echo "$output"; false; }
}

@test "a run with a plan is told beside what the plan had said" {
  take_recorded
  "$HEADRACE" plan first -o plan.json
  "$HEADRACE" run "$RECORDED/small.toml" --plan plan.json --name planned --duration 2500ms --quiet
  "$HEADRACE" query --format json "SELECT from_run_id, batches_per_second, observed_batches_per_second FROM prediction_summary" > said.json
  jq -e '.rows | length == 1 and .[0].from_run_id == 1 and .[0].observed_batches_per_second > 0' said.json
  [ "$(jq .rows[0].batches_per_second said.json)" = "$(jq .predicted.batches_per_second plan.json)" ]
  run "$HEADRACE" report planned
  [[ "$output" == *" plan "*"predicted "*"measured "* ]] || { echo "$output"; false; }
  "$HEADRACE" report planned --format json | jq -e '.verdict.planned.error_ratio | (. > -0.5 and . < 0.5)'
  # With settings of one's own on top it is no run of that plan.
  "$HEADRACE" run "$RECORDED/small.toml" --plan plan.json --set parse.parallelism=1 --name other --duration 300ms --quiet
  [ "$("$HEADRACE" query --format json "SELECT COUNT(*) AS n FROM prediction_summary" | jq .rows[0].n)" = 1 ]
}

@test "a budget that cannot keep the rate says so and exits 4" {
  sed -i 's/elements = 40, rows = 8/elements = 0, rows = 8, bytes = "64KiB"/; s/spin = "1ms"/spin = "3ms"/' small.toml
  "$HEADRACE" run small.toml --name first --duration 2500ms --quiet
  run "$HEADRACE" plan first --cores 0.1
  [ "$status" -eq 4 ] || { echo "$output"; false; }
  [[ "$output" == "infeasible at the present rate: 0.1 cores allow"* ]] || { echo "$output"; false; }
  [[ "$output" == *"no setting makes up for the smaller budget"* ]] || { echo "$output"; false; }
}
