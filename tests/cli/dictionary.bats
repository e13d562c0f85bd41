#!/usr/bin/env bats
# Transforms on dictionary entries: the same rows, counted, and what they cannot do is said.
load helpers

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.02 --stripe-rows 512 --seed 3 2> /dev/null
  "$HEADRACE" rewrite t -o d --column sparse.value.element=dictionary:always > /dev/null
}

checksum() {
  "$HEADRACE" run d/pipeline.toml --no-record --checksum --json --set consumer.step=0 "$@" | jq -c .checksum.multiset
}

# COLUMN of operator NAME in the latest run.
figure() {
  "$HEADRACE" query --db r.db --format csv "SELECT $2 FROM operator_summary WHERE operator = '$1' AND run_id = (SELECT max(run_id) FROM run_summary)" | tail -n 1
}

@test "ids in dictionaries give the same rows, and fewer entries than ids are transformed" {
  make_table
  plain=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 | jq -c .checksum.multiset)
  [ -n "$plain" ]
  for dictionary in off auto always; do
    for layout in direct flatmap; do
      [ "$(checksum --set pipeline.dictionary=$dictionary --set pipeline.layout=$layout)" = "$plain" ]
    done
  done
  "$HEADRACE" run d/pipeline.toml --db r.db --level 1 -q --set consumer.step=0 --set pipeline.dictionary=always
  ids=$(figure transform.dictionary bytes_in_bytes)
  entries=$(figure transform.dictionary bytes_out_bytes)
  [ "$entries" -gt 0 ]
  [ "$entries" -lt "$ids" ]
  "$HEADRACE" run d/pipeline.toml --db r.db --level 1 -q --set consumer.step=0 --set pipeline.dictionary=off
  [ -z "$(figure transform.dictionary bytes_in_bytes | grep -v bytes)" ]
}

@test "dictionaries that are looked up before the transforms are counted at the end" {
  make_table
  run "$HEADRACE" run d/pipeline.toml --no-record --set consumer.step=0
  [ "$status" -eq 0 ]
  [[ "$output" != *"pipeline.dictionary"* ]]
  run "$HEADRACE" run d/pipeline.toml --no-record --set consumer.step=0 --set cache.after=extract
  [ "$status" -eq 0 ]
  [[ "$output" == *"pipeline.dictionary: "*"[[cache]] keeps their ids"* ]]
}

@test "in deduplicated groups too" {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.05 --stripe-rows 512 --seed 3 --clustered 2> /dev/null
  "$HEADRACE" rewrite t -o d --column sparse.value.element=dictionary:always > /dev/null
  plain=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 | jq -c .checksum.multiset)
  for layout in direct flatmap; do
    for scope in neighbours batch; do
      for dictionary in off auto always; do
        [ "$(checksum --set pipeline.dictionary=$dictionary --set pipeline.layout=$layout --set dedup.mode=on --set dedup.scope=$scope)" = "$plain" ]
      done
    done
  done
  "$HEADRACE" run d/pipeline.toml --db r.db --level 1 -q --set consumer.step=0 --set pipeline.dictionary=always
  ids=$(figure transform.dictionary bytes_in_bytes)
  run "$HEADRACE" run d/pipeline.toml --db r.db --set consumer.step=0 --set pipeline.dictionary=always --set dedup.mode=on
  [ "$status" -eq 0 ]
  [[ "$output" != *"pipeline.dictionary:"* ]] || { echo "$output"; false; }
  # The transforms found dictionaries, in fewer rows.
  unique=$(figure transform.dictionary bytes_in_bytes)
  [ "$unique" -gt 0 ]
  [ "$unique" -lt "$ids" ]
}

@test "wrong values are refused with the nearest right one" {
  make_table
  run "$HEADRACE" run d/pipeline.toml --no-record -q --set pipeline.dictionary=autto
  one_line_error 2 "dictionary is \"auto\", \"off\" or \"always\", got \"autto\", did you mean 'auto'"
  run "$HEADRACE" run d/pipeline.toml --no-record -q --set pipeline.dictionry=off
  one_line_error 2 "did you mean 'dictionary'"
  run "$HEADRACE" rewrite t -o x --column sparse.value.element=dictionary:sometimes
  one_line_error 2 "'dictionary:sometimes' is not a choice"
}
