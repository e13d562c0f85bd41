#!/usr/bin/env bats
# headrace tune: decisions that are made, stored and explained, and what is refused.
load helpers
bats_require_minimum_version 1.5.0

# One thread sleeps 4 ms a batch and the consumer takes one in 1 ms: nothing of it needs a core.
slow() {
  cat > slow.toml <<'TOML'
pipeline = { name = "slow" }
source = { synthetic = { rows = 8, bytes = "16KiB" }, epochs = 0 }
consumer = { step = "1ms" }
stage = [
  { name = "load", operators = [{ sleep = "4ms" }] },
  { name = "pack", operators = [{ sleep = "200us" }] },
]
TOML
}
fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }

@test "a pipeline that lacks threads gets them, verified, stored and explained" {
  slow
  run --separate-stderr "$HEADRACE" tune slow.toml --json -o plan.json
  [ "$status" -eq 0 ] || { echo "$output $stderr"; false; }
  printf '%s\n' "$output" > tune.json
  fits_schema tune tune.json
  jq -e '.start["load.parallelism"] == 1 and .end["load.parallelism"] > 1 and .effect_ratio > 0.3' tune.json
  jq -e '.applied_count <= 10 and (.stopped | length) > 0 and .pairs_count >= 3' tune.json
  jq -c '.decisions[]' tune.json | while read -r line; do
    printf '%s\n' "$line" > decision.json
    fits_schema decision decision.json
  done
  fits_schema plan plan.json
  jq -e '.settings["load.parallelism"] > 1' plan.json

  run "$HEADRACE" tune --explain
  [ "$status" -eq 0 ]
  for words in 'apply load.parallelism 1 ->' 'limited by stage load' predicted observed 'verdict    kept' stop; do
    [[ "$output" == *"$words"* ]] || { echo "no '$words': $output"; false; }
  done
  run "$HEADRACE" tune --explain latest --json
  [ "$(jq -r .schema <<< "$output")" = headrace.tune_decisions/1 ]
  [ "$(jq '.decisions | length' <<< "$output")" -ge 2 ]
  # Any SQL client finds the same.
  run "$HEADRACE" query "SELECT action, verdict FROM decision_summary WHERE decision_index = 0" --format csv
  [[ "$output" == *apply,kept* ]] || { echo "$output"; false; }

  # The settings can be used as they are printed.
  run "$HEADRACE" run slow.toml --plan plan.json --duration 300ms --quiet
  [ "$status" -eq 0 ] || { echo "$output"; false; }
}

@test "a dry run sets nothing" {
  slow
  run "$HEADRACE" tune slow.toml --dry-run --json
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  jq -e '.start == .end and .applied_count == 0 and .decisions[0].action == "apply"' <<< "$output"
}

@test "budgets that cannot be kept are refused with the bill" {
  slow
  run "$HEADRACE" tune slow.toml --memory 1MiB --quiet
  one_line_error 4 'no settings fit 1.00 MiB: the minimum is .* too much'
  run "$HEADRACE" tune slow.toml --cores 100000 --quiet
  one_line_error 4 '100000 cores were asked for and this process may use'
  run "$HEADRACE" tune slow.toml --target 1000000 --quiet
  one_line_error 4 'the most is .* limited by'
}

@test "wrong words are refused before anything runs" {
  slow
  run "$HEADRACE" tune
  one_line_error 2 'which pipeline file'
  run "$HEADRACE" tune slow.toml --set nothing.parallelism=2
  one_line_error 2 'nothing'
  run "$HEADRACE" tune missing.toml
  one_line_error 5 'missing.toml'
  run "$HEADRACE" tune slow.toml --once --continuous
  [ "$status" -eq 2 ]
  run "$HEADRACE" tune slow.toml --target many
  one_line_error 2 "'many' is not a rate"
  run "$HEADRACE" tune slow.toml --duration 0
  one_line_error 2 'longer than 0'
  touch there.json
  run "$HEADRACE" tune slow.toml -o there.json
  one_line_error 2 'there.json.*exists'
  [ ! -e "$HEADRACE_DB" ]
  run "$HEADRACE" tune --explain latest
  [ "$status" -eq 5 ]
  "$HEADRACE" run small.toml --quiet --epochs 1
  run "$HEADRACE" tune --explain latest
  one_line_error 4 'nothing was decided'
}

@test "a pipeline that ends early is said to have ended" {
  run "$HEADRACE" tune small.toml --epochs 1 --json
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  jq -e '.converged == false and .effect_ratio == null and .start == .end' <<< "$output"
  [[ "$(jq -r .stopped <<< "$output")" == *"the run ended before"* ]]
}

@test "Ctrl-C ends it with what there is" {
  slow
  "$HEADRACE" tune slow.toml --continuous --json > tune.json 2> tune.err &
  pid=$!
  until_true 20 newest_run_is recording
  sleep 1
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 130 ] || { echo "exit $code"; cat tune.err; false; }
  jq -e '.schema == "headrace.tune/1"' tune.json
  newest_run_is complete
}

@test "with a duration the pipeline runs on when the tuner has stopped" {
  slow
  "$HEADRACE" tune slow.toml --duration 3s --max-decisions 1 --quiet
  [ "$("$HEADRACE" query 'SELECT duration_ns > 2500000000 AS long FROM run_summary' --format csv | tail -n 1)" = 1 ]
}

@test "why it stopped is said once" {
  slow
  "$HEADRACE" tune slow.toml --dry-run > said 2>&1
  [ "$(grep -c '^stopped: ' said)" -eq 1 ] || { cat said; false; }
  why=$(sed -n 's/^stopped: //p' said)
  [ -n "$why" ]
  [ "$(grep -cF -e "$why" said)" -eq 1 ] || { cat said; false; }
}

@test "a tuner that fails says so, and the pipeline runs on" {
  slow
  "$HEADRACE" tune slow.toml --continuous --quiet 2> said &
  pid=$!
  until_true 20 has_steps  # it has started: what is taken away earlier is a start that failed
  mkdir away
  mv runs.db away/
  until_true 60 grep -q "tuning has ended, the pipeline runs on: .*runs.db" said || { cat said; ls -la . away; false; }
  sleep 1
  kill -INT "$pid"  # it is there to be told
  code=0
  wait "$pid" || code=$?
  # Gone before it was opened, or while it was read.
  [ "$code" -eq 5 ] || [ "$code" -eq 1 ] || { echo "exit $code"; cat said; false; }
}
