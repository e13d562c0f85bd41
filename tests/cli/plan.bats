#!/usr/bin/env bats
# headrace plan: the plan as a document, its program, and hypothetical settings.
load helpers

record() {
  sed -i 's/elements = 40, rows = 8/elements = 0, rows = 8, bytes = "64KiB"/; s/sleep = "1ms"/sleep = "6ms"/' small.toml
  "$HEADRACE" run small.toml --name first --duration 2500ms --quiet
}
fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }

@test "the plan fits its published schema, and a broken one does not" {
  record
  "$HEADRACE" plan first --json > plan.json
  fits_schema plan plan.json
  jq -e '.settings["load.parallelism"] > 1 and .changes[0].gain_ratio > 0.5 and .promise.batches_per_second > 0' plan.json
  jq -e '.promise.batches_per_second < .predicted.batches_per_second and .risk.slower_probability < 0.01' plan.json
  jq 'del(.risk)' plan.json > broken.json
  run fits_schema plan broken.json
  [ "$status" -eq 1 ]
  [[ "$output" == *"'risk' is missing"* ]]
  jq '.changes[0].to = "many"' plan.json > broken.json
  run fits_schema plan broken.json
  [ "$status" -eq 1 ]
}

@test "the program is explained and written for other solvers" {
  record
  run "$HEADRACE" plan first --explain --lp plan.lp
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *"proven optimal, gap 0"* ]] || { echo "$output"; false; }
  [[ "$output" == *"exact max-min method"* ]]
  grep -q '^Maximize' plan.lp
  grep -q 'p_load' plan.lp
  [ "$(tail -n 1 plan.lp)" = End ]
  run "$HEADRACE" plan first --lp plan.lp
  one_line_error 2 'plan.lp.*exists'
}

@test "what-if predicts and names what limits then" {
  record
  run "$HEADRACE" plan first --what-if load.parallelism=8 consumer.cost=20
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *"limited by the consumer then"* ]] || { echo "$output"; false; }
  [[ "$output" == *"worth of more"* ]]
  "$HEADRACE" plan first --json --what-if load.parallelism=8 consumer.cost=20 > what.json
  fits_schema what_if what.json
  # 20 ms a step: 50 batches/s at most.
  jq -e '.predicted.batches_per_second < 55 and .limited_by.name == "consumer"' what.json
  jq -e '.worth_of_more[0].resource == "consumer"' what.json
}

@test "what-if refuses what it does not know, in one line" {
  record
  run "$HEADRACE" plan first --what-if lod.parallelism=2
  one_line_error 2 "no stage is named 'lod'; did you mean 'load'"
  run "$HEADRACE" plan first --what-if load.cost=cheap
  one_line_error 2 "load.cost cannot be 'cheap'"
  run "$HEADRACE" plan first --what-if cores=4 -o plan.json
  one_line_error 2 "excludes"
  [ ! -e plan.json ]
}

@test "a run with a plan is told beside what the plan had said" {
  record
  "$HEADRACE" plan first -o plan.json
  "$HEADRACE" run small.toml --plan plan.json --name planned --duration 3s --quiet
  "$HEADRACE" query --format json "SELECT from_run_id, batches_per_second, observed_batches_per_second FROM prediction_summary" > said.json
  jq -e '.rows | length == 1 and .[0].from_run_id == 1 and .[0].observed_batches_per_second > 0' said.json
  [ "$(jq .rows[0].batches_per_second said.json)" = "$(jq .predicted.batches_per_second plan.json)" ]
  run "$HEADRACE" report planned
  [[ "$output" == *"PLANNED  the plan had predicted"* ]] || { echo "$output"; false; }
  "$HEADRACE" report planned --format json | jq -e '.verdict.planned.error_ratio | (. > -0.5 and . < 0.5)'
  # With settings of one's own on top it is no run of that plan.
  "$HEADRACE" run small.toml --plan plan.json --set parse.parallelism=1 --name other --duration 2500ms --quiet
  [ "$("$HEADRACE" query --format json "SELECT COUNT(*) AS n FROM prediction_summary" | jq .rows[0].n)" = 1 ]
}

@test "a cache is judged by what it takes and gives" {
  record
  run "$HEADRACE" plan first --cache memory=1GiB --epoch-rows 80000 --epochs 5
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "${lines[0]}" == "keep what leaves "*": 5 epochs take "* ]] || { echo "$output"; false; }
  [[ "$output" == *"3.00 GB/s on each thread, assumed"* ]]
  run "$HEADRACE" plan first --cache memory=1GiB --epoch-rows 80000 --epochs 1
  [[ "${lines[0]}" == "no cache: "* ]] || { echo "$output"; false; }
  "$HEADRACE" plan first --json --cache disk=1GiB@1MB/s --epoch-rows 80000 > cache.json
  jq -e '.schema == "headrace.cache/1" and .epochs == null and (.options | length) == 2' cache.json
  run "$HEADRACE" plan first --cache disk=1GiB --epoch-rows 80000
  one_line_error 2 "say what the disk reads"
  run "$HEADRACE" plan first --cache tape=1GiB --epoch-rows 80000
  one_line_error 2 "'tape=1GiB' is no tier"
  run "$HEADRACE" plan first --cache memory=1GiB
  one_line_error 2 "give --epoch-rows"
}
