#!/usr/bin/env bats
# headrace plan: the plan as a document, its program, and hypothetical settings.
load helpers

setup_file() { make_recorded; }
fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }

@test "the plan fits its published schema, and a broken one does not" {
  take_recorded
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
  take_recorded
  run "$HEADRACE" plan first --explain --lp plan.lp
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *"proven optimal, gap 0"* ]] || { echo "$output"; false; }
  [[ "$output" == *"exact max-min method"* ]]
  grep -q '^Minimize' plan.lp
  grep -q 'p_load' plan.lp
  [ "$(tail -n 1 plan.lp)" = End ]
  run "$HEADRACE" plan first --lp plan.lp
  one_line_error 2 'plan.lp.*exists'
}

@test "what-if predicts and names what limits then" {
  not_slowed
  take_recorded
  run "$HEADRACE" plan first --what-if load.parallelism=8 consumer.cost=20
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *"then limited by the trainer"* ]] || { echo "$output"; false; }
  [[ "$output" == *"gain from one more"* ]]
  "$HEADRACE" plan first --json --what-if load.parallelism=8 consumer.cost=20 > what.json
  fits_schema what_if what.json
  # 20 ms a step: 50 batches/s at most.
  jq -e '.predicted.batches_per_second < 55 and .limited_by.name == "consumer"' what.json
  jq -e '.worth_of_more[0].resource == "consumer"' what.json
}

@test "what-if refuses what it does not know, in one line" {
  take_recorded
  run "$HEADRACE" plan first --what-if lod.parallelism=2
  one_line_error 2 "no stage is named 'lod'; did you mean 'load'"
  run "$HEADRACE" plan first --what-if load.cost=cheap
  one_line_error 2 "load.cost cannot be 'cheap'"
  run "$HEADRACE" plan first --what-if cores=4 -o plan.json
  one_line_error 2 "excludes"
  [ ! -e plan.json ]
}

@test "a cache is planned together with threads" {
  not_slowed
  take_recorded
  recorded_alone
  # More threads alone reach what the consumer takes.
  run "$HEADRACE" plan first --cache memory=1GiB --epoch-rows 80000 --epochs 50
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "${lines[0]}" == "no cache: "* ]] || { echo "$output"; false; }
  [[ "$output" == *"load.parallelism"* ]]
  [[ "$output" == *"3.00 GB/s on each thread, assumed"* ]]
  # Where threads are not to be had, a cache does it.
  run "$HEADRACE" plan first --cache memory=1GiB --epoch-rows 80000 --epochs 5 --max-threads 1
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "${lines[0]}" == "keep what leaves "*": 5 epochs take "* ]] || { echo "$output"; false; }
  run "$HEADRACE" plan first --cache memory=1GiB --epoch-rows 80000 --epochs 1 --max-threads 1
  [[ "${lines[0]}" == "no cache: "* ]] || { echo "$output"; false; }
  run "$HEADRACE" plan first --cache disk=1GiB --epoch-rows 80000
  one_line_error 2 "say what the disk reads"
  run "$HEADRACE" plan first --cache tape=1GiB --epoch-rows 80000
  one_line_error 2 "'tape=1GiB' is not a tier"
  run "$HEADRACE" plan first --cache memory=1GiB
  one_line_error 2 "give --epoch-rows"
}

@test "a plan with a cache fits the schema and names every candidate" {
  take_recorded
  "$HEADRACE" plan first --cache disk=1GiB@1MB/s memory=1GiB --epoch-rows 80000 --max-threads 1 --json > plan.json
  fits_schema plan plan.json
  jq -e '.cache.epochs == null and (.cache.options | length) == 4' plan.json
  jq -e '[.cache.options[].allowed] | all' plan.json
  jq -e '.caches[0].tier == "memory" and .caches[0].kept_ratio == 1' plan.json
  jq -e '.predicted.batches_per_second > 1.2 * .now.batches_per_second' plan.json
}

@test "price and power are objectives where they are given" {
  take_recorded
  run "$HEADRACE" plan first --explain
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *"price: not in force"* ]] || { echo "$output"; false; }
  "$HEADRACE" plan first --price-per-core-hour 0.05 --watts-per-core 6 --json > plan.json
  fits_schema plan plan.json
  jq -e '[.objectives[].least] == ["seconds a batch", "price of whole cores", "power of the cores used", "changes and missing headroom"]' plan.json
  jq -e '[.objectives[] | select(.optimal)] | length >= 3' plan.json
  jq -e '.cores_used >= 1 and .watts > 0' plan.json
}

@test "a number of rows that was not recorded is not printed as 0" {
  take_recorded
  sqlite3 "$HEADRACE_DB" "UPDATE intervals SET step_rows_count = 0; UPDATE operators SET rows_count = 0;"
  sqlite3 "$HEADRACE_DB" "UPDATE steps SET rows_count = 0"
  run "$HEADRACE" plan first
  [[ "$output" == *"now  "* ]] || { echo "$output"; false; }
  [[ "$output" != *"(0 rows/s)"* ]] || { echo "$output"; false; }
  "$HEADRACE" plan first --json | jq -e '.now.rows_per_second == null'
}
