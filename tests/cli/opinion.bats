#!/usr/bin/env bats
# Runs that differ in one thing: without input (--ceiling), from the device (--cold), and what the report makes of them.
bats_require_minimum_version 1.5.0
load helpers

generate_table() { "$HEADRACE" generate rm1 -o t --rows 8192 --features 0.01 --seed 3 --stripe-rows 1024 2> /dev/null; }
setup_file() { prepare generate_table; }
make_table() { cp -r "$BATS_FILE_TMPDIR/t" .; }
sql() { "$HEADRACE" query --format csv "$1" | tail -n +2 | tr -d '"\r'; }

@test "--ceiling repeats one batch: the consumer does not wait, and the pipeline stands still" {
  make_table
  run -0 "$HEADRACE" run t/pipeline.toml --ceiling --duration 1s --set consumer.step=5ms --json
  [ "$(sed -n '/^{/,$p' <<< "$output" | jq '.kind == "ceiling" and .stall_ratio == null and .batches_count > 1')" = true ]
  [ "$(sql "SELECT kind FROM run_summary")" = ceiling ]
  # What fits the queues is read, then nothing more.
  [ "$(sql "SELECT SUM(gets_count) FROM queue_summary WHERE consumer_stage = 'consumer'")" -eq 1 ]
  run -4 "$HEADRACE" report
  [[ "$output" == *"TRAINER ALONE"* ]]
}

@test "a summary says what kind of run it was; repeats do not pass for rows of the table" {
  make_table
  run -0 "$HEADRACE" run t/pipeline.toml --no-record --ceiling --duration 300ms
  [[ "$output" == *"one batch of "*" rows repeated, "*" steps in "* ]]
  [[ "$output" != *"the trainer waited"* ]]
  run -0 "$HEADRACE" run t/pipeline.toml --no-record --set consumer.step=0
  [[ "$output" == *": 8192 rows in "* ]]
  [ "$("$HEADRACE" run t/pipeline.toml --no-record --json 2> /dev/null | jq -r .kind)" = usual ]
  [ "$("$HEADRACE" run t/pipeline.toml --no-record --json --cold 2> /dev/null | jq -r .kind)" = cold ]
}

@test "a ceiling run is nothing to plan for, and the refusal names the run that is" {
  make_table
  "$HEADRACE" run t/pipeline.toml --level 1 --ceiling --duration 500ms -q
  for words in "" "--json" "--what-if cores=2" "--nodes nodes.toml"; do
    run "$HEADRACE" plan $words
    one_line_error 4 "nothing to size"
    [[ "$output" == *"record the pipeline itself"*pipeline.toml* ]]
  done
  "$HEADRACE" run t/pipeline.toml --level 1 --duration 1s -q
  "$HEADRACE" run t/pipeline.toml --level 1 --ceiling --duration 500ms -q
  run "$HEADRACE" plan
  one_line_error 4 "headrace plan 2"
  run -4 "$HEADRACE" report
  [[ "$output" == *"headrace report 2"* ]]
}

@test "runs that did other work are no siblings" {
  make_table
  "$HEADRACE" run t/pipeline.toml --level 1 --duration 1s -q --checksum
  "$HEADRACE" run t/pipeline.toml --level 1 --duration 1s -q
  "$HEADRACE" run t/pipeline.toml --level 1 --ceiling --duration 500ms -q
  run -4 "$HEADRACE" report 3
  [[ "$output" == *"headrace report 2"* ]]
  "$HEADRACE" report 1 --json > r.json || [ $? -eq 4 ]
  [ "$(jq -c '[.. | .missing_command? // empty]' r.json)" != '[]' ] || { jq . r.json | head -40; false; }
  ! grep -q -- '--ceiling' <(jq -r '.. | .missing_command? // empty' r.json) || false
}

@test "--ceiling has an end of its own and excludes what counts rows" {
  for other in '--epochs 2' '--checksum' '--row-log x' '--checkpoint x' '--cold'; do
    run -2 "$HEADRACE" run small.toml --ceiling $other
  done
  run "$HEADRACE" run small.toml --ceiling --set delivery.to=unix:x
  one_line_error 2 'another process'
  for set in source.epochs=3 source.cold=true; do
    run "$HEADRACE" run small.toml --ceiling --set $set
    one_line_error 2 "one batch is repeated.*leave out --set $set"
  done
}

@test "--cold says what the page cache held, and every epoch reads from the device" {
  make_table
  run -0 "$HEADRACE" run t/pipeline.toml --cold --epochs 3 --set consumer.step=0
  [ "$(sql "SELECT cold, resident_before_ratio > 0 FROM run_summary")" = 1,1 ]
  if [ "$(sql "SELECT resident_ratio > 0.05 FROM run_summary")" = 1 ]; then
    [[ "$output" == *"stays in the page cache"* ]]
    skip "the file system of $DIR keeps its pages"
  fi
  share="$(sql "SELECT (SELECT SUM(read_bytes) FROM process_summary) * 1.0 / SUM(bytes_out_bytes) > 0.8 FROM operator_summary WHERE operator = 'fetch.io'")"
  [ "$share" = 1 ] || { sql "SELECT read_bytes FROM process_summary"; false; }
  # The same rows as ever.
  plain=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --epochs 2 | jq -cS .checksum.multiset)
  [ "$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --epochs 2 --cold | jq -cS .checksum.multiset)" = "$plain" ]
}

@test "--cold says so without a recording too" {
  make_table
  run -0 "$HEADRACE" run t/pipeline.toml --cold --no-record --set consumer.step=0
  [[ "$output" == *"page cache"* ]]
}

@test "--cold needs a table that a page cache holds" {
  run "$HEADRACE" run small.toml --cold
  one_line_error 2 'synthetic'
  make_table
  run "$HEADRACE" run t/pipeline.toml --cold --set source.direct=true
  one_line_error 2 'past the page cache'
}

@test "a run samples what clustering by session would give, and R11 speaks of it" {
  make_table
  "$HEADRACE" run t/pipeline.toml -q --duration 2500ms --set consumer.step=0
  # How many rows there is time for is the machine's affair, so the figures are compared with each other only.
  [ -n "$(sql "SELECT clustered_dedup_ratio FROM run_summary")" ] || skip "this machine is too slow for the sample"
  [ "$(sql "SELECT sample_dedup_ratio >= 1 AND clustered_dedup_ratio > 1.1 * sample_dedup_ratio FROM run_summary")" = 1 ]
  "$HEADRACE" report --json > r.json || [ $? -eq 4 ]
  jq -e '.recommendations[] | select(.id == "R11") | .advice != "cannot say" and (.why | contains("by session"))' r.json || { jq '.recommendations[] | select(.id == "R11")' r.json; false; }
}

@test "of a table that is clustered already R11 does not ask to cluster it" {
  "$HEADRACE" generate rm1 -o t --rows 8192 --features 0.01 --seed 3 --stripe-rows 1024 --clustered 2> /dev/null
  "$HEADRACE" run t/pipeline.toml -q --duration 2500ms --set consumer.step=0
  stored=$(sql "SELECT clustered_dedup_ratio < 1.1 * sample_dedup_ratio FROM run_summary")
  [ -n "$stored" ] || skip "this machine is too slow for the sample"
  [ "$stored" = 1 ]
  "$HEADRACE" report --json > r.json || [ $? -eq 4 ]
  jq -e '.recommendations[] | select(.id == "R11") | (tojson | contains("rewrite") | not) and (.why | contains("in the order that the rows have"))' r.json || { jq '.recommendations[] | select(.id == "R11")' r.json; false; }
}

@test "a run samples what lz4 would make of its table, and R28 speaks of it" {
  make_table
  "$HEADRACE" run t/pipeline.toml -q --duration 2500ms --set consumer.step=0
  [ "$(sql "SELECT COUNT(*) FROM run_fact WHERE name IN ('lz4_bytes_ratio', 'lz4_decompress_ratio') AND value BETWEEN 0.01 AND 10")" = 2 ]
  "$HEADRACE" report --json > r.json || [ $? -eq 4 ]
  jq -e '.recommendations[] | select(.id == "R28") | .why | contains("a sample of the table")' r.json || { jq '.recommendations[] | select(.id == "R28")' r.json; false; }
  "$HEADRACE" rewrite t -o small --compression lz4 2> /dev/null
  "$HEADRACE" run small/pipeline.toml -q --duration 500ms --set consumer.step=0 --name lz4
  [ "$(sql "SELECT COUNT(*) FROM run_fact AS f JOIN run_summary AS r USING (run_id) WHERE r.name = 'lz4' AND f.name LIKE 'lz4%'")" = 0 ]
}

@test "the report finds the runs that differ in one thing, and names those that are missing" {
  make_table
  one="--duration 2500ms --set consumer.step=3ms"
  "$HEADRACE" run t/pipeline.toml -q $one
  "$HEADRACE" report --json 1 > before.json || [ $? -eq 4 ]
  jq -e '.differential.missing_command | contains("--ceiling") and contains("--set consumer.step=3ms")' before.json
  jq -e '.differential.input_bound_ratio == null and .differential.input_bound_ratio_unavailable != ""' before.json
  "$HEADRACE" run t/pipeline.toml -q $one --ceiling
  # Another setting is another pipeline.
  "$HEADRACE" run t/pipeline.toml -q --duration 2500ms --set consumer.step=9ms --ceiling
  "$HEADRACE" report --json 1 > after.json || [ $? -eq 4 ]
  jq -e '.differential.input_bound_ratio >= 0' after.json
  jq -e '[.differential_stalls[] | select(.run == "run 2")] | length == 1' after.json
  jq -e '[.differential_stalls[] | select(.run == "run 3")] | length == 0' after.json
}
