#!/usr/bin/env bats
# headrace characterize: the study of a tiny table: its pages, how it goes on, and wrong inputs.
bats_require_minimum_version 1.5.0
load helpers

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }
tiny_table() { "$HEADRACE" generate rm1 -o table --rows 2048 --features 0.01 --stripe-rows 512 --optimize off 2> /dev/null; }
TABLE=$BATS_FILE_TMPDIR/table # one for all: a study is of a table at one place
study() { "$HEADRACE" characterize "$TABLE" -o study --no-ladder --quick --duration 500ms "$@"; }
make_study() { tiny_table && { study -q > /dev/null || told $?; }; }
setup_file() { prepare make_study; }
# A finished study of the table.
take_study() { cp -r "$BATS_FILE_TMPDIR/study" .; }
runs_of() { "$HEADRACE" runs --db "$1/runs.db" --json | jq '.runs | length'; }
# A short study may leave its limit open on a busy machine: exit 4.
told() { [ "$1" -eq 0 ] || [ "$1" -eq 4 ] || { echo "exit $1"; return 1; }; }
value() { jq "[.workloads[0].parts[].figures[] | select(.key == \"$1\")][0].value" "$2"; }

@test "a table of one's own: pages in every format, figures as the directories say, beside the published" {
  run --separate-stderr study
  told "$status"
  [[ "$output" == *"rm1: Selectivity"* ]]
  [[ "$stderr" == *"elapsed"*"left"* ]]
  fits_schema characterization study/characterization.json
  "$HEADRACE" layout "$TABLE" --pipeline "$TABLE/pipeline.toml" --json > layout.json
  [ "$(value rows_count study/characterization.json)" = 2048 ]
  jq -e --slurpfile layout layout.json '([.workloads[0].parts[].figures[] | select(.key == "used_dense_features" or .key == "used_sparse_features") | .value] | add) == ([$layout[0].columns[].wanted_keys_count // 0] | add)' study/characterization.json
  # Selectivity within a point of the published, and of what the generator says.
  jq -e '[.workloads[0].parts[].figures[] | select(.key == "bytes_used_ratio")][0] | (.value - .published[0].value) | . > -0.01 and . < 0.01' study/characterization.json
  grep -q '^# Characterization' study/characterization.md
  grep -q '<svg' study/characterization.html
  run ! grep -qi '<script\|http:\|https:' study/characterization.html
  # What is there is printed as asked.
  study --format html > printed || told $?
  grep -q '^<!DOCTYPE html>' printed
  grep -q '<svg' printed
  study --json > printed || told $?
  jq -e '.schema == "headrace.characterization/1"' printed
  # Nothing unmeasured is a number: each null has its reason.
  jq -e '[.workloads[0].parts[].figures[] | select(.value == null) | .value_unavailable | length > 0] | all' study/characterization.json
  jq -e '[.workloads[0].parts[].figures[] | select(.key == "energy_price_per_million_rows")][0].value_unavailable | test("--kwh-price")' study/characterization.json
}

@test "a finished study is not made again, and another input makes it anew and says which" {
  take_study
  before=$(runs_of study)
  run --separate-stderr study --json
  told "$status"
  [ "$(runs_of study)" -eq "$before" ]
  [[ "$stderr" != *"elapsed"* ]]
  run --separate-stderr study --json --set decode.parallelism=2 --core-hour-price 0.5
  told "$status"
  [[ "$stderr" == *"study of other inputs (set decode.parallelism=2 was not there, is yes): starts again"* ]]
  [ "$(runs_of study)" -gt "$before" ]
  # The command on its page has the options that changed the figures.
  [ "$(jq -r .command study/characterization.json)" = "headrace characterize TABLE --pipeline FILE --quick --no-ladder --duration 500ms --set decode.parallelism=2 --core-hour-price 0.5" ]
  # Of a local table nothing went over a NIC.
  jq -e '[.workloads[0].stages[].nic_bytes_per_s] | all(. == null)' study/characterization.json
}

@test "an interrupted study goes on with the step that was not done" {
  "$HEADRACE" characterize "$TABLE" -o study --no-ladder --duration 20s 2> progress &
  pid=$!
  until_true 30 test -e study/steps/rm1.facts
  until_true 30 grep -q 'one worker' progress
  kill -INT $pid
  code=0
  wait $pid || code=$?  # not by run: its subshell has no such child
  [ "$code" -eq 130 ]
  [ ! -e study/steps/rm1.worker ]
  [ ! -e study/characterization.json ]
  # The same study, but that its runs are short: by hand, as the duration is an input.
  jq '.inputs.duration = "1s"' study/study.json > study.json && mv study.json study/study.json
  cp study/steps/rm1.facts facts
  run --separate-stderr "$HEADRACE" characterize "$TABLE" -o study --no-ladder --duration 1s
  told "$status"
  [[ "$stderr" != *"starts again"* ]]
  [[ "$stderr" != *"sample of rows"* ]]
  cmp facts study/steps/rm1.facts
  [ -e study/characterization.json ]
}

@test "a step whose result is damaged, or whose run is gone, is made again" {
  take_study
  echo '{"run_id": 999}' > study/steps/rm1.worker
  echo 'not JSON' > study/steps/rm1.facts
  run --separate-stderr study
  told "$status"
  [[ "$stderr" == *"sample of rows"* ]]
  [[ "$stderr" == *"one worker"* ]]
  jq -e '.run_id != 999' study/steps/rm1.worker
}

@test "figures of a damaged step file are read again, not shown" {
  take_study
  cp study/steps/rm1.facts facts
  for edit in '.rows = 1e300' '.coverage = "x"'; do  # more of them: tests/experiments/study_files_test.cc
    jq "$edit" facts > study/steps/rm1.facts
    run --separate-stderr study
    told "$status"
    [[ "$stderr" == *"sample of rows"* ]] || { echo "kept: $edit"; return 1; }
    [ "$(value rows_count study/characterization.json)" = 2048 ]
  done
}

@test "a workload's name leaves neither the folder nor the terminal" {
  mkdir inner
  sed '0,/^name = .*/s//name = "..\/..\/out\\u001b[31m<b>"/' "$TABLE/pipeline.toml" > odd.toml
  run --separate-stderr "$HEADRACE" characterize "$TABLE" --pipeline odd.toml -o inner/study --no-ladder --quick --duration 500ms
  told "$status"
  [ "$(ls inner)" = study ]
  [ -e "inner/study/steps/______out__31m_b_.facts" ]
  [[ "$stderr" != *$'\e'* ]]
  run ! grep -q '<b>' inner/study/characterization.html
}

@test "one study at a time in a folder, and none in the folder of another program" {
  "$HEADRACE" characterize "$TABLE" -o study --no-ladder --duration 20s 2> progress &
  pid=$!
  until_true 30 grep -q 'one worker' progress
  run study -q
  one_line_error 2 "another study is being made"
  kill -INT $pid
  code=0
  wait $pid || code=$?  # not by run: its subshell has no such child
  [ "$code" -eq 130 ]
  mkdir -p theirs/steps
  echo '{"schema": "theirs/1"}' > theirs/study.json
  echo kept > theirs/steps/theirs
  run "$HEADRACE" characterize "$TABLE" -o theirs --no-ladder --quick
  one_line_error 2 "the folder holds other things than a study"
  [ "$(cat theirs/steps/theirs)" = kept ]
  [ "$(cat theirs/study.json)" = '{"schema": "theirs/1"}' ]
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
  run "$HEADRACE" characterize rm1 --memory 0 -o study
  one_line_error 2 "--memory: must be above 0"
  run "$HEADRACE" characterize rm1 --core-hour-price nan -o study
  one_line_error 2 "--core-hour-price: 'nan' is not a number"
  printf 'name = "mine"\n[table]\ndense_features = 40\nsparse_features = 8\n' > mine.toml
  run "$HEADRACE" characterize mine.toml ./mine.toml -o study
  one_line_error 2 "'mine' is named twice"
  sed -i 's/mine/rm1/' mine.toml
  run "$HEADRACE" characterize mine.toml -o study
  one_line_error 2 "is the name of a published model"
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
  grep -q '^<!doctype html>' page.html
  grep -q '</html>' page.html
  # Its script and style are in it, and named by their hashes: nothing else may run or be asked for.
  grep -q "default-src 'none'; script-src 'sha256-" page.html
  run ! grep -Eqi '(src|href)="?https?:|unsafe-' page.html
}
