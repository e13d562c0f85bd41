#!/usr/bin/env bats
# headrace characterize: the study of a tiny table: its pages, how it goes on, and wrong inputs.
bats_require_minimum_version 1.5.0
load helpers

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }
tiny_table() { "$HEADRACE" generate rm1 -o table --rows 2048 --features 0.01 --stripe-rows 512 2> /dev/null; }
study() { "$HEADRACE" characterize table -o study --no-ladder --quick --duration 1s "$@"; }
runs_of() { "$HEADRACE" runs --db "$1/runs.db" --json | jq '.runs | length'; }
# A short study may leave its limit open on a busy machine: exit 4.
told() { [ "$1" -eq 0 ] || [ "$1" -eq 4 ] || { echo "exit $1"; return 1; }; }
value() { jq "[.workloads[0].parts[].figures[] | select(.key == \"$1\")][0].value" "$2"; }

@test "a table of one's own: pages in every format, figures as the directories say, beside the published" {
  tiny_table
  run --separate-stderr study
  told "$status"
  [[ "$output" == *"rm1: Selectivity"* ]]
  [[ "$stderr" == *"elapsed"*"left"* ]]
  fits_schema characterization study/characterization.json
  "$HEADRACE" layout table --pipeline table/pipeline.toml --json > layout.json
  [ "$(value rows_count study/characterization.json)" = 2048 ]
  jq -e --slurpfile layout layout.json '([.workloads[0].parts[].figures[] | select(.key == "used_dense_features" or .key == "used_sparse_features") | .value] | add) == ([$layout[0].columns[].wanted_keys_count // 0] | add)' study/characterization.json
  # Selectivity within a point of the published, and of what the generator says.
  jq -e '[.workloads[0].parts[].figures[] | select(.key == "bytes_used_ratio")][0] | (.value - .published[0].value) | . > -0.01 and . < 0.01' study/characterization.json
  grep -q '^# Characterization' study/characterization.md
  grep -q '<svg' study/characterization.html
  run ! grep -qi '<script\|http:\|https:' study/characterization.html
  # Nothing unmeasured is a number: each null has its reason.
  jq -e '[.workloads[0].parts[].figures[] | select(.value == null) | .value_unavailable | length > 0] | all' study/characterization.json
  jq -e '[.workloads[0].parts[].figures[] | select(.key == "energy_price_per_million_rows")][0].value_unavailable | test("--kwh-price")' study/characterization.json
}

@test "a finished study is not made again, and another input makes it anew and says which" {
  tiny_table
  run --separate-stderr study --json
  told "$status"
  before=$(runs_of study)
  run --separate-stderr study --json
  told "$status"
  [ "$(runs_of study)" -eq "$before" ]
  [[ "$stderr" != *"elapsed"* ]]
  run --separate-stderr study --json --set decode.parallelism=2
  told "$status"
  [[ "$stderr" == *"study of other inputs (set decode.parallelism=2 was not there, is yes): begins anew"* ]]
  [ "$(runs_of study)" -gt "$before" ]
}

@test "an interrupted study goes on with the step that was not done" {
  tiny_table
  "$HEADRACE" characterize table -o study --no-ladder --duration 20s 2> progress &
  pid=$!
  until_true 30 test -e study/steps/rm1.facts
  until_true 30 grep -q 'one worker' progress
  kill -INT $pid
  run ! wait $pid
  [ ! -e study/steps/rm1.worker ]
  [ ! -e study/characterization.json ]
  # The same study, but that its runs are short: by hand, as the duration is an input.
  jq '.inputs.duration = "1s"' study/study.json > study.json && mv study.json study/study.json
  cp study/steps/rm1.facts facts
  run --separate-stderr "$HEADRACE" characterize table -o study --no-ladder --duration 1s
  told "$status"
  [[ "$stderr" != *"begins anew"* ]]
  [[ "$stderr" != *"sample of rows"* ]]
  cmp facts study/steps/rm1.facts
  [ -e study/characterization.json ]
}

@test "a step whose result is damaged, or whose run is gone, is made again" {
  tiny_table
  run study -q
  told "$status"
  echo '{"run_id": 999}' > study/steps/rm1.worker
  echo 'not JSON' > study/steps/rm1.facts
  run --separate-stderr study
  told "$status"
  [[ "$stderr" == *"sample of rows"* ]]
  [[ "$stderr" == *"one worker"* ]]
  jq -e '.run_id != 999' study/steps/rm1.worker
}

@test "the ladder alone: every rung in its tiers, exit 3 where a sign is opposite" {
  tiny_table
  run --separate-stderr "$HEADRACE" characterize table --ladder-only --quick --pairs 2 -o study --json
  [ "$status" -eq 0 ] || [ "$status" -eq 3 ]
  printf '%s' "$output" > ladder.json
  fits_schema characterization ladder.json
  jq -e '[.ladder.totals[].rung] == ["base", "FF", "FM", "CR", "FR", "LS", "RB", "CL", "DD"]' ladder.json
  jq -e '[.ladder.steps[] | select(.tier == "storage")] | length == 8' ladder.json
  # The modelled disk's time is virtual: its signs hold on any machine.
  jq -e '[.ladder.steps[] | select(.tier == "storage" and .published_low != null) | .sign] | all(. != "OPPOSITE")' ladder.json
  jq -e '.ladder.opposite == ([.ladder.steps[] | .sign] | any(. == "OPPOSITE"))' ladder.json
  [ "$(jq -r .ladder.opposite ladder.json)" = "$([ "$status" -eq 3 ] && echo true || echo false)" ]
}

@test "wrong inputs are one line each, and leave nothing behind" {
  run "$HEADRACE" characterize rm7 -o study
  one_line_error 2 "neither a workload .rm1, rm2, rm3, a spec file. nor a table"
  mkdir empty
  run "$HEADRACE" characterize empty -o study
  one_line_error 2 "what a model reads of it is not known.*--pipeline FILE"
  run "$HEADRACE" characterize rm1 rm1 -o study
  one_line_error 2 "named twice"
  run "$HEADRACE" characterize rm1 empty -o study
  one_line_error 2 "a table is characterized alone"
  run "$HEADRACE" characterize rm1 --coread log.jsonl -o study
  one_line_error 2 "--coread: are of a table of your own"
  run "$HEADRACE" characterize rm1 --duration ten -o study
  one_line_error 2 "--duration"
  run "$HEADRACE" characterize small.toml -o study
  [ "$status" -ne 0 ]
  [ ! -e study ]
  mkdir other && touch other/file
  run "$HEADRACE" characterize rm1 -o other
  one_line_error 2 "the folder holds other things than a study"
  run "$HEADRACE" characterize rm1 --rows 1000000000 -o study
  one_line_error 7 "needs about .* are free"
}

@test "report writes a page of HTML that needs nothing else" {
  "$HEADRACE" run small.toml --duration 1s -q
  run "$HEADRACE" report --format html -o page.html
  told "$status"
  grep -q '^<!DOCTYPE html>' page.html
  grep -q '</html>' page.html
  run ! grep -qi '<script\|http:\|https:' page.html
}
