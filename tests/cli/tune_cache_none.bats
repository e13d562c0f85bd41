#!/usr/bin/env bats
# headrace tune --cache: where there is none, where it is not compared, what is refused, and Ctrl-C. One thread a stage: threads are
# the affair of tune.bats.

load helpers

setup_file() { "${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}" generate rm1 -o "$BATS_FILE_TMPDIR/rm1" --rows 4000 --features 0.1 --seed 1 > /dev/null 2>&1; }

pipeline() { echo "$BATS_FILE_TMPDIR/rm1/pipeline.toml"; }

@test "where the consumer is the limit there is no cache, and it says what one would do" {
  timeout 900 "$HEADRACE" tune "$(pipeline)" --max-threads 1 --set consumer.step=150ms --max-decisions 1 --cache memory=1GiB --json > tuned.json
  jq -e '.decisions[-1] | .action == "cache" and .verdict == "" and (.start_settings | length == 0) and (.reason | startswith("no cache: "))' tuned.json
  [ "$("$HEADRACE" runs --json | jq '.runs | length')" -eq 1 ]
}

@test "what is not to be verified is stated with its settings" {
  timeout 900 "$HEADRACE" tune "$(pipeline)" --max-threads 1 --max-decisions 1 --cache memory=1GiB --cache-verify 0s --json > tuned.json
  jq -e '.decisions[-1] | .action == "cache" and .verdict == "" and .applied_ns == null and (.reason | contains("takes effect at the next start"))' tuned.json
  jq -e '.start_settings["cache.after"] != null' tuned.json
  [ "$("$HEADRACE" runs --json | jq '.runs | length')" -eq 1 ]
}

@test "what cannot be is refused" {
  run "$HEADRACE" tune "$(pipeline)" --cache memory=1GiB --continuous
  one_line_error 2 "continuous"
  run "$HEADRACE" tune "$(pipeline)" --checkpoint at.ckpt
  one_line_error 2 "cache"
  run "$HEADRACE" tune "$(pipeline)" --cache tape=1GiB
  one_line_error 2 "tape"
  [ ! -e runs.db ]
}

@test "Ctrl-C while the restarted pipeline runs ends both" {
  "$HEADRACE" tune "$(pipeline)" --max-threads 1 --max-decisions 1 --cache memory=1GiB --quiet < /dev/null 3>&- &
  local tune=$!
  until_true 60 eval '[ "$("$HEADRACE" runs --json 2> /dev/null | jq "[.runs[] | select(.name | contains(\"-cache-\"))] | length")" -eq 1 ]'
  kill -INT "$tune"
  local status=0
  wait "$tune" || status=$?
  [ "$status" -eq 130 ]
  "$HEADRACE" runs --json | jq -e 'all(.runs[]; .state != "recording")'
}
